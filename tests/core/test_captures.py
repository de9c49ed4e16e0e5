"""Capture files as files: magic numbers, clocks, blocks whose lengths lie."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from kwsniff.errors import CaptureError
from tests.core.hand import START_NS, facts_of, ipv4, tcp, verdicts_in
from tests.traffic.files import Frame, pcap

PACKET = ipv4(tcp(b"four"))
SECOND = 10**9
ORDERS = pytest.mark.parametrize("order", ["<", ">"], ids=["little", "big"])


def classic(order: str, magic: int, *records: tuple[int, int, bytes], extra: bytes = b"") -> bytes:
    """A pcap of (seconds, fraction, packet); `extra` stands behind every record header."""
    out = struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, 65_535, 101)
    for seconds, fraction, packet in records:
        out += struct.pack(order + "IIII", seconds, fraction, len(packet), len(packet)) + extra + packet
    return out


@ORDERS
@pytest.mark.parametrize(
    ("magic", "unit", "extra"),
    [(0xA1B2C3D4, 1000, b""), (0xA1B23C4D, 1, b""), (0xA1B2CD34, 1000, b"\0\0\0\7\x08\0\4\0")],
    ids=["microseconds", "nanoseconds", "patched"],
)
def test_magic_numbers(order: str, magic: int, unit: int, extra: bytes) -> None:
    """The patched header of 1998 has interface, protocol and packet type behind the lengths: 24 bytes."""
    data = classic(order, magic, (1_700_000_000, 999_999, PACKET), (0xFFFFFFFF, 1, PACKET), extra=extra)
    facts = facts_of(data)
    assert verdicts_in(facts) == {"tcp": 2}
    assert facts["byte_order"] == ("little" if order == "<" else "big")
    assert facts["first_time"] == 1_700_000_000 * SECOND + 999_999 * unit
    assert facts["last_time"] == 0xFFFFFFFF * SECOND + unit  # seconds are unsigned: 2106


@pytest.mark.parametrize(
    "magic", [b"\xa1\xb2\xc3\xd5", b"\xd4\xc3\xb2\xa0", b"\x0a\x0d\x0d\x0b", b"\xa1\xa1\xa1\xa1"]
)
def test_other_magic_numbers_are_no_captures(magic: bytes) -> None:
    with pytest.raises(CaptureError):
        facts_of(magic + bytes(60))


@ORDERS
@pytest.mark.parametrize(
    ("magic", "first_bad"), [(0xA1B2C3D4, 10**6), (0xA1B23C4D, 10**9)], ids=["microseconds", "nanoseconds"]
)
def test_a_fraction_of_a_second_or_more_is_no_time(order: str, magic: int, first_bad: int) -> None:
    unit = SECOND // first_bad
    for fraction in (first_bad, 2**31, 2**32 - 1):
        facts = facts_of(classic(order, magic, (5, fraction, PACKET), (4, first_bad - 1, PACKET)))
        assert verdicts_in(facts) == {"tcp": 2}
        assert facts["first_time"] == facts["last_time"] == 4 * SECOND + (first_bad - 1) * unit
    assert facts_of(classic(order, magic, (5, first_bad, PACKET)))["first_time"] is None


CODES = [*range(20), *(0x80 | power for power in range(64))]
TICKS = [
    0,
    1,
    2,
    3,
    10**6,
    123_456_789_012_345_678,
    2**32 - 1,
    2**33 - 1,
    2**62 + 12_345,
    2**63 - 1,
    2**63,
    2**64 - 1,
]
OFFSETS = [0, 1, -1, 1_600_000_000, -3, 8_999_999_999, 9_000_000_001, -(2**63), 2**63 - 1]


def block(
    kind: int, body: bytes, *, total: int | None = None, trailer: int | None = None, order: str = "<"
) -> bytes:
    body += bytes(-len(body) % 4)
    size = len(body) + 12
    first = struct.pack(order + "II", kind, size if total is None else total)
    return first + body + struct.pack(order + "I", size if trailer is None else trailer)


def option(code: int, value: bytes, length: int | None = None, order: str = "<") -> bytes:
    return (
        struct.pack(order + "HH", code, len(value) if length is None else length)
        + value
        + bytes(-len(value) % 4)
    )


def section(order: str) -> bytes:
    return block(0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1), order=order)


def interface(order: str, options: bytes = b"") -> bytes:
    """Of raw IP packets."""
    return block(1, struct.pack(order + "HHI", 101, 0, 0) + options, order=order)


SECTION = section("<")
INTERFACE = interface("<")


def stamped(code: int | None, ticks: int, offset: int, order: str = "<") -> bytes:
    """A pcapng of one packet whose time is `ticks` units."""
    options = b"" if code is None else option(9, bytes([code]), order=order)
    options += option(14, struct.pack(order + "q", offset), order=order)
    packet = (
        struct.pack(order + "IIIII", 0, ticks >> 32, ticks & 0xFFFFFFFF, len(PACKET), len(PACKET)) + PACKET
    )
    return section(order) + interface(order, options) + block(6, packet, order=order)


def moment(code: int, ticks: int, offset: int) -> int | None:
    """Exact nanoseconds, rounded down; None before 1970 and where 64 bits do not hold them."""
    unit: int = 2 ** (code & 0x7F) if code & 0x80 else 10**code
    seconds, rest = divmod(ticks, unit)
    if not 0 <= seconds + offset <= 9 * SECOND or seconds > 9 * SECOND or abs(offset) > 9 * SECOND:
        return None
    return (seconds + offset) * SECOND + rest * SECOND // unit


@pytest.mark.sample(20)
@pytest.mark.parametrize("code", CODES)
def test_times_are_exact_in_every_resolution(code: int) -> None:
    for ticks in TICKS:
        for offset in OFFSETS:
            facts = facts_of(stamped(code, ticks, offset))
            assert facts["first_time"] == moment(code, ticks, offset), (ticks, offset)
            assert verdicts_in(facts) == {"tcp": 1}


@pytest.mark.parametrize("code", [20, 21, 64, 127, 0x80 | 64, 0x80 | 127])
def test_resolutions_finer_than_a_clock_of_64_bits_are_no_times(code: int) -> None:
    facts = facts_of(stamped(code, 1_700_000_000, 0))
    assert (facts["first_time"], facts["packets_tcp"]) == (None, 1)


def test_resolution_and_offset_in_the_other_byte_order() -> None:
    assert facts_of(stamped(9, 5, -(2**40), ">"))["first_time"] is None
    assert (
        facts_of(stamped(9, 5 * SECOND + 7, 1_600_000_000, ">"))["first_time"] == 1_600_000_005 * SECOND + 7
    )
    assert facts_of(stamped(None, 5_000_007, 0, ">"))["first_time"] == 5 * SECOND + 7_000


def enhanced(number: int = 0, captured: int = len(PACKET), wire: int = len(PACKET), **how: Any) -> bytes:
    return block(6, struct.pack("<IIIII", number, 0, 1, captured, wire) + PACKET, **how)


def old(number: int = 0, captured: int = len(PACKET)) -> bytes:
    return block(2, struct.pack("<HHIIII", number, 0, 0, 1, captured, len(PACKET)) + PACKET)


@pytest.mark.parametrize(
    ("blocks", "verdicts"),
    [
        (enhanced(), {"tcp": 1}),
        (old(), {"tcp": 1}),
        (block(3, struct.pack("<I", len(PACKET)) + PACKET), {"tcp": 1}),
        (enhanced(number=1), {"malformed": 1}),
        (enhanced(number=2**32 - 1), {"malformed": 1}),
        (old(number=0xFFFF), {"malformed": 1}),
        (enhanced(captured=len(PACKET) + 1), {"malformed": 1}),
        (enhanced(captured=2**32 - 1), {"malformed": 1}),
        (old(captured=2**31), {"malformed": 1}),
        (enhanced(captured=0), {"malformed": 1}),
        (enhanced(wire=0), {"tcp": 1}),  # writers that leave the length on the wire out
        (enhanced(wire=2**32 - 1), {"tcp": 1}),
        (enhanced(trailer=0) + enhanced(), {"tcp": 2}),  # the length behind a block is for reading backwards
        (enhanced(total=16), {"malformed": 1}),  # without room for its own fields; and then damage
        (enhanced(total=8), {}),
        (enhanced(total=0), {}),
        (enhanced() + enhanced(total=2**31) + enhanced(), {"tcp": 1}),
        (enhanced() + enhanced(total=2**32 - 1) + enhanced(), {"tcp": 1}),
        (block(3, struct.pack("<I", 2**32 - 1) + PACKET), {"tcp": 1}),  # cut, its length on the wire is a lie
        (block(3, b""), {"malformed": 1}),
        (block(6, b""), {"malformed": 1}),
        (block(2, bytes(19)), {"malformed": 1}),
        (block(0x77, PACKET) + enhanced(), {"tcp": 1}),
        (SECTION + enhanced(), {"malformed": 1}),  # a new section begins without interfaces
    ],
)  # fmt: skip
def test_blocks_that_lie(blocks: bytes, verdicts: dict[str, int]) -> None:
    found = verdicts_in(facts_of(SECTION + INTERFACE + blocks))
    assert found == verdicts


def test_a_length_that_cannot_be_is_damage() -> None:
    for total in (0, 4, 11, 2**31, 2**32 - 1):
        facts = facts_of(SECTION + INTERFACE + enhanced() + enhanced(total=total) + enhanced())
        assert (facts["damaged"], facts["packets"]) == (True, 1), total


@pytest.mark.parametrize(
    "options",
    [
        option(9, b"\x09", length=2),  # a resolution of two bytes is none
        option(9, b"\x09\x00\x00\x00", length=4),
        option(14, bytes(4)),
        option(2, b"eth0", length=0xFFFF) + option(9, b"\x09"),  # beyond the block: what follows is its value
        b"\x09\x00",
        option(0, b"") + option(9, b"\x09"),  # behind the end of options
    ],
)
def test_interface_options_that_lie_change_no_clock(options: bytes) -> None:
    """Without a readable if_tsresol times are in microseconds."""
    assert facts_of(SECTION + interface("<", options) + enhanced())["first_time"] == 1000


def test_last_resolution_counts_and_unknown_options_are_stepped_over() -> None:
    options = (
        option(2988, b"\0\0\x7e\xd9data") + option(9, b"\x03") + option(12, b"Linux") + option(9, b"\x09")
    )
    assert facts_of(SECTION + interface("<", options) + enhanced())["first_time"] == 1


SMALL = (
    SECTION
    + INTERFACE
    + enhanced()
    + block(5, struct.pack("<III", 0, 0, 0) + option(5, bytes(8)))
    + enhanced()
)
WORDS = [0, 1, 3, 4, 8, 11, 12, 13, 16, 28, 0xFF, 0x7FFFFFFC, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFC, 0xFFFFFFFF]


@pytest.mark.parametrize("at", range(0, len(SMALL), 4))
def test_every_word_may_be_anything(at: int) -> None:
    for word in WORDS:
        data = bytearray(SMALL)
        data[at : at + 4] = struct.pack("<I", word)
        try:
            facts = facts_of(bytes(data))
        except CaptureError:
            assert at in (0, 8), "only the magic words say what a capture is"
            continue
        verdicts_in(facts)
        assert facts["packets"] <= 3


@ORDERS
@pytest.mark.parametrize("at", range(0, 16, 4))
def test_every_word_of_a_record_header_may_be_anything(at: int, order: str) -> None:
    for word in WORDS:
        data = bytearray(pcap([Frame(START_NS, PACKET, len(PACKET))] * 2, 101, big=order == ">"))
        data[24 + at : 28 + at] = struct.pack(order + "I", word)
        facts = facts_of(bytes(data))
        verdicts_in(facts)
        if at == 8 and word > 16 << 20:
            assert (facts["damaged"], facts["packets"]) == (True, 0)
        elif at != 8:
            assert verdicts_in(facts) == {"tcp": 2}


def test_padding_of_a_simple_packet_block_is_no_packet() -> None:
    """Its captured length stands nowhere: it is what was on the wire, or the interface's snaplen."""
    for snaplen, payload in ((0, 4), (len(PACKET), 4), (len(PACKET) - 1, 3), (len(PACKET) - 2, 2)):
        head = block(1, struct.pack("<HHI", 101, 0, snaplen))
        captured = PACKET[: snaplen or len(PACKET)]
        facts = facts_of(SECTION + head + block(3, struct.pack("<I", len(PACKET)) + captured))
        assert (facts["packets_tcp"], facts["tcp_payload_bytes"]) == (1, payload), snaplen
