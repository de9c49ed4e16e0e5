# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""Tunnel headers (VXLAN, Geneve, GRE, ERSPAN, GTP-U): the inner packet, its offset and its network.

Rules
  1. Headers are read, nothing is followed: headers.pyx continues with what is inside.
  2. A port is not a proof. Behind UDP a tunnel is one only where its own header is right and what is inside is a packet
     that fits into the datagram (`is_plausible_ip`); anything else is another protocol's UDP.
  3. Options, sequence numbers and checksums are stepped over, not checked.

    VXLAN    flags 8 (I = 0x08) | reserved 24 | VNI 24 | reserved 8 | Ethernet frame
             GPE: P = 0x04, next protocol in byte 3 (1 IPv4, 2 IPv6, 3 Ethernet, 4 NSH, 5 MPLS)
    Geneve   version 2, options length 6 (words) | flags 8 | EtherType 16 | VNI 24 | reserved 8 | options | packet
    GRE      C . K S ... version 3 | EtherType 16 | checksum 32? | key 32? | sequence 32? | packet
    ERSPAN   I   GRE without sequence, EtherType 88BE | Ethernet frame
             II  GRE with sequence, 88BE | version 4 = 1, VLAN 12, flags 6, session 10, index 32 | Ethernet frame
             III GRE, 22EB | version 4 = 2, VLAN 12, flags 6, session 10, time 32, group 16, type 5 ... O 1
                           | 8 bytes more if O | Ethernet frame (type 0) or IP (type 2)
    GTP-U    version 3 = 1, PT, ., E, S, PN | type 255 | length 16 | TEID 32 | if any of E, S, PN: sequence 16,
             N-PDU 8, next 8, and while `next` is not 0: words 8 | ... | next 8 | IP packet

Source: RFC 7348, draft-ietf-nvo3-vxlan-gpe (VXLAN), RFC 8926 (Geneve), RFC 2784, 2890, 7637 (GRE),
draft-foschiano-erspan (ERSPAN), 3GPP TS 29.281 (GTP-U).
"""

from libc.stdint cimport uint8_t, uint32_t
from libc.string cimport memcpy, memset

from kwsniff.core.declared cimport (
    NUM_TUNNELS, TUNNEL_ERSPAN, TUNNEL_GENEVE, TUNNEL_GRE, TUNNEL_GTPU, TUNNEL_NONE, TUNNEL_VXLAN,
)
from kwsniff.core.bytes.span cimport Span, be16, be32, has, u8

from kwsniff.core.declared import ENUMS

cdef enum:
    PORT_VXLAN = 4789
    PORT_VXLAN_GPE = 4790
    PORT_VXLAN_LINUX = 8472     # before IANA gave one; flannel and cilium still use it
    PORT_GENEVE = 6081
    PORT_GTPU = 2152
    MOST_EXTENSIONS = 16

cdef char[NUM_TUNNELS][8] names      # by number; nothing for TUNNEL_NONE
memset(names, 0, sizeof(names))
for _number, _word in enumerate(ENUMS["tunnel"], TUNNEL_NONE + 1):
    for _at, _letter in enumerate(_word.encode()):
        names[_number][_at] = _letter

cdef extern from "<string.h>" nogil:
    size_t strnlen(const char* text, size_t most)


cdef int write_tunnels(uint32_t chain, uint8_t* text) noexcept nogil:
    """Writes the names of a Segment's encapsulation to 32 bytes, the outermost one first; returns their length."""
    cdef int shift, tunnel, num = 0
    cdef size_t length
    for shift in range(24, -1, -8):
        tunnel = chain >> shift & 0xFF
        if tunnel == 0 or tunnel >= NUM_TUNNELS:
            continue
        if num:
            text[num] = 0x2F
            num += 1
        length = strnlen(names[tunnel], 7)
        memcpy(&text[num], names[tunnel], length)
        num += <int>length
    return num


cdef bint is_tunnel_port(uint32_t port) noexcept nogil:
    return port in (PORT_VXLAN, PORT_VXLAN_GPE, PORT_VXLAN_LINUX, PORT_GENEVE, PORT_GTPU)


cdef Inner open_udp(uint32_t source_port, uint32_t target_port, Span payload) noexcept nogil:
    """What a datagram's payload is by its ports. Senders of tunnels choose the source port to spread load, so the
    target counts first."""
    cdef uint32_t port = target_port if is_tunnel_port(target_port) else source_port
    cdef Inner none
    if port == PORT_GENEVE:
        return open_geneve(payload)
    if port == PORT_GTPU:
        return open_gtpu(payload)
    if is_tunnel_port(port):
        return open_vxlan(payload)
    memset(&none, 0, sizeof(Inner))
    return none


cdef Inner open_vxlan(Span packet) noexcept nogil:
    cdef Inner inner
    memset(&inner, 0, sizeof(Inner))
    if packet.num < 8 or not u8(packet, 0) & 0x08:
        return inner
    inner.ether_type = ETHER_FRAME
    if u8(packet, 0) & 0x04:
        if u8(packet, 3) in (1, 2):
            inner.ether_type = BY_VERSION
        elif u8(packet, 3) == 4:
            inner.ether_type = 0x894F
        elif u8(packet, 3) == 5:
            inner.ether_type = 0x8847
        elif u8(packet, 3) != 3:
            return inner
    inner.tunnel = TUNNEL_VXLAN
    inner.header = 8
    inner.network = be32(packet, 4) >> 8
    return inner


cdef Inner open_geneve(Span packet) noexcept nogil:
    cdef Inner inner
    memset(&inner, 0, sizeof(Inner))
    inner.header = 8 + (u8(packet, 0) & 0x3F) * 4
    if packet.num < inner.header or u8(packet, 0) >> 6:
        return inner
    inner.tunnel = TUNNEL_GENEVE
    inner.ether_type = be16(packet, 2)
    inner.network = be32(packet, 4) >> 8
    return inner


cdef Inner open_gre(Span packet) noexcept nogil:
    cdef Inner inner
    cdef uint32_t flags = be16(packet, 0)
    memset(&inner, 0, sizeof(Inner))
    if packet.num < 4 or flags & 0x4007:        # source routes, and the variant that carries PPTP
        return inner
    inner.tunnel = TUNNEL_GRE
    inner.ether_type = be16(packet, 2)
    inner.header = 4
    if flags & 0x8000:
        inner.header += 4
    if flags & 0x2000:
        inner.network = be32(packet, inner.header)
        inner.header += 4
    if flags & 0x1000:
        inner.header += 4
    if inner.ether_type == 0x88BE:
        open_erspan(packet, &inner, flags & 0x1000)
    elif inner.ether_type == 0x22EB:
        open_erspan_3(packet, &inner)
    if packet.num < inner.header:
        inner.tunnel = TUNNEL_NONE
    return inner


cdef void open_erspan(Span packet, Inner* inner, bint numbered) noexcept nogil:
    inner.tunnel = TUNNEL_ERSPAN
    inner.ether_type = ETHER_FRAME
    if not numbered:
        return
    if u8(packet, inner.header) >> 4 != 1:
        inner.tunnel = TUNNEL_NONE
    inner.network = be32(packet, inner.header) & 0x0FFF03FF
    inner.header += 8


cdef void open_erspan_3(Span packet, Inner* inner) noexcept nogil:
    cdef uint32_t kind = be16(packet, inner.header + 10)
    inner.tunnel = TUNNEL_ERSPAN
    inner.ether_type = ETHER_FRAME
    if u8(packet, inner.header) >> 4 != 2:
        inner.tunnel = TUNNEL_NONE
    if kind >> 10 & 31 == 2:
        inner.ether_type = BY_VERSION
    elif kind >> 10 & 31:
        inner.tunnel = TUNNEL_NONE
    inner.network = be32(packet, inner.header) & 0x0FFF03FF
    inner.header += 20 if kind & 1 else 12


cdef Inner open_gtpu(Span packet) noexcept nogil:
    cdef Inner inner
    cdef uint32_t following, words
    cdef int i
    memset(&inner, 0, sizeof(Inner))
    if packet.num < 8 or u8(packet, 0) >> 4 != 3 or u8(packet, 1) != 255:
        return inner
    inner.ether_type = BY_VERSION
    inner.network = be32(packet, 4)
    inner.header = 8
    if u8(packet, 0) & 7:
        following = u8(packet, 11) if u8(packet, 0) & 4 else 0
        inner.header = 12
        for i in range(MOST_EXTENSIONS):
            if following == 0:
                break
            words = u8(packet, inner.header) * 4
            if words == 0 or not has(packet, inner.header, words):
                return inner
            following = u8(packet, inner.header + words - 1)
            inner.header += words
        if following:
            return inner
    if packet.num >= inner.header:
        inner.tunnel = TUNNEL_GTPU
    return inner


cdef bint is_plausible_ip(Span packet, uint32_t length) noexcept nogil:
    """Whether an IP packet that fits into `length` bytes begins here. Lengths of 0 are offloading cards'."""
    cdef uint32_t total
    if u8(packet, 0) >> 4 == 4:
        total = be16(packet, 2)
        return packet.num >= 20 and (u8(packet, 0) & 15) >= 5 and (total == 0 or 20 <= total <= length)
    if u8(packet, 0) >> 4 == 6:
        return packet.num >= 40 and be16(packet, 4) + 40 <= length
    return False
