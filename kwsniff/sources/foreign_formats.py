"""Captures of other formats, by their first bytes, and the command that turns them into pcapng."""

import shlex
from pathlib import Path
from typing import Final

WHAT_IT_READS: Final = "kwsniff reads pcap and pcapng, also inside gzip or zstd"
MOST_BYTES: Final = 16

_FORMATS: Final = (
    (b"snoop\0\0\0", "a snoop capture (RFC 1761)"),
    (b"GMBU", "a capture of Microsoft Network Monitor 2"),
    (b"RTSS", "a capture of Microsoft Network Monitor 1"),
    (b"TRSNIFF data    ", "a capture of NetScout Sniffer"),
    (b"XCP\0", "a capture of Sniffer for Windows"),
    (b"ObserverPktBuffe", "a capture of Viavi Observer"),
)
"""First bytes of formats that editcap reads, as Wireshark's wiretap knows them."""
_ERF: Final = ".erf"


def explain_start(name: str, start: bytes) -> str:
    """Why a file that begins with `start`, at most MOST_BYTES, cannot be read, and what to try."""
    if not start:
        return "it cannot be decompressed; was it copied completely?"
    known = next((what for first, what in _FORMATS if start.startswith(first)), None)
    if known is None and Path(name).suffix == _ERF:  # the format has no first bytes of its own
        known = "perhaps an ERF capture"
    if known is None:
        return f"is not a capture (begins with {start[:4].hex(' ')}); {WHAT_IT_READS}"
    new = str(Path(name).with_suffix(".pcapng"))
    return f"is {known}, which kwsniff does not read; convert it: editcap {shlex.join([name, new])}"
