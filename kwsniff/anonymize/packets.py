"""A packet's headers with addresses replaced, and zeros for all else.

Known headers are copied field by field: link, VLAN, MPLS, PPPoE, IP, TCP, UDP with VXLAN, Geneve
or GTP-U, GRE, ERSPAN, and what ICMP errors quote. TCP payload stays zero here: ``Segment`` says where it is.

Source: RFC 791, 8200, 9293, 768, 792, 4443, 7348, 8926, 2784, 2516, 3032, 4448; draft-foschiano-erspan; 3GPP
TS 29.281; the link type list of tcpdump.org.
"""

import struct
from collections import OrderedDict
from contextlib import suppress
from typing import Final, NamedTuple

from kwsniff.anonymize.addresses import Addresses

_IPV4, _IPV6, _TRANSPARENT_ETHERNET = 0x0800, 0x86DD, 0x6558
_VLANS: Final = (0x8100, 0x88A8, 0x9100, 0x9200)
_MPLS: Final = (0x8847, 0x8848)
_PPPOE: Final = 0x8864
_SESSION: Final = {0x0021: _IPV4, 0x0057: _IPV6}  # what PPP carries
_IN_FRAMES: Final = (_IPV4, _IPV6, *_VLANS, *_MPLS, _PPPOE)  # MPLS does not say that a frame follows
_ICMP, _IPIP, _TCP, _UDP, _IP6IP, _GRE, _ICMP6 = 1, 4, 6, 17, 41, 47, 58
_EXTENSIONS: Final = (0, 43, 60, 135)
_FRAGMENT, _AUTHENTICATION = 44, 51
_VXLAN_PORTS: Final = (4789, 8472)
_GENEVE, _GTPU = 6081, 2152
_ERSPAN, _ERSPAN_3 = 0x88BE, 0x22EB
_ETHERNET, _LOOP, _NULL, _SLL, _SLL2 = 1, 108, 0, 113, 276
_MAPPED: Final = bytes(10) + b"\xff\xff"  # before an address of IPv4
_RAW: Final = (12, 14, 101, 228, 229)
_FAMILIES: Final = {2: _IPV4, 10: _IPV6, 24: _IPV6, 28: _IPV6, 30: _IPV6}
_ICMP_ERRORS: Final = {_ICMP: (3, 11), _ICMP6: (1, 2, 3)}
_DEEPEST: Final = 8
_OPTION_SIZES: Final = {2: 4, 3: 3, 4: 2, 5: 0, 8: 10}
"""TCP options that are copied: MSS, window scale, SACK permitted, SACK (any size), timestamps."""
_SACK, _NOP = 5, 1
_MOST_FRAGMENTS: Final = 1024


class Segment(NamedTuple):
    """TCP payload of a packet.

    ``source`` and ``target``: original address and port. ``ip`` and ``tcp``: where the headers begin in the
    packet (``tcp`` is -1 in later fragments). ``payload`` and ``size``: where its captured bytes are.
    ``whole``: the packet has all bytes that the TCP checksum covers.
    """

    source: tuple[bytes, int]
    target: tuple[bytes, int]
    seq: int
    flags: int
    ip: int
    tcp: int
    payload: int
    size: int
    whole: bool


class _Carried(NamedTuple):
    """What an IP packet carries. ``offset`` and ``more`` are of a fragment, whose datagram ``name`` tells."""

    ip: int
    begin: int
    end: int
    source: bytes
    target: bytes
    quoted: bool
    offset: int = 0
    more: bool = False
    name: bytes = b""


class Packets:
    """Rewrites packets. It remembers first fragments, for those that follow."""

    def __init__(self, addresses: Addresses) -> None:
        self._addresses = addresses
        self._fragments: OrderedDict[bytes, Segment] = OrderedDict()

    def rewrite(self, link: int, packet: bytes) -> tuple[bytearray, Segment | None]:
        """The packet without names, of the same size, and its TCP payload."""
        walk = _Walk(self._addresses, packet, self._fragments)
        with suppress(IndexError, struct.error):  # cut inside a header
            walk.link(link)
        return walk.out, walk.segment


class _Walk:
    def __init__(self, addresses: Addresses, packet: bytes, fragments: "OrderedDict[bytes, Segment]") -> None:
        self.addresses = addresses
        self.packet = packet
        self.out = bytearray(len(packet))
        self.segment: Segment | None = None
        self.fragments = fragments
        self.depth = 0

    def link(self, link: int) -> None:
        """From the link layer's header on."""
        if link == _ETHERNET:
            self.ethernet(0)
        elif link == _SLL:
            self.copy(0, 6)
            self.copy(14, 16)
            self.mac(6)
            self.ethertype(self.number(14), 16)
        elif link == _SLL2:
            self.copy(0, 12)
            self.mac(12)
            self.ethertype(self.number(0), 20)
        elif link in (_NULL, _LOOP):
            self.copy(0, 4)
            family = int.from_bytes(self.packet[:4], "big")
            self.ethertype(
                _FAMILIES.get(family if family < 256 else int.from_bytes(self.packet[:4], "little"), 0), 4
            )
        elif link in _RAW:
            self.ip(0)

    def ethernet(self, at: int) -> None:
        self.mac(at)
        self.mac(at + 6)
        self.copy(at + 12, at + 14)
        self.ethertype(self.number(at + 12), at + 14)

    def ethertype(self, kind: int, at: int) -> None:
        for _ in range(_DEEPEST):
            if kind in _VLANS:
                self.copy(at, at + 4)
                kind, at = self.number(at + 2), at + 4
            elif kind in _MPLS:
                self.copy(at, at + 4)
                at += 4
                if self.packet[at - 2] & 1:
                    kind, at = self.pass_labels(at)
            elif kind == _PPPOE:
                self.copy(at, at + 8)
                kind, at = _SESSION.get(self.number(at + 6), 0), at + 8
            else:
                break
        if kind in (_IPV4, _IPV6):
            self.ip(at)
        elif kind == _TRANSPARENT_ETHERNET:
            self.ethernet(at)

    def pass_labels(self, at: int) -> tuple[int, int]:
        """EtherType and place of what follows the last MPLS label: IP by its version, or what a frame has,
        with or without a control word."""
        version = self.packet[at] >> 4
        if version in (4, 6):
            return (_IPV4 if version == 4 else _IPV6), at
        for word in (0, 4) if version == 0 else (0,):
            kind = self.number(at + word + 12)
            if kind in _IN_FRAMES:
                self.copy(at, at + word)
                self.mac(at + word)
                self.mac(at + word + 6)
                self.copy(at + word + 12, at + word + 14)
                return kind, at + word + 14
        return 0, at

    def ip(self, at: int, *, quoted: bool = False) -> None:
        """An IP packet."""
        self.depth += 1
        if self.depth > _DEEPEST:
            return
        if self.packet[at] >> 4 == 4:
            self.ipv4(at, quoted)
        elif self.packet[at] >> 4 == 6:
            self.ipv6(at, quoted)

    def ipv4(self, at: int, quoted: bool) -> None:
        packet = self.packet
        header = (packet[at] & 15) * 4
        if header < 20 or len(packet) < at + header:
            return
        total = self.number(at + 2)
        end = at + total if total >= header else len(packet)
        self.copy(at, at + 10)
        for place in (at + 12, at + 16):
            self.out[place : place + 4] = self.addresses.ip(packet[place : place + 4])
        self.out[at + 20 : at + header] = b"\x01" * (header - 20)
        struct.pack_into(">H", self.out, at + 10, checksum(self.out[at : at + header]))
        fragment = self.number(at + 6)
        name = packet[at + 4 : at + 6] + packet[at + 9 : at + 10] + packet[at + 12 : at + 20]
        source, target = (_MAPPED + packet[place : place + 4] for place in (at + 12, at + 16))
        offset, more = (fragment & 0x1FFF) * 8, bool(fragment & 0x2000)
        carried = _Carried(at, at + header, end, source, target, quoted, offset, more, name)
        self.body(packet[at + 9], carried)

    def ipv6(self, at: int, quoted: bool) -> None:
        packet = self.packet
        if len(packet) < at + 40:
            return
        size = self.number(at + 4)
        end = at + 40 + size if size else len(packet)
        self.copy(at, at + 8)
        for place in (at + 8, at + 24):
            self.out[place : place + 16] = self.addresses.ip(packet[place : place + 16])
        kind, place, offset, more, name = packet[at + 6], at + 40, 0, False, b""
        for _ in range(_DEEPEST):
            if kind in _EXTENSIONS:
                length = (packet[place + 1] + 1) * 8
                self.copy(place, place + 2)
                self.out[place + 2 : place + length] = _padding(length - 2)[: len(self.out) - place - 2]
                if kind == 43:
                    return  # a routing header has addresses
            elif kind == _FRAGMENT:
                length = 8
                self.copy(place, place + 8)
                fragment = self.number(place + 2)
                offset, more = fragment & 0xFFF8, bool(fragment & 1)
                name = packet[place + 4 : place + 8] + packet[at + 8 : at + 40]
            else:
                break
            kind, place = packet[place], place + length
        source, target = packet[at + 8 : at + 24], packet[at + 24 : at + 40]
        self.body(kind, _Carried(at, place, end, source, target, quoted, offset, more, name))

    def body(self, kind: int, carried: _Carried) -> None:
        """What an IP packet carries."""
        if carried.offset:
            self.fragment(carried)
        elif kind == _TCP:
            self.tcp(carried)
        elif carried.quoted:
            return
        elif kind == _UDP:
            self.udp(carried.ip, carried.begin, carried.end)
        elif kind in (_ICMP, _ICMP6):
            self.icmp(kind, carried.ip, carried.begin, carried.end)
        elif kind in (_IPIP, _IP6IP):
            self.ip(carried.begin)
        elif kind == _GRE:
            self.gre(carried.begin)

    def fragment(self, carried: _Carried) -> None:
        """A later fragment of a TCP segment, where the first one was captured before."""
        first = self.fragments.get(carried.name)
        if first is None or carried.quoted:
            return
        size = min(carried.end, len(self.packet)) - carried.begin
        seq = first.seq + carried.offset - (first.payload - first.tcp) & 0xFFFFFFFF
        self.segment = first._replace(
            seq=seq, flags=0, ip=carried.ip, tcp=-1, payload=carried.begin, size=max(size, 0)
        )

    def tcp(self, carried: _Carried) -> None:
        packet, at, end = self.packet, carried.begin, carried.end
        if carried.quoted:
            self.copy(at, min(at + 16, end))
            if at + 20 <= end <= len(packet):  # a whole segment
                value = transport_checksum(self.out, carried.ip, at, end, _TCP)
                struct.pack_into(">H", self.out, at + 16, value)
            return
        self.copy(at, at + 16)
        self.copy(at + 18, at + 20)
        header = (packet[at + 12] >> 4) * 4
        if header < 20:
            return
        options = packet[at + 20 : at + header]
        self.out[at + 20 : at + 20 + len(options)] = _options(options)
        if len(packet) < at + header:
            return
        source_port, target_port, seq = struct.unpack_from(">HHI", packet, at)
        source, target = (carried.source, source_port), (carried.target, target_port)
        size = max(min(end, len(packet)) - at - header, 0)
        whole = end <= len(packet) and not carried.more
        flags = packet[at + 13]
        self.segment = Segment(source, target, seq, flags, carried.ip, at, at + header, size, whole)
        if carried.more:
            self.fragments[carried.name] = self.segment
            if len(self.fragments) > _MOST_FRAGMENTS:
                self.fragments.popitem(last=False)

    def udp(self, ip: int, at: int, end: int) -> None:
        self.copy(at, at + 6)
        target, inside = self.number(at + 2), at + 8
        if target in _VXLAN_PORTS and self.packet[inside] & 0x08:
            self.copy(inside, inside + 8)
            self.ethernet(inside + 8)
        elif target == _GENEVE and self.packet[inside] >> 6 == 0:
            length = (self.packet[inside] & 63) * 4
            # Options are left out: their first word says how long they are.
            self.copy(inside, inside + 8)
            if length:
                struct.pack_into(">HBB", self.out, inside + 8, 0xFFFF, 0, length // 4 - 1 & 31)
            self.ethertype(self.number(inside + 2), inside + 8 + length)
        elif target == _GTPU and self.packet[inside] >> 4 == 3 and self.packet[inside + 1] == 255:
            self.gtpu(inside)
        elif self.out[ip] >> 4 == 6 and end <= len(self.packet):
            struct.pack_into(
                ">H", self.out, at + 6, transport_checksum(self.out, ip, at, end, _UDP) or 0xFFFF
            )

    def gtpu(self, at: int) -> None:
        self.copy(at, at + 8)
        place = at + 8
        if self.packet[at] & 7:
            self.copy(place, place + 4)
            place += 4
            while self.packet[at] & 4 and self.packet[place - 1]:  # of an extension: its length, what follows
                self.copy(place, place + 1)
                place += self.packet[place] * 4 or len(self.packet)
                self.copy(place - 1, place)
        self.ip(place)

    def gre(self, at: int) -> None:
        flags, kind = struct.unpack_from(">HH", self.packet, at)
        if flags & 0x4007:  # routing, or another version
            return
        self.copy(at, at + 4)
        place = at + 4
        if flags & 0x8000:
            struct.pack_into(">H", self.out, at, flags & 0x7FFF)
            return  # a checksum over what is replaced
        for bit in (0x2000, 0x1000):
            if flags & bit:
                self.copy(place, place + 4)
                place += 4
        if kind in (_ERSPAN, _ERSPAN_3):
            size = 12 if kind == _ERSPAN_3 else 8 if flags & 0x1000 else 0
            self.copy(place, place + size)
            more = kind == _ERSPAN_3 and self.packet[place + 11] & 1
            self.ethernet(place + size + (8 if more else 0))
        else:
            self.ethertype(kind, place)

    def icmp(self, kind: int, ip: int, at: int, end: int) -> None:
        self.copy(at, at + 2)
        if self.packet[at] in _ICMP_ERRORS[kind]:
            self.copy(at + 4, at + 8)
            if len(self.packet) > at + 8:
                with suppress(IndexError, struct.error):  # quotes end anywhere
                    self.ip(at + 8, quoted=True)
        if end <= len(self.packet):
            value = (
                checksum(self.out[at:end])
                if kind == _ICMP
                else transport_checksum(self.out, ip, at, end, _ICMP6)
            )
            struct.pack_into(">H", self.out, at + 2, value)

    def copy(self, begin: int, end: int) -> None:
        end = min(end, len(self.packet))
        self.out[begin:end] = self.packet[begin:end]

    def mac(self, at: int) -> None:
        mac = self.packet[at : at + 6]
        if len(mac) == 6:
            self.out[at : at + 6] = self.addresses.mac(mac)

    def number(self, at: int) -> int:
        return int(struct.unpack_from(">H", self.packet, at)[0])


def checksum(data: bytes | bytearray) -> int:
    """The Internet checksum (RFC 1071)."""
    if len(data) % 2:
        data = data + b"\0"
    total: int = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


def transport_checksum(packet: bytes | bytearray, ip: int, at: int, end: int, protocol: int) -> int:
    """The checksum of a TCP, UDP or ICMPv6 message, with its pseudo header; its own field must be 0."""
    addresses = packet[ip + 12 : ip + 20] if packet[ip] >> 4 == 4 else packet[ip + 8 : ip + 40]
    pseudo = bytes(addresses) + struct.pack(">II", end - at, protocol)
    return checksum(pseudo + bytes(packet[at:end]))


def _options(options: bytes) -> bytes:
    """TCP options, with NOPs in place of those that may say more than numbers."""
    out, at = bytearray(_NOP for _ in options), 0
    while at < len(options):
        kind = options[at]
        if kind == 0:
            out[at:] = bytes(len(out) - at)
            break
        size = 1 if kind == _NOP or at + 1 >= len(options) else options[at + 1]
        if kind != _NOP and (size < 2 or size > len(options) - at):
            break
        if kind == _SACK or (kind in _OPTION_SIZES and size == _OPTION_SIZES[kind]):
            out[at : at + size] = options[at : at + size]
        at += size
    return bytes(out)


def _padding(size: int) -> bytes:
    """Options of IPv6 that say nothing: PadN, up to 257 bytes each."""
    out = b""
    while size > 0:
        part = min(size, 257)
        if size - part == 1:
            part -= 1
        out += b"\x00" if part == 1 else bytes([1, part - 2]) + bytes(part - 2)
        size -= part
    return out
