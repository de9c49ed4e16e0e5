"""Tables in the order of time: rows are written as their calls end, and sorted on demand."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from kwsniff.errors import OutputError
from kwsniff.filter.tokens import quote
from kwsniff.findings.database import hush, lacks_memory, open_database, read_batches
from kwsniff.findings.views import FOUND
from kwsniff.tables.schema import TABLES
from kwsniff.tables.write import ROW_GROUP_ROWS
from kwsniff.temporary import temporary_folder

if TYPE_CHECKING:
    from pathlib import Path

    from kwsniff.tables.write import TableWriter

_LEAST_MB: Final = 125
"""What one thread of DuckDB takes at the least, by its own guide."""


def time_of(table: str) -> str | None:
    """The column by which a table is sorted: its first time. None without one, and for findings, of which the
    worst are first."""
    times = [column.name for column in TABLES[table].columns if column.type == "time"]
    return times[0] if times and table not in FOUND else None


def sort_tables(writer: "TableWriter", tables: Sequence[str], memory: int) -> None:
    """Sorts the rows of these tables by time, those of one time in their order, those without a time last.

    `memory`: bytes that DuckDB may take; it puts the rest where temporary files go. Raises OutputError where
    neither suffices.
    """
    for table in tables:
        column = time_of(table)
        if column is None:
            continue
        path = writer.complete([table])[table]
        try:
            writer.replace(table, _read_sorted(path, column, memory), by=column)
        except Exception as error:
            if not lacks_memory(error):
                raise
            raise OutputError(
                f"{path.name}: memory or the disk of temporary files does not suffice to sort it; "
                "leave out --sort, or raise --limit memory"
            ) from error


def _read_sorted(path: "Path", column: str, memory: int) -> Iterator[pa.Table]:
    asked = (
        f"select * exclude (file_row_number) from read_parquet({quote(str(path))}, file_row_number = true) "  # noqa: S608
        f'order by "{column}" nulls last, file_row_number'
    )
    with temporary_folder() as folder, open_database() as database:
        hush(database)
        database.execute("set TimeZone = 'UTC'; set threads = 1")
        database.execute(f"set memory_limit = '{max(memory // 1_000_000, _LEAST_MB)}MB'")
        database.execute(f"set temp_directory = {quote(str(folder))}")
        for batch in read_batches(database.sql(asked), ROW_GROUP_ROWS):
            yield pa.Table.from_batches([batch])
