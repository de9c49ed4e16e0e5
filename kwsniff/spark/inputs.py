"""Which captures a run reads, in which order, and where they are cut into splits.

Connections go on from one file to the next, so the files are read in the order of their first packets,
however they were named on the command line. Plain files are mapped and cut; compressed ones are read whole.
"""

import mmap
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from kwsniff.core.capture.file_splits import find_cuts, read_head
from kwsniff.errors import CaptureError, UsageError
from kwsniff.sources.files import STANDARD_INPUT, CaptureFile, find_captures
from kwsniff.sources.order import first_time
from kwsniff.sources.paths import local_path

SPLIT_BYTES = 128 << 20
"""Size of a split; smaller ones cost more in tasks than they bring."""


@dataclass(frozen=True, slots=True)
class Capture:
    """One file. `head`: what it takes to read it from any of its records; None: it must be read whole."""

    name: str
    size: int
    head: bytes | None
    first_time: int | None
    problem: str | None = None
    """Why nothing of it can be read."""


@contextmanager
def mapped(name: str) -> Iterator[mmap.mmap]:
    """A file's bytes in memory, as far as they are touched."""
    try:
        opened = Path(name).open("rb")  # noqa: SIM115 - closed below
    except FileNotFoundError as error:
        raise CaptureError(
            f"{name}: workers do not see it; captures have to be under the same path on all machines"
        ) from error
    with opened as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        yield data


def find_inputs(paths: Sequence[str | os.PathLike[str]]) -> list[Capture]:
    """The captures meant by `paths`, ordered by the time of their first packet.

    Files that are there and no captures, or empty, are named with their problem and come last. Raises
    CaptureError when a path is missing or nothing can be read, UsageError for standard input.
    """
    found: list[Capture] = []
    for path in map(local_path, paths):
        if path == STANDARD_INPUT:
            raise UsageError(
                "standard input cannot be shared out; use kwsniff analyze, or write it to a file"
            )
        try:
            names = find_captures([path])
        except CaptureError as error:
            if not Path(path).is_file():
                raise
            found.append(Capture(path, Path(path).stat().st_size, None, None, _why(path, error)))
            continue
        found += [_looked_into(name) for name in names]
    readable = [capture for capture in found if capture.problem is None]
    if not readable:
        raise CaptureError(found[0].problem if found and found[0].problem else "no capture was named")
    return sorted(
        found, key=lambda each: (each.problem is not None, each.first_time is None, each.first_time or 0)
    )


def split(capture: Capture, split_bytes: int = SPLIT_BYTES) -> list[tuple[int, int]]:
    """Begin and end of the splits of a capture; none of one that must be read whole."""
    if capture.head is None:
        return []
    with mapped(capture.name) as data:
        return [*pairwise(find_cuts(capture.head, data, split_bytes))]


def _looked_into(name: str) -> Capture:
    try:
        with CaptureFile(name) as file:
            buffers = file.buffers()
            start = bytes(next(buffers, b""))
            buffers.close()
            plain = file.compression is None
        size = Path(name).stat().st_size
        head = read_head(start)
        if not head:
            return Capture(name, size, None, None, "ends before its first packet")
        if plain:
            with mapped(name) as data:
                head = read_head(data)  # the beginning alone may hold less than all of it
    except CaptureError as error:
        return Capture(name, Path(name).stat().st_size, None, None, _why(name, error))
    return Capture(name, size, head if plain else None, first_time(name))


def _why(name: str | os.PathLike[str], error: CaptureError) -> str:
    return str(error).removeprefix(f"{os.fspath(name)}: ")
