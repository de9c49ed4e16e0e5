"""Tables as views of their files, or as rows that a database keeps: with the columns of today."""

import os
from collections.abc import Container, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from kwsniff.errors import UsageError
from kwsniff.filter.tokens import quote
from kwsniff.tables.column import Column
from kwsniff.tables.schema import TABLES

if TYPE_CHECKING:
    import duckdb

FEW: Final = 64
"""Files of a table that are kept open, for the columns of each, and whose footers are kept: more of them take
the memory, which grows with their number."""


def check_files(sources: Mapping[str, Sequence[str | os.PathLike[str]]]) -> None:
    """Raises UsageError for a parquet file that is not whole; of a table with many files, looks at FEW."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    for listed in sources.values():
        for file in listed[:FEW]:
            try:
                pq.read_metadata(file)
            except (pa.ArrowException, OSError) as error:
                reason = str(error).splitlines()[0]
                raise UsageError(f"{file}: damaged ({reason}); write the tables again") from error


def source_of(listed: Sequence[str | os.PathLike[str]]) -> str:
    apart = str(len(listed) <= FEW or not _have_same_columns(listed)).lower()
    files_ = ", ".join(map(quote, map(str, listed)))
    return f"read_parquet([{files_}], union_by_name={apart}, hive_partitioning=false)"


def _have_same_columns(listed: Sequence[str | os.PathLike[str]]) -> bool:
    """Whether the files are of one time: columns are added as kwsniff learns them."""
    import pyarrow.parquet as pq

    first = pq.read_schema(listed[0])
    return all(pq.read_schema(file).equals(first) for file in listed[1:])


def columns_in(database: "duckdb.DuckDBPyConnection", listed: Sequence[str | os.PathLike[str]]) -> set[str]:
    """The columns that some of these files have."""
    if len(listed) > 1:
        return {
            column[0] for column in database.execute(f"from {source_of(listed)} limit 0").description or ()
        }
    import pyarrow.parquet as pq

    return {*pq.read_schema(listed[0]).names}  # in half of the time


def show_rows(
    name: str, source: str, there: Container[str], wanted: Container[str] | None = None, *, kept: bool = False
) -> str:
    """The statement for a table with all columns of today, or some: null where they are not `there`, as in a
    folder of before.

    `kept`: the rows are taken now, since the source will be gone.
    """
    columns = [
        f'"{column.name}"' if column.name in there else f'{_name_absent(column)} as "{column.name}"'
        for column in TABLES[name].columns
        if wanted is None or column.name in wanted
    ]
    selected = ", ".join(columns) or "1 as row"
    how = "table" if kept else "view"
    # Names are those of TABLES; paths are quoted by source_of.
    return f"create temp {how} {name} as select {selected} from {source}"  # noqa: S608


def show_no_rows(name: str, *, kept: bool) -> str:
    """The statement for a table without rows."""
    columns = ", ".join(f'null::{_TYPES[column.type]} as "{column.name}"' for column in TABLES[name].columns)
    return f"create temp {'table' if kept else 'view'} {name} as select {columns} limit 0"


def _name_absent(column: Column) -> str:
    # Rows of before runs had ids join with each other: all of them are of one run.
    return "''" if column.name == "run_id" else f"null::{_TYPES[column.type]}"


_TYPES: Mapping[str, Any] = {
    "bool": "boolean", "int16": "smallint", "int32": "integer", "int64": "bigint", "double": "double",
    "string": "varchar", "strings": "varchar[]", "integers": "bigint[]", "time": "timestamptz",
    "binary": "blob",
}  # fmt: skip
