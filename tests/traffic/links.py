"""Packets as a network interface hands them over: TCP and IP headers and the link types around them."""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tests.traffic.tcp import SYN, Packet

ETHERTYPE = {4: 0x0800, 6: 0x86DD}
_MACS = bytes.fromhex("02000000000a02000000000b")


@dataclass(frozen=True, slots=True)
class IpStyle:
    """How the IP header is written."""

    extension_headers: bool = False  # IPv6: hop-by-hop and destination options before TCP
    options: bool = False  # IPv4: a router alert option
    zero_length: bool = False  # total/payload length 0, as with segmentation offload
    tcp_timestamps: bool = True  # 12 bytes of TCP options


PLAIN = IpStyle()


def checksum(data: bytes) -> int:
    """The Internet checksum (RFC 1071)."""
    if len(data) % 2:
        data += b"\0"
    total: int = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return int(~total & 0xFFFF)


def tcp_segment(packet: Packet, style: IpStyle = PLAIN) -> bytes:
    """TCP header (RFC 9293), options, payload; the checksum covers the pseudo header."""
    options = b""
    if packet.flags & SYN:
        options += struct.pack(">BBHBBBB", 2, 4, 1460, 1, 3, 3, 7)
    if style.tcp_timestamps:
        options += struct.pack(">BBBBII", 1, 1, 8, 10, packet.time_ns // 1_000_000 & 0xFFFFFFFF, 1)
    head = struct.pack(
        ">HHIIBBHHH",
        packet.source.port,
        packet.target.port,
        packet.seq,
        packet.ack,
        (5 + len(options) // 4) << 4,
        packet.flags,
        packet.window,
        0,
        0,
    )
    segment = head + options + packet.payload
    source = ipaddress.ip_address(packet.source.address).packed
    target = ipaddress.ip_address(packet.target.address).packed
    if len(source) == 4:
        pseudo = source + target + struct.pack(">BBH", 0, 6, len(segment) & 0xFFFF)
    else:
        pseudo = source + target + struct.pack(">II", len(segment), 6)
    return segment[:16] + struct.pack(">H", checksum(pseudo + segment)) + segment[18:]


def ip_packet(packet: Packet, style: IpStyle = PLAIN) -> tuple[int, bytes]:
    """IP version and the packet (RFC 791, RFC 8200)."""
    segment = tcp_segment(packet, style)
    source = ipaddress.ip_address(packet.source.address)
    target = ipaddress.ip_address(packet.target.address)
    if source.version == 4:
        options = bytes.fromhex("94040000") if style.options else b""
        length = 0 if style.zero_length else 20 + len(options) + len(segment)
        head = struct.pack(">BBHHHBBH", 0x45 + len(options) // 4, 0, length, 1, 0x4000, 64, 6, 0)
        head += source.packed + target.packed + options
        return 4, head[:10] + struct.pack(">H", checksum(head)) + head[12:] + segment
    extensions = b""
    first = 6
    if style.extension_headers:
        first = 0
        extensions = struct.pack(">BBBB4x", 60, 0, 1, 4) + struct.pack(">BBBB12x", 6, 1, 1, 12)
    length = 0 if style.zero_length else len(extensions) + len(segment)
    head = struct.pack(">IHBB", 6 << 28, length, first, 64) + source.packed + target.packed
    return 6, head + extensions + segment


def _ethernet(version: int, data: bytes) -> bytes:
    return (_MACS + struct.pack(">H", ETHERTYPE[version]) + data).ljust(60, b"\0")


def _vlan(version: int, data: bytes) -> bytes:
    return _MACS + struct.pack(">HHH", 0x8100, 0x2064, ETHERTYPE[version]) + data


def _qinq(version: int, data: bytes) -> bytes:
    return _MACS + struct.pack(">HHHHH", 0x88A8, 100, 0x8100, 200, ETHERTYPE[version]) + data


def _cooked(version: int, data: bytes) -> bytes:
    return struct.pack(">HHH8sH", 0, 1, 6, _MACS[:6] + b"\0\0", ETHERTYPE[version]) + data


def _cooked2(version: int, data: bytes) -> bytes:
    return struct.pack(">HHIHBB8s", ETHERTYPE[version], 0, 2, 1, 0, 6, _MACS[:6] + b"\0\0") + data


def _raw(version: int, data: bytes) -> bytes:
    return data


def _null_little(version: int, data: bytes) -> bytes:
    return struct.pack("<I", 2 if version == 4 else 30) + data


def _null_big(version: int, data: bytes) -> bytes:
    return struct.pack(">I", 2 if version == 4 else 24) + data


def _loop(version: int, data: bytes) -> bytes:
    return struct.pack(">I", 2 if version == 4 else 28) + data


@dataclass(frozen=True, slots=True)
class Link:
    """A link type: its number in capture files and the header around an IP packet."""

    number: int
    wrap: Callable[[int, bytes], bytes]
    versions: tuple[int, ...] = (4, 6)

    def frame(self, packet: Packet, style: IpStyle = PLAIN) -> bytes:
        version, data = ip_packet(packet, style)
        return self.wrap(version, data)


LINKS: Mapping[str, Link] = {
    "ethernet": Link(1, _ethernet),
    "vlan": Link(1, _vlan),
    "qinq": Link(1, _qinq),
    "linux_cooked": Link(113, _cooked),
    "linux_cooked_2": Link(276, _cooked2),
    "raw": Link(101, _raw),
    "ipv4": Link(228, _raw, (4,)),
    "ipv6": Link(229, _raw, (6,)),
    "null_little": Link(0, _null_little),
    "null_big": Link(0, _null_big),
    "loop": Link(108, _loop),
}
