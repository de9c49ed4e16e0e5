"""In which order captures are read: by the time of their first packets; connections go on from file to file.

A shell sorts `x.pcap*` as x.pcap, x.pcap1, x.pcap10, x.pcap2; a ring of files (`tcpdump -W`) begins anywhere.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from kwsniff.core.capture.file_splits import read_head, scan
from kwsniff.errors import CaptureError
from kwsniff.sources.files import STANDARD_INPUT, CaptureFile, find_captures

_MOST_BYTES: Final = 16 << 20


def find_in_order(paths: Sequence[str | os.PathLike[str]]) -> list[str]:
    """The captures meant by `paths`, by the time of their first packets; those without one come last.

    With a pipe or standard input among them they stay as they were given: nothing can be read twice there.
    Raises CaptureError as find_captures does.
    """
    names = find_captures(paths)
    if len(names) < 2 or any(name == STANDARD_INPUT or not Path(name).is_file() for name in names):
        return names
    times = {name: first_time(name) for name in names}
    return sorted(names, key=lambda name: (times[name] is None, times[name] or 0))


def first_time(name: str) -> int | None:
    """Nanoseconds since the epoch of a capture's first packet; None when it has none near its beginning."""
    start = bytearray()
    with CaptureFile(name) as capture:
        try:
            for buffer in capture.buffers():
                start += buffer
                head = read_head(start)
                first = scan(head, start, 0, min(len(head) + 1, len(start)), 1) if head else None
                if first and first.packets:
                    return first.first_time
                if len(start) >= _MOST_BYTES:
                    return None
        except CaptureError:  # whoever reads it says what is wrong with it
            return None
    return None
