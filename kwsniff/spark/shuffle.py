"""Packets of a task's captures in one file, those of each bucket side by side, as a shuffle has them.

    packets   turn 0: bucket 0 | bucket 1 | ... | for all    turn 1: bucket 0 | ...
              inside: part | part | ...                      a part is of one capture
                      packet | packet | where many packets lie in the capture | ...
    index     for each turn, for each bucket and last for all: where it begins, where each part ends

Where tasks run on one machine, which has what it just read in its memory, packets that lie side by side in a
plain capture are named by their offset: reading them again costs half of what a copy does.

A turn is what was in memory when it was written. Every attempt of a task has files of its own.
"""

import os
import uuid
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np

from kwsniff.core.analyzer import Analyzer
from kwsniff.core.capture.partitioner import Router
from kwsniff.errors import CaptureError
from kwsniff.spark.parts import check_file
from kwsniff.spark.serialization import register
from kwsniff.spark.storage import Place

_LEAST_BYTES: Final = 64 << 20
_BYTES_PER_BUCKET: Final = 1 << 20
# On a disk: what a processor's caches hold is written for half of what more takes.
_LEAST_BYTES_HERE: Final = 8 << 20
_BYTES_PER_BUCKET_HERE: Final = 1 << 17
_MOST_BYTES: Final = 512 << 20
_MOST_PACKETS: Final = 1 << 31  # of a part: its runs count with 32 bits
_WORD: Final = 8


@register
@dataclass(frozen=True, slots=True)
class Stretch:
    """A part of a capture in a file of packets: index of its turn, and of the part among all parts."""

    packets: int
    index: int
    parts: int
    place: int
    named: bool
    """Whether packets of it are in the capture."""


@register
@dataclass(frozen=True, slots=True)
class PacketFile:
    """A complete file, and its index beside it."""

    path: str
    size: int
    index_size: int


class PacketWriter:
    """Writes what a Router keeps; memory is that of a turn."""

    def __init__(self, folder: Place, num_buckets: int) -> None:
        self._path = f"{uuid.uuid4().hex}.packets"
        # Ranges of a megabyte in a store, where that is not too much memory.
        least, share = (
            (_LEAST_BYTES_HERE, _BYTES_PER_BUCKET_HERE)
            if folder.is_local
            else (_LEAST_BYTES, _BYTES_PER_BUCKET)
        )
        self._most = min(max(least, num_buckets * share), _MOST_BYTES)
        self._packets = folder.open_output(self._path)
        self._index = folder.open_output(_index(self._path))
        self._size = 0
        self._waiting: list[tuple[list[Stretch | None], int, int, bool, bytes]] = []
        self._named = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._packets.close()
        self._index.close()

    @property
    def file(self) -> PacketFile:
        """What is in its place once this is left."""
        return PacketFile(self._path, self._size, self._index.tell())

    def relieve(self, router: Router, stretches: "list[Stretch | None]") -> None:
        """Writes what the router keeps once that is much; `stretches`: those of the current capture."""
        if router.waiting >= self._most or router.packets >= _MOST_PACKETS:
            self.cut(router, stretches)
            self.write(router)

    def cut(self, router: Router, stretches: "list[Stretch | None]") -> None:
        """Ends a part. Its stretch is added, and known once it is written."""
        packets, ends = router.cut()
        stretches.append(None)
        named = router.named
        self._waiting.append((stretches, len(stretches) - 1, packets, named > self._named, ends))
        self._named = named

    def write(self, router: Router) -> None:
        """A turn: everything that waits."""
        if not self._waiting:
            return
        ends = np.stack([np.frombuffer(each, np.int64) for *_, each in self._waiting], axis=1)
        sizes = ends[:, -1]
        begins = self._size + np.concatenate([[0], np.cumsum(sizes)[:-1]])
        router.take(self._packets.write)
        self._named = 0
        at = self._index.tell()
        self._index.write(np.concatenate([begins[:, None], begins[:, None] + ends], axis=1).tobytes())
        self._size += int(sizes.sum())
        for place, (stretches, number, packets, named, _) in enumerate(self._waiting):
            stretches[number] = Stretch(packets, at, len(self._waiting), place, named)
        self._waiting.clear()


class BucketReader:
    """What one bucket has in files of packets, read turn by turn; memory is that of its share of a turn."""

    def __init__(self, place: Place, bucket: int, num_buckets: int) -> None:
        self._place = place
        self._rows = (bucket, num_buckets)
        self._file: PacketFile | None = None
        self._open_file: list[Any] = []
        self._turn = -1
        self._ends: list[np.ndarray[Any, np.dtype[np.int64]]] = []
        self._kept = [bytearray(), bytearray()]
        self._named: tuple[str, int] | None = None
        self.bytes_read = 0

    def close(self) -> None:
        """Closes what is open."""
        if self._named is not None:
            os.close(self._named[1])
            self._named = None
        self._close_files()

    def _close_files(self) -> None:
        for file in self._open_file:
            file.close()
        self._open_file.clear()

    def part(self, name: str, file: PacketFile, stretch: Stretch) -> tuple[memoryview, memoryview, int]:
        """The bucket's packets and those for all of a part of that capture, valid until the next part, and
        the descriptor of the capture where they are in it, else -1. Raises OutputError where a file is not as
        it was written, CaptureError where a capture cannot be opened."""
        if file != self._file:
            self._open(file)
        if stretch.index != self._turn:
            self._load(stretch)
        own, shared = (
            memoryview(kept)[int(ends[stretch.place] - ends[0]) : int(ends[stretch.place + 1] - ends[0])]
            for kept, ends in zip(self._kept, self._ends, strict=True)
        )
        return own, shared, self._descriptor(name) if stretch.named else -1

    def _descriptor(self, name: str) -> int:
        if self._named is None or self._named[0] != name:
            if self._named is not None:
                os.close(self._named[1])
            self._named = None
            self._named = (name, _open_file(name))
        return self._named[1]

    def _open(self, file: PacketFile) -> None:
        self._close_files()
        self._turn = -1
        check_file(self._place, file.path, file.size)
        check_file(self._place, _index(file.path), file.index_size)
        self._open_file = [self._place.open_input(each) for each in (file.path, _index(file.path))]
        self._file = file

    def _load(self, stretch: Stretch) -> None:
        packets, index = self._open_file
        width = (stretch.parts + 1) * _WORD
        self._ends = [
            np.frombuffer(index.read_at(width, stretch.index + row * width), np.int64) for row in self._rows
        ]
        for number, ends in enumerate(self._ends):
            size = int(ends[-1] - ends[0])
            if size > len(self._kept[number]):
                self._kept[number] = bytearray(size)
            with memoryview(self._kept[number])[:size] as space:
                _read(packets, space, int(ends[0]))
            self.bytes_read += size
        self._turn = stretch.index


def _open_file(name: str) -> int:
    try:
        descriptor = os.open(name, os.O_RDONLY)
    except OSError as error:
        raise _unreadable(name, error) from error
    with suppress(AttributeError, OSError):  # other buckets read what lies between
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_RANDOM)
    return descriptor


def feed(analyzer: Analyzer, name: str, num: int) -> bool:
    """Feeds a number of bytes of a part with its packets in a capture; returns whether more are left. Raises
    CaptureError if the capture has changed."""
    try:
        return analyzer.feed_runs(num)
    except CaptureError as error:
        if isinstance(error.__cause__, OSError):
            raise _unreadable(name, error.__cause__) from error
        raise CaptureError(
            f"{name}: changed during the run: packets of it are missing; nothing was written; run the "
            f"pipeline again when no other program changes the captures"
        ) from error


def _unreadable(name: str, error: OSError) -> CaptureError:
    return CaptureError(f"{name}: cannot be read again ({error.strerror or error})")


def _index(packets: str) -> str:
    return packets.removesuffix(".packets") + ".index"


def _read(file: Any, space: memoryview, at: int) -> None:
    done = 0
    file.seek(at)
    while done < len(space):
        with space[done:] as rest:
            num = file.readinto(rest)
        if not num:
            raise EOFError("a file of packets became shorter")
        done += num
