"""In which order captures are read: by the time of their first packets; connections go on from file to file.

A shell sorts `x.pcap*` as x.pcap, x.pcap1, x.pcap10, x.pcap2; a ring of files (`tcpdump -W`) begins anywhere.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from kwsniff.core.capture.file_splits import read_head, scan
from kwsniff.errors import CaptureError
from kwsniff.sources.files import (
    STANDARD_INPUT,
    CaptureFile,
    Found,
    Unread,
    find_captures,
    require_captures,
    unread_file,
)

_MOST_BYTES: Final = 16 << 20


def find_in_order(paths: Sequence[str | os.PathLike[str]]) -> Found:
    """The captures meant by `paths`, by the time of their first packets; those without one come last.

    With a pipe or standard input among them they stay as they were given: nothing can be read twice there.
    Files that end before they have told how to read their packets are not read, too. Raises CaptureError as
    find_captures does.
    """
    found = find_captures(paths)
    looked_into = {name: _problem(name) for name in found.captures}
    unread = [*found.unread, *filter(None, looked_into.values())]
    names = [name for name in found.captures if looked_into[name] is None]
    require_captures(Found(names, unread))
    if len(names) < 2 or any(name == STANDARD_INPUT or not Path(name).is_file() for name in names):
        return Found(names, unread)
    times = {name: first_time(name) for name in names}
    return Found(sorted(names, key=lambda name: (times[name] is None, times[name] or 0)), unread)


def _problem(name: str) -> Unread | None:
    """Why no packet of a file could be read, as its beginning shows."""
    if name == STANDARD_INPUT or not Path(name).is_file():
        return None
    start = bytearray()
    try:
        with CaptureFile(name) as capture:
            buffers = capture.buffers()
            for buffer in buffers:
                start += buffer
                if read_head(start) or len(start) >= _MOST_BYTES:
                    buffers.close()
                    return None
        raise CaptureError(f"{name}: ends before its first packet")
    except CaptureError as error:
        return unread_file(name, error)


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
        first = scan(head, start, 0, min(len(head) + 1, len(start)), 1) if head else None
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
                part = scan(head, head + rest, 0, len(head) + len(rest), 1)
                latest = max((time for time in (latest, part.last_time) if time is not None), default=None)
                del rest[: part.end - part.begin]
                head = part.next_head or head
                if part.stop == "damaged":
                    break
    except CaptureError:  # whoever reads it says what is wrong with it
        return latest
    return latest
