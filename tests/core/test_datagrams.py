"""IP fragments (RFC 791 3.2, RFC 8200 4.5): what is put together is what the packets carried, or nothing."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Sequence
from typing import Any

import pytest

from tests.core.hand import facts_of, ipv4, ipv6, tables_of, tcp, verdicts_in, verdicts_of
from tests.traffic.files import Frame, pcap

NAME = b"abcdefghijklmnopqrstuvwxyz" * 4
BODY = struct.pack(">hhih", 18, 0, 7, len(NAME)) + NAME
SEGMENT = tcp(struct.pack(">i", len(BODY)) + BODY)
"""ApiVersions 0, correlation id 7: 138 bytes, so that fragments of 24 bytes leave 18 for the last."""
CUTS = (0, 24, 72, 120)


def fragment4(start: int, data: bytes, *, more: bool, ident: int = 1, source: str = "10.0.0.1") -> bytes:
    return ipv4(data, ident=ident, fragment=start // 8 | (0x2000 if more else 0), source=source)


def fragment6(start: int, data: bytes, *, more: bool, ident: int = 1, source: str = "fd00::1") -> bytes:
    return ipv6(struct.pack(">BBHI", 6, 0, start | more, ident) + data, following=44, source=source)


def pieces(cut: Any = fragment4, whole: bytes = SEGMENT, **how: Any) -> list[bytes]:
    ends = [*CUTS[1:], len(whole)]
    return [
        cut(start, whole[start:end], more=end < len(whole), **how)
        for start, end in zip(CUTS, ends, strict=True)
    ]


def client_ids(packets: Sequence[bytes], **options: Any) -> list[str]:
    """Client ids of the requests that came out, in order."""
    return [row["client_id"] for row in tables_of(packets, ports=(9092,), **options)["api_calls"]]


@pytest.mark.parametrize("cut", [fragment4, fragment6])
def test_fragments_in_every_order_give_the_request(cut: Any) -> None:
    for packets in itertools.permutations(pieces(cut)):
        assert verdicts_of(packets) == {"tcp": 1, "fragment": 3}
        assert client_ids(packets) == [NAME.decode()]


@pytest.mark.parametrize("cut", [fragment4, fragment6])
@pytest.mark.parametrize("missing", range(4))
def test_without_one_fragment_there_is_nothing(missing: int, cut: Any) -> None:
    packets = pieces(cut)
    del packets[missing]
    assert verdicts_of(packets) == {"fragment": 3}
    assert verdicts_of(packets * 3) == {"fragment": 9}


def test_first_copy_of_a_byte_wins() -> None:
    """A later fragment over bytes that are there already changes none of them, whatever it says."""
    first, second, third, last = pieces()
    other = fragment4(48, b"#" * 48, more=True)  # over the second half of one and the first half of the next

    def with_marks(start: int, end: int) -> list[str]:
        return [(SEGMENT[:start] + b"#" * (end - start) + SEGMENT[end:])[34:].decode()]

    assert client_ids([first, second, third, other, last]) == [NAME.decode()]
    assert client_ids([first, second, other, third, last]) == with_marks(72, 96)
    assert client_ids([first, other, second, third, last]) == with_marks(48, 96)
    assert client_ids([last, third, other, second, first]) == with_marks(48, 72)


def test_a_repeated_datagram_is_a_datagram_again() -> None:
    """`-i any` records every fragment twice; identifications are used again (RFC 6864)."""
    assert verdicts_of(pieces() * 2) == {"tcp": 2, "fragment": 6}
    doubled = [packet for packet in pieces() for _ in range(2)]
    assert verdicts_of(doubled) == {"tcp": 1, "fragment": 7}
    assert client_ids(doubled) == client_ids(pieces() * 2) == [NAME.decode()]


@pytest.mark.parametrize("other", [{"ident": 2}, {"source": "10.0.0.3"}])
def test_two_datagrams_interleaved(other: dict[str, Any]) -> None:
    upper = SEGMENT[:34] + NAME.upper()
    upper = upper[:4] + struct.pack(">I", 1 + len(SEGMENT) - 20) + upper[8:]  # it follows the first one
    mixed = [packet for pair in zip(pieces(), pieces(whole=upper, **other), strict=True) for packet in pair]
    assert verdicts_of(mixed) == {"tcp": 2, "fragment": 6}
    assert client_ids(mixed) == [NAME.decode(), NAME.upper().decode()]


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_so_many_datagrams_at_a_time(limit: int) -> None:
    """The datagram that was touched longest ago makes room; the others are not hurt."""
    datagrams = [pieces(ident=number) for number in range(limit + 1)]
    heads = [packets[0] for packets in datagrams]
    tails = [packet for packets in datagrams[1:] for packet in packets[1:]]
    options: dict[str, Any] = {"limits": {"ip_reassembly": limit}}
    assert verdicts_of([*heads, *tails], **options) == {"tcp": limit, "fragment": limit * 3 + 1}
    assert verdicts_of([*heads, *tails, *datagrams[0][1:]], **options) == {
        "tcp": limit,
        "fragment": limit * 3 + 4,
    }
    assert verdicts_of([*heads, *tails], limits={"ip_reassembly": limit + 1})["tcp"] == limit


@pytest.mark.parametrize("cut", [fragment4, fragment6])
@pytest.mark.parametrize(
    ("start", "size", "more"),
    [
        (65_528, 9, False),  # beyond 65535 bytes ("ping of death")
        (65_528, 65, False),
        (24, 23, True),  # not the last one, and not a multiple of eight bytes
        (24, 1, True),
        (24, 0, True),
        (200, 8, False),  # an end that others are beyond of, or not there yet
    ],
)
def test_impossible_fragments_do_no_harm(start: int, size: int, more: bool, cut: Any) -> None:
    strange = cut(start, b"?" * size, more=more)
    ordinary = pieces(cut)
    assert client_ids([*ordinary[:3], ordinary[3], strange]) == [NAME.decode()]
    if start != 200:
        assert client_ids([strange, *ordinary]) == [NAME.decode()]
        assert verdicts_of([strange, *ordinary]) == {"tcp": 1, "fragment": 4}


@pytest.mark.parametrize("cut", [fragment4, fragment6])
def test_a_datagram_ends_where_its_first_end_says(cut: Any) -> None:
    """One that says otherwise afterwards, inside of it, brings nothing."""
    first, second, third, last = pieces(cut)
    strange = cut(72, b"?" * 24, more=False)
    assert client_ids([last, strange, first, second, third]) == [NAME.decode()]
    assert verdicts_of([last, strange, first, second, third]) == {"tcp": 1, "fragment": 4}


def test_the_largest_datagram_that_ip_allows() -> None:
    """65535 bytes with its header: 65515 of payload, 65495 of them TCP's."""
    whole = tcp(bytes(65_495))
    packets = [
        fragment4(start, whole[start : start + 1480], more=start + 1480 < len(whole))
        for start in range(0, len(whole), 1480)
    ]
    assert verdicts_of(packets[::-1]) == {"tcp": 1, "fragment": len(packets) - 1}
    assert tables_of(packets)["connections"][0]["client_bytes"] == 65_495


def test_fragments_that_a_snaplen_cut_stay_apart() -> None:
    """The bytes behind the cut are missing for good; a whole copy may still bring them."""
    packets = pieces()
    frames = [Frame(0, packet, len(packet)) for packet in packets]
    frames[1] = Frame(0, packets[1][:40], len(packets[1]))
    assert verdicts_in(facts_of(pcap(frames, 101))) == {"fragment": 4}
    again = [*frames, Frame(0, packets[1], len(packets[1]))]
    assert verdicts_in(facts_of(pcap(again, 101))) == {"tcp": 1, "fragment": 4}


def test_fragments_of_other_protocols_are_not_tcp() -> None:
    assert verdicts_of([ipv4(bytes(24), protocol=17, fragment=0x2000)]) == {"not_tcp": 1}
    assert verdicts_of([ipv6(struct.pack(">BBHI", 17, 0, 1, 9) + bytes(16), following=44)]) == {"not_tcp": 1}


@pytest.mark.parametrize("at", [8, 16])
def test_tcp_header_in_two_fragments(at: int) -> None:
    """Eight bytes may come alone (RFC 791); flags and window are in the next fragment."""
    whole = [fragment4(0, SEGMENT[:at], more=True), fragment4(at, SEGMENT[at:], more=False)]
    assert client_ids(whole) == client_ids(whole[::-1]) == [NAME.decode()]


@pytest.mark.parametrize("size", range(41))
def test_a_fragment_cut_inside_its_headers_is_malformed(size: int) -> None:
    packet = fragment6(0, SEGMENT[:24], more=True)
    assert verdicts_of([packet[:size]]) == {"malformed": 1}


def test_fragments_of_two_networks_stay_apart() -> None:
    """VLANs have addresses of their own."""

    def tagged(packet: bytes, tag: int) -> bytes:
        return bytes(12) + struct.pack(">HHH", 0x8100, tag, 0x0800) + packet

    first, second, third, last = pieces()
    one = [tagged(first, 7), tagged(third, 7)]
    two = [tagged(second, 8), tagged(last, 8)]
    assert verdicts_of([*one, *two], link=1) == {"fragment": 4}
    rest = [tagged(second, 7), tagged(last, 7)]
    assert verdicts_of([*one, *two, *rest], link=1) == {"tcp": 1, "fragment": 5}
