"""Bytes as people paste them: hex digits in any spelling, Python's bytes, dumps of tools.

0x0000:  4500 003c 1c46 4000 4006 b1e6 ac10 0a63  E..<.F@.@......c    tcpdump -X: with IP and TCP headers
00000000: 0012 0000 0000 0007 0003 666f 6f         ..........foo       xxd
00000000  00 12 00 00 00 00 00 07  00 03 66 6f 6f  |..........foo|     hexdump -C
0000   00 12 00 00 00 00 00 07 00 03 66 6f 6f      ..........foo       Wireshark: copy as hex dump
"""

import ast
import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from kwsniff.errors import UsageError

_LINE: Final = re.compile(
    r"\s*(?:(0x)([0-9a-f]{4,8}):?\s+|([0-9a-f]{4,8})(?::\s+|\s{2,}))(\S.*)", re.IGNORECASE
)
_HEX: Final = re.compile(r"(?:[0-9a-f]{2}){1,2}", re.IGNORECASE)
_PYTHON: Final = re.compile(r"b(['\"]).*\1", re.DOTALL)
_MARKS: Final = re.compile(r"0x|\\x|[\s,;:{}\[\]()\"'-]", re.IGNORECASE)
_ETHERNET: Final = 14
_IPV4, _IPV6 = b"\x08\x00", b"\x86\xdd"
_TCP: Final = 6
_IPV6_HEADER: Final = 40
_TCP_OFFSET: Final = 12


class Pasted(NamedTuple):
    """Bytes, and what they were read as; `left_out`: what came before or after the message."""

    data: bytes
    form: str = "hex"
    left_out: Sequence[str] = ()


def read_pasted(text: str) -> Pasted:
    """The bytes in a text. Raises UsageError for one that has none."""
    text = text.strip()
    if _PYTHON.fullmatch(text):
        try:
            return Pasted(bytes(ast.literal_eval(text)), "Python bytes")
        except (ValueError, SyntaxError, TypeError) as error:
            raise UsageError(f"not valid Python bytes: {error}") from error
    lines = [found for line in text.splitlines() if (found := _LINE.fullmatch(line.rstrip()))]
    offsets = [int(found[2] or found[3], 16) for found in lines]
    if offsets and offsets[0] == 0 and all(0 < later - one <= 64 for one, later in pairwise(offsets)):
        sizes = [later - one for one, later in pairwise(offsets)]
        data = b"".join(_read_line(found[4], size) for found, size in zip(lines, [*sizes, None], strict=True))
        return _without_headers(data) if lines[0][1] else Pasted(data, "a hex dump")
    try:
        return Pasted(bytes.fromhex(_MARKS.sub("", text)))
    except ValueError as error:
        raise UsageError(
            "not valid hex: give pairs of hex digits, b'...', or a dump of tcpdump -X, xxd, hexdump -C or "
            "Wireshark"
        ) from error


def without_size(pasted: Pasted) -> Pasted:
    """Without the four bytes of the size, if these are there; further messages are left out as well."""
    size = int.from_bytes(pasted.data[:4], "big")
    rest = len(pasted.data) - 4
    if not 8 <= size <= rest:
        return pasted
    told = ["4 size bytes", *([f"{rest - size} bytes after the message"] if rest > size else [])]
    return pasted._replace(data=pasted.data[4 : 4 + size], left_out=(*pasted.left_out, *told))


def _read_line(columns: str, size: int | None) -> bytes:
    """The bytes of a line. `size`: how many; None for the last line: two spaces are before its text."""
    pieces = re.split(r"\s{2,}", columns)
    if size is None and len(pieces) > 1:
        pieces.pop()
    data = b""
    for word in " ".join(pieces).split():
        if not _HEX.fullmatch(word) or (size is not None and len(data) >= size):
            break
        data += bytes.fromhex(word)
    return data[:size]


def _without_headers(data: bytes) -> Pasted:
    """The TCP payload of a packet as tcpdump prints it: from the IP header on (-X), or Ethernet's (-XX)."""
    if found := _payload(data, 0):
        return Pasted(data[slice(*found)], "tcpdump -X", ["IP and TCP headers"])
    if data[12:14] in (_IPV4, _IPV6) and (found := _payload(data, _ETHERNET)):
        return Pasted(data[slice(*found)], "tcpdump -XX", ["Ethernet, IP and TCP headers"])
    return Pasted(data, "a hex dump")


def _payload(data: bytes, start: int) -> tuple[int, int] | None:
    """Where the payload of TCP begins and ends; None where no IP header with TCP begins at `start`."""
    head = data[start : start + _IPV6_HEADER]
    if len(head) < _IPV6_HEADER:
        return None
    if head[0] >> 4 == 4 and head[9] == _TCP:
        tcp, end = start + 4 * (head[0] & 15), start + int.from_bytes(head[2:4], "big")
    elif head[0] >> 4 == 6 and head[6] == _TCP:
        tcp, end = start + _IPV6_HEADER, start + _IPV6_HEADER + int.from_bytes(head[4:6], "big")
    else:
        return None
    if end < len(data) or len(data) <= tcp + _TCP_OFFSET:
        return None  # an IP header says how long the packet is
    return tcp + 4 * (data[tcp + _TCP_OFFSET] >> 4), end
