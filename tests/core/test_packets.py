"""Link, IP and TCP headers byte by byte: cut or impossible ones are malformed, the rest has a name."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import pytest

from tests.core.hand import facts_of, ipv4, ipv6, tcp, verdicts_of
from tests.traffic.files import Frame, pcap

MACS = bytes(range(12))
ETHERNET, SLL, SLL2, NULL, LOOP, RAW = 1, 113, 276, 0, 108, 101
PAYLOAD = b"four"
PACKETS = {4: ipv4(tcp(PAYLOAD)), 6: ipv6(tcp(PAYLOAD))}
TYPES = {4: 0x0800, 6: 0x86DD}


def ether(kind: int, *tags: bytes) -> bytes:
    """An Ethernet header; each tag begins with what its own EtherType field is followed by."""
    return MACS + struct.pack(">H", kind) + b"".join(tags)


def links() -> Iterator[tuple[str, int, int, bytes]]:
    """(name, link type number, IP version, header in front of the IP packet)."""
    for version, kind in TYPES.items():
        type_word = struct.pack(">H", kind)
        session = struct.pack(">BBHHH", 0x11, 0, 7, len(PACKETS[version]) + 2, 0x21 if version == 4 else 0x57)
        bottom, above = struct.pack(">I", 16 << 12 | 1 << 8 | 64), struct.pack(">I", 17 << 12 | 64)
        snap = b"\xaa\xaa\x03\0\0\0" + type_word
        yield "ethernet", ETHERNET, version, ether(kind)
        yield "vlan", ETHERNET, version, ether(0x8100, b"\x20\x64", type_word)
        yield "service_vlan", ETHERNET, version, ether(0x88A8, b"\0\x64\x81\0\0\xc8", type_word)
        yield "old_vlan", ETHERNET, version, ether(0x9100, b"\0\x64\x92\0\0\xc8\x81\0\0\x01", type_word)
        yield "pppoe", ETHERNET, version, ether(0x8864, session)
        yield "pppoe_in_vlan", ETHERNET, version, ether(0x8100, b"\0\x64\x88\x64", session)
        yield "mpls", ETHERNET, version, ether(0x8847, bottom)
        yield "mpls_in_vlan", ETHERNET, version, ether(0x8100, b"\0\x64\x88\x47", above, above, bottom)
        yield "mpls_upstream", ETHERNET, version, ether(0x8848, above, bottom)
        yield "snap", ETHERNET, version, ether(8 + len(PACKETS[version]), snap)
        yield "cooked", SLL, version, struct.pack(">HHH8s", 0, 1, 6, MACS[:8]) + type_word
        yield "cooked_vlan", SLL, version, struct.pack(">HHH8sHH", 0, 1, 6, MACS[:8], 0x8100, 5) + type_word
        yield "cooked_2", SLL2, version, type_word + struct.pack(">HIHBB8s", 0, 2, 1, 0, 6, MACS[:8])
        yield "null", NULL, version, b"\0\0\0\x02"
        yield "loop", LOOP, version, b"\x02\0\0\0"
        yield "raw", RAW, version, b""
        yield "raw_bsd", 12, version, b""
        yield "raw_openbsd", 14, version, b""


LINKS = [pytest.param(*row[1:], id=f"{row[0]}-{row[2]}") for row in links()]


def cut(packet: bytes, at: int, link: int) -> dict[str, int]:
    """Facts of a capture of one packet that a snaplen cut at `at`."""
    return dict(facts_of(pcap([Frame(0, packet[:at], len(packet))], link)))


@pytest.mark.parametrize(("link", "version", "header"), LINKS)
def test_headers_cut_at_every_byte_are_malformed(link: int, version: int, header: bytes) -> None:
    """Sixteen bytes of TCP are needed for ports, numbers, flags and window."""
    packet = header + PACKETS[version]
    start = len(header) + (20 if version == 4 else 40)
    snap = range(14, 18) if header[14:17] == b"\xaa\xaa\x03" else range(0)
    for at in range(len(packet) + 1):
        facts = cut(packet, at, link)
        if at in snap:
            assert facts["packets_not_ip"] == 1, at  # a length and no more than a part of LLC: anything
        elif at < start + 16:
            assert facts["packets_malformed"] == 1, at
        else:
            assert facts["packets_tcp"] == 1, at
            assert facts["tcp_payload_bytes"] == max(0, at - start - 20)


@pytest.mark.parametrize(("link", "version", "header"), LINKS)
def test_padding_behind_the_ip_packet_is_no_payload(link: int, version: int, header: bytes) -> None:
    facts = facts_of(pcap([Frame(0, header + PACKETS[version] + bytes(9), len(header) + 77)], link))
    assert (facts["packets_tcp"], facts["tcp_payload_bytes"]) == (1, len(PAYLOAD))


@pytest.mark.parametrize(
    ("packet", "verdict"),
    [
        (ether(0x0806) + bytes(28), "not_ip"),  # ARP
        (ether(0x88CC) + bytes(40), "not_ip"),
        (ether(0x8863) + bytes(40), "not_ip"),  # PPPoE discovery
        (ether(0x8864, struct.pack(">BBHHH", 0x11, 0, 7, 12, 0xC021)) + bytes(10), "not_ip"),  # LCP
        (ether(0x8847, b"\0\1\0\x40" * 3), "malformed"),  # labels without a last one
        (ether(0x8847, b"\0\1\0\x40" * 20), "not_ip"),  # more labels than anybody uses
        (ether(0x8847, b"\0\1\1\x40", MACS) + bytes(30), "not_ip"),  # Ethernet in MPLS
        (ether(0x8100, b"\0\1\x81\0" * 20) + bytes(40), "not_ip"),  # more tags than anybody uses
        (ether(38, b"\x42\x42\x03") + bytes(35), "not_ip"),  # spanning tree
        (ether(38, b"\xaa\xaa\x03\0\0\x0c\x08\0") + PACKETS[4], "not_ip"),  # a vendor's SNAP: not EtherType
        (ether(0x0800) + b"\x50" + bytes(50), "not_ip"),
        (ether(0x0800) + ipv4(bytes(20), protocol=17), "not_tcp"),
        (ether(0x86DD) + ipv6(bytes(20), following=17), "not_tcp"),
        (ether(0x86DD) + PACKETS[4], "tcp"),  # the version nibble decides
    ],
)
def test_what_is_none_of_ours_has_a_name(packet: bytes, verdict: str) -> None:
    assert verdicts_of([packet], ETHERNET) == {verdict: 1}


@pytest.mark.parametrize("link", [2, 10, 107, 147, 195, 319, 320, 65535])
def test_unknown_link_types_are_counted_not_read(link: int) -> None:
    facts = facts_of(pcap([Frame(0, PACKETS[4], 44)] * 3, link))
    assert (facts["packets_unknown_link_type"], facts["link_types"]) == (3, ["other"])


@pytest.mark.parametrize("word", [0x00000001, 0x14000001, 0xF4000001, 0x03FF0001, 0xFFFF0001])
@pytest.mark.parametrize("big", [False, True])
def test_upper_half_of_the_link_type_word_is_not_the_link_type(word: int, big: bool) -> None:
    """draft-ietf-opsawg-pcap 4: frame check sequence length and flags, then reserved bits."""
    facts = facts_of(pcap([Frame(0, ether(0x0800) + PACKETS[4], 58)], word, big=big))
    assert (facts["packets_tcp"], facts["link_types"]) == (1, ["ethernet"])


def broken(at: int, value: bytes, version: int = 4) -> bytes:
    packet = bytearray(PACKETS[version])
    packet[at : at + len(value)] = value
    return bytes(packet)


@pytest.mark.parametrize(
    ("packet", "verdict", "payload"),
    [
        (broken(0, b"\x44"), "malformed", 0),  # header of 16 bytes
        (broken(0, b"\x40"), "malformed", 0),
        (broken(0, b"\x4f"), "malformed", 0),  # header of 60 bytes in a packet of 44
        (broken(2, b"\0\x13"), "malformed", 0),  # total length 19: shorter than its own header
        (broken(2, b"\0\x14"), "malformed", 0),  # no room for TCP
        (broken(2, b"\0\x27"), "malformed", 0),  # TCP header cut by total length
        (broken(2, b"\0\x28"), "tcp", 0),
        (broken(2, b"\0\x2a"), "tcp", 2),
        (broken(2, b"\0\0"), "tcp", 4),  # offloaded: the frame's length counts
        (broken(2, b"\xff\xff"), "tcp", 4),  # more than was captured
        (broken(32, b"\x40"), "malformed", 0),  # data offset 16
        (broken(32, b"\x60"), "tcp", 0),  # data offset 24: the payload is options
        (broken(32, b"\x70"), "malformed", 0),  # data offset beyond the segment
        (broken(32, b"\xf0"), "malformed", 0),
        (broken(4, b"\0\x13", 6), "malformed", 0),  # payload length 19
        (broken(4, b"\0\x14", 6), "tcp", 0),
        (broken(4, b"\0\0", 6), "tcp", 4),
        (broken(4, b"\xff\xff", 6), "tcp", 4),
        (ipv4(tcp(PAYLOAD), options=bytes(40)), "tcp", 4),
        (ipv4(b""), "malformed", 0),
        (ipv6(b""), "malformed", 0),
    ],
)
def test_lengths_inside_the_headers(packet: bytes, verdict: str, payload: int) -> None:
    facts = facts_of(pcap([Frame(0, packet, len(packet))], RAW))
    assert (facts[f"packets_{verdict}"], facts["tcp_payload_bytes"]) == (1, payload)


def extended(*numbers: int, body: bytes = b"") -> bytes:
    """An IPv6 packet with these extension headers, of growing size, before a TCP segment (or `body`)."""
    chain = b""
    for place, number in enumerate(numbers):
        after = numbers[place + 1] if place + 1 < len(numbers) else 6
        words = place % 3
        if number == 44:
            chain += struct.pack(">BBHI", after, 0, 0, 99)
        elif number == 51:  # RFC 4302: length in words of four bytes, less two
            chain += struct.pack(">BB", after, 1 + words) + bytes(10 + 4 * words)
        else:
            chain += struct.pack(">BB", after, words) + bytes(6 + 8 * words)
    return ipv6(chain + (body or tcp(PAYLOAD)), following=numbers[0] if numbers else 6)


CHAINS = [(0,), (43,), (60,), (51,), (44,), (135,), (139,), (140,), (0, 60, 43, 44, 51, 60),
          (0, 60, 43, 51, 135, 139, 140, 60), (60,) * 15]  # fmt: skip


@pytest.mark.parametrize("chain", CHAINS)
def test_extension_headers_are_stepped_over(chain: tuple[int, ...]) -> None:
    packet = extended(*chain)
    for at in range(len(packet) + 1):
        facts = cut(packet, at, RAW)
        room = at - (len(packet) - 24)
        assert facts["packets_tcp" if room >= 16 else "packets_malformed"] == 1, at
        assert facts["tcp_payload_bytes"] == max(0, room - 20)


@pytest.mark.parametrize(
    ("packet", "verdict"),
    [
        (extended(0, 59), "not_tcp"),  # 59: no next header
        (ipv6(bytes(40), following=50), "not_tcp"),  # encrypted
        (ipv6(bytes(40), following=253), "not_tcp"),
        (ipv6(struct.pack(">BB", 6, 255) + bytes(40), following=0), "malformed"),  # 2048 bytes long
        (extended(*(60,) * 40), "malformed"),
        (ipv6(struct.pack(">BB", 6, 0) + bytes(6) + tcp(), following=0, length=7), "malformed"),
    ],
)
def test_extension_headers_that_lead_nowhere(packet: bytes, verdict: str) -> None:
    assert verdicts_of([packet]) == {verdict: 1}


def nested(depth: int, inner: int, outer: int) -> bytes:
    """A TCP packet of version `inner` inside `depth` headers of version `outer`."""
    packet = PACKETS[inner]
    version = inner
    for _ in range(depth):
        number = 4 if version == 4 else 41
        packet = ipv4(packet, protocol=number) if outer == 4 else ipv6(packet, following=number)
        version = outer
    return packet


@pytest.mark.parametrize("outer", [4, 6])
@pytest.mark.parametrize("inner", [4, 6])
@pytest.mark.parametrize(("depth", "verdict"), [(1, "tcp"), (4, "tcp"), (5, "not_tcp"), (500, "not_tcp")])
def test_ip_in_ip(depth: int, verdict: str, inner: int, outer: int) -> None:
    packet = nested(depth, inner, outer)
    assert len(packet) < 65_536
    assert verdicts_of([packet]) == {verdict: 1}
    if depth == 1:
        start = len(packet) - 24
        for at in range(1, len(packet) + 1):
            assert cut(packet, at, RAW)["packets_tcp" if at >= start + 16 else "packets_malformed"] == 1, at


@pytest.mark.parametrize(
    ("packet", "verdict"),
    [
        (ipv4(b"\0" * 30, protocol=4), "not_tcp"),
        (ipv6(b"\0" * 30, following=41), "not_tcp"),
        (ipv4(PACKETS[4], protocol=4, fragment=0x2000), "fragment"),  # half of a tunnel's packet
        (
            ipv4(PACKETS[4], protocol=4, total=40),
            "malformed",
        ),  # the outer header ends inside the inner packet
        (ipv4(PACKETS[4], protocol=47), "not_tcp"),
    ],
)
def test_tunnels_that_hold_no_whole_packet(packet: bytes, verdict: str) -> None:
    assert verdicts_of([packet]) == {verdict: 1}


@pytest.mark.parametrize(
    ("length", "verdict"), [(46, "tcp"), (45, "malformed"), (0, "malformed"), (65_535, "tcp")]
)
def test_packet_longer_than_its_pppoe_session_is_dropped(length: int, verdict: str) -> None:
    """As receivers do; some boxes count padding of the frame as IP."""
    session = struct.pack(">BBHHH", 0x11, 0, 7, length, 0x21)
    assert verdicts_of([ether(0x8864, session) + PACKETS[4]], ETHERNET) == {verdict: 1}
