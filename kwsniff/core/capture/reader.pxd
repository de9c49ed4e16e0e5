# cython: language_level=3
"""A capture being read, the current segment, and what becomes of a packet: for packets.pyx and headers.pyx alike."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from kwsniff.core.bytes.buffer cimport Buffer
from kwsniff.core.capture.fragments cimport Fragments
from kwsniff.core.bytes.span cimport Span

cdef extern from *:
    """
    #define NO_TIME INT64_MIN
    """
    # No time is known: pcapng's simple packet block carries none.
    const int64_t NO_TIME

cdef enum TcpFlag:
    TCP_FIN = 1
    TCP_SYN = 2
    TCP_RST = 4
    TCP_PSH = 8
    TCP_ACK = 16

cdef struct Segment:
    int64_t time            # nanoseconds since the epoch, or NO_TIME
    int64_t frame           # packet number in its capture, from 1, as Wireshark counts
    uint8_t source[16]      # IPv4 addresses are kept as ::ffff:a.b.c.d
    uint8_t target[16]
    uint16_t source_port
    uint16_t target_port
    uint32_t seq
    uint32_t ack
    uint32_t flags
    uint32_t window
    Span payload          # what was captured
    uint32_t length         # what was on the wire; never less than payload.num
    uint32_t stamp          # of its sender's clock (RFC 7323),
    bint stamped            # where there is one
    uint32_t mark           # of its TCP header without checksum and IP identification, which copies of the packet share; 0: it has none
    uint32_t ident          # IP's identification, or 0
    uint32_t ttl
    Span sack             # its selective acknowledgements, two numbers each; none: empty
    uint64_t network        # VLANs, tunnels and interface that it came through; 0: none is named
    uint32_t encapsulation  # tunnels that it came through, a byte each, the outermost one in the highest; 0: none
    int scale               # of a SYN: the scale of its sender's windows (RFC 7323 2); -1: none
    uint32_t mss            # of a SYN: the most payload that its sender takes in a segment, or 0

ctypedef void (*SegmentSink)(void* context, Segment* segment) noexcept nogil

# Gets an ICMP error: the header that it quotes (addresses, ports, number), IcmpError, and who says so.
ctypedef void (*IcmpSink)(void* context, Segment* quoted, int error, const uint8_t* sender) noexcept nogil

# Gets a key log that the capture contains.
ctypedef void (*SecretsSink)(void* owner, Span text) noexcept nogil

cdef enum Block:
    BLOCK_SECTION = 0x0A0D0D0A
    BLOCK_INTERFACE = 1
    BLOCK_PACKET = 2
    BLOCK_SIMPLE = 3
    BLOCK_STATISTICS = 5
    BLOCK_ENHANCED = 6
    BLOCK_SECRETS = 10
    BLOCK_JOURNAL = 9           # systemd journal, sysdig events, custom: no packets, but Wireshark numbers them
    BLOCK_SYSDIG = 0x204
    BLOCK_SYSDIG_FLAGS = 0x208
    BLOCK_SYSDIG_2 = 0x216
    BLOCK_SYSDIG_2_FLAGS = 0x217
    BLOCK_SYSDIG_LARGE = 0x221
    BLOCK_SYSDIG_LARGE_FLAGS = 0x222
    BLOCK_CUSTOM = 0xBAD
    BLOCK_CUSTOM_NO_COPY = 0x40000BAD

cdef enum:
    TLS_KEY_LOG = 0x544C534B    # of a secrets block: what it holds

cdef enum CaptureFormat:
    FORMAT_UNKNOWN = 0
    FORMAT_PCAP = 1
    FORMAT_PCAPNG = 2

cdef enum ReaderStop:
    STOP_NONE = 0
    STOP_NOT_A_CAPTURE = 1
    STOP_DAMAGED = 2        # a record header that cannot be: what follows has no known boundaries
    STOP_NO_MEMORY = 3

cdef enum PacketVerdict:
    PACKET_TCP = 0
    PACKET_NOT_IP = 1
    PACKET_NOT_TCP = 2
    PACKET_FRAGMENT = 3
    PACKET_MALFORMED = 4
    PACKET_UNKNOWN_LINK_TYPE = 5
    PACKET_OTHER_TIME = 6

# What packets that are not read carry: link types by number and one for all others, IP protocols, EtherTypes.
cdef enum Unread:
    UNREAD_LINK = 0
    UNREAD_LINK_OTHER = 320
    UNREAD_PROTOCOL = 321
    UNREAD_ETHER = 577
    NUM_UNREAD = 593

cdef enum:
    MAX_JOINED = 8          # more than tunnels are followed

cdef struct Interface:
    int32_t link_type
    uint32_t snaplen
    bint binary             # time unit is 2^-exponent seconds instead of 10^-exponent
    uint32_t exponent
    int64_t offset          # seconds added to every time
    int64_t dropped         # by its last statistics block, or -1

cdef struct Reader:
    int format
    int stop
    bint swapped
    bint nanoseconds
    size_t record_header    # 16, or 24 for the patched pcap of 1998 Linux
    Interface* interfaces
    uint32_t num_interfaces     # of the current section
    uint32_t total_interfaces
    uint32_t max_interfaces
    int64_t passed_interfaces   # that were one too many: their packets are of no known link type
    uint32_t passed_of_section
    int64_t dropped_before      # by interfaces of earlier sections
    bint drops_known
    Buffer carry            # a record that the last feed broke off
    size_t need             # bytes that the carried record needs before it can be read on
    uint64_t skip           # bytes of an unwanted block still to pass over
    int64_t frame
    int64_t bytes
    int64_t first_time      # of the packets that are read
    int64_t last_time
    bint bounded            # only packets from `since` on and before `until` are read,
    int64_t since
    int64_t until
    int64_t other_first     # times of the others
    int64_t other_last
    int64_t verdicts[7]
    int64_t payload_bytes
    uint32_t snaplen
    uint64_t link_types     # bit set of positions in LINK_TYPES
    size_t max_record
    Fragments fragments
    bint scanning           # datagrams are not needed: fragments are not reassembled
    bint fragmented         # the current packet is a fragment
    int64_t fragment_verdicts[7]    # those of `verdicts` that are about fragments,
    int64_t fragment_payload_bytes  # and their share of `payload_bytes`
    int64_t tunnels[7]          # packets in which a tunnel was opened, by Tunnel; one inside two counts for both
    int64_t fragment_tunnels[7]
    int64_t unread[593]
    int64_t fragment_unread[593]
    int unread_at           # of the current packet, or -1
    uint32_t chain          # Segment.encapsulation,
    uint64_t network        # tags,
    uint32_t place          # interface by the packet's own word,
    uint32_t ident
    uint32_t ttl
    bint strict             # what follows is a packet or no tunnel
    int icmp_error          # of the current packet: IcmpError and one, or 0,
    uint8_t icmp_from[16]   # and who sent it
    Span joined[8]        # datagrams that were put together and are read now
    int num_joined
    uint32_t bucket         # only segments of this bucket are passed on,
    uint32_t num_buckets    # if there is more than one
    int64_t tcp_frame       # of the latest segment, passed on or not; 0: none yet
    int64_t tcp_time
    SegmentSink sink
    SegmentSink other_sink  # gets those of other buckets; or NULL
    IcmpSink icmp_sink      # or NULL: not needed
    void* context
    SecretsSink take_secrets    # or NULL: not needed
    void* owner
