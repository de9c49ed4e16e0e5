"""`kwsniff.open`: the tables of a run, or of many, in a folder that analyze, live or pipeline wrote."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from kwsniff.analysis.stored_tables import Tables
from kwsniff.errors import CaptureError, UsageError
from kwsniff.filter.expression import Filter
from kwsniff.filter.parser import parse_filter
from kwsniff.filter.rows_of_calls import Chosen
from kwsniff.filter.stored_rows import choose_stored, chosen_rows
from kwsniff.findings.sql import show_files
from kwsniff.sources.paths import local_path
from kwsniff.tables.aggregates import AGGREGATES
from kwsniff.tables.schema import TABLES, arrow_schema
from kwsniff.tables.stored_files import files_of_tables

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


class Folder(Tables):
    """Tables in a folder; each is read when it is asked for, every time again.

    Tables of an earlier kwsniff have the columns of today, null where they did not have them.
    """

    def __init__(self, path: str | os.PathLike[str], where: str | Filter | None = None) -> None:
        self._where = parse_filter(where) if isinstance(where, str) else where
        self._runs: dict[str | None, Chosen] | None = None
        self.path = Path(local_path(path))
        found = files_of_tables(self.path)
        known = [name for name in TABLES if name in found]
        self._files = {name: found[name] for name in (*known, *sorted(found.keys() - TABLES.keys()))}

    @property
    def names(self) -> Sequence[str]:
        """Names of the tables in the folder, those of pipeline's aggregates last."""
        return tuple(self._files)

    @property
    def paths(self) -> dict[str, list[str]]:
        """Table name -> its parquet files."""
        return {name: list(files) for name, files in self._files.items()}

    def table(self, name: str) -> pa.Table:
        """A table by name. Raises UsageError for one that is not here, CaptureError for damaged files."""
        try:
            return self._choose(name) if self._where else self.dataset(name).to_table()
        except (OSError, pa.ArrowInvalid) as error:
            raise CaptureError(f"{self.path}: {name} cannot be read: {str(error).splitlines()[0]}") from error

    def dataset(self, name: str) -> ds.Dataset:
        """A whole table as a pyarrow Dataset, for those that do not fit into memory. Raises UsageError."""
        if name not in self._files:
            raise UsageError(f"{self.path}: holds no table {name!r}; there are {', '.join(self._files)}")
        schema = arrow_schema(TABLES[name]) if name in TABLES else None
        return ds.dataset(self._files[name], schema=schema, format="parquet")

    def rows(self, name: str) -> int:
        """How many rows a table has; without a filter by the ends of its files."""
        if self._where:
            return int(self.table(name).num_rows)
        return sum(int(pq.read_metadata(file).num_rows) for file in self._files[name])

    def open_views(self) -> "DuckDBPyConnection":
        """A database with the views that rules and charts read; without a filter it reads the files."""
        from kwsniff.findings.views import open_folder

        return super().open_views() if self._where else open_folder(self.path)

    def _show(self, database: "DuckDBPyConnection", name: str) -> None:
        """Without a filter DuckDB reads the files, and of these what a query needs."""
        if self._where:
            super()._show(database, name)
        else:
            show_files(database, name, self._files[name])

    def _choose(self, name: str) -> pa.Table:
        """Rows that belong to chosen calls."""
        if self._runs is None and self._where is not None:
            self._runs = choose_stored(self._files, self._where)
        rows = self.dataset(name)
        found = [chosen_rows(name, batch, self._runs or {}) for batch in rows.to_batches()]
        return pa.Table.from_batches(found, rows.schema)

    def origin(self) -> str:
        """The folder."""
        return str(self.path)


def open(path: str | os.PathLike[str], *, where: str | Filter | None = None) -> Folder:
    """The tables that analyze, live or pipeline wrote into a folder. `where`: a filter of calls; the tables
    then have only rows that belong to these. Raises UsageError where the folder has no tables, and for an
    invalid filter."""
    place = local_path(path)
    if not files_of_tables(Path(place)).keys() & (TABLES | AGGREGATES).keys():
        raise UsageError(
            f"{place}: holds no tables of kwsniff; make them with `kwsniff analyze CAPTURE -o {place}`"
        )
    return Folder(place, where)
