"""The standard streams: what cannot be written to them is one line and an exit status, never a traceback.

A descriptor that was closed by the caller (`>&-`) would be given to the next file that is opened, and what is
printed would end up in it: such descriptors are opened on the null device first.
"""

import io
import os
import select
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from kwsniff.errors import OutputError, UsageError
from kwsniff.sources.ports import AskedPorts
from kwsniff.texts import clean, plural

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_BUFFER_BYTES = 1 << 16


class _Output(io.FileIO):
    """Standard output. Raises OutputError for what the system refuses, but BrokenPipeError as it is: whoever
    read has enough."""

    def write(self, data: "ReadableBuffer", /) -> int:
        try:
            while (written := super().write(data)) is None:  # it was made not to wait, as node.js does
                select.select([], [self], [])
        except BrokenPipeError:
            raise
        except OSError as error:
            raise OutputError(
                f"standard output cannot be written ({error.strerror or error}); what it has is not all"
            ) from error
        return written


@contextmanager
def standard_output() -> Iterator[None]:
    """Everything printed inside the block is written when it ends, or an OutputError or BrokenPipeError."""
    _open_closed()
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115, PTH123 - to the end of the process
    before = sys.stdout
    if before is None:
        raise OutputError("standard output is closed; give it a file, or /dev/null")
    ours = before is sys.__stdout__
    if not ours:  # somebody else's, who looks after it
        yield
        before.flush()
        return
    before.flush()
    buffer = io.BufferedWriter(_Output(before.fileno(), "wb", closefd=False), _BUFFER_BYTES)
    # A character that the locale does not have is spelled out.
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
        except (OSError, OutputError):  # said already; closing it would complain once more
            os.dup2(os.open(os.devnull, os.O_WRONLY), before.fileno())
            out.flush()
        sys.stdout = before


def standard_input() -> BinaryIO:
    """Raises UsageError when it is closed."""
    if sys.stdin is None:
        raise UsageError("standard input is closed, or a directory; give it a file or a pipe")
    return sys.stdin.buffer


def says(text: str) -> None:
    """A line for the person, beside the output; lost when nobody can see it."""
    with suppress(OSError):
        print(f"kwsniff: {clean(text)}", file=sys.stderr, flush=True)


def leave_errors() -> None:
    """Gives up what standard error did not take: Python would try once more at its end, and exit with 120."""
    try:
        sys.stderr.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


def say_unread(unread: Sequence[str], read: int) -> None:
    """A line for each file that could not be read, and how many could."""
    for line in unread:
        says(f"note: {line}")
    if unread:
        says(f"note: {read:,} of {plural(read + len(unread), 'file')} read")


def say_read(summary: Mapping[str, Any]) -> bool:
    """What of the captures could not be read: files, the ends of files, the part by time, ports. `summary`:
    that of an analysis. Whether there was anything of what was asked for."""
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
    """Whether captures have anything of what was asked for, and a line where they have not.

    `packets`: how many there are; `ports`: those of --port; `missed`: what there is in place of the time that
    was asked for; `kafka`: the ports on which calls were seen.
    """
    if not packets:
        says(f"note: {missed or 'the captures hold no packet'}")
        return False
    if not ports.absent:
        return True
    named = ", ".join(map(str, sorted(ports.absent)))
    seen = ", ".join(map(str, sorted(set(kafka))))
    says(f"note: no TCP packet has port {named}" + (f"; Kafka was seen on port {seen}" if seen else ""))
    return ports.absent != set(ports.asked)


def say_broken(captures: Iterable[Mapping[str, Any]]) -> None:
    """A line for each capture that was not read to its end. `captures`: rows of that table."""
    for each in captures:
        if each["damaged"]:
            says(f"note: {each['capture']}: is damaged; what comes after the damage was not read")
        elif each["truncated"]:
            why = "; ".join(each["notes"]) or "ends inside a packet"
            says(f"note: {each['capture']}: {why}")


def say_left(output: str, before: Collection[str], made: Collection[str], now: Collection[str]) -> None:
    """What an output folder had of an earlier run, where it is not what this one made. Names of tables:
    `before` it, those it made, those that are there `now`."""
    gone, stay = sorted({*before} - {*now}), sorted({*now} - {*made})
    if gone:
        says(f"note: {output}: tables of an earlier run are gone: {', '.join(gone)}")
    if stay:
        says(f"note: {output}: these are not of this run: {', '.join(stay)}")
    beside = [name for name in sorted(made) if _is_file_beside_folder(Path(output), name)]
    if beside:
        says(
            f"note: {output}: folders of kwsniff live or pipeline with these names stay; who reads "
            f"{output} takes the files of this run: {', '.join(beside)}"
        )


def _is_file_beside_folder(output: Path, table: str) -> bool:
    return (output / f"{table}.parquet").is_file() and any((output / table).glob("**/*.parquet"))


def _open_closed() -> None:
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest that is free: this one
