"""Options of Geneve (RFC 8926 3.4): their length is a number of six bits, in words of four bytes."""

from __future__ import annotations

import struct

import pytest

from tests.pipeline.mirrored import calls, of_frames, recorded
from tests.traffic.files import Frame
from tests.traffic.tunnels import Carrier, geneve, outer, udp

ROWS = recorded("first_steps")[:40]


def options(words: int) -> bytes:
    """One option after the other, of 31 words of data at most; none where there is no word."""
    made = b""
    while words:
        own = min(words, 32)
        made += struct.pack(">HBB", 0x0102, 0x80, own - 1) + bytes([own]) * 4 * (own - 1)
        words -= own
    return made


def in_geneve(words: int) -> list[Frame]:
    made = []
    for row in ROWS:
        (frame,) = outer(17, udp(6081, geneve(row.data, options(words))), Carrier())
        made.append(Frame(row.time_ns, frame, len(frame)))
    return made


@pytest.mark.parametrize("words", [0, 1, 2, 15, 16, 17, 31, 32, 33, 47, 48, 62, 63])
def test_options_of_any_length_are_passed_over(words: int) -> None:
    plain, facts = of_frames(ROWS)
    rows, told = of_frames(in_geneve(words))
    assert calls(rows) == calls(plain)
    assert calls(rows)
    assert told["packets_tcp"] == facts["packets_tcp"]
    assert told["tunnel_geneve"] == len(ROWS)
