"""The order of captures: by the time of their first packets; connections continue from file to file.

A shell sorts `x.pcap*` as x.pcap, x.pcap1, x.pcap10, x.pcap2; a ring of files (`tcpdump -W`) may start
with any file.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal, NamedTuple

from kwsniff.core.capture.file_splits import Scan, read_head, scan
from kwsniff.errors import CaptureError
from kwsniff.sources.files import (
    LOOK_BYTES,
    STANDARD_INPUT,
    CaptureFile,
    Found,
    Opener,
    Unread,
    find_captures,
    opened_capture,
    require_captures,
    unread_file,
)

_MOST_BYTES: Final = 16 << 20
_BIG: Final = 0xA1  # first byte of a big-endian pcap


class Looked(NamedTuple):
    """Facts from the beginning of a capture; only the name if it cannot be read twice."""

    name: str
    size: int = 0
    """Size of the raw file."""
    compression: str | None = None
    head: bytes = b""
    """The bytes needed to read it from any of its records."""
    first_time: int | None = None
    """Time of the first packet, nanoseconds since the epoch; None: no packet near the beginning."""
    first_second: int = 0
    """First field of the first pcap record: its time in seconds."""


def find_in_order(paths: Sequence[str | os.PathLike[str]]) -> Found:
    """The captures of `paths`, by the time of their first packets; those without packets come last.

    With a pipe or standard input among them they keep their order, because a pipe cannot be read twice.
    Files that end before their header is complete count as unreadable, too. Raises CaptureError as
    find_captures does.
    """
    found = find_captures(paths)
    looked, more = look_into_all(found.captures)
    unread = found.unread + more
    return Found([each.name for each in in_order(looked, unread)], unread)


def size_of(names: Sequence[str]) -> int | None:
    """Total size of these captures on disk; None if one is not a file."""
    files = [Path(name) for name in names]
    return sum(file.stat().st_size for file in files) if all(file.is_file() for file in files) else None


def look_into_all(names: Sequence[str]) -> tuple[list[Looked], list[Unread]]:
    """Facts on these captures; and the unreadable ones with their reasons."""
    looked: list[Looked] = []
    unread: list[Unread] = []
    for name in names:
        try:
            looked.append(look_into(name))
        except CaptureError as error:
            unread.append(unread_file(name, error))
    return looked, unread


def in_order(looked: Sequence[Looked], unread: list[Unread]) -> list[Looked]:
    """Sorts by the time of the first packet. Raises CaptureError with the first reason if none is
    readable."""
    require_captures(Found([each.name for each in looked], unread))
    if not all(each.head for each in looked):
        return list(looked)
    return sorted(looked, key=lambda each: (each.first_time is None, each.first_time or 0))


def look_into(name: str, opener: Opener | None = None) -> Looked:
    """Raises CaptureError if no packet of a file can be read."""
    if opener is None and (name == STANDARD_INPUT or not Path(name).is_file()):
        return Looked(name)
    start = bytearray()
    checked = 0
    with opened_capture(name, LOOK_BYTES, opener) as capture:
        for buffer in capture.buffers():
            start += buffer
            if len(start) < 2 * checked:  # reading a long header repeatedly would be slow
                continue
            checked = len(start)
            head = read_head(start)
            if len(start) >= _MOST_BYTES or (head and _first_packet(head, start).packets):
                break
        size, compression, shown = capture.size or 0, capture.compression, capture.name
    head = read_head(start)
    if not head:
        raise CaptureError(f"{shown}: ends before its first packet")
    order: Literal["big", "little"] = "big" if start[0] == _BIG else "little"
    second = int.from_bytes(start[len(head) : len(head) + 4], order)
    return Looked(name, size, compression, head, _first_packet(head, start).first_time, second)


def _first_packet(head: bytes, start: bytearray) -> Scan:
    """A walk over the first record, or over none if it is not complete yet."""
    return scan(head, start, 0, min(len(head) + 1, len(start)))


def first_time(name: str) -> int | None:
    """Time of a capture's first packet, nanoseconds since the epoch; None without a packet near its
    beginning."""
    try:
        with CaptureFile(name) as capture:
            return first_time_in(capture)
    except CaptureError:  # the later read reports the error
        return None


def first_time_in(capture: CaptureFile) -> int | None:
    """The same for an open, unread capture, which can still be read afterwards. Raises CaptureError."""
    start = bytearray()
    for buffer in capture.ahead():
        start += buffer
        head = read_head(start)
        first = _first_packet(head, start) if head else None
        if first and first.packets:
            return first.first_time
        if len(start) >= _MOST_BYTES:
            break
    return None


def last_time(name: str) -> int | None:
    """Time of a capture's last packet, nanoseconds since the epoch; reads the whole file; None without
    packets."""
    latest: int | None = None
    head, rest = b"", bytearray()
    try:
        with CaptureFile(name) as capture:
            for buffer in capture.buffers():
                rest += buffer
                if not head:
                    head = read_head(rest)
                    del rest[: len(head)]
                if not head or not rest:
                    continue
                part = scan(head, head + rest, 0, len(head) + len(rest))
                latest = max((time for time in (latest, part.last_time) if time is not None), default=None)
                del rest[: part.end - part.begin]
                head = part.next_head or head
                if part.stop == "damaged":
                    break
    except CaptureError:  # the later read reports the error
        return latest
    return latest
