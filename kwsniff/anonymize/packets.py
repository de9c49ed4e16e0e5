"""A packet's headers with addresses replaced, and zeros for all else.

Known headers are copied field by field: the link layer's, IP, TCP, UDP with VXLAN, Geneve or GTP-U, GRE,
ERSPAN, and what ICMP errors quote. TCP payload stays zero here: ``Segment`` says where it is.

Source: RFC 791, 8200, 9293, 768, 792, 4443, 7348, 8926, 2784; draft-ietf-nvo3-vxlan-gpe;
draft-foschiano-erspan; 3GPP TS 29.281.
"""

import struct
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from typing import Final, NamedTuple

from kwsniff.anonymize.addresses import Addresses
from kwsniff.anonymize.checksums import checksum, transport_checksum
from kwsniff.anonymize.link_layers import BY_VERSION, MPLS, SERVICE, TRANSPARENT_ETHERNET, LinkLayers

_ICMP, _IPIP, _TCP, _UDP, _IP6IP, _GRE, _ICMP6 = 1, 4, 6, 17, 41, 47, 58
_EXTENSIONS: Final = (0, 43, 60, 135, 139, 140)
_PADDED: Final = (0, 60)  # extensions with options
_JUMBO: Final = b"\xc2\4"  # the option with the length of a packet above 65,535 bytes, RFC 2675
_ROUTING, _FRAGMENT, _AUTHENTICATION = 43, 44, 51
_VXLAN: Final = (4789, 4790, 8472)
_GENEVE, _GTPU = 6081, 2152
_TUNNELS: Final = (*_VXLAN, _GENEVE, _GTPU)
_GPE: Final = {1: BY_VERSION, 2: BY_VERSION, 3: TRANSPARENT_ETHERNET, 4: SERVICE, 5: MPLS}
_ERSPAN, _ERSPAN_3 = 0x88BE, 0x22EB
_MAPPED: Final = bytes(10) + b"\xff\xff"  # before an address of IPv4
_ICMP_ERRORS: Final = {_ICMP: (3, 11), _ICMP6: (1, 2, 3)}
_DEEPEST: Final = 8
_OPTION_SIZES: Final = {2: 4, 3: 3, 4: 2, 5: 0, 8: 10}
"""TCP options that are copied: MSS, window scale, SACK permitted, SACK (any size), timestamps."""
_SACK, _NOP = 5, 1
_SYN: Final = 2
_MOST_FRAGMENTS: Final = 1024


class Segment(NamedTuple):
    """TCP payload of a packet.

    ``source`` and ``target``: original address and port. ``ip`` and ``tcp``: where the headers begin in the
    packet (``tcp`` is -1 in later fragments). ``payload`` and ``size``: where its captured bytes are.
    ``whole``: the packet has all bytes that the TCP checksum covers; or all that were sent, if it is the last
    fragment of a datagram. ``datagram``: the number of a datagram in fragments, else 0.
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
    datagram: int = 0


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
        self._datagrams = count(1)

    def rewrite(self, link: int, packet: bytes) -> tuple[bytearray, Segment | None]:
        """The packet without names, of the same size, and its TCP payload."""
        walk = _Walk(self._addresses, packet, self._fragments, self._datagrams)
        with suppress(IndexError, struct.error):  # cut inside a header
            walk.link(link)
        return walk.out, walk.segment


class _Walk(LinkLayers):
    def __init__(
        self,
        addresses: Addresses,
        packet: bytes,
        fragments: "OrderedDict[bytes, Segment]",
        datagrams: Iterator[int],
    ) -> None:
        super().__init__(addresses, packet)
        self.segment: Segment | None = None
        self.fragments = fragments
        self.datagrams = datagrams
        self.depth = 0

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
                self.copy(place, place + 2 + (kind == _ROUTING))
                if kind in _PADDED:
                    jumbo = 6 if packet[place + 2 : place + 4] == _JUMBO else 0
                    self.copy(place + 2, place + 2 + jumbo)
                    begin = place + 2 + jumbo
                    self.out[begin : place + length] = _padding(place + length - begin)[
                        : len(self.out) - begin
                    ]
            elif kind == _AUTHENTICATION:
                length = (packet[place + 1] + 2) * 4
                self.copy(place, place + 2)
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
        syn = bool(first.flags & _SYN)
        seq = first.seq + syn + carried.offset - (first.payload - first.tcp) & 0xFFFFFFFF
        whole = carried.end <= len(self.packet) and not carried.more
        self.segment = first._replace(
            seq=seq, flags=0, ip=carried.ip, tcp=-1, payload=carried.begin, size=max(size, 0), whole=whole
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
        number = next(self.datagrams) if carried.more else 0
        self.segment = Segment(
            source, target, seq, flags, carried.ip, at, at + header, size, whole, datagram=number
        )
        if carried.more:
            self.fragments[carried.name] = self.segment
            if len(self.fragments) > _MOST_FRAGMENTS:
                self.fragments.popitem(last=False)

    def udp(self, ip: int, at: int, end: int) -> None:
        self.copy(at, at + 6)
        source, target, inside = self.number(at), self.number(at + 2), at + 8
        # Senders of tunnels choose the source port to spread load, so the target counts first.
        target = target if target in _TUNNELS else source
        if target in _VXLAN and self.packet[inside] & 0x08:
            self.copy(inside, inside + 8)
            carries = (
                _GPE.get(self.packet[inside + 3], 0) if self.packet[inside] & 4 else TRANSPARENT_ETHERNET
            )
            self.ethertype(carries, inside + 8)
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
            place += 4  # a checksum over what is replaced
        for bit in (0x2000, 0x1000):
            if flags & bit:
                self.copy(place, place + 4)
                place += 4
        if kind in (_ERSPAN, _ERSPAN_3):
            size = 12 if kind == _ERSPAN_3 else 8 if flags & 0x1000 else 0
            self.copy(place, place + size)
            carries = self.number(place + 10) if kind == _ERSPAN_3 else 0
            place += size + (8 if carries & 1 else 0)
            self.ethertype(BY_VERSION if carries >> 10 & 31 == 2 else TRANSPARENT_ETHERNET, place)
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
