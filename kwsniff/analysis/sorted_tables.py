"""Tables in the order of time: rows are written as their calls end, and sorted on demand."""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from kwsniff.errors import OutputError
from kwsniff.filter.tokens import quote
from kwsniff.findings.database import hush, lacks_memory, open_database, read_batches
from kwsniff.findings.views import FOUND
from kwsniff.memory import memory_left, release_arrow_memory
from kwsniff.tables.arrays import Numbers, distinct, whole_numbers
from kwsniff.tables.compute import take_rows
from kwsniff.tables.schema import TABLES
from kwsniff.tables.write import ROW_GROUP_ROWS, texts_of
from kwsniff.temporary import temporary_folder

if TYPE_CHECKING:
    from pathlib import Path

    from kwsniff.tables.write import TableWriter

_LEAST_MB: Final = 125
"""What one thread of DuckDB takes at the least, by its own guide."""
_GROUPS: Final = 2
"""Row groups that are kept in memory."""


def time_of(table: str) -> str | None:
    """The first time of a table, by which it is sorted. None without one; findings stay worst first."""
    times = [column.name for column in TABLES[table].columns if column.type == "time"]
    return times[0] if times and table not in FOUND else None


def sort_tables(writer: "TableWriter", tables: Sequence[str], limit: int) -> None:
    """Sorts each table by time. Rows of one time keep their order, and rows without a time come last.

    `limit`: bytes of memory for the process. DuckDB puts what does not fit where temporary files go. Raises
    OutputError where neither suffices.
    """
    for table in tables:
        column = time_of(table)
        if column is None:
            continue
        path = writer.complete([table])[table]
        try:
            # Texts stay dictionaries: each row may have the longest one.
            with pq.ParquetFile(path, read_dictionary=texts_of(TABLES[table])) as file:
                order = _read_order(path, column, memory_left(limit) // 2)
                writer.replace(table, _take_in_order(file, order), file.schema_arrow, by=column)
        except Exception as error:
            if not lacks_memory(error):
                raise
            raise OutputError(
                f"{path.name}: memory or the disk of temporary files does not suffice to sort it; "
                "leave out --sort, or raise --limit memory"
            ) from error


def _read_order(path: "Path", column: str, memory: int) -> Iterator[Numbers]:
    """The numbers of the rows of a file in the order of time, as many as a row group has."""
    asked = (
        f"select file_row_number from read_parquet({quote(str(path))}, file_row_number = true) "  # noqa: S608
        f'order by "{column}" nulls last, file_row_number'
    )
    with temporary_folder() as folder, open_database() as database:
        hush(database)
        database.execute("set TimeZone = 'UTC'; set threads = 1")
        database.execute(f"set memory_limit = '{max(memory // 1_000_000, _LEAST_MB)}MB'")
        database.execute(f"set temp_directory = {quote(str(folder))}")
        for batch in read_batches(database.sql(asked), ROW_GROUP_ROWS):
            yield whole_numbers(batch["file_row_number"], null=0)


def _take_in_order(file: pq.ParquetFile, order: Iterable[Numbers]) -> Iterator[pa.Table]:
    """The rows with these numbers. Rows are nearly in the order of time: few row groups are read twice."""
    read = lru_cache(maxsize=_GROUPS)(file.read_row_group)
    sizes = [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)]
    ends = np.cumsum(sizes, dtype=np.int64)
    for numbers in order:
        release_arrow_memory()
        group_of = np.searchsorted(ends, numbers, side="right")
        parts = [
            take_rows(read(group), numbers[group_of == group] - (ends[group] - sizes[group]))
            for group in distinct(group_of).tolist()
        ]
        places = np.empty(len(numbers), np.int64)
        places[np.argsort(group_of, kind="stable")] = np.arange(len(numbers))
        yield take_rows(pa.concat_tables(parts).unify_dictionaries(), places)
