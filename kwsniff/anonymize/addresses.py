"""Replacement of addresses: prefixes stay common, and texts of addresses keep their length.

Each part of an address (a byte of IPv4, 16 bits of IPv6) becomes another one with the same number of digits.
Which one depends on the key and on all parts before it, as in Crypto-PAn (Xu et al., 2002).
"""

import re
from functools import lru_cache
from hashlib import blake2b, shake_256
from ipaddress import IPv4Address, IPv6Address
from typing import Final

import numpy as np

_MAPPED: Final = bytes(10) + b"\xff\xff"
_V4_CLASSES: Final = ((0, 10), (10, 100), (100, 256))
_V4_FIRST: Final = ((1, 10), (10, 100), (100, 127), (128, 224))
"""127 is the loopback, from 224 on groups and reserved addresses: these keep their first byte."""
_V6_CLASSES: Final = ((1, 0x10), (0x10, 0x100), (0x100, 0x1000), (0x1000, 0x10000))
_V6_FIRST: Final = (*_V6_CLASSES[:3], (0x1000, 0xFE00))
_MOST_SEEN: Final = 1_000_000
_LOOPBACK_V4: Final = 127
_LOOPBACK_V6: Final = bytes(15) + b"\x01"
_V4_TEXT: Final = re.compile(r"(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}(?![\d]|\.\d)")
_V6_TEXT: Final = re.compile(r"(?<![0-9A-Fa-f:])(?:[0-9A-Fa-f]{0,4}:){2,7}[0-9A-Fa-f]{0,4}(?![0-9A-Fa-f:])")


class Addresses:
    """Addresses by a key of 32 bytes."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self.seen: dict[bytes, bytes] = {}
        """Addresses of packets -> what replaced them."""
        self._cycle = lru_cache(4096)(self._make_cycle)
        self.ip = lru_cache(65_536)(self._ip)
        """An address of 4 or 16 bytes -> another one of the same family."""
        self.mac = lru_cache(65_536)(self._mac)
        """A MAC address -> a locally administered one; broadcast and zero stay."""

    def text(self, text: str) -> str:
        """A text with every address in it replaced."""
        text = _V4_TEXT.sub(lambda found: self._v4_text(found[0]), text)
        return _V6_TEXT.sub(lambda found: self._v6_text(found[0]), text)

    def find(self, text: str) -> list[tuple[int, int]]:
        """Where addresses are in a text: first character, and the one behind the last."""
        spans = [found.span() for found in _V4_TEXT.finditer(text) if _is_v4(found[0])]
        if text.count(":") > 1:
            spans += [found.span() for found in _V6_TEXT.finditer(text) if _is_v6(found[0])]
        return sorted(spans)

    def _v4_text(self, text: str) -> str:
        if not _is_v4(text):
            return text
        return str(IPv4Address(self.ip(IPv4Address(text).packed)))

    def _v6_text(self, text: str) -> str:
        if not _is_v6(text):
            return text
        packed = self.ip(IPv6Address(text).packed)
        head, _, tail = text.partition("::")
        groups = [f"{int.from_bytes(packed[at : at + 2], 'big'):x}" for at in range(0, 16, 2)]
        before = [each for each in head.split(":") if each]
        after = [each for each in tail.split(":") if each] if "::" in text else []
        written = [_as(new, old) for new, old in zip(groups, before, strict=False)]
        last = [_as(new, old) for new, old in zip(groups[8 - len(after) :], after, strict=True)]
        return ":".join(written) + ("::" + ":".join(last) if "::" in text else "")

    def _ip(self, packed: bytes) -> bytes:
        new = self._make_ip(packed)
        if len(self.seen) < _MOST_SEEN and new != packed:
            self.seen[packed] = new
        return new

    def _make_ip(self, packed: bytes) -> bytes:
        if len(packed) == 4:
            return self._v4(packed)
        if packed.startswith(_MAPPED):
            return _MAPPED + self._v4(packed[12:])
        return self._v6(packed)

    def _v4(self, packed: bytes) -> bytes:
        if packed[0] == _LOOPBACK_V4 or packed == bytes(4) or packed == b"\xff\xff\xff\xff":
            return packed
        out = bytearray()
        for at, part in enumerate(packed):
            out.append(self._next(b"4" + packed[:at], part, _V4_CLASSES if at else _V4_FIRST))
        return bytes(out)

    def _v6(self, packed: bytes) -> bytes:
        if packed in (bytes(16), _LOOPBACK_V6):
            return packed
        out = b""
        for at in range(0, 16, 2):
            part = int.from_bytes(packed[at : at + 2], "big")
            out += self._next(b"6" + packed[:at], part, _V6_CLASSES if at else _V6_FIRST).to_bytes(2, "big")
        return out

    def _next(self, before: bytes, part: int, classes: tuple[tuple[int, int], ...]) -> int:
        for low, end in classes:
            if low <= part < end:
                return int(self._cycle(before, low, end)[part - low])
        return part

    def _make_cycle(self, before: bytes, low: int, end: int) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
        """The number after each one of low to end, in a keyed order."""
        size = end - low
        stream = shake_256(b"address" + self._key + before + low.to_bytes(4, "big")).digest(8 * size)
        order = np.argsort(np.frombuffer(stream, "<u8"), kind="stable")
        after = np.empty(size, np.int64)
        after[order] = np.roll(order, -1) + low
        return after

    def _mac(self, mac: bytes) -> bytes:
        if mac in (bytes(6), b"\xff" * 6):
            return mac
        new = blake2b(b"mac" + mac, digest_size=6, key=self._key).digest()
        return bytes([new[0] & 0xFC | 2 | mac[0] & 1]) + new[1:]


def _as(new: str, old: str) -> str:
    """A group of an IPv6 text with the zeros and the case of the old one."""
    text = new.zfill(len(old))
    return text.upper() if old.isupper() else text


def _is_v4(text: str) -> bool:
    try:
        IPv4Address(text)
    except ValueError:
        return False
    return True


def _is_v6(text: str) -> bool:
    try:
        IPv6Address(text)
    except ValueError:
        return False
    return True
