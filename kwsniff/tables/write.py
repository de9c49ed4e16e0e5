"""Writes record batches to `DIR/<table>.parquet`, all tables or none.

Every table is one file, written in a hidden folder (folder.py) and renamed when all are complete: a
failed or killed run leaves the previous run's files unchanged, and a successful run replaces all of
them, even by empty tables.

The encoding was chosen by measurement (api_calls and latencies; microseconds of CPU time and bytes per
call): Arrow's defaults 0.87 and 89; dictionaries for strings only 0.52 and 82; integers and times as
DELTA_BINARY_PACKED 0.43 and 31; statistics only for the usual filter columns 0.29 and 31. zstd instead
of snappy: 0.34 and 30. 16-bit numbers stay plain: 4 % faster, one byte more.
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
import pyarrow.parquet as pq

from kwsniff.errors import OutputError
from kwsniff.tables.column import TableSchema
from kwsniff.tables.compute import cast
from kwsniff.tables.folder import Folder, translate_errors
from kwsniff.tables.run import add_run_id, new_run_id
from kwsniff.tables.schema import TABLES, arrow_schema, file_metadata, stored_schema

ROW_GROUP_ROWS = 1 << 16
"""Approximate rows of a row group: a few MB, so that a reader can skip or distribute parts of a file."""

_COMPRESSION = "snappy"
_DICTIONARY_BYTES = 1 << 30  # no limit: a text of many rows is never written once per row
_BATCH_ROWS = 1 << 16  # values of a column encoded at a time; Arrow's default of 1024 takes 7 % longer


class TableFiles:
    """Open parquet files, one per table, at given paths.

    `write` may be called any number of times per table; each call becomes one row group or more. `close`
    completes the files, `abort` stops; the owner of the folder removes them. Raises OSError for system
    errors.
    """

    def __init__(self, paths: Mapping[str, Path], run_id: str) -> None:
        self._paths = dict(paths)
        self._run_id = run_id
        self._writers: dict[str, pq.ParquetWriter] = {}
        self._sinks: dict[str, pa.OSFile] = {}
        try:
            for name in self._paths:
                self._open(name, TABLES[name])
        except BaseException:
            self.abort()
            raise

    def write(self, table: str, batch: pa.RecordBatch) -> None:
        """Appends rows in the table's coded schema."""
        # Equal parts: a small rest would be a separate row group, which costs as much as a large one.
        groups = max(batch.num_rows // ROW_GROUP_ROWS, 1)
        rows = max(-(-batch.num_rows // groups), 1)
        marked = pa.Table.from_batches([add_run_id(table, batch, self._run_id)])
        self._writers[table].write_table(marked, row_group_size=rows)

    def rewrite(self, table: str, change: Callable[[pa.Table], pa.Table], *, coded: bool = False) -> None:
        """Puts every row group written so far through `change`, in plain types; `coded`: with texts as
        dictionaries, which takes less time.

        No more rows can be written to this table afterwards.
        """
        self._close(table)
        words = texts_of(TABLES[table]) if coded else ()
        with pq.ParquetFile(self._paths[table], read_dictionary=words) as file:
            schema = file.schema_arrow if coded else arrow_schema(TABLES[table])
            groups = range(file.num_row_groups)
            self._replace(table, (change(file.read_row_group(group)) for group in groups), schema)

    def replace(self, table: str, parts: Iterable[pa.Table], schema: pa.Schema, by: str) -> None:
        """Replaces all rows written so far by these, which are sorted by the column `by`; each part becomes a
        row group. `schema`: the coded or the plain one. The table takes no more rows afterwards."""
        self._close(table)
        order = [pq.SortingColumn(schema.get_field_index(by), nulls_first=False)]
        self._replace(table, parts, schema, sorting_columns=order)

    def _replace(self, table: str, parts: Iterable[pa.Table], schema: pa.Schema, **changes: Any) -> None:
        written = self._paths[table]
        draft = written.with_name(f".{written.name}-draft")
        create(draft)
        with parquet_writer(str(draft), TABLES[table], schema, **changes) as writer:
            for part in parts:
                writer.write_table(_in_schema(part, schema))
        draft.replace(written)

    def close(self, tables: Iterable[str] | None = None) -> None:
        """Completes every file, or those of some tables."""
        for name in list(self._sinks if tables is None else tables):
            self._close(name)

    def abort(self) -> None:
        """Leaves the files unchanged; allowed after `close`."""
        for name, writer in self._writers.items():
            writer.is_open = False  # its finaliser would write again, to a possibly full disk
            with suppress(OSError):
                self._sinks[name].close()
        self._writers.clear()
        self._sinks.clear()

    def _open(self, name: str, table: TableSchema) -> None:
        create(self._paths[name])
        sink = self._sinks[name] = pa.OSFile(str(self._paths[name]), mode="wb")
        self._writers[name] = parquet_writer(sink, table, stored_schema(table))

    def _close(self, name: str) -> None:
        if name in self._sinks:
            self._writers[name].close()
            self._sinks[name].close()
            del self._writers[name], self._sinks[name]


class TableWriter:
    """Writes the tables of a run into one directory, which is created if missing.

    `commit` publishes the files, and removes those of an earlier run for tables that this one does not
    write: all files then belong to one run. Leaving the `with` block without `commit` removes the written
    files. Raises OutputError for system errors and for another writer.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        tables: Sequence[str] = tuple(TABLES),
        run_id: str | None = None,
    ) -> None:
        self.directory = Path(directory)
        self.paths = {name: self.directory / f"{name}.parquet" for name in tables}
        self._refuse_directories()
        self._folder = Folder(self.directory)
        self._folder.__enter__()
        try:
            with translate_errors(self.directory):
                staged = {name: self._folder.new / path.name for name, path in self.paths.items()}
                self._files = TableFiles(staged, run_id or new_run_id())
        except BaseException:
            self._folder.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.abort()

    def write(self, table: str, batch: pa.RecordBatch) -> None:
        """Appends rows in the table's coded schema; see TableFiles."""
        with translate_errors(self.directory):
            self._files.write(table, batch)

    def rewrite(self, table: str, change: Callable[[pa.Table], pa.Table], *, coded: bool = False) -> None:
        """Puts every row group written so far through `change`; see TableFiles."""
        with translate_errors(self.directory):
            self._files.rewrite(table, change, coded=coded)

    def replace(self, table: str, parts: Iterable[pa.Table], schema: pa.Schema, by: str) -> None:
        """Replaces all rows written so far by sorted ones; see TableFiles."""
        with translate_errors(self.directory):
            self._files.replace(table, parts, schema, by)

    def complete(self, tables: Iterable[str]) -> dict[str, Path]:
        """Completes the files of these tables, for computations from them; returns their paths."""
        with translate_errors(self.directory):
            self._files.close(tables)
        return {name: self._folder.new / self.paths[name].name for name in tables}

    def commit(self, without: Iterable[str] = ()) -> dict[str, Path]:
        """Completes and publishes every file, with exceptions; returns table name -> path."""
        for name in without:
            del self.paths[name]
        try:
            with translate_errors(self.directory):
                self._files.close()
            gone = [f"{name}.parquet" for name in TABLES if name not in self.paths]
            self._folder.commit([path.name for path in self.paths.values()], gone)
        finally:
            self.abort()
        return self.paths

    def abort(self) -> None:
        """Removes uncommitted files and releases the lock; allowed after `commit`."""
        self._files.abort()
        self._folder.close()

    def _refuse_directories(self) -> None:
        for path in self.paths.values():
            if path.is_dir():
                raise OutputError(
                    f"{path} is a directory of another program; remove it or choose another output folder "
                    f"with -o"
                )


def _in_schema(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """`cast` of a table, without the import time of `pyarrow.compute` (compute.py)."""
    if rows.schema.names != schema.names:
        raise AssertionError("a change of rows keeps their columns")
    columns = zip(rows.columns, schema.types, strict=True)
    cast_ = [column if column.type == type_ else cast(column, type_) for column, type_ in columns]
    return pa.Table.from_arrays(cast_, schema=schema)


def create(path: Path) -> None:
    """Creates a new file; fails if the name exists, even as a link."""
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666))


def parquet_writer(
    sink: "str | pa.NativeFile", table: TableSchema, schema: pa.Schema, **changes: Any
) -> pq.ParquetWriter:
    """A writer of this table in its coded or plain schema. `changes`: of `encoding`."""
    writer = pq.ParquetWriter(sink, schema, **encoding(table) | changes)
    # Without store_schema, the schema's own metadata is left out.
    writer.add_key_value_metadata(file_metadata(table))
    return writer


def texts_of(table: TableSchema) -> list[str]:
    """Columns with texts."""
    return [column.name for column in table.columns if column.type == "string"]


def encoding(table: TableSchema) -> dict[str, Any]:
    """Arguments of ParquetWriter for a table in its coded or plain schema."""
    # Without int16: codes and versions have few values, which snappy compresses well.
    numbers = ("int32", "int64", "time")
    words = texts_of(table)
    lists = [f"{column.name}.list.element" for column in table.columns if column.type == "strings"]
    return {
        "compression": _COMPRESSION,
        "write_batch_size": _BATCH_ROWS,
        "dictionary_pagesize_limit": _DICTIONARY_BYTES,
        "use_dictionary": [*words, *lists],
        "column_encoding": {
            **{column.name: "DELTA_BINARY_PACKED" for column in table.columns if column.type in numbers},
            **{
                f"{column.name}.list.element": "DELTA_BINARY_PACKED"
                for column in table.columns
                if column.type == "integers"
            },
        },
        "write_statistics": [column.name for column in table.columns if column.statistics],
        "store_schema": False,  # it would make Arrow's readers return dictionaries for the strings
    }
