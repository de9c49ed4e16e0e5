"""Writes the index of packets for the plugin from a folder of tables, one file per capture.

    kwsniff packet index 1 <tab> capture
    first packet, last packet, time, end time, request | response | packet, sender, its port, receiver, its
        port, call_id, api_name, api_version, latency_ns, its six parts, findings      one line for a message
    class first last offset      one line for a group of 128 messages
    offset of the groups, in 20 digits

A message's values end with a tab; null is empty. Times are microseconds, as SQL has them. Messages are sorted
by first packet, in classes by the number of packets that they reach over, in powers of 16: so few long ones
do not make every lookup pass over many short ones. Sender and receiver are there if packets are between the
first and the last one.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

import numpy as np

from kwsniff.atomic_file import write_atomically
from kwsniff.errors import OutputError
from kwsniff.findings.sql import ask
from kwsniff.findings.table_views import columns_in, show_no_rows, show_rows, source_of
from kwsniff.findings.views import FOUND, open_folder
from kwsniff.tables.stored_files import files_of_tables
from kwsniff.temporary import temporary_folder
from kwsniff.texts import clean

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

MARK: Final = b"kwsniff packet index 1\t"
ENDING: Final = ".index"
_GROUP: Final = 128
_PARTS: Final = (
    "request_transmission_ns", "network_ns", "queue_wait_ns", "broker_ns", "deliberate_wait_ns",
    "response_transmission_ns",
)  # fmt: skip
_BETWEEN: Final = ("sender", "sender_port", "receiver", "receiver_port")
_VALUES: Final = ("call_id", "api_name", "api_version", "latency_ns", *_PARTS, "names")
_QUERIES: Final = Path(__file__).with_suffix(".sql")


@dataclass(frozen=True, slots=True)
class Written:
    """An index: of which capture, of how many messages, and where."""

    capture: str
    messages: int
    path: Path


def write_indexes(tables: str, folder: Path) -> list[Written]:
    """Writes an index for each capture of a folder of tables; those of the same captures are replaced. Raises
    UsageError where there are no tables, OutputError where `folder` cannot be written."""
    with _open(tables) as database:
        named = database.execute("select number, capture, first, time, messages from named").fetchall()
        written = [
            Written(capture, messages, folder / f"{first}-{time}{ENDING}")
            for _, capture, first, time, messages in named
        ]
        if written:
            make_folder(folder)
        for (number, *_), index in zip(named, written, strict=True):
            with write_atomically(index.path, binary=True) as file:
                _write(database, number, index.capture, file)
    return written


def make_folder(folder: Path) -> None:
    """Raises OutputError where it cannot be made."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{folder}: cannot make this folder: {error.strerror}") from error


@contextmanager
def _open(tables: str) -> Iterator["duckdb.DuckDBPyConnection"]:
    sources = files_of_tables(Path(tables))
    with temporary_folder() as copies, open_folder(tables, copies=Path(copies), every_view=False) as database:
        for name in sorted(FOUND):
            listed = sources.get(name)
            there = columns_in(database, listed) if listed else ()
            database.execute(
                show_rows(name, source_of(listed), there) if listed else show_no_rows(name, kept=False)
            )
        database.execute(_QUERIES.read_text("utf-8"))
        yield database


def _write(database: "duckdb.DuckDBPyConnection", number: int, capture: str, file: IO[bytes]) -> None:
    offset = file.write(MARK + clean(capture).encode() + b"\n")
    groups: list[str] = []
    query = (
        f"select class, first, last, {_line()} as line from message where number = {number} "  # noqa: S608
        "order by class, first, last, call_id"
    )
    for batch in ask(database, query).batches:
        lines = batch.column("line").cast("string")
        _, ends, data = lines.buffers()
        marks = np.frombuffer(ends, np.int32)[lines.offset : lines.offset + len(lines) + 1].astype(np.int64)
        groups += _groups(batch, marks - marks[0] + offset)
        offset += file.write(memoryview(data)[marks[0] : marks[-1]])
    file.write("".join(groups).encode() + b"%020d\n" % offset)


def _groups(batch: "pa.RecordBatch", offsets: Any) -> list[str]:
    """Lines of the directory. `offsets`: of the messages in the file."""
    classes, first, last = (batch.column(name).to_numpy() for name in ("class", "first", "last"))
    starts = np.union1d(np.arange(0, len(first), _GROUP), np.flatnonzero(np.diff(classes)) + 1)
    columns: Sequence[Any] = (
        classes[starts],
        first[starts],
        np.maximum.reduceat(last, starts),
        offsets[starts],
    )
    return [f"{kind} {begin} {end} {at}\n" for kind, begin, end, at in zip(*columns, strict=True)]


def _line() -> str:
    """The SQL for a message's line."""
    between = [f"if(last > first + 1, {name}, null)" for name in _BETWEEN]
    values = ("first", "last", "time", "end_time", "side", *between, *_VALUES)
    return (
        "concat("
        + ", chr(9), ".join(f"coalesce({each}::varchar, '')" for each in values)
        + ", chr(9), chr(10))"
    )
