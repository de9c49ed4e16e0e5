# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""Capture files to TCP segments: pcap and pcapng, link layers, IP, TCP.

Rules
  1. Any chunking of the file gives the same segments: a record that a chunk breaks off is carried over.
  2. Every packet gets exactly one verdict; the verdicts add up to the packets.
  3. Checksums are not checked: captures of offloading machines have none, and a capture is not a receiver.
  4. Fragments of IP datagrams are put together; all but the one that completes a datagram count as fragments.
  5. Lengths come from IP where IP has them. What the link layer padded is cut off, what the capture cut off is
     in `length` but not in `payload`. IP total length 0 means that the network card cut the packet up later:
     then the captured frame's own length counts.
  6. What may stand between link layer and IP without hiding it is stepped over: VLAN tags, LLC/SNAP, PPPoE, MPLS, and
     IP in IP, whose inner addresses count. Tunnels with ports or keys of their own (GRE, VXLAN, Geneve) are not TCP.

    pcap    magic u32 | version 2 x u16 | zone | sigfigs | snaplen u32 | link type u32
            per packet: seconds u32 | fraction u32 | captured u32 | original u32 | bytes
    pcapng  block: type u32 | total length u32 | body | padding to 4 | total length u32
            section 0x0A0D0D0A, interface 1, packet 2 (old), simple 3, statistics 5, enhanced 6

Source: draft-ietf-opsawg-pcap, draft-ietf-opsawg-pcapng, the link type list of tcpdump.org; RFC 791, 8200, 9293;
RFC 1042 (SNAP), 2516 (PPPoE), 3032 (MPLS), 2003, 2473, 4213 (IP in IP).
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy, memset

from kwsniff.core.octets.buffer cimport append, contents, release
from kwsniff.core.capture.fragments cimport free_fragments, join_fragment, release_datagram
from kwsniff.core.octets.hash cimport mix
from kwsniff.core.octets.octets cimport Octets, be16, be32, copy_out, drop, file16, file32, file64, has, keep, u8

cdef enum LinkType:
    LINK_NULL = 0
    LINK_ETHERNET = 1
    LINK_RAW_BSD = 12
    LINK_RAW_OPENBSD = 14
    LINK_RAW = 101
    LINK_LOOP = 108
    LINK_SLL = 113
    LINK_IPV4 = 228
    LINK_IPV6 = 229
    LINK_SLL2 = 276

# Kept in the order of the bits of Reader.link_types; 63 stands for every other one.
cdef enum:
    BIT_OTHER_LINK_TYPE = 63
    MAX_TAGS = 16
    BROKEN = 0x10000            # no EtherType
    MAX_NESTED_IP = 4
    MAX_EXTENSION_HEADERS = 16

cdef extern from *:
    """
    #define MAGIC_MICROSECONDS 0xA1B2C3D4u
    #define MAGIC_NANOSECONDS 0xA1B23C4Du
    #define MAGIC_PATCHED 0xA1B2CD34u
    #define SECOND 1000000000LL
    #define LAST_SECOND 9000000000LL
    #define SNAP 0xAAAA0300u
    """
    const uint32_t MAGIC_MICROSECONDS
    const uint32_t MAGIC_NANOSECONDS
    const uint32_t MAGIC_PATCHED
    const int64_t SECOND
    const int64_t LAST_SECOND
    const uint32_t SNAP


cdef void start_reader(Reader* reader, SegmentSink sink, void* context, size_t max_record,
                       uint32_t max_interfaces, uint32_t max_datagrams) noexcept nogil:
    memset(reader, 0, sizeof(Reader))
    reader.sink = sink
    reader.context = context
    reader.max_record = max_record
    reader.max_interfaces = max_interfaces
    reader.fragments.limit = max_datagrams
    reader.need = 4
    reader.first_time = NO_TIME
    reader.last_time = NO_TIME


cdef void free_reader(Reader* reader) noexcept nogil:
    release(&reader.carry)
    free_fragments(&reader.fragments)
    free(reader.interfaces)
    reader.interfaces = NULL
    reader.num_interfaces = 0


cdef int64_t count_drops(Reader* reader) noexcept nogil:
    """Packets that the capturing machine says it lost, or -1 when the file does not say."""
    cdef int64_t total = reader.dropped_before
    cdef uint32_t i
    if not reader.drops_known:
        return -1
    for i in range(reader.num_interfaces):
        if reader.interfaces[i].dropped > 0:
            total += reader.interfaces[i].dropped
    return total


cdef void feed_reader(Reader* reader, Octets data) noexcept nogil:
    cdef size_t used, take
    reader.bytes += <int64_t>data.num
    while data.num and reader.stop == STOP_NONE:
        if reader.skip:
            take = data.num if data.num < reader.skip else <size_t>reader.skip
            reader.skip -= take
            data = drop(data, take)
        elif reader.carry.len:
            take = reader.need - reader.carry.len
            if take > data.num:
                take = data.num
            if not append(&reader.carry, keep(data, take)):
                reader.stop = STOP_NO_MEMORY
                return
            data = drop(data, take)
            if reader.carry.len < reader.need:
                return
            used = read_unit(reader, contents(&reader.carry))
            if used:
                reader.carry.len = 0
        else:
            used = read_unit(reader, data)
            if used:
                data = drop(data, used)
            elif reader.stop == STOP_NONE:
                if not append(&reader.carry, data):
                    reader.stop = STOP_NO_MEMORY
                return


cdef inline size_t want(Reader* reader, size_t num) noexcept nogil:
    reader.need = num
    return 0


cdef inline size_t give_up(Reader* reader, int why) noexcept nogil:
    reader.stop = why
    return 0


cdef size_t read_unit(Reader* reader, Octets data) noexcept nogil:
    """Reads one header, record or block; returns its bytes, or 0 after setting `need` (more bytes) or `stop`."""
    if reader.format == FORMAT_PCAP:
        return read_pcap_record(reader, data)
    if reader.format == FORMAT_PCAPNG:
        return read_block(reader, data)
    return read_file_header(reader, data)


cdef size_t read_file_header(Reader* reader, Octets data) noexcept nogil:
    cdef uint32_t magic
    cdef bint swapped
    if data.num < 4:
        return want(reader, 4)
    magic = file32(data, 0, False)
    if magic == BLOCK_SECTION:
        reader.format = FORMAT_PCAPNG
        return read_block(reader, data)
    swapped = (magic & 0xFF) == 0xA1
    if swapped:
        magic = file32(data, 0, True)
    if magic != MAGIC_MICROSECONDS and magic != MAGIC_NANOSECONDS and magic != MAGIC_PATCHED:
        return give_up(reader, STOP_NOT_A_CAPTURE)
    if data.num < 24:
        return want(reader, 24)
    reader.swapped = swapped
    reader.nanoseconds = magic == MAGIC_NANOSECONDS
    reader.record_header = 24 if magic == MAGIC_PATCHED else 16
    if not add_interface(reader):
        return give_up(reader, STOP_NO_MEMORY)
    # The upper half of the link type word tells the length of frame check sequences, not the link type.
    set_link_type(reader, reader.interfaces, file32(data, 20, swapped) & 0xFFFF)
    reader.interfaces[0].snaplen = file32(data, 16, swapped)
    reader.snaplen = reader.interfaces[0].snaplen
    reader.interfaces[0].exponent = 9 if reader.nanoseconds else 6
    reader.format = FORMAT_PCAP
    reader.need = reader.record_header
    return 24


cdef bint add_interface(Reader* reader) noexcept nogil:
    cdef Interface* grown
    cdef uint32_t cap = reader.num_interfaces
    if cap & (cap - 1) == 0:    # a power of two, or none: full
        grown = <Interface*>realloc(reader.interfaces, (2 * cap if cap else 1) * sizeof(Interface))
        if grown == NULL:
            return False
        reader.interfaces = grown
    memset(&reader.interfaces[cap], 0, sizeof(Interface))
    reader.interfaces[cap].exponent = 6
    reader.interfaces[cap].dropped = -1
    reader.num_interfaces += 1
    reader.total_interfaces += 1
    return True


cdef void set_link_type(Reader* reader, Interface* interface, uint32_t link_type) noexcept nogil:
    cdef uint32_t bit = BIT_OTHER_LINK_TYPE
    if link_type == LINK_NULL: bit = 0
    elif link_type == LINK_ETHERNET: bit = 1
    elif link_type in (LINK_RAW, LINK_RAW_BSD, LINK_RAW_OPENBSD): bit = 2
    elif link_type == LINK_LOOP: bit = 3
    elif link_type == LINK_SLL: bit = 4
    elif link_type == LINK_IPV4: bit = 5
    elif link_type == LINK_IPV6: bit = 6
    elif link_type == LINK_SLL2: bit = 7
    interface.link_type = <int32_t>link_type
    reader.link_types |= (<uint64_t>1) << bit


cdef size_t read_pcap_record(Reader* reader, Octets data) noexcept nogil:
    cdef uint32_t captured, original, fraction
    cdef int64_t time = NO_TIME
    if data.num < reader.record_header:
        return want(reader, reader.record_header)
    captured = file32(data, 8, reader.swapped)
    original = file32(data, 12, reader.swapped)
    if captured > reader.max_record:
        return give_up(reader, STOP_DAMAGED)
    if data.num - reader.record_header < captured:
        return want(reader, reader.record_header + captured)
    fraction = file32(data, 4, reader.swapped)
    # More than a second of fraction tells no time, only that its unit is none of the two.
    if fraction < (<uint32_t>1000000000 if reader.nanoseconds else <uint32_t>1000000):
        time = <int64_t>fraction * (1 if reader.nanoseconds else 1000)
        time += <int64_t>file32(data, 0, reader.swapped) * SECOND
    read_packet(reader, reader.interfaces, time, original, keep(drop(data, reader.record_header), captured))
    reader.need = reader.record_header
    return reader.record_header + captured


cdef size_t read_block(Reader* reader, Octets data) noexcept nogil:
    cdef uint32_t kind, total
    cdef size_t padded
    cdef Octets body
    if data.num < 8:
        return want(reader, 8)
    kind = file32(data, 0, reader.swapped)
    if kind == BLOCK_SECTION:
        if data.num < 12:
            return want(reader, 12)
        if file32(data, 8, False) == 0x1A2B3C4D:
            reader.swapped = False
        elif file32(data, 8, True) == 0x1A2B3C4D:
            reader.swapped = True
        else:
            return give_up(reader, STOP_DAMAGED if reader.frame else STOP_NOT_A_CAPTURE)
    total = file32(data, 4, reader.swapped)
    if total < 12 or total > 0x7FFFFFFF:
        return give_up(reader, STOP_DAMAGED)
    padded = (<size_t>total + 3) & ~(<size_t>3)
    if kind not in (BLOCK_SECTION, BLOCK_INTERFACE, BLOCK_PACKET, BLOCK_SIMPLE, BLOCK_STATISTICS, BLOCK_ENHANCED):
        if kind in (BLOCK_CUSTOM, BLOCK_CUSTOM_NO_COPY, BLOCK_JOURNAL, BLOCK_SYSDIG, BLOCK_SYSDIG_FLAGS, BLOCK_SYSDIG_2,
                    BLOCK_SYSDIG_2_FLAGS, BLOCK_SYSDIG_LARGE, BLOCK_SYSDIG_LARGE_FLAGS):
            reader.frame += 1
            reader.verdicts[<int>PACKET_NOT_IP] += 1
        return pass_over(reader, data, padded)
    if total > reader.max_record:
        return give_up(reader, STOP_DAMAGED)
    if data.num < padded:
        return want(reader, padded)
    body = keep(drop(data, 8), total - 12)
    if kind == BLOCK_ENHANCED:
        read_enhanced_packet(reader, body)
    elif kind == BLOCK_SECTION:
        start_section(reader)
    elif kind == BLOCK_INTERFACE:
        read_interface(reader, body)
    elif kind == BLOCK_SIMPLE:
        read_simple_packet(reader, body)
    elif kind == BLOCK_PACKET:
        read_old_packet(reader, body)
    else:
        read_statistics(reader, body)
    reader.need = 8
    return padded


cdef size_t pass_over(Reader* reader, Octets data, size_t total) noexcept nogil:
    reader.need = 8
    if data.num >= total:
        return total
    reader.skip = total - data.num
    return data.num


cdef void start_section(Reader* reader) noexcept nogil:
    reader.dropped_before = count_drops(reader) if reader.drops_known else 0
    reader.num_interfaces = 0
    reader.passed_of_section = 0
    free(reader.interfaces)
    reader.interfaces = NULL


cdef void read_interface(Reader* reader, Octets body) noexcept nogil:
    cdef Interface* interface
    cdef Octets options = drop(body, 8)
    cdef uint32_t code, length, raw
    if reader.num_interfaces >= reader.max_interfaces:
        reader.total_interfaces += 1
        reader.passed_interfaces += 1
        reader.passed_of_section += 1
        return
    if not add_interface(reader):
        reader.stop = STOP_NO_MEMORY
        return
    interface = &reader.interfaces[reader.num_interfaces - 1]
    set_link_type(reader, interface, file16(body, 0, reader.swapped))
    interface.snaplen = file32(body, 4, reader.swapped)
    if interface.snaplen > reader.snaplen or reader.total_interfaces == 1:
        reader.snaplen = interface.snaplen
    while options.num >= 4:
        code = file16(options, 0, reader.swapped)
        length = file16(options, 2, reader.swapped)
        if code == 0:
            break
        if code == 9 and length == 1:
            raw = u8(options, 4)
            interface.binary = raw >> 7
            interface.exponent = raw & 0x7F
        elif code == 14 and length == 8:
            interface.offset = <int64_t>file64(options, 4, reader.swapped)
        options = drop(options, 4 + ((<size_t>length + 3) & ~(<size_t>3)))


cdef void read_statistics(Reader* reader, Octets body) noexcept nogil:
    cdef Octets options = drop(body, 12)
    cdef uint32_t number = file32(body, 0, reader.swapped)
    cdef uint32_t code, length
    if number >= reader.num_interfaces:
        return
    while options.num >= 4:
        code = file16(options, 0, reader.swapped)
        length = file16(options, 2, reader.swapped)
        if code == 0:
            break
        if code in (5, 7) and length == 8:      # isb_ifdrop; isb_osdrop counts what the filter accepted and lost
            if code == 5 or reader.interfaces[number].dropped < 0:
                reader.interfaces[number].dropped = <int64_t>file64(options, 4, reader.swapped)
            reader.drops_known = True
        options = drop(options, 4 + ((<size_t>length + 3) & ~(<size_t>3)))


cdef int64_t to_nanoseconds(Interface* interface, uint64_t ticks) noexcept nogil:
    cdef uint64_t seconds, rest, low, unit = 1
    cdef uint32_t i
    if interface.binary:
        if interface.exponent > 63:
            return NO_TIME
        seconds = ticks >> interface.exponent
        rest = ticks & ((<uint64_t>1 << interface.exponent) - 1)
        # The product of a longer fraction does not fit into 64 bits: it is made of two halves.
        if interface.exponent > 33:
            low = ((rest & <uint64_t>0xFFFFFFFF) * <uint64_t>SECOND) >> 32
            rest = ((rest >> 32) * <uint64_t>SECOND + low) >> (interface.exponent - 32)
        else:
            rest = (rest * SECOND) >> interface.exponent
    else:
        if interface.exponent > 19:
            return NO_TIME
        for i in range(interface.exponent):
            unit *= 10
        seconds = ticks // unit
        rest = ticks % unit
        if interface.exponent <= 9:
            rest *= <uint64_t>SECOND // unit
        else:
            rest //= unit // <uint64_t>SECOND
    # Beyond the year 2262 nanoseconds do not fit; no capture is from then.
    if seconds > LAST_SECOND or interface.offset > LAST_SECOND or interface.offset < -LAST_SECOND:
        return NO_TIME
    # Nor from before 1970: times lie between 0 and 9e18, so that any two can be subtracted.
    if <int64_t>seconds + interface.offset > LAST_SECOND or <int64_t>seconds + interface.offset < 0:
        return NO_TIME
    return (<int64_t>seconds + interface.offset) * SECOND + <int64_t>rest


cdef void read_enhanced_packet(Reader* reader, Octets body) noexcept nogil:
    cdef uint32_t number = file32(body, 0, reader.swapped)
    cdef uint32_t captured = file32(body, 12, reader.swapped)
    cdef uint64_t ticks = <uint64_t>file32(body, 4, reader.swapped) << 32 | file32(body, 8, reader.swapped)
    if number >= reader.num_interfaces or not has(body, 20, captured):
        count_unread(reader, number)
        return
    read_packet(reader, &reader.interfaces[number], to_nanoseconds(&reader.interfaces[number], ticks),
                file32(body, 16, reader.swapped), keep(drop(body, 20), captured))


cdef void read_old_packet(Reader* reader, Octets body) noexcept nogil:
    cdef uint32_t number = file16(body, 0, reader.swapped)
    cdef uint32_t captured = file32(body, 12, reader.swapped)
    cdef uint64_t ticks = <uint64_t>file32(body, 4, reader.swapped) << 32 | file32(body, 8, reader.swapped)
    if number >= reader.num_interfaces or not has(body, 20, captured):
        count_unread(reader, number)
        return
    read_packet(reader, &reader.interfaces[number], to_nanoseconds(&reader.interfaces[number], ticks),
                file32(body, 16, reader.swapped), keep(drop(body, 20), captured))


cdef void read_simple_packet(Reader* reader, Octets body) noexcept nogil:
    cdef uint32_t original = file32(body, 0, reader.swapped)
    cdef Octets packet = keep(drop(body, 4), original)
    if reader.num_interfaces == 0:
        count_unread(reader, 0)
        return
    if reader.interfaces[0].snaplen:
        packet = keep(packet, reader.interfaces[0].snaplen)
    read_packet(reader, reader.interfaces, NO_TIME, original, packet)


cdef void count_unread(Reader* reader, uint32_t number) noexcept nogil:
    """A packet of an interface that was passed over, or else one that contradicts itself."""
    cdef bint passed = (number >= reader.num_interfaces
                        and number - reader.num_interfaces < reader.passed_of_section)
    reader.frame += 1
    reader.verdicts[<int>(PACKET_UNKNOWN_LINK_TYPE if passed else PACKET_MALFORMED)] += 1


cdef void read_packet(Reader* reader, Interface* interface, int64_t time, uint32_t original,
                      Octets packet) noexcept nogil:
    cdef Segment segment
    cdef int verdict
    reader.frame += 1
    if time != NO_TIME:
        if reader.first_time == NO_TIME or time < reader.first_time:
            reader.first_time = time
        if time > reader.last_time:
            reader.last_time = time
    segment.time = time
    segment.frame = reader.frame
    # Some writers leave the original length smaller than what they captured.
    if original < packet.num:
        original = <uint32_t>packet.num
    elif original > reader.max_record:
        original = <uint32_t>reader.max_record      # no packet is that long; where IP gives no length, this one counts
    segment.datagram.at = NULL
    reader.fragmented = False
    verdict = read_link(reader, interface.link_type, packet, original, &segment)
    reader.verdicts[verdict] += 1
    if reader.fragmented:
        reader.fragment_verdicts[verdict] += 1
    if verdict == PACKET_TCP:
        reader.payload_bytes += <int64_t>segment.payload.num
        if reader.fragmented:
            reader.fragment_payload_bytes += <int64_t>segment.payload.num
        reader.tcp_frame = reader.frame
        reader.tcp_time = time
        if reader.num_buckets < 2 or bucket_of(&segment, reader.num_buckets) == reader.bucket:
            reader.sink(reader.context, &segment)
    if segment.datagram.at != NULL:
        release_datagram(&reader.fragments, segment.datagram)


cdef uint32_t bucket_of(Segment* segment, uint32_t num_buckets) noexcept nogil:
    """The bucket of a connection: the same in every process, from both directions."""
    cdef uint64_t[2] words
    cdef uint64_t source, target
    memcpy(words, segment.source, 16)
    source = mix(mix(words[0], words[1]), segment.source_port)
    memcpy(words, segment.target, 16)
    target = mix(mix(words[0], words[1]), segment.target_port)
    return <uint32_t>(((mix(source + target, source ^ target) >> 32) * num_buckets) >> 32)


cdef int read_link(Reader* reader, int32_t link_type, Octets packet, uint32_t original, Segment* segment) noexcept nogil:
    cdef size_t header
    cdef uint32_t ether_type
    if link_type == LINK_ETHERNET:
        header = 14
        ether_type = be16(packet, 12)
    elif link_type == LINK_SLL:
        header = 16
        ether_type = be16(packet, 14)
    elif link_type == LINK_SLL2:
        header = 20
        ether_type = be16(packet, 0)
    elif link_type in (LINK_NULL, LINK_LOOP):
        # The family word is in the byte order of an unknown machine and its values differ per system;
        # the IP version nibble behind it says the same without guessing.
        return read_ip(reader, drop(packet, 4), original - 4 if original > 4 else 0, segment, 0)
    elif link_type in (LINK_RAW, LINK_RAW_BSD, LINK_RAW_OPENBSD, LINK_IPV4, LINK_IPV6):
        return read_ip(reader, packet, original, segment, 0)
    else:
        return PACKET_UNKNOWN_LINK_TYPE
    if packet.num < header:
        return PACKET_MALFORMED
    ether_type = pass_tags(packet, ether_type, &header)
    if packet.num < header or ether_type == BROKEN:
        return PACKET_MALFORMED
    if ether_type not in (0x0800, 0x86DD):
        return PACKET_NOT_IP
    return read_ip(reader, drop(packet, header), original - <uint32_t>header, segment, 0)


cdef uint32_t pass_tags(Octets packet, uint32_t ether_type, size_t* header) noexcept nogil:
    """Moves `header` behind everything that IP may be wrapped in; returns the EtherType of what is there."""
    cdef int i
    for i in range(MAX_TAGS):
        if ether_type in (0x8100, 0x88A8, 0x9100, 0x9200):
            ether_type = be16(packet, header[0] + 2)
            header[0] += 4
        elif ether_type == 0x8864:
            ether_type = read_session(drop(packet, header[0]))
            header[0] += 8
        elif ether_type in (0x8847, 0x8848):    # MPLS does not say what follows its last label: the version of IP does
            if u8(packet, header[0] + 2) & 1:
                ether_type = 0x0800
            header[0] += 4
        elif ether_type < 0x0600 and be32(packet, header[0]) == SNAP and be16(packet, header[0] + 4) == 0:
            ether_type = be16(packet, header[0] + 6)
            header[0] += 8
        else:
            break
    return ether_type


cdef uint32_t read_session(Octets packet) noexcept nogil:
    """The EtherType for what a PPPoE session carries: six bytes, then PPP's number of the protocol."""
    cdef uint32_t length = be16(packet, 4)
    # Boxes that count an Ethernet frame's padding as IP leave the session's length as it was; receivers drop those.
    if be16(packet, 6) == 0x0021:
        return 0x0800 if be16(packet, 10) + 2 <= length else BROKEN
    if be16(packet, 6) == 0x0057:
        return 0x86DD if be16(packet, 12) + 42 <= length else BROKEN
    return 0


cdef int read_ip(Reader* reader, Octets packet, uint32_t original, Segment* segment, int depth) noexcept nogil:
    cdef uint32_t version = u8(packet, 0) >> 4
    cdef uint32_t header, total, fragment
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
        if u8(packet, 9) in (4, 41) and not fragment & 0x3FFF:
            return read_inner_ip(reader, drop(keep(packet, total), header), total - header, segment, depth)
        if u8(packet, 9) != 6:
            return PACKET_NOT_TCP
        map_ipv4(packet, 12, segment.source)
        map_ipv4(packet, 16, segment.target)
        if fragment & 0x3FFF:
            return join(reader, be16(packet, 4), (fragment & 0x1FFF) * 8, (fragment & 0x2000) != 0,
                        drop(keep(packet, total), header), total - header, segment)
        return read_tcp(drop(keep(packet, total), header), total - header, segment)
    if version == 6:
        return read_ipv6(reader, packet, original, segment, depth)
    return PACKET_NOT_IP if packet.num else PACKET_MALFORMED


cdef int read_inner_ip(Reader* reader, Octets packet, uint32_t original, Segment* segment, int depth) noexcept nogil:
    cdef int verdict = PACKET_NOT_TCP
    if depth < MAX_NESTED_IP:
        verdict = read_ip(reader, packet, original, segment, depth + 1)
    return PACKET_NOT_TCP if verdict == PACKET_NOT_IP else verdict


cdef inline void map_ipv4(Octets packet, size_t at, uint8_t* address) noexcept nogil:
    memset(address, 0, 10)
    address[10] = 0xFF
    address[11] = 0xFF
    copy_out(packet, at, &address[12], 4)


cdef int read_ipv6(Reader* reader, Octets packet, uint32_t original, Segment* segment, int depth) noexcept nogil:
    cdef uint32_t total, following, fragment, header = 40, step
    cdef int i
    if packet.num < 40:
        return PACKET_MALFORMED
    # Payload length 0 stands for a jumbogram (RFC 2675) or an offloaded segment: the frame's length counts.
    total = be16(packet, 4) + 40
    if total == 40:
        total = original
    packet = keep(packet, total)
    following = u8(packet, 6)
    copy_out(packet, 8, segment.source, 16)
    copy_out(packet, 24, segment.target, 16)
    for i in range(MAX_EXTENSION_HEADERS):
        if following == 6:
            if total < header:
                return PACKET_MALFORMED
            return read_tcp(drop(packet, header), total - header, segment)
        if following in (4, 41):
            if total < header:
                return PACKET_MALFORMED
            return read_inner_ip(reader, drop(packet, header), total - header, segment, depth)
        if following in (0, 43, 60, 135, 139, 140):     # hop-by-hop, routing, destination, mobility, HIP, shim6
            step = (u8(packet, header + 1) + 1) * 8
        elif following == 51:                           # authentication header counts in words, less two
            step = (u8(packet, header + 1) + 2) * 4
        elif following == 44:
            fragment = be16(packet, header + 2)
            if fragment & 0xFFF9:
                if u8(packet, header) != 6 or total < header + 8:
                    return PACKET_NOT_TCP if total >= header + 8 else PACKET_MALFORMED
                return join(reader, be32(packet, header + 4), fragment & 0xFFF8, fragment & 1,
                            drop(packet, header + 8), total - header - 8, segment)
            step = 8                                    # an atomic fragment is whole (RFC 6946)
        else:
            return PACKET_NOT_TCP
        if not has(packet, header, step):
            return PACKET_MALFORMED
        following = u8(packet, header)
        header += step
    return PACKET_MALFORMED


cdef int join(Reader* reader, uint32_t id, uint32_t offset, bint more, Octets payload, uint32_t length,
              Segment* segment) noexcept nogil:
    """The packet that completes a datagram stands for all of it."""
    reader.fragmented = True
    if reader.scanning:
        return PACKET_FRAGMENT
    segment.datagram = join_fragment(&reader.fragments, segment.source, segment.target, id, offset, more, payload,
                                     length)
    if segment.datagram.at == NULL:
        return PACKET_FRAGMENT
    return read_tcp(segment.datagram, <uint32_t>segment.datagram.num, segment)


cdef int read_tcp(Octets packet, uint32_t length, Segment* segment) noexcept nogil:
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
    return PACKET_TCP
