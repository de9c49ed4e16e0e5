"""The standard streams: a write error is one line and an exit status, never a traceback.

The system would reuse a descriptor that the caller closed (`>&-`) for the next opened file, and printed text
would end up in it. kwsniff opens such descriptors on the null device first.
"""

import io
import os
import select
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from kwsniff.errors import KwsniffError, OutputError, PlacedError, UsageError
from kwsniff.sources.ports import AskedPorts
from kwsniff.texts import clean, plural

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_BUFFER_BYTES = 1 << 16


class _Output(io.FileIO):
    """Standard output. Raises OutputError for write errors, except BrokenPipeError: the reader closed the
    pipe on purpose."""

    def write(self, data: "ReadableBuffer", /) -> int:
        try:
            while (written := super().write(data)) is None:  # it is in non-blocking mode, as node.js sets it
                select.select([], [self], [])
        except BrokenPipeError:
            raise
        except OSError as error:
            raise OutputError(
                f"cannot write to standard output ({error.strerror or error}); the output is incomplete"
            ) from error
        return written


@contextmanager
def standard_output() -> Iterator[None]:
    """Flushes everything printed inside the block at its end. Raises OutputError or BrokenPipeError."""
    _open_closed()
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115, PTH123 - to the end of the process
    before = sys.stdout
    if before is None:
        raise OutputError("standard output is closed; redirect it to a file or /dev/null")
    ours = before is sys.__stdout__
    if not ours:  # another stream, which its owner closes
        yield
        before.flush()
        return
    before.flush()
    buffer = io.BufferedWriter(_Output(before.fileno(), "wb", closefd=False), _BUFFER_BYTES)
    # A character outside the locale's encoding is escaped.
    out = io.TextIOWrapper(buffer, before.encoding, "backslashreplace", line_buffering=before.isatty())
    sys.stdout = out
    try:
        yield
        out.flush()
    except SystemExit:  # after --help or --version
        out.flush()
        raise
    finally:
        try:
            out.flush()
        except (OSError, OutputError):  # already reported; closing it would report it again
            os.dup2(os.open(os.devnull, os.O_WRONLY), before.fileno())
            out.flush()
        sys.stdout = before


def standard_input() -> BinaryIO:
    """Raises UsageError when it is closed."""
    if sys.stdin is None:
        raise UsageError("standard input is closed or a directory; use a file or a pipe")
    return sys.stdin.buffer


def print_message(text: str) -> None:
    """A message on standard error, apart from the output; dropped if standard error is closed."""
    with suppress(OSError):
        print(f"kwsniff: {clean(text)}", file=sys.stderr, flush=True)


def says_error(error: KwsniffError) -> None:
    """An error on standard error: one line, and for a filter two more, which show the place."""
    problem, *place = str(error).split("\n") if isinstance(error, PlacedError) else (str(error),)
    print_message(f"error: {problem}")
    with suppress(OSError):
        for line in place:
            print(clean(line), file=sys.stderr, flush=True)


def leave_errors() -> None:
    """Discards text that standard error did not accept: Python would try again at exit, and exit with 120."""
    try:
        sys.stderr.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


def say_unread(unread: Sequence[str], read: int) -> None:
    """One line for each unreadable file, and the number of files read."""
    for line in unread:
        print_message(f"note: {line}")
    if unread:
        print_message(f"note: {read:,} of {plural(read + len(unread), 'file')} read")


def say_read(summary: Mapping[str, Any]) -> bool:
    """Reports unread parts of the captures: files, ends of files, the time range, ports. `summary`:
    that of an analysis. Returns whether there was anything that was asked for."""
    unread = [f"{each['capture']}: {each['reason']}" for each in summary["unread"]]
    read = summary["captures"][: len(summary["captures"]) - len(unread)]
    say_unread(unread, len(read))
    say_broken(read)
    ports = AskedPorts(summary["ports"])
    ports.absent = set(summary["absent_ports"])
    kafka = (each["broker_port"] for each in summary["latency"]["brokers"])
    packets = sum(each["packets"] - each["skipped_other_time"] for each in read)
    return say_there(packets, ports, missed=summary["no_packets"], kafka=kafka)


def say_there(
    packets: int, ports: AskedPorts, *, missed: str | None = None, kafka: Iterable[int] = ()
) -> bool:
    """Whether captures have anything that was asked for; prints a line if not.

    `packets`: their number; `ports`: those of --port; `missed`: the captured time range, if it misses the
    requested one; `kafka`: ports with calls.
    """
    if not packets:
        print_message(f"note: {missed or 'the captures have no packets'}")
        return False
    if not ports.absent:
        return True
    named = ", ".join(map(str, sorted(ports.absent)))
    seen = ", ".join(map(str, sorted(set(kafka))))
    print_message(f"note: no TCP packets on port {named}" + (f"; found Kafka on port {seen}" if seen else ""))
    return ports.absent != set(ports.asked)


def say_broken(captures: Iterable[Mapping[str, Any]]) -> None:
    """One line for each capture that was not read to its end. `captures`: rows of that table."""
    for each in captures:
        if each["damaged"]:
            print_message(
                f"note: {each['capture']} is damaged; kwsniff did not read the part after the damage"
            )
        elif each["truncated"]:
            why = "; ".join(each["notes"]) or "ends inside a packet"
            print_message(f"note: {each['capture']}: {why}")


def say_left(output: str, before: Collection[str], made: Collection[str], now: Collection[str]) -> None:
    """Notes on tables of an earlier run in an output folder. Names of tables: `before` the run, those it
    made, those present `now`."""
    gone, stay = sorted({*before} - {*now}), sorted({*now} - {*made})
    if gone:
        print_message(f"note: {output}: removed tables of an earlier run: {', '.join(gone)}")
    if stay:
        print_message(f"note: {output}: tables of an earlier run remain: {', '.join(stay)}")
    beside = [name for name in sorted(made) if _is_file_beside_folder(Path(output), name)]
    if beside:
        print_message(
            f"note: {output}: folders of kwsniff live or pipeline with these names remain; readers of "
            f"{output} use the files of this run: {', '.join(beside)}"
        )


def _is_file_beside_folder(output: Path, table: str) -> bool:
    return (output / f"{table}.parquet").is_file() and any((output / table).glob("**/*.parquet"))


def _open_closed() -> None:
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # opens the lowest free descriptor: this one
