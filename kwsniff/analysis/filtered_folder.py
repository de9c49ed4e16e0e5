"""A folder of tables with only the rows of chosen calls."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kwsniff.filter.expression import Filter
from kwsniff.temporary import temporary_folder

if TYPE_CHECKING:
    import duckdb


@contextmanager
def chosen_folder(folder: str, where: Filter | None) -> Iterator[str]:
    """A folder of tables, or one with only the rows of the chosen calls and what belongs to them. Raises
    UsageError."""
    if where is None:
        yield folder
        return
    from kwsniff.filter.stored_rows import copy_chosen
    from kwsniff.tables.stored_files import files_of_tables

    with temporary_folder() as place:
        copy_chosen(files_of_tables(Path(folder)), where, Path(folder), Path(place))
        yield place


@contextmanager
def open_chosen(
    folder: str, where: Filter | None, **how: Any
) -> Iterator[tuple["duckdb.DuckDBPyConnection", Mapping[str, list[str]]]]:
    """The same as a database, and each table's files. `how`: as open_folder takes it."""
    from kwsniff.findings.views import open_folder
    from kwsniff.tables.stored_files import files_of_tables

    with (
        chosen_folder(folder, where) as place,
        temporary_folder() as copies,
        open_folder(place, copies=Path(copies), **how) as database,
    ):
        yield database, files_of_tables(Path(place))


def resolve_where(where: Filter | None, captures: Sequence[str | os.PathLike[str]]) -> Filter | None:
    """The filter with times as dates, where the captures can be read once more: else they count from the
    packets that were read."""
    from kwsniff.filter.filtered_calls import resolve_captures
    from kwsniff.sources.order import find_in_order

    names = [name for name in captures if Path(name).is_file() or Path(name).is_dir()]
    if where is None or not (where.relative_kinds or where.asks_packets) or len(names) < len(captures):
        return where
    return resolve_captures(where, find_in_order(names).captures)
