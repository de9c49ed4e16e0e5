"""Packets in tunnels, as mirrors and overlays send them: headers written by hand around a captured frame."""

from __future__ import annotations

import ipaddress
import struct
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from tests.traffic.links import checksum

_MACS = bytes.fromhex("0200000000f10200000000f2")
_ENDS = {4: ("192.0.2.1", "192.0.2.2"), 6: ("2001:db8::1", "2001:db8::2")}
TYPES = defaultdict(lambda: 0x0800, {6: 0x86DD})


@dataclass(frozen=True, slots=True)
class Carrier:
    """How a tunnel's own packet is sent. Sizes that do not fit into their fields are cut off there."""

    version: int = 4
    ident: int = 7
    fragment_bytes: int = 0  # cut the outer packet into fragments of so many bytes


def ip_of(frame: bytes) -> bytes:
    """The IP packet of an Ethernet frame without tags, without padding."""
    packet = frame[14:]
    length = int.from_bytes(packet[2:4], "big")
    if packet[0] >> 4 == 6:
        length = int.from_bytes(packet[4:6], "big") + 40
    return packet[:length]


def version_of(packet: bytes) -> int:
    return packet[0] >> 4 if packet else 4


def outer(protocol: int, payload: bytes, carrier: Carrier) -> list[bytes]:
    """Ethernet frames of one IP packet, or of its fragments."""
    size = carrier.fragment_bytes
    cuts = range(0, len(payload), size) if size and len(payload) > size else [0]
    out = []
    for at in cuts:
        piece = payload[at : at + size] if size else payload
        more = at + len(piece) < len(payload)
        out.append(_one(protocol, piece, at, more, carrier, whole=len(cuts) == 1))
    return out


def _one(protocol: int, piece: bytes, at: int, more: bool, carrier: Carrier, *, whole: bool) -> bytes:
    ends = b"".join(ipaddress.ip_address(end).packed for end in _ENDS[carrier.version])
    if carrier.version == 4:
        word = 0x4000 if whole else at // 8 | more << 13
        head = (
            struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(piece) & 0xFFFF, carrier.ident, word, 64, protocol, 0)
            + ends
        )
        head = head[:10] + struct.pack(">H", checksum(head)) + head[12:]
    else:
        if not whole:
            piece = struct.pack(">BBHI", protocol, 0, at | more, carrier.ident) + piece
            protocol = 44
        head = struct.pack(">IHBB", 6 << 28, len(piece) & 0xFFFF, protocol, 64) + ends
    return _MACS + struct.pack(">H", TYPES[carrier.version]) + head + piece


def udp(port: int, payload: bytes) -> bytes:
    return struct.pack(">HHHH", 54_321, port, 8 + len(payload) & 0xFFFF, 0) + payload


def vxlan(frame: bytes, vni: int = 42) -> bytes:
    return struct.pack(">II", 0x08000000, vni << 8) + frame


def vxlan_gpe(frame: bytes) -> bytes:
    packet = ip_of(frame)
    return struct.pack(">II", 0x0C000000 | (1 if version_of(packet) == 4 else 2), 42 << 8) + packet


def nsh(payload: bytes, following: int, contexts: bytes | None = None) -> bytes:
    """A network service header (RFC 8300): 16 bytes of contexts (type 1), or those given (type 2)."""
    kind, behind = (1, bytes(range(16))) if contexts is None else (2, contexts)
    words = 2 + len(behind) // 4
    return struct.pack(">HBBI", 63 << 6 | words, kind, following, 9 << 8 | 255) + behind + payload


def in_service(payload: bytes, following: int = 4) -> bytes:
    """VXLAN-GPE with something that is no IP inside: 4, a service header; 5, MPLS."""
    return struct.pack(">II", 0x0C000000 | following, 42 << 8) + payload


def nsh_ip(frame: bytes) -> bytes:
    packet = ip_of(frame)
    return nsh(packet, 1 if version_of(packet) == 4 else 2)


def geneve(frame: bytes, options: bytes = b"", kind: int = 0x6558, vni: int = 42) -> bytes:
    return struct.pack(">BBHI", len(options) // 4, 0, kind, vni << 8) + options + frame


def gre(
    payload: bytes, kind: int, *, key: int | None = None, sequence: int | None = None, summed: bool = False
) -> bytes:
    flags = summed << 15 | (key is not None) << 13 | (sequence is not None) << 12
    head = struct.pack(">HH", flags, kind)
    head += struct.pack(">HH", 0, 0) if summed else b""
    head += struct.pack(">I", key) if key is not None else b""
    return head + (struct.pack(">I", sequence) if sequence is not None else b"") + payload


def erspan(frame: bytes, kind: int, *, optional: bool = False) -> bytes:
    """GRE with ERSPAN of type 1, 2 or 3 inside; session 5, VLAN 100."""
    if kind == 1:
        return gre(frame, 0x88BE)
    if kind == 2:
        return gre(struct.pack(">HHI", 1 << 12 | 100, 5, 9) + frame, 0x88BE, sequence=3)
    head = struct.pack(">HHIHH", 2 << 12 | 100, 5, 123_456, 0, int(optional))
    return gre(head + (bytes(8) if optional else b"") + frame, 0x22EB, sequence=3)


def gtpu(frame: bytes, *, sequence: bool = False, extensions: int = 0, teid: int = 77) -> bytes:
    packet = ip_of(frame)
    tail = b""
    flags = 0x30
    if sequence or extensions:
        flags |= (2 if sequence else 0) | (4 if extensions else 0)
        tail = struct.pack(">HBB", 8, 0, 0x85 if extensions else 0)
        for left in range(extensions, 0, -1):  # PDU session containers
            tail += struct.pack(">BHB", 1, 0x0001, 0x85 if left > 1 else 0)
    return struct.pack(">BBHI", flags, 255, len(tail) + len(packet) & 0xFFFF, teid) + tail + packet


Wrap = Callable[[bytes], tuple[int, bytes]]
_OPTION = struct.pack(">HBBI", 0x0102, 0x80, 1, 0xDEADBEEF)

WRAPS: Mapping[str, tuple[str, Wrap]] = {
    "vxlan": ("vxlan", lambda frame: (17, udp(4789, vxlan(frame)))),
    "vxlan_8472": ("vxlan", lambda frame: (17, udp(8472, vxlan(frame)))),
    "vxlan_gpe": ("vxlan", lambda frame: (17, udp(4790, vxlan_gpe(frame)))),
    "vxlan_gpe_nsh": ("vxlan", lambda frame: (17, udp(4790, in_service(nsh(frame, 3))))),
    "vxlan_gpe_nsh_ip": ("vxlan", lambda frame: (17, udp(4790, in_service(nsh_ip(frame))))),
    "vxlan_gpe_nsh_2": ("vxlan", lambda frame: (17, udp(4790, in_service(nsh(frame, 3, _OPTION))))),
    "vxlan_gpe_mpls": (
        "vxlan",
        lambda frame: (
            17,
            udp(4790, in_service(struct.pack(">I", 99 << 12 | 1 << 8 | 64) + ip_of(frame), 5)),
        ),
    ),
    "geneve_nsh": ("geneve", lambda frame: (17, udp(6081, geneve(nsh(frame, 3, b""), kind=0x894F)))),
    "gre_nsh": ("gre", lambda frame: (47, gre(nsh_ip(frame), 0x894F))),
    "geneve": ("geneve", lambda frame: (17, udp(6081, geneve(frame)))),
    "geneve_options": ("geneve", lambda frame: (17, udp(6081, geneve(frame, _OPTION * 3)))),
    "geneve_ip": (
        "geneve",
        lambda frame: (17, udp(6081, geneve(ip_of(frame), kind=TYPES[version_of(ip_of(frame))]))),
    ),
    "gre_ip": ("gre", lambda frame: (47, gre(ip_of(frame), TYPES[version_of(ip_of(frame))]))),
    "gre_teb": ("gre", lambda frame: (47, gre(frame, 0x6558))),
    "gre_all": ("gre", lambda frame: (47, gre(frame, 0x6558, key=9, sequence=4, summed=True))),
    "gre_mpls": (
        "gre",
        lambda frame: (47, gre(struct.pack(">I", 99 << 12 | 1 << 8 | 64) + ip_of(frame), 0x8847)),
    ),
    "erspan_1": ("erspan", lambda frame: (47, erspan(frame, 1))),
    "erspan_2": ("erspan", lambda frame: (47, erspan(frame, 2))),
    "erspan_3": ("erspan", lambda frame: (47, erspan(frame, 3))),
    "erspan_3_optional": ("erspan", lambda frame: (47, erspan(frame, 3, optional=True))),
    "gtpu": ("gtpu", lambda frame: (17, udp(2152, gtpu(frame)))),
    "gtpu_sequence": ("gtpu", lambda frame: (17, udp(2152, gtpu(frame, sequence=True)))),
    "gtpu_extensions": ("gtpu", lambda frame: (17, udp(2152, gtpu(frame, extensions=2)))),
    "ipip": ("ipip", lambda frame: (4 if version_of(ip_of(frame)) == 4 else 41, ip_of(frame))),
}
"""How a frame gets into a tunnel: what the tunnel is called, protocol and payload of the packet around it."""


def vlan(frame: bytes, tag: int, kind: int = 0x8100) -> bytes:
    return frame[:12] + struct.pack(">HH", kind, tag) + frame[12:]


def mpls(frame: bytes, label: int = 500) -> bytes:
    return frame[:12] + struct.pack(">HI", 0x8847, label << 12 | 1 << 8 | 64) + frame[14:]


def wrapped(frames: Iterable[bytes], way: str, carrier: Carrier = Carrier()) -> Iterator[list[bytes]]:
    """The frames that carry each frame."""
    for number, frame in enumerate(frames):
        protocol, payload = WRAPS[way][1](frame)
        yield outer(protocol, payload, Carrier(carrier.version, 100 + number, carrier.fragment_bytes))


# -- link types ----------------------------------------------------------------------------------------------

_QOS = struct.pack("<HH", 0x0188, 0) + bytes(18) + struct.pack("<HH", 16, 0)
_DATA = struct.pack("<HH", 0x0108, 0) + bytes(18) + struct.pack("<H", 16)
_FOUR = struct.pack("<HH", 0x0308, 0) + bytes(18) + struct.pack("<H", 16) + bytes(6)


def _snap(packet: bytes) -> bytes:
    return bytes.fromhex("aaaa03000000") + struct.pack(">H", TYPES[version_of(packet)]) + packet


def _ppp(packet: bytes) -> bytes:
    return struct.pack(">H", 0x0021 if version_of(packet) != 6 else 0x0057) + packet


def _hdlc(packet: bytes) -> bytes:
    return struct.pack(">BBH", 0x0F, 0, TYPES[version_of(packet)]) + packet


def _nflog(packet: bytes) -> bytes:
    """Of a little-endian machine, and a little-endian file; the payload comes behind a mark and a prefix."""
    head = struct.pack(">BBH", 2 if version_of(packet) == 4 else 10, 0, 5)
    for kind, value in ((2, b"\0\0\0\7"), (10, b"web\0"), (9, packet)):
        head += struct.pack("<HH", 4 + len(value), kind) + value + bytes(-len(value) % 4)
    return head


def _radiotap(frame: bytes, flags: int = 0) -> bytes:
    return struct.pack("<BBHIQBB", 0, 0, 18, 3, 1, flags, 0) + frame


def _ppi(frame: bytes, link: int) -> bytes:
    field = struct.pack("<HH", 2, 4) + bytes(4)
    return struct.pack("<BBHI", 0, 0, 8 + len(field), link) + field + frame


LINK_WRAPS: Mapping[str, tuple[int, Callable[[bytes], bytes]]] = {
    "ppp": (9, _ppp),
    "ppp_address": (9, lambda packet: b"\xff\x03" + _ppp(packet)),
    "ppp_compressed": (9, lambda packet: b"\xff\x03" + _ppp(packet)[1:]),
    "ppp_hdlc": (50, lambda packet: b"\xff\x03" + _ppp(packet)),
    "ppp_ether": (51, lambda packet: struct.pack(">BBHH", 0x11, 0, 1, 2 + len(packet)) + _ppp(packet)),
    "ppp_pppd": (166, lambda packet: b"\x01\x03" + _ppp(packet)),
    "ppp_with_dir": (204, lambda packet: b"\x01\xff\x03" + _ppp(packet)),
    "c_hdlc": (104, _hdlc),
    "c_hdlc_with_dir": (205, lambda packet: b"\0" + _hdlc(packet)),
    "nflog": (239, _nflog),
    "wifi": (105, lambda packet: _DATA + _snap(packet)),
    "wifi_qos": (105, lambda packet: _QOS + _snap(packet)),
    "wifi_four_addresses": (105, lambda packet: _FOUR + _snap(packet)),
    "radiotap": (127, lambda packet: _radiotap(_DATA + _snap(packet))),
    "radiotap_padded": (127, lambda packet: _radiotap(_QOS + b"\0\0" + _snap(packet), 0x20)),
    "ppi_wifi": (192, lambda packet: _ppi(_QOS + _snap(packet), 105)),
    "ppi_ethernet": (
        192,
        lambda packet: _ppi(_MACS + struct.pack(">H", TYPES[version_of(packet)]) + packet, 1),
    ),
}
"""Link type number, and how a frame of it carries an IP packet."""
