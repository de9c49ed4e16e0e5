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
from kwsniff.core.capture.mapping import Guard
from kwsniff.errors import CaptureError, UsageError
from kwsniff.sources.files import STANDARD_INPUT, CaptureFile, Unread, unread_file
from kwsniff.sources.order import find_in_order, first_time

SHRUNK = "became shorter while it was read; was it rotated? Read it again, or a copy"
SPLIT_BYTES = 128 << 20
"""Size of a split; smaller ones cost more in tasks than they bring."""


@dataclass(frozen=True, slots=True)
class Capture:
    """One file. `head`: what it takes to read it from any of its records; None: it must be read whole."""

    name: str
    size: int
    head: bytes | None
    first_time: int | None
    problem: Unread | None = None
    """Why nothing of it can be read."""


class Mapped:
    """A file's bytes in memory, as far as they are touched.

    Zeroes stand for what a file that became shorter no longer has.
    """

    def __init__(self, file: int, data: mmap.mmap) -> None:
        self.data = data
        self._file = file

    @property
    def size(self) -> int:
        """Bytes that the file has now, at most those that are mapped."""
        return min(os.fstat(self._file).st_size, len(self.data))


@contextmanager
def mapped(name: str) -> Iterator[Mapped]:
    """Raises CaptureError where there is no such file, or nothing in it."""
    try:
        opened = Path(name).open("rb")  # noqa: SIM115 - closed below
    except FileNotFoundError as error:
        raise CaptureError(
            f"{name}: workers do not see it; captures have to be under the same path on all machines"
        ) from error
    with opened as file:
        if not os.fstat(file.fileno()).st_size:
            raise CaptureError(f"{name}: is empty")
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data, Guard(data):
            yield Mapped(file.fileno(), data)


def find_inputs(paths: Sequence[str | os.PathLike[str]]) -> list[Capture]:
    """The captures meant by `paths`, ordered by the time of their first packet.

    What is there and cannot be read is named with its problem and comes last. Raises CaptureError when a path
    is missing or nothing can be read, UsageError for standard input.
    """
    for path in paths:
        if os.fspath(path) == STANDARD_INPUT:
            raise UsageError(
                "standard input cannot be shared out; use kwsniff analyze, or write it to a file"
            )
    found = find_in_order(paths)
    return [
        *map(_looked_into, found.captures),
        *(Capture(unread.name, unread.size or 0, None, None, unread) for unread in found.unread),
    ]


def split(capture: Capture, split_bytes: int = SPLIT_BYTES) -> list[tuple[int, int]]:
    """Begin and end of the splits of a capture; none of one that must be read whole."""
    if capture.head is None:
        return []
    with mapped(capture.name) as file:
        return [*pairwise(find_cuts(capture.head, file.data, split_bytes))]


def _looked_into(name: str) -> Capture:
    try:
        with CaptureFile(name) as capture:
            buffers = capture.buffers()
            next(buffers, None)
            buffers.close()
            plain = capture.compression is None
        size = Path(name).stat().st_size
        head = None
        if plain:
            with mapped(name) as file:
                head = read_head(file.data)
    except CaptureError as error:
        return Capture(name, Path(name).stat().st_size, None, None, unread_file(name, error))
    return Capture(name, size, head, first_time(name))
