"""SQL of users over a folder of tables: it may read those tables and nothing else, and write nothing.

The views are made first, then DuckDB is shut in: no file but those of the tables, no extension, no setting
can be reached from then on. Statements other than queries are rejected before they run.
"""

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache, partial
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from kwsniff.errors import OutputError, UsageError
from kwsniff.filter.tokens import quote
from kwsniff.findings.database import hush, open_database, read_batches
from kwsniff.findings.views import MEMORY, is_folder_of_tables
from kwsniff.tables.schema import TABLES, arrow_schema
from kwsniff.tables.stored_files import files_of_tables
from kwsniff.temporary import temporary_folder

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

_BATCH_ROWS: Final = 65_536
_PATIENCE_S: Final = 5.0
"""For a query that was interrupted."""
_GLANCE_S: Final = 0.1
_QUERIES: Final = ("SELECT", "MULTI")  # pivot is several statements


@dataclass(frozen=True, slots=True)
class Question:
    """A query that is there ready-made. `asks`: the question in words."""

    name: str
    asks: str
    query: str


@cache
def load_questions() -> Mapping[str, Question]:
    """The questions of docs/questions.md, by name: the files in `questions/`, whose first line asks."""
    found = {}
    for file in sorted(files("kwsniff.findings").joinpath("questions").iterdir(), key=lambda each: each.name):
        if file.name.endswith(".sql"):
            name = file.name.removesuffix(".sql")
            asks, _, query = file.read_text("utf-8").partition("\n")
            found[name] = Question(name, asks.removeprefix("-- "), query)
    return found


def find_question(name: str) -> Question:
    """Raises UsageError for an unknown name."""
    questions = load_questions()
    if name in questions:
        return questions[name]
    near = get_close_matches(name, questions, 2, 0.5)
    hint = f"; did you mean {' or '.join(near)}?" if near else f"; known: {', '.join(questions)}"
    raise UsageError(f"unknown question '{name}'{hint}")


@contextmanager
def open_console(folder: str | os.PathLike[str]) -> Iterator["duckdb.DuckDBPyConnection"]:
    """A database with a view of each table in the folder, of `analyze`, `live` or `pipeline`, shut in.

    Raises UsageError if there are no tables.
    """
    import duckdb

    place = Path(folder)
    tables = files_of_tables(place)
    beneath = [name for name in tables if is_folder_of_tables(place / name)]
    if len(beneath) == len(tables):
        what = "no tables in this folder" if place.is_dir() else "no such folder"
        hint = " or ".join(str(place / name) for name in beneath[:2])
        do = f"did you mean {hint}?" if hint else "make them with `kwsniff analyze CAPTURE -o DIR`"
        raise UsageError(f"{place}: {what}; {do}")
    with temporary_folder() as spill, closing_quietly(open_database()) as database:
        try:
            for name, paths in tables.items():
                show_files(database, name, paths)
            _shut_in(database, [path for paths in tables.values() for path in paths], spill)
        except duckdb.Error as error:
            raise UsageError(f"{place}: cannot read: {_in_one_line(error)}") from error
        yield database


@contextmanager
def closing_quietly(database: "duckdb.DuckDBPyConnection") -> Iterator["duckdb.DuckDBPyConnection"]:
    """A database that is busy with an endless query cannot be closed; that error is ignored."""
    import duckdb

    try:
        yield database
    finally:
        with suppress(duckdb.Error):
            database.close()


def show_files(database: "duckdb.DuckDBPyConnection", name: str, paths: Sequence[str]) -> None:
    """Makes a view of a table's parquet files, its columns those of all of them."""
    if paths:
        listed = ", ".join(quote(path) for path in paths)
        dated = str(all("/date=" in path for path in paths)).lower()  # as pipeline lays them out
        source = f"read_parquet([{listed}], union_by_name=true, hive_partitioning={dated})"
    else:  # a table that has no rows yet, as live begins them
        database.register(f"{name} without rows", arrow_schema(TABLES[name]).empty_table())
        source = f'"{name} without rows"'
    view = name.replace('"', '""')
    database.execute(f'create temp view "{view}" as select * from {source}')  # noqa: S608 - quoted


def _shut_in(database: "duckdb.DuckDBPyConnection", paths: list[str], spill: str) -> None:
    hush(database)
    for setting, value in (
        ("TimeZone", "'UTC'"),
        ("memory_limit", f"'{MEMORY}'"),
        ("temp_directory", quote(spill)),
        ("allowed_paths", f"[{', '.join(map(quote, paths))}]"),
        ("autoinstall_known_extensions", "false"),
        ("autoload_known_extensions", "false"),
        ("enable_external_access", "false"),
        ("lock_configuration", "true"),
    ):
        database.execute(f"set {setting} = {value}")


@dataclass(frozen=True, slots=True)
class Rows:
    """The answer to a query: its columns, and its rows as they come."""

    schema: "pa.Schema"
    batches: Iterator["pa.RecordBatch"]


def ask(database: "duckdb.DuckDBPyConnection", query: str) -> Rows:
    """The rows of a query, in batches. Ctrl-C ends it, and is raised.

    Raises UsageError, one line, for what is wrong or no query.
    """
    import duckdb

    try:
        reader = _interruptible(database, partial(_reader, database, query))
    except duckdb.Error as error:
        raise UsageError(_in_one_line(error)) from error
    return Rows(reader.schema, _batches(database, reader))


def _reader(database: "duckdb.DuckDBPyConnection", query: str) -> "pa.RecordBatchReader":
    statements = database.extract_statements(query)
    if not statements:
        raise UsageError("no query given; for example: from api_calls limit 10")
    if len(statements) > 1:
        raise UsageError(f"{len(statements)} queries given: run one at a time")
    kind = statements[0].type.name
    if kind not in _QUERIES:
        raise UsageError(f"{kind} is not allowed: this command only reads tables")
    found: Any = database.sql(query)
    if found is None:
        raise UsageError("the SQL has no rows to show; for example: from api_calls limit 10")
    return read_batches(found, _BATCH_ROWS)


def _batches(
    database: "duckdb.DuckDBPyConnection", reader: "pa.RecordBatchReader"
) -> Iterator["pa.RecordBatch"]:
    """Raises UsageError, one line, where the query fails on the way."""
    import pyarrow as pa

    try:
        while (batch := _interruptible(database, partial(next, reader, None))) is not None:
            yield batch
    except (pa.ArrowException, OSError) as error:
        raise UsageError(_in_one_line(error)) from error


Answer = TypeVar("Answer")


def _interruptible(database: "duckdb.DuckDBPyConnection", step: Callable[[], Answer]) -> Answer:
    """Takes a step of a query, which Ctrl-C ends.

    Python notices a signal between two of its own steps, and this is one: it is taken in another thread.
    """
    given: list[Answer] = []
    failed: list[BaseException] = []
    done = threading.Event()  # Thread.join takes a thread for ended once a signal has come

    def fetch() -> None:
        try:
            given.append(step())
        except BaseException as error:
            failed.append(error)
        finally:
            done.set()

    thread = threading.Thread(target=fetch, name="kwsniff-query", daemon=True)
    try:
        thread.start()  # it waits until the thread runs: Ctrl-C may come here too
        done.wait()
    except KeyboardInterrupt:
        end = time.monotonic() + _PATIENCE_S
        while not done.is_set() and time.monotonic() < end:
            database.interrupt()  # again: a query that had not begun yet does not notice
            done.wait(_GLANCE_S)
        raise
    if failed:
        raise failed[0]
    return given[0]


def read(rows: Rows) -> Iterator[list[list[Any]]]:
    """The rows, batch by batch, values in the order of the columns.

    Raises UsageError, one line, where the query fails on the way.
    """
    for batch in rows.batches:
        # Not by name: two columns may have the same one.
        columns = [column.to_pylist() for column in batch.columns]
        yield [list(row) for row in zip(*columns, strict=True)]


def write_parquet(rows: Rows, path: Path) -> None:
    """The rows as a parquet file. Raises UsageError where the query fails on the way."""
    import pyarrow as pa
    from pyarrow import parquet

    with path.open("xb") as file:
        try:
            with parquet.ParquetWriter(file, rows.schema, compression="zstd") as writer:
                for batch in rows.batches:
                    writer.write_batch(batch)
        except pa.ArrowException as error:
            raise UsageError(_in_one_line(error)) from error


def _in_one_line(error: Exception) -> str:
    """DuckDB's own words, without the query, of which it shows a piece below them."""
    return " ".join(str(error).partition("\nLINE ")[0].split())


@contextmanager
def named_when_whole(path: Path) -> Iterator[Path]:
    """A hidden file beside `path`, that gets its name when the block ends well, and goes when it does not.

    Raises OutputError where it cannot be written.
    """
    import uuid

    if path.exists() and not path.is_file():
        raise OutputError(f"{path} is not a regular file; omit -o, or choose another output file")
    hidden = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        yield hidden
        hidden.replace(path)
    except OSError as error:
        raise OutputError(f"{path}: cannot write ({error.strerror or error})") from error
    finally:
        with suppress(OSError):
            hidden.unlink()
