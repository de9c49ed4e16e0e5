# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""Packets to TCP segments: link layers, tags, IP, tunnels, TCP.

Rules
  1. Checksums are not checked: captures of offloading machines have none, and a capture is not a receiver.
  2. Fragments of IP datagrams are put together; all but the one that completes a datagram count as fragments.
  3. Lengths come from IP where IP has them. What the link layer padded is cut off, what the capture cut off is
     in `length` but not in `payload`. IP total length 0 means that the network card cut the packet up later:
     then the captured frame's own length counts.
  4. What may be between link layer and IP without hiding it is stepped over: VLAN tags, LLC/SNAP, PPPoE, MPLS, NSH.
     Tunnels (tunnels.pyx, IP in IP) are opened, up to four deep; the innermost addresses count.

    frame | Ethernet, SLL ... | tags, MPLS, PPPoE | IP | TCP
                                                  | IP, UDP, GRE | tunnel | Ethernet | tags | IP | TCP     up to four times

Source: RFC 791, 8200, 9293; RFC 1042 (SNAP), 2516 (PPPoE), 3032, 4448 (MPLS), 8300 (NSH), 2003, 2473, 4213 (IP in IP), 768 (UDP).
"""

from libc.stdint cimport int32_t, uint32_t, uint64_t
from libc.string cimport memset

from kwsniff.core.declared cimport TUNNEL_IPIP, TUNNEL_NONE
from kwsniff.core.capture.fragments cimport join_fragment
from kwsniff.core.capture.icmp cimport ICMP, ICMP6, read_icmp
from kwsniff.core.bytes.hash cimport hash_span, mix
from kwsniff.core.capture.link_layers cimport (
    LINK_BROKEN, LINK_ETHERNET, LINK_IPV4, LINK_IPV6, LINK_LOOP, LINK_NO_DATA, LINK_NULL, LINK_RAW,
    LINK_RAW_BSD, LINK_RAW_OPENBSD, LINK_SLL, LINK_SLL2, LINK_UNKNOWN, Opened, open_link,
)
from kwsniff.core.capture.mapped cimport map_ipv4
from kwsniff.core.bytes.span cimport Span, be16, be32, copy_out, drop, has, keep, u8
from kwsniff.core.capture.reader cimport (
    MAX_JOINED, PACKET_FRAGMENT, PACKET_MALFORMED, PACKET_NOT_IP, PACKET_NOT_TCP, PACKET_TCP,
    PACKET_UNKNOWN_LINK_TYPE, UNREAD_ETHER, UNREAD_LINK, UNREAD_LINK_OTHER, UNREAD_PROTOCOL, Reader, Segment, TCP_SYN,
)
from kwsniff.core.capture.tcp_options cimport OPTION_SACK, find_option, read_syn
from kwsniff.core.capture.tunnels cimport (
    BY_VERSION, ETHER_FRAME, Inner, is_plausible_ip, is_tunnel_port, open_gre, open_udp,
)

cdef enum:
    MAX_TAGS = 16
    BROKEN = 0x10000            # no EtherType
    MAX_NESTED = 4              # packets inside packets
    MAX_EXTENSION_HEADERS = 16
    SERVICE = 0x894F            # EtherType of a network service header (NSH)
    TIMESTAMPED = 32            # a TCP header with timestamps and nothing else,
    TIMESTAMPS = 0x0101080A     # which begins like this (RFC 7323 A)

cdef extern from *:
    """
    #define SNAP 0xAAAA0300u
    """
    const uint32_t SNAP


cdef inline int pass_by(Reader* reader, int verdict, int what) noexcept nogil:
    """A packet that is not read, and what it carries."""
    reader.unread_at = what
    return verdict


cdef int read_link(Reader* reader, int32_t link_type, Span packet, uint32_t original, Segment* segment,
                   int depth) noexcept nogil:
    if link_type == LINK_ETHERNET:
        return read_tagged(reader, be16(packet, 12), 14, packet, original, segment, depth)
    if link_type == LINK_SLL:
        return read_tagged(reader, be16(packet, 14), 16, packet, original, segment, depth)
    if link_type == LINK_SLL2:
        reader.place = be32(packet, 4)
        return read_tagged(reader, be16(packet, 0), 20, packet, original, segment, depth)
    if link_type in (LINK_NULL, LINK_LOOP):
        # The family word is in the byte order of an unknown machine and its values differ per system;
        # the IP version nibble behind it says the same without guessing.
        return read_ip(reader, drop(packet, 4), original - 4 if original > 4 else 0, segment, depth)
    if link_type in (LINK_RAW, LINK_RAW_BSD, LINK_RAW_OPENBSD, LINK_IPV4, LINK_IPV6):
        return read_ip(reader, packet, original, segment, depth)
    return read_opened(reader, link_type, packet, original, segment, depth)


cdef int read_opened(Reader* reader, int32_t link_type, Span packet, uint32_t original, Segment* segment,
                     int depth) noexcept nogil:
    """Link types that have a module of their own."""
    cdef Opened opened = open_link(link_type, packet, reader.swapped)
    cdef int what = UNREAD_LINK + link_type if 0 <= link_type < UNREAD_LINK_OTHER else UNREAD_LINK_OTHER
    if opened.verdict == LINK_UNKNOWN:
        return pass_by(reader, PACKET_UNKNOWN_LINK_TYPE, what)
    if opened.verdict == LINK_NO_DATA:
        return pass_by(reader, PACKET_NOT_IP, what)
    if opened.verdict == LINK_BROKEN:
        return PACKET_MALFORMED
    if opened.link_type >= 0:           # PPI, inside of which there is no PPI
        return read_link(reader, opened.link_type, drop(packet, opened.header), original - <uint32_t>opened.header,
                         segment, depth)
    if opened.ether_type == <uint32_t>BY_VERSION:
        return read_ip(reader, drop(packet, opened.header), original - <uint32_t>opened.header, segment, depth)
    return read_tagged(reader, opened.ether_type, opened.header, packet, original, segment, depth)


cdef int read_tagged(Reader* reader, uint32_t ether_type, size_t header, Span packet, uint32_t original,
                     Segment* segment, int depth) noexcept nogil:
    """`packet` has a packet of this type behind `header` bytes, and `original` bytes on the wire."""
    if packet.num < header:
        return PACKET_MALFORMED
    ether_type = pass_tags(reader, packet, ether_type, &header)
    if packet.num < header or ether_type == BROKEN:
        return PACKET_MALFORMED
    if ether_type not in (0x0800, 0x86DD):
        return pass_by(reader, PACKET_NOT_IP, UNREAD_ETHER + number_of_type(ether_type))
    return read_ip(reader, drop(packet, header), original - <uint32_t>header, segment, depth)


cdef int number_of_type(uint32_t ether_type) noexcept nogil:
    """In the order of ETHER_NAMES."""
    cdef uint32_t[14] known = [0x0806, 0x8035, 0x8863, 0x8864, 0x8870, 0x888E, 0x88CC, 0x88E5, 0x88F7, 0x8906, 0x8914,
                               0x88A2, 0x9000, SERVICE]
    cdef int i
    for i in range(14):
        if known[i] == ether_type:
            return i
    return 14 if ether_type < 0x0600 else 15


cdef uint32_t pass_tags(Reader* reader, Span packet, uint32_t ether_type, size_t* header) noexcept nogil:
    """Moves `header` behind everything that IP may be wrapped in; returns the EtherType of what is there."""
    cdef int i
    for i in range(MAX_TAGS):
        if ether_type in (0x8100, 0x88A8, 0x9100, 0x9200):
            if be16(packet, header[0]) & 0x0FFF:
                reader.network = mix(reader.network, be16(packet, header[0]) & 0x0FFF)
            ether_type = be16(packet, header[0] + 2)
            header[0] += 4
        elif ether_type == 0x8864:
            ether_type = read_session(drop(packet, header[0]))
            header[0] += 8
        elif ether_type in (0x8847, 0x8848):
            reader.network = mix(reader.network, be32(packet, header[0]) >> 12 | 1 << 20)
            header[0] += 4
            if u8(packet, header[0] - 2) & 1:
                ether_type = pass_wire(packet, header)
        elif ether_type == SERVICE:
            ether_type = pass_service(packet, header)
            if ether_type == SERVICE:
                break
        elif ether_type < 0x0600 and be32(packet, header[0]) == SNAP and be16(packet, header[0] + 4) == 0:
            ether_type = be16(packet, header[0] + 6)
            header[0] += 8
        else:
            break
    return ether_type


cdef uint32_t pass_wire(Span packet, size_t* header) noexcept nogil:
    """MPLS does not say what follows its last label: the version of IP does, or else the EtherType of a frame behind it,
    with or without a control word (RFC 4448)."""
    cdef uint32_t version = u8(packet, header[0]) >> 4, kind
    cdef size_t word
    if version not in (4, 6):
        for word in range(0, 5, 4):
            kind = be16(packet, header[0] + word + 12)
            if kind in (0x0800, 0x86DD, 0x8100, 0x88A8, 0x8847, 0x8864) and (word == 0 or version == 0):
                header[0] += word + 14
                return kind
    return 0x86DD if version == 6 else 0x0800


cdef uint32_t pass_service(Span packet, size_t* header) noexcept nogil:
    """Moves `header` behind a service header and its contexts; SERVICE where what follows is none that is read.

    version 2, O, ., TTL 6, length 6 (words) | . 4, type of contexts 4 | next protocol 8 | path 24, index 8 | contexts
    """
    cdef uint32_t base = be32(packet, header[0])
    cdef uint32_t length = (base >> 16 & 0x3F) * 4
    if base >> 30 or length < 8 or not has(packet, header[0], length):
        return BROKEN
    if base & 0xFF == 3:
        header[0] += length + 14
        return be16(packet, header[0] - 2)
    if base & 0xFF not in (1, 2, 5):
        return SERVICE
    header[0] += length
    return 0x0800 if base & 0xFF == 1 else 0x86DD if base & 0xFF == 2 else 0x8847


cdef uint32_t read_session(Span packet) noexcept nogil:
    """The EtherType for what a PPPoE session carries: six bytes, then PPP's number of the protocol."""
    cdef uint32_t length = be16(packet, 4)
    # Boxes that count an Ethernet frame's padding as IP leave the session's length as it was; receivers drop those.
    if be16(packet, 6) == 0x0021:
        return 0x0800 if be16(packet, 10) + 2 <= length else BROKEN
    if be16(packet, 6) == 0x0057:
        return 0x86DD if be16(packet, 12) + 42 <= length else BROKEN
    return 0


cdef int read_ip(Reader* reader, Span packet, uint32_t original, Segment* segment, int depth) noexcept nogil:
    cdef uint32_t version = u8(packet, 0) >> 4
    cdef uint32_t header, total, fragment
    if reader.strict:
        if not is_plausible_ip(packet, original):
            return PACKET_NOT_IP
        reader.strict = False
    if version == 4:
        header = (u8(packet, 0) & 15) * 4
        if header < 20 or packet.num < header:
            return PACKET_MALFORMED
        total = be16(packet, 2)
        if total == 0:
            total = original
        elif total < header:
            return PACKET_MALFORMED
        fragment = be16(packet, 6)
        reader.ident = be16(packet, 4)
        reader.ttl = u8(packet, 8)
        map_ipv4(packet, 12, segment.source)
        map_ipv4(packet, 16, segment.target)
        if fragment & 0x3FFF:
            return join(reader, u8(packet, 9), reader.ident | u8(packet, 9) << 16, (fragment & 0x1FFF) * 8,
                        (fragment & 0x2000) != 0, drop(keep(packet, total), header), total - header, segment, depth)
        return read_inside(reader, u8(packet, 9), drop(keep(packet, total), header), total - header, segment, depth)
    if version == 6:
        return read_ipv6(reader, packet, original, segment, depth)
    return pass_by(reader, PACKET_NOT_IP, UNREAD_ETHER + 15) if packet.num else PACKET_MALFORMED


cdef int read_inside(Reader* reader, uint32_t protocol, Span packet, uint32_t length, Segment* segment,
                     int depth) noexcept nogil:
    """What IP carries: `packet` is what was captured of `length` bytes."""
    cdef Inner inner
    if protocol == 6:
        return read_tcp(reader, packet, length, segment)
    if protocol == 17:
        return read_udp(reader, packet, length, segment, depth)
    if protocol == 47:
        inner = open_gre(packet)
        if inner.tunnel != TUNNEL_NONE:
            return read_tunnel(reader, &inner, protocol, packet, length, segment, depth)
    elif protocol in (ICMP, ICMP6):
        read_icmp(reader, protocol, packet, segment)
    elif protocol in (4, 41):
        memset(&inner, 0, sizeof(Inner))
        inner.tunnel = TUNNEL_IPIP
        inner.ether_type = BY_VERSION
        return read_tunnel(reader, &inner, protocol, packet, length, segment, depth)
    return pass_by(reader, PACKET_NOT_TCP, UNREAD_PROTOCOL + protocol)


cdef int read_udp(Reader* reader, Span packet, uint32_t length, Segment* segment, int depth) noexcept nogil:
    cdef Inner inner = open_udp(be16(packet, 0), be16(packet, 2), drop(packet, 8))
    cdef uint32_t chain = reader.chain
    cdef int verdict
    if inner.tunnel == TUNNEL_NONE or length < 8:
        return pass_by(reader, PACKET_NOT_TCP, UNREAD_PROTOCOL + 17)
    reader.strict = True
    inner.header += 8
    verdict = read_tunnel(reader, &inner, 17, packet, length, segment, depth)
    if reader.strict or verdict == PACKET_MALFORMED:
        reader.strict = False           # nothing that fits was inside: a datagram of another protocol
        reader.chain = chain
        return pass_by(reader, PACKET_NOT_TCP, UNREAD_PROTOCOL + 17)
    return verdict


cdef int read_tunnel(Reader* reader, Inner* inner, uint32_t protocol, Span packet, uint32_t length, Segment* segment,
                     int depth) noexcept nogil:
    cdef Span rest = drop(packet, inner.header)
    cdef int verdict
    if depth >= MAX_NESTED or length < inner.header:
        return pass_by(reader, PACKET_NOT_TCP, UNREAD_PROTOCOL + protocol)
    length -= <uint32_t>inner.header
    reader.chain = reader.chain << 8 | inner.tunnel
    if inner.network:
        reader.network = mix(reader.network, inner.network << 8 | inner.tunnel)
    if inner.ether_type == <uint32_t>ETHER_FRAME:
        verdict = read_tagged(reader, be16(rest, 12), 14, rest, length, segment, depth + 1)
    elif inner.ether_type == <uint32_t>BY_VERSION:
        verdict = read_ip(reader, rest, length, segment, depth + 1)
    else:
        verdict = read_tagged(reader, inner.ether_type, 0, rest, length, segment, depth + 1)
    return PACKET_NOT_TCP if verdict == PACKET_NOT_IP else verdict


cdef int read_ipv6(Reader* reader, Span packet, uint32_t original, Segment* segment, int depth) noexcept nogil:
    cdef uint32_t total, following, fragment, header = 40, step
    cdef int i
    if packet.num < 40:
        return PACKET_MALFORMED
    # Payload length 0 means a jumbogram (RFC 2675) or an offloaded segment: the frame's length counts.
    total = be16(packet, 4) + 40
    if total == 40:
        total = original
    packet = keep(packet, total)
    following = u8(packet, 6)
    reader.ident = 0
    reader.ttl = u8(packet, 7)
    copy_out(packet, 8, segment.source, 16)
    copy_out(packet, 24, segment.target, 16)
    for i in range(MAX_EXTENSION_HEADERS):
        if following in (4, 6, 17, 41, 47, ICMP6):
            if total < header:
                return PACKET_MALFORMED
            return read_inside(reader, following, drop(packet, header), total - header, segment, depth)
        if following in (0, 43, 60, 135, 139, 140):     # hop-by-hop, routing, destination, mobility, HIP, shim6
            step = (u8(packet, header + 1) + 1) * 8
        elif following == 51:                           # authentication header counts in words, less two
            step = (u8(packet, header + 1) + 2) * 4
        elif following == 44:
            fragment = be16(packet, header + 2)
            if fragment & 0xFFF9:
                if total < header + 8:
                    return PACKET_MALFORMED
                return join(reader, u8(packet, header), be32(packet, header + 4), fragment & 0xFFF8, fragment & 1,
                            drop(packet, header + 8), total - header - 8, segment, depth)
            step = 8                                    # an atomic fragment is whole (RFC 6946)
        else:
            return pass_by(reader, PACKET_NOT_TCP, UNREAD_PROTOCOL + following)
        if not has(packet, header, step):
            return PACKET_MALFORMED
        following = u8(packet, header)
        header += step
    return PACKET_MALFORMED


cdef int join(Reader* reader, uint32_t protocol, uint32_t id, uint32_t offset, bint more, Span payload,
              uint32_t length, Segment* segment, int depth) noexcept nogil:
    """The packet that completes a datagram represents all of it."""
    cdef Span whole
    if protocol not in (4, 6, 17, 41, 47) or protocol == 17 and offset == 0 and not (
            is_tunnel_port(be16(payload, 0)) or is_tunnel_port(be16(payload, 2))):
        return pass_by(reader, PACKET_NOT_TCP, UNREAD_PROTOCOL + protocol)
    reader.fragmented = True
    if reader.scanning or reader.num_joined == MAX_JOINED:
        return PACKET_FRAGMENT
    whole = join_fragment(&reader.fragments, segment.source, segment.target, id, reader.network, offset, more, payload,
                          length)
    if whole.at == NULL:
        return PACKET_FRAGMENT
    reader.joined[reader.num_joined] = whole
    reader.num_joined += 1
    return read_inside(reader, protocol, whole, <uint32_t>whole.num, segment, depth)


cdef int read_tcp(Reader* reader, Span packet, uint32_t length, Segment* segment) noexcept nogil:
    """`packet` is what was captured of the TCP header and payload, `length` what was on the wire."""
    cdef uint32_t header
    # Sixteen bytes carry everything that is used here; a short snaplen may have cut the rest.
    if packet.num < 16:
        return PACKET_MALFORMED
    header = (u8(packet, 12) >> 4) * 4
    if header < 20 or length < header:
        return PACKET_MALFORMED
    segment.source_port = be16(packet, 0)
    segment.target_port = be16(packet, 2)
    segment.seq = be32(packet, 4)
    segment.ack = be32(packet, 8)
    segment.flags = u8(packet, 13)
    segment.window = be16(packet, 14)
    segment.payload = drop(packet, header)
    segment.length = length - header
    if segment.length < segment.payload.num:
        segment.payload = keep(segment.payload, segment.length)
    segment.sack = keep(segment.payload, 0)
    segment.stamped = header >= TIMESTAMPED and packet.num >= 28 and be32(packet, 20) == TIMESTAMPS
    if segment.stamped:
        segment.stamp = be32(packet, 24)
    if header > TIMESTAMPED or header == TIMESTAMPED and not segment.stamped:
        segment.sack = find_option(drop(keep(packet, header), 20), OPTION_SACK)
    if segment.flags & TCP_SYN:
        read_syn(drop(keep(packet, header), 20), segment)
    segment.ident = reader.ident
    segment.ttl = reader.ttl
    # Without the checksum: where the sender was captured, its card has not made it yet.
    segment.mark = <uint32_t>mix(
        hash_span(drop(keep(packet, header), 18), <uint64_t>segment.seq << 32 | segment.ack),
        (<uint64_t>segment.length << 16 | reader.ident) ^ <uint64_t>(segment.flags << 16 | segment.window) << 32) | 1
    return PACKET_TCP
