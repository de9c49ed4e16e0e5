# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""Capture files to TCP segments: pcap and pcapng.

Rules
  1. Any chunking of the file gives the same segments: a record that a chunk breaks off is carried over.
  2. Every packet gets exactly one verdict; the verdicts add up to the packets.
  3. What the packets hold is read by headers.pyx. One that is not read is counted by what it carries, so that it can be
     named.

    pcap    magic u32 | version 2 x u16 | zone | sigfigs | snaplen u32 | link type u32
            per packet: seconds u32 | fraction u32 | captured u32 | original u32 | bytes
    pcapng  block: type u32 | total length u32 | body | padding to 4 | total length u32
            section 0x0A0D0D0A, interface 1, packet 2 (old), simple 3, statistics 5, enhanced 6, secrets 10

Source: draft-ietf-opsawg-pcap, draft-ietf-opsawg-pcapng, the link type list of tcpdump.org.
"""

from libc.stdint cimport INT64_MAX, int32_t, int64_t, uint32_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy, memset

from kwsniff.core.bytes.buffer cimport append, contents, release
from kwsniff.core.capture.fragments cimport free_fragments, release_datagram
from kwsniff.core.bytes.hash cimport mix
from kwsniff.core.bytes.span cimport Span, drop, file16, file32, file64, has, keep, u8
from kwsniff.core.capture.headers cimport read_link
from kwsniff.core.capture.link_layers cimport (
    LINK_C_HDLC, LINK_C_HDLC_WITH_DIR, LINK_ETHERNET, LINK_IEEE802_11, LINK_IPV4, LINK_IPV6, LINK_LOOP,
    LINK_NFLOG, LINK_NULL, LINK_PPI, LINK_PPP, LINK_PPP_ETHER, LINK_PPP_HDLC, LINK_PPP_PPPD, LINK_PPP_WITH_DIR,
    LINK_RADIOTAP, LINK_RAW, LINK_RAW_BSD, LINK_RAW_OPENBSD, LINK_SLL, LINK_SLL2,
)

# In the order of PacketVerdict.
PACKET_VERDICTS = ("tcp", "not_ip", "not_tcp", "fragment", "malformed", "unknown_link_type", "other_time")

# In the order of the bits of Reader.link_types; 63 means every other one.
LINK_TYPES = ("null", "ethernet", "raw", "loop", "linux_sll", "ipv4", "ipv6", "linux_sll2", "ppp", "c_hdlc", "ieee802_11",
              "ieee802_11_radiotap", "ppi", "nflog")
cdef enum:
    BIT_OTHER_LINK_TYPE = 63

cdef extern from *:
    """
    #define MAGIC_MICROSECONDS 0xA1B2C3D4u
    #define MAGIC_NANOSECONDS 0xA1B23C4Du
    #define MAGIC_PATCHED 0xA1B2CD34u
    #define SECOND 1000000000LL
    #define LAST_SECOND 9000000000LL
    """
    const uint32_t MAGIC_MICROSECONDS
    const uint32_t MAGIC_NANOSECONDS
    const uint32_t MAGIC_PATCHED
    const int64_t SECOND
    const int64_t LAST_SECOND


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
    reader.other_first = NO_TIME
    reader.other_last = NO_TIME


cdef void bound_reader(Reader* reader, int64_t since, int64_t until) noexcept nogil:
    """Packets before `since`, from `until` on, or without a time are counted and passed over; NO_TIME: no such bound."""
    reader.bounded = since != NO_TIME or until != NO_TIME
    reader.since = since
    reader.until = INT64_MAX if until == NO_TIME else until


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


cdef void feed_reader(Reader* reader, Span data) noexcept nogil:
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


cdef size_t read_unit(Reader* reader, Span data) noexcept nogil:
    """Reads one header, record or block; returns its bytes, or 0 after setting `need` (more bytes) or `stop`."""
    if reader.format == FORMAT_PCAP:
        return read_pcap_record(reader, data)
    if reader.format == FORMAT_PCAPNG:
        return read_block(reader, data)
    return read_file_header(reader, data)


cdef size_t read_file_header(Reader* reader, Span data) noexcept nogil:
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
    elif link_type in (LINK_PPP, LINK_PPP_HDLC, LINK_PPP_ETHER, LINK_PPP_PPPD, LINK_PPP_WITH_DIR): bit = 8
    elif link_type in (LINK_C_HDLC, LINK_C_HDLC_WITH_DIR): bit = 9
    elif link_type == LINK_IEEE802_11: bit = 10
    elif link_type == LINK_RADIOTAP: bit = 11
    elif link_type == LINK_PPI: bit = 12
    elif link_type == LINK_NFLOG: bit = 13
    interface.link_type = <int32_t>link_type
    reader.link_types |= (<uint64_t>1) << bit


cdef size_t read_pcap_record(Reader* reader, Span data) noexcept nogil:
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


cdef size_t read_block(Reader* reader, Span data) noexcept nogil:
    cdef uint32_t kind, total
    cdef size_t padded
    cdef Span body
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
    if kind not in (BLOCK_SECTION, BLOCK_INTERFACE, BLOCK_PACKET, BLOCK_SIMPLE, BLOCK_STATISTICS, BLOCK_ENHANCED) and (
            kind != BLOCK_SECRETS or reader.take_secrets == NULL or total > reader.max_record):
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
    elif kind == BLOCK_SECRETS:
        read_secrets(reader, body)
    else:
        read_statistics(reader, body)
    reader.need = 8
    return padded


cdef void read_secrets(Reader* reader, Span body) noexcept nogil:
    if file32(body, 0, reader.swapped) == TLS_KEY_LOG:      # type u32 | length u32 | text
        reader.take_secrets(reader.owner, keep(drop(body, 8), file32(body, 4, reader.swapped)))


cdef size_t pass_over(Reader* reader, Span data, size_t total) noexcept nogil:
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


cdef void read_interface(Reader* reader, Span body) noexcept nogil:
    cdef Interface* interface
    cdef Span options = drop(body, 8)
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


cdef void read_statistics(Reader* reader, Span body) noexcept nogil:
    cdef Span options = drop(body, 12)
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


cdef void read_enhanced_packet(Reader* reader, Span body) noexcept nogil:
    cdef uint32_t number = file32(body, 0, reader.swapped)
    cdef uint32_t captured = file32(body, 12, reader.swapped)
    cdef uint64_t ticks = <uint64_t>file32(body, 4, reader.swapped) << 32 | file32(body, 8, reader.swapped)
    if number >= reader.num_interfaces or not has(body, 20, captured):
        count_unread(reader, number)
        return
    read_packet(reader, &reader.interfaces[number], to_nanoseconds(&reader.interfaces[number], ticks),
                file32(body, 16, reader.swapped), keep(drop(body, 20), captured))


cdef void read_old_packet(Reader* reader, Span body) noexcept nogil:
    cdef uint32_t number = file16(body, 0, reader.swapped)
    cdef uint32_t captured = file32(body, 12, reader.swapped)
    cdef uint64_t ticks = <uint64_t>file32(body, 4, reader.swapped) << 32 | file32(body, 8, reader.swapped)
    if number >= reader.num_interfaces or not has(body, 20, captured):
        count_unread(reader, number)
        return
    read_packet(reader, &reader.interfaces[number], to_nanoseconds(&reader.interfaces[number], ticks),
                file32(body, 16, reader.swapped), keep(drop(body, 20), captured))


cdef void read_simple_packet(Reader* reader, Span body) noexcept nogil:
    cdef uint32_t original = file32(body, 0, reader.swapped)
    cdef Span packet = keep(drop(body, 4), original)
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
                      Span packet) noexcept nogil:
    cdef Segment segment
    cdef int verdict
    reader.frame += 1
    reader.fragmented = False
    if reader.bounded and (time < reader.since or time >= reader.until or time == NO_TIME):
        pass_other_time(reader, time)
        return
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
    reader.unread_at = -1
    reader.chain = 0
    reader.network = 0
    reader.place = <uint32_t>(interface - reader.interfaces)
    reader.strict = False
    verdict = read_link(reader, interface.link_type, packet, original, &segment, 0)
    count_packet(reader, verdict)
    if verdict == PACKET_TCP:
        reader.payload_bytes += <int64_t>segment.payload.num
        if reader.fragmented:
            reader.fragment_payload_bytes += <int64_t>segment.payload.num
        reader.tcp_frame = reader.frame
        reader.tcp_time = time
        segment.network = mix(reader.network, reader.place) if reader.place else reader.network
        segment.encapsulation = reader.chain
        if reader.num_buckets < 2 or bucket_of(&segment, reader.num_buckets) == reader.bucket:
            reader.sink(reader.context, &segment)
        elif reader.other_sink != NULL:
            reader.other_sink(reader.context, &segment)
    elif reader.icmp_error:
        pass_icmp_error(reader, &segment)
    while reader.num_joined:
        reader.num_joined -= 1
        release_datagram(&reader.fragments, reader.joined[reader.num_joined])


cdef void pass_icmp_error(Reader* reader, Segment* quoted) noexcept nogil:
    cdef int error = reader.icmp_error - 1
    reader.icmp_error = 0
    if reader.icmp_sink != NULL and (reader.num_buckets < 2 or bucket_of(quoted, reader.num_buckets) == reader.bucket):
        reader.icmp_sink(reader.context, quoted, error, reader.icmp_from)


cdef void pass_other_time(Reader* reader, int64_t time) noexcept nogil:
    reader.verdicts[<int>PACKET_OTHER_TIME] += 1
    if time == NO_TIME:
        return
    if reader.other_first == NO_TIME or time < reader.other_first:
        reader.other_first = time
    if time > reader.other_last:
        reader.other_last = time


cdef void count_packet(Reader* reader, int verdict) noexcept nogil:
    cdef uint32_t chain = reader.chain
    reader.verdicts[verdict] += 1
    if reader.fragmented:
        reader.fragment_verdicts[verdict] += 1
    if reader.unread_at >= 0 and verdict in (PACKET_NOT_IP, PACKET_NOT_TCP, PACKET_UNKNOWN_LINK_TYPE):
        reader.unread[reader.unread_at] += 1
        if reader.fragmented:
            reader.fragment_unread[reader.unread_at] += 1
    while chain and verdict in (PACKET_TCP, PACKET_NOT_TCP, PACKET_FRAGMENT):
        reader.tunnels[chain & 0xFF] += 1
        if reader.fragmented:
            reader.fragment_tunnels[chain & 0xFF] += 1
        chain >>= 8


cdef uint32_t bucket_of(Segment* segment, uint32_t num_buckets) noexcept nogil:
    """The bucket of a connection: the same in every process, from both directions."""
    cdef uint64_t[2] words
    cdef uint64_t source, target
    memcpy(words, segment.source, 16)
    source = mix(mix(words[0], words[1]), segment.source_port)
    memcpy(words, segment.target, 16)
    target = mix(mix(words[0], words[1]), segment.target_port)
    return <uint32_t>(((mix(source + target, source ^ target) >> 32) * num_buckets) >> 32)
