"""IP fragments that contradict each other never make a datagram with bytes that no packet carried."""

import itertools
import struct

from tests.hostile.flood import HEADER
from tests.hostile.promises import analyse, check


def _fragment(offset: int, payload: bytes, *, more: bool) -> bytes:
    total = 20 + len(payload)
    flags = offset // 8 | (0x2000 if more else 0)
    head = struct.pack(">BBHHHBBH4s4s", 0x45, 0, total, 7, flags, 64, 6, 0, b"\x0a\0\0\1", b"\x0b\0\0\1")
    return struct.pack("<IIII", 1, 0, total, total) + head + payload


_TCP = struct.pack(">HHIIBBHHH", 50_000, 9092, 1, 1, 0x50, 24, 9, 0, 0) + b"payload of 28 bytes in all.."
_PIECES = (
    _fragment(0, _TCP[:16], more=True),
    _fragment(16, _TCP[16:40], more=True),
    _fragment(40, _TCP[40:], more=False),
)


def _verdicts(pieces: tuple[bytes, ...]) -> tuple[int, int]:
    result = analyse([HEADER + b"".join(pieces)])
    check(result)
    assert not isinstance(result, str)
    return result[1]["packets_tcp"], result[1]["packets_fragment"]


def test_fragments_in_any_order_make_one_segment():
    for pieces in itertools.permutations(_PIECES):
        assert _verdicts(pieces) == (1, 2)


def test_units_beyond_the_end_do_not_stand_for_missing_ones():
    beyond = tuple(_fragment(80 + 8 * number, b"beyond..", more=True) for number in range(5))
    last = _fragment(40, b"the end.", more=False)
    assert _verdicts((last, *beyond)) == (0, 6)
    assert _verdicts((*beyond, last)) == (0, 6)


def test_a_second_end_does_not_leave_a_unit_half_filled():
    short = _fragment(8, b"x", more=False)
    whole = (*_PIECES[1:], short)
    assert _verdicts(whole) == (0, 3)
    assert _verdicts((*whole, _PIECES[0])) == (1, 3)
