"""What is before IP, with addresses replaced: link layers, and the tags and headers between them and IP.

    Ethernet, SLL, loopback, raw IP     VLAN, PPPoE, MPLS, LLC/SNAP, NSH
    PPP, Cisco HDLC, NFLOG              IEEE 802.11, alone, in radiotap and in PPI

Of radiotap only its flags are kept, of PPI and NFLOG only what leads to the packet. Management and control
frames of IEEE 802.11 are zeros behind their type.

Source: the link type list of tcpdump.org; RFC 1661, 1662, 1547, 2516, 3032, 4448, 8300, 1042; radiotap.org;
IEEE 802.11-2020 9.2.4; linux/netfilter/nfnetlink_log.h; the PPI header format 1.0.10.
"""

import struct
from collections.abc import Callable
from typing import Final

from kwsniff.anonymize.addresses import Addresses

IPV4, IPV6, TRANSPARENT_ETHERNET, SERVICE = 0x0800, 0x86DD, 0x6558, 0x894F
MPLS: Final = 0x8847
BY_VERSION: Final = -1
"""In place of an EtherType: IP, whose version says which one."""
_VLANS: Final = (0x8100, 0x88A8, 0x9100, 0x9200)
_MPLS: Final = (MPLS, 0x8848)
_PPPOE: Final = 0x8864
_SESSION: Final = {0x0021: IPV4, 0x0057: IPV6, 0x0281: MPLS, 0x0283: MPLS}  # what PPP carries
_IN_FRAMES: Final = (IPV4, IPV6, *_VLANS, *_MPLS, _PPPOE)  # MPLS does not say that a frame follows
_SERVED: Final = {1: IPV4, 2: IPV6, 3: TRANSPARENT_ETHERNET, 5: MPLS}
_LEAST_TYPE: Final = 0x0600
_SNAP: Final = b"\xaa\xaa\x03\0\0\0"
_ETHERNET, _LOOP, _NULL, _SLL, _SLL2 = 1, 108, 0, 113, 276
_RAW: Final = (12, 14, 101, 228, 229)
_PPP, _PPP_PPPD, _PPP_WITH_DIR, _PPP_ETHER = (9, 50), 166, 204, 51
_HDLC, _HDLC_WITH_DIR = 104, 205
_NFLOG, _PPI, _RADIOTAP, _WIRELESS = 239, 192, 127, 105
_NFLOG_PAYLOAD: Final = 9
_MOST_FIELDS: Final = 64
_HAS_CLOCK, _HAS_FLAGS, _MORE_WORDS = 1, 2, 1 << 31
_DEEPEST: Final = 16
_MOST_FRAMES: Final = 8
"""Frames inside frames."""


class LinkLayers:
    """A packet on its way into ``out``, from its link layer to IP."""

    def __init__(self, addresses: Addresses, packet: bytes) -> None:
        self.addresses = addresses
        self.packet = packet
        self.out = bytearray(len(packet))
        self._frames = 0

    def ip(self, at: int, *, quoted: bool = False) -> None:
        """An IP packet."""
        raise NotImplementedError

    def link(self, link: int, at: int = 0) -> None:
        """From the link layer's header on."""
        if link == _ETHERNET:
            self.ethernet(at)
        elif link == _SLL:
            self.copy(at, at + 6)
            self.copy(at + 14, at + 16)
            self.mac(at + 6)
            self.ethertype(self.number(at + 14), at + 16)
        elif link == _SLL2:
            self.copy(at, at + 12)
            self.mac(at + 12)
            self.ethertype(self.number(at), at + 20)
        elif link in (_NULL, _LOOP):
            self.copy(at, at + 4)
            self.ip(at + 4)
        elif link in _RAW:
            self.ip(at)
        else:
            self._seldom(link, at)

    def _seldom(self, link: int, at: int) -> None:
        if link in _PPP:
            self._ppp(at)
        elif link in (_PPP_WITH_DIR, _HDLC_WITH_DIR):
            self.copy(at, at + 1)
            (self._ppp if link == _PPP_WITH_DIR else self._hdlc)(at + 1)
        elif link == _PPP_PPPD:
            begin = at + (2 if self.packet[at + 1] == 3 else 1)
            self.copy(at, begin)
            self._ppp(begin)
        elif link == _PPP_ETHER:
            self.ethertype(_PPPOE, at)
        elif link == _HDLC:
            self._hdlc(at)
        elif link == _NFLOG:
            self._nflog(at)
        elif link == _PPI:
            self._ppi(at)
        elif link == _RADIOTAP:
            self._radiotap(at)
        elif link == _WIRELESS:
            self._wireless(at)

    def _ppp(self, at: int) -> None:
        if self.number(at) == 0xFF03:
            self.copy(at, at + 2)
            at += 2
        elif self.number(at) in (0x0F00, 0x8F00):
            self._hdlc(at)
            return
        # An odd first byte is all of the protocol's number.
        size = 1 if self.packet[at] & 1 else 2
        self.copy(at, at + size)
        protocol = self.packet[at] if size == 1 else self.number(at)
        self.ethertype(_SESSION.get(protocol, 0), at + size)

    def _hdlc(self, at: int) -> None:
        self.copy(at, at + 4)
        self.ethertype(self.number(at + 2), at + 4)

    def _nflog(self, at: int) -> None:
        """Lengths are in the byte order of the machine that captured; the output's is little-endian."""
        self.copy(at, at + 4)
        for order in "<>":
            place, fields = at + 4, []
            for _ in range(_MOST_FIELDS):
                if place + 4 > len(self.packet):
                    break
                size, kind = struct.unpack_from(order + "HH", self.packet, place)
                if size < 4:
                    break
                fields.append((place, size, kind))
                if kind & 0x7FFF == _NFLOG_PAYLOAD:
                    for begin, length, name in fields:
                        struct.pack_into("<HH", self.out, begin, length, name)
                    self.ip(place + 4)
                    return
                place += size + -size % 4

    def _ppi(self, at: int) -> None:
        size, link = struct.unpack_from("<xxHI", self.packet, at)
        self.copy(at, at + 8)
        if size >= 12 and at + 12 <= len(self.out):  # one field without contents
            struct.pack_into("<HH", self.out, at + 8, 0, size - 12)
        if size >= 8 and link != _PPI:
            self.link(link, at + size)

    def _radiotap(self, at: int) -> None:
        size, present = struct.unpack_from("<HI", self.packet, at + 2)
        self.copy(at, at + 4)
        place, word = at + 8, present
        while word & _MORE_WORDS:
            (word,) = struct.unpack_from("<I", self.packet, place)
            place += 4
        if present & _HAS_CLOCK:
            place += -(place - at) % 8 + 8
        if present & _HAS_FLAGS and place < at + size and size > 8:
            struct.pack_into("<I", self.out, at + 4, _HAS_FLAGS)
            self.out[at + 8] = self.packet[place]
        if size >= 8:
            self._wireless(at + size)

    def _wireless(self, at: int) -> None:
        """A frame of IEEE 802.11. Whole data frames in the clear have names, and are read."""
        self.copy(at, at + 2)
        control, flags = self.packet[at], self.packet[at + 1]
        if control & 0x4F != 8 or flags & 0x40:
            return
        header = 24
        for place in (4, 10, 16):
            self.mac(at + place)
        self.copy(at + 2, at + 4)
        self.copy(at + 22, at + 24)
        if flags & 3 == 3:
            self.mac(at + header)
            header += 6
        if control & 0x80:
            size = 6 if flags & 0x80 else 2
            self.copy(at + header, at + header + size)
            if self.packet[at + header] & 0x80:  # several packets in one frame
                return
            header += size
        place = at + header
        if self.packet[place : place + 3] != _SNAP[:3] and self.packet[place + 2 : place + 4] == _SNAP[:2]:
            place += 2  # padding of some cards
        self.ethertype(0, place)

    def ethernet(self, at: int) -> None:
        """An Ethernet frame."""
        self._frames += 1
        if self._frames > _MOST_FRAMES:
            return
        self.mac(at)
        self.mac(at + 6)
        self.copy(at + 12, at + 14)
        self.ethertype(self.number(at + 12), at + 14)

    def ethertype(self, kind: int, at: int) -> None:
        """What a frame carries."""
        for _ in range(_DEEPEST):
            if kind in _VLANS:
                self.copy(at, at + 4)
                kind, at = self.number(at + 2), at + 4
            elif kind in _MPLS:
                self.copy(at, at + 4)
                at += 4
                if self.packet[at - 2] & 1:
                    kind, at = self._pass_labels(at)
            elif kind == _PPPOE:
                self.copy(at, at + 8)
                # What is behind the session is padding, even where IP counts it.
                self.packet = self.packet[: at + 6 + self.number(at + 4)]
                kind, at = _SESSION.get(self.number(at + 6), 0), at + 8
            elif kind == SERVICE:
                kind, at = self._pass_service(at)
            elif 0 <= kind < _LEAST_TYPE and self.packet[at : at + 6] == _SNAP:
                self.copy(at, at + 8)
                kind, at = self.number(at + 6), at + 8
            else:
                break
        follow: Callable[[int], None] | None = {
            IPV4: self.ip, IPV6: self.ip, BY_VERSION: self.ip, TRANSPARENT_ETHERNET: self.ethernet
        }.get(kind)  # fmt: skip
        if follow:
            follow(at)

    def _pass_labels(self, at: int) -> tuple[int, int]:
        """EtherType and place of what follows the last MPLS label: IP by its version, or what a frame has,
        with or without a control word."""
        version = self.packet[at] >> 4
        if version in (4, 6):
            return (IPV4 if version == 4 else IPV6), at
        for word in (0, 4) if version == 0 else (0,):
            kind = self.number(at + word + 12)
            if kind in _IN_FRAMES:
                self.copy(at, at + word)
                self.mac(at + word)
                self.mac(at + word + 6)
                self.copy(at + word + 12, at + word + 14)
                return kind, at + word + 14
        return 0, at

    def _pass_service(self, at: int) -> tuple[int, int]:
        """EtherType and place of what follows a network service header; its contexts are left out."""
        (base,) = struct.unpack_from(">I", self.packet, at)
        size = (base >> 16 & 0x3F) * 4
        if base >> 30 or size < 8:
            return 0, at
        self.copy(at, at + 8)
        return _SERVED.get(base & 0xFF, 0), at + size

    def copy(self, begin: int, end: int) -> None:
        """Bytes that have no names."""
        end = min(end, len(self.packet))
        self.out[begin:end] = self.packet[begin:end]

    def mac(self, at: int) -> None:
        """A MAC address replaced."""
        mac = self.packet[at : at + 6]
        if len(mac) == 6:
            self.out[at : at + 6] = self.addresses.mac(mac)

    def number(self, at: int) -> int:
        """16 bits."""
        return int(struct.unpack_from(">H", self.packet, at)[0])
