"""In which order captures are read: by the time of their first packets; connections go on from file to file.

A shell sorts `x.pcap*` as x.pcap, x.pcap1, x.pcap10, x.pcap2; a ring of files (`tcpdump -W`) begins anywhere.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

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
_BIG: Final = 0xA1  # pcap's first byte where its words begin with the highest one


@dataclass(frozen=True, slots=True)
class Looked:
    """What the beginning of a capture tells; nothing but the name where that cannot be read twice."""

    name: str
    size: int = 0
    """Bytes of the raw file."""
    compression: str | None = None
    head: bytes = b""
    """What it takes to read it from any of its records."""
    first_time: int | None = None
    """Nanoseconds since the epoch of the first packet; None: it has none near the beginning."""
    first_second: int = 0
    """What stands first in pcap's first record, its second."""


def find_in_order(paths: Sequence[str | os.PathLike[str]]) -> Found:
    """The captures meant by `paths`, by the time of their first packets; those without one come last.

    With a pipe or standard input among them they stay as they were given: nothing can be read twice there.
    Files that end before they have told how to read their packets are not read, too. Raises CaptureError as
    find_captures does.
    """
    found = find_captures(paths)
    looked, more = look_into_all(found.captures)
    unread = found.unread + more
    return Found([each.name for each in in_order(looked, unread)], unread)


def size_of(names: Sequence[str]) -> int | None:
    """Bytes of all these captures as they lie on the disk; None where one is no file."""
    files = [Path(name) for name in names]
    return sum(file.stat().st_size for file in files) if all(file.is_file() for file in files) else None


def look_into_all(names: Sequence[str]) -> tuple[list[Looked], list[Unread]]:
    """What these captures show; and which of them cannot be read, and why."""
    looked: list[Looked] = []
    unread: list[Unread] = []
    for name in names:
        try:
            looked.append(look_into(name))
        except CaptureError as error:
            unread.append(unread_file(name, error))
    return looked, unread


def in_order(looked: Sequence[Looked], unread: list[Unread]) -> list[Looked]:
    """By the time of the first packet. Raises CaptureError where there is none, with the first reason."""
    require_captures(Found([each.name for each in looked], unread))
    if not all(each.head for each in looked):
        return list(looked)
    return sorted(looked, key=lambda each: (each.first_time is None, each.first_time or 0))


def look_into(name: str, opener: Opener | None = None) -> Looked:
    """Raises CaptureError where no packet of a file could be read."""
    if opener is None and (name == STANDARD_INPUT or not Path(name).is_file()):
        return Looked(name)
    start = bytearray()
    checked = 0
    with opened_capture(name, LOOK_BYTES, opener) as capture:
        for buffer in capture.buffers():
            start += buffer
            if len(start) < 2 * checked:  # reading a long head again and again would take long
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
    """A walk over the first record, or over none where it is not there yet."""
    return scan(head, start, 0, min(len(head) + 1, len(start)))


def first_time(name: str) -> int | None:
    """Nanoseconds since the epoch of a capture's first packet; None when it has none near its beginning."""
    try:
        with CaptureFile(name) as capture:
            return first_time_in(capture)
    except CaptureError:  # whoever reads it says what is wrong with it
        return None


def first_time_in(capture: CaptureFile) -> int | None:
    """The same of a capture that is open and was not read: it can be, afterwards. Raises CaptureError."""
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
    """Nanoseconds since the epoch of a capture's last packet, for which it is read; None when it has none."""
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
    except CaptureError:  # whoever reads it says what is wrong with it
        return latest
    return latest
