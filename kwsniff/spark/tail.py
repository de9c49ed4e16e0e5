"""A directory into which tcpdump rotates files: finds the new bytes, in the order of their capture.

Name and first bytes identify a file, so that a reused name (`tcpdump -W`) is another file. A file is complete
when a later one exists, because a recorder closes one before it opens the next. If a complete file grows,
several recorders write into the directory: their files are not one sequence, and following them ends. If a
file was compressed meanwhile (`-z gzip`), the rest is read from the compressed one.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from itertools import pairwise
from pathlib import Path

from kwsniff.errors import CaptureError
from kwsniff.sources.files import CaptureFile, Unread, find_captures
from kwsniff.sources.order import first_time, look_into_all

_START_BYTES = 40  # pcap's file header and the header of the first packet
_COMPRESSED = (".gz", ".zst")
_PIECE_BYTES = 1 << 20
_ALL = 1 << 62


@dataclass(frozen=True, slots=True)
class File:
    """What was read of a file. `start`: its first bytes, as hex; `offset`: of its bytes, decompressed."""

    name: str
    start: str
    offset: int = 0
    over: bool = False


@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes to feed as part of capture `name`: of the file `path` from `begin` to `end` (None: all)."""

    name: str
    path: str
    begin: int
    end: int | None
    opens: bool
    closes: bool


@dataclass(slots=True)
class Progress:
    """The read position: the files in order, the last one possibly incomplete."""

    files: list[File] = field(default_factory=list)
    source: str = ""
    """A pattern of names inside the directory; without one all are followed."""

    def next_pieces(self, directory: str, most_bytes: int) -> list[Piece]:
        """The new bytes, up to about `most_bytes`; advances `files`.

        Raises CaptureError if a complete file has grown.
        """
        self._check_over()
        pieces: list[Piece] = []
        waiting = self._new_files(directory)  # looked at first: when there is a later file, sizes are final
        if self.files and not self.files[-1].over:
            pieces += self._go_on(self.files.pop(), bool(waiting), most_bytes)
        while waiting and (not self.files or self.files[-1].over):
            left = most_bytes - sum((piece.end or 0) - piece.begin for piece in pieces)
            if left <= 0:
                break
            file = waiting.pop(0)
            pieces += self._go_on(file, bool(waiting), left)
        return pieces

    def end(self, directory: str) -> list[Piece]:
        """Closes the file that is open, and has those that never had a packet: no more will come. Raises
        CaptureError as `next_pieces` does."""
        self._check_over()
        pieces = []
        if self.files and not self.files[-1].over:
            file = self.files[-1]
            self.files[-1] = replace(file, over=True)
            pieces.append(Piece(file.name, file.name, file.offset, file.offset, opens=False, closes=True))
        unknown = {file.name: file for file in self._find_unknown(directory)}
        looked, _ = look_into_all([*unknown])
        for each in looked:
            if each.first_time is None:
                pieces += self._go_on(unknown[each.name], True, _ALL)
        return pieces

    def unread(self, directory: str) -> list[Unread]:
        """What is passed over, since it cannot be read, at least not yet."""
        _, unreadable = look_into_all([file.name for file in self._find_unknown(directory)])
        others = find_captures([directory], required=False).unread
        passed_over = [each for each in others if each.name != directory]  # which is empty
        return [each for each in passed_over if _is_of(self.source, each.name, directory)] + unreadable

    def _check_over(self) -> None:
        for file, later in pairwise(self.files):
            path = Path(file.name)
            if not file.over or path.suffix in _COMPRESSED:
                continue
            try:
                size = path.stat().st_size
            except OSError:
                continue
            if size > file.offset and file.start and _start(path)[: len(file.start)] == file.start:
                raise CaptureError(
                    f"{file.name} grew after {later.name} had begun: several recorders write here; "
                    "give one --source for each"
                )

    def _go_on(self, file: File, is_over: bool, most_bytes: int) -> list[Piece]:
        opens = file.offset == 0
        path = Path(file.name)
        if path.suffix in _COMPRESSED:
            self.files.append(replace(file, over=True))
            return [Piece(file.name, file.name, 0, None, opens=True, closes=True)]
        if _start(path)[: len(file.start)] != file.start:  # removed or rewritten
            self.files.append(replace(file, over=True))
            for packed in (path.with_name(path.name + suffix) for suffix in _COMPRESSED):
                if packed.is_file():
                    return [Piece(file.name, str(packed), file.offset, None, opens=opens, closes=True)]
            return [] if opens else [Piece(file.name, file.name, file.offset, file.offset, False, True)]
        size = path.stat().st_size
        end = min(size, file.offset + most_bytes)
        closes = is_over and end == size
        self.files.append(File(file.name, _start(path), end, closes))
        if end == file.offset and not closes:
            return []
        return [Piece(file.name, file.name, file.offset, end, opens=opens, closes=closes)]

    def _new_files(self, directory: str) -> list[File]:
        """Captures that nothing was read of, by their first packets; one without packets says nothing yet."""
        found = [(first_time(file.name), file) for file in self._find_unknown(directory)]
        timed = [(first, file) for first, file in found if first is not None]
        return [file for _, file in sorted(timed, key=lambda each: each[0])]

    def _find_unknown(self, directory: str) -> Iterator[File]:
        known = {file.name: file for file in self.files}
        for name in _captures(directory, self.source):
            path = Path(name)
            start = _start(path)
            before = known.get(name)
            if before is not None and (not before.over or start[: len(before.start)] == before.start):
                continue
            if path.suffix in _COMPRESSED and (
                path.with_suffix("").exists() or str(path.with_suffix("")) in known
            ):
                continue  # being compressed; or read before it was
            yield File(name, start)


def read(piece: Piece) -> Iterator[memoryview]:
    """The bytes of a piece. Of a file that shrank, fewer."""
    if piece.end is None:
        skip = piece.begin
        with CaptureFile(piece.path) as packed:
            for buffer in packed.buffers():
                yield buffer[skip:]
                skip = max(skip - len(buffer), 0)
        return
    if piece.end == piece.begin:
        return
    left = piece.end - piece.begin
    with Path(piece.path).open("rb") as file:
        file.seek(piece.begin)
        while left and (data := file.read(min(left, _PIECE_BYTES))):
            left -= len(data)
            yield memoryview(data)


def _captures(directory: str, source: str) -> Sequence[str]:
    found = find_captures([directory], required=False).captures
    return [name for name in found if _is_of(source, name, directory)]


def _is_of(source: str, name: str, directory: str) -> bool:
    return not source or fnmatchcase(os.path.relpath(name, directory), source)


def _start(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(_START_BYTES).hex()
    except OSError:
        return ""
