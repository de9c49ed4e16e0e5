"""A folder of tables, of `analyze`, `live` or `pipeline` alike, as one database of views."""

import os
import re
from collections.abc import Container, Iterable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kwsniff.errors import UsageError
from kwsniff.tables.column import Column
from kwsniff.tables.folder import settle
from kwsniff.tables.schema import TABLES, arrow_schema

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

READ: tuple[str, ...] = tuple(name for name in TABLES if name != "findings")
MEMORY = "512MB"
"""What DuckDB may take; beyond that it uses the disk."""


def with_sources(tables: Sequence[str]) -> tuple[str, ...]:
    """These tables, and those that findings are made of where they are wanted."""
    wanted = {*tables, *READ} if "findings" in tables else set(tables)
    return tuple(name for name in TABLES if name in wanted)


def is_folder_of_tables(place: str | os.PathLike[str]) -> bool:
    """Whether kwsniff has written tables there."""
    folder = Path(place)
    return any(
        (folder / f"{name}.parquet").is_file() or (folder / name).is_dir()
        for name in ("api_calls", "connections")
    )


def open_folder(folder: str | os.PathLike[str]) -> "duckdb.DuckDBPyConnection":
    """The tables of a folder as views for rules. Raises UsageError where it holds none."""
    place = Path(folder)
    sources = files_of_tables(place)
    if "api_calls" not in sources or "connections" not in sources:
        raise UsageError(
            f"{place}: holds no tables of kwsniff (api_calls, connections); make them with "
            "`kwsniff analyze CAPTURE -o DIR`"
        )
    return open_files(sources)


def open_files(
    sources: Mapping[str, Sequence[str | os.PathLike[str]]], queries: Iterable[str] | None = None
) -> "duckdb.DuckDBPyConnection":
    """Parquet files, by table, as views for rules; tables without files have no rows.

    Only those views are made that `queries` name, where they are given: each one costs a look into its files.
    """
    database = _database()
    wanted = _named(queries)
    for name in READ:
        if name not in wanted:
            continue
        if sources.get(name):
            listed = ", ".join("'" + str(each).replace("'", "''") + "'" for each in sources[name])
            _show(database, name, f"read_parquet([{listed}], union_by_name=true, hive_partitioning=false)")
        else:
            database.register(f"{name}_empty", arrow_schema(TABLES[name]).empty_table())
            _show(database, name, f"{name}_empty")
    return _with_views(database, wanted)


def files_of_tables(folder: Path) -> dict[str, list[str]]:
    """Name of a table -> its parquet files, in whichever way a verb of kwsniff lays them out."""
    found: dict[str, list[str]] = {}
    if not folder.is_dir():
        return found
    settle(folder)
    for entry in sorted(folder.iterdir()):
        if entry.name.startswith((".", "_")):
            continue
        if entry.suffix == ".parquet" and entry.is_file():
            found[entry.stem] = [str(entry)]
        elif entry.is_dir():
            files_ = sorted(str(file) for file in entry.rglob("*.parquet") if _shown(file, folder))
            if files_ or entry.name in TABLES:
                found[entry.name] = files_
    return found


def open_tables(tables: Mapping[str, "pa.Table"]) -> "duckdb.DuckDBPyConnection":
    """Tables in memory as views for rules; those that are missing have no rows."""
    database = _database()
    for name in READ:
        rows = tables.get(name)
        database.register(f"{name}_rows", arrow_schema(TABLES[name]).empty_table() if rows is None else rows)
        _show(database, name, f"{name}_rows")
    return _with_views(database, _named(None))


def _shown(file: Path, folder: Path) -> bool:
    return not any(part.startswith((".", "_")) for part in file.relative_to(folder).parts)


def _database() -> "duckdb.DuckDBPyConnection":
    import duckdb

    database = duckdb.connect(":memory:")
    database.execute("set TimeZone = 'UTC'")
    database.execute(f"set memory_limit = '{MEMORY}'")
    database.execute("set parquet_metadata_cache = true")
    return database


def _show(database: "duckdb.DuckDBPyConnection", name: str, source: str) -> None:
    """A table with all columns of today: those that a folder of before does not have are null."""
    there = set(database.sql(f"select * from {source}").columns)  # noqa: S608
    columns = [
        f'"{column.name}"' if column.name in there else f'{_absent(column)} as "{column.name}"'
        for column in TABLES[name].columns
    ]
    # Names are those of TABLES; paths are quoted by open_folder.
    database.execute(f"create temp view {name} as select {', '.join(columns)} from {source}")  # noqa: S608


def _absent(column: Column) -> str:
    # Rows of before runs had ids join with each other: all of them are of one run.
    return "''" if column.name == "run_id" else f"null::{_TYPES[column.type]}"


_TYPES: Mapping[str, Any] = {
    "bool": "boolean", "int16": "smallint", "int32": "integer", "int64": "bigint", "double": "double",
    "string": "varchar", "strings": "varchar[]", "integers": "bigint[]", "time": "timestamptz",
    "binary": "blob",
}  # fmt: skip


def _views() -> dict[str, str]:
    """Name of a view -> the statement that makes it, in order."""
    text = re.sub("--.*", "", files("kwsniff.findings").joinpath("views.sql").read_text("utf-8"))
    return {_MADE.findall(each)[0]: each for each in text.split(";") if _MADE.search(each)}


_MADE: Final = re.compile(r"create temp view (\w+)")


def _named(queries: Iterable[str] | None) -> set[str]:
    """Tables and views that queries name, and those that these are made of; all of them without queries."""
    views = {**_views(), "least_version": ""}
    if queries is None:
        return {*READ, *views}
    found = set(re.findall(r"\w+", " ".join(queries))) & {*READ, *views}
    for name in reversed(views):
        if name in found:
            found |= set(re.findall(r"\w+", views[name])) & {*READ, *views}
    return found


def _with_views(database: "duckdb.DuckDBPyConnection", wanted: Container[str]) -> "duckdb.DuckDBPyConnection":
    if "least_version" in wanted:
        _add_least_versions(database)
    for name, statement in _views().items():
        if name in wanted:
            database.execute(statement)
    return database


def _add_least_versions(database: "duckdb.DuckDBPyConnection") -> None:
    """least_version(api_key, least, since): what the newest release takes at least, and since which one."""
    from kwsniff.layout.catalog import load_catalog

    releases = load_catalog().releases
    rows = []
    for key, spans in releases.ranges.items():
        newest = spans[-1]
        if newest is not None and newest[0] > 0:
            since = next(
                name
                for name, span in zip(releases.names, spans, strict=True)
                if span and span[0] == newest[0]
            )
            rows.append((key, newest[0], since))
    listed = ", ".join(f"({key}, {least}, '{since}')" for key, least, since in rows)
    database.execute(f"create temp view least_version as from (values {listed}) v(api_key, least, since)")
