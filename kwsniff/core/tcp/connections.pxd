# cython: language_level=3
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from kwsniff.core.limits cimport Limits
from kwsniff.core.bytes.span cimport Span
from kwsniff.core.capture.packets cimport Segment
from kwsniff.core.capture.samples cimport Samples

cdef struct Arrival:
    int64_t time        # of the packet that brought the bytes
    int64_t frame
    int64_t acked       # how far into the other direction's stream its sender had received by then, or -1
    int64_t capture     # number of the capture that has it
    int64_t repeated_before     # segments that either side had repeated before it came,
    int64_t retransmissions     # and when everything before it in its stream was there, itself included
    int64_t zero_window         # nanoseconds that either side had advertised no room by then
    int64_t ready       # when everything before it in its stream was there, too
    int64_t mended      # nanoseconds that its stream had waited for lost segments by then,
    int64_t mended_back # and that the other direction's had
    int64_t late        # nanoseconds that it was longer on its way than usual, as far as stamps and numbers tell; or 0
    int64_t end         # position in its stream behind the packet's payload, where bytes are handed on

cdef enum GapCause:
    GAP_NOT_CAPTURED = 0    # the receiver acknowledged it, so it was on the wire
    GAP_LOST = 1            # nothing says that it ever arrived
    GAP_CUT = 2             # the capture kept only the start of the packet
    GAP_NOT_DECRYPTED = 3   # what the packet brought is there, but not what it means (set by dispatch.pyx)
    GAP_PASSED_OVER = 4     # no byte is missing: they were passed over in search of a frame (set by frames.pyx)
    GAP_CUT_OFF = 5         # its receiver closed the connection before it was sent (set by dispatch.pyx)

# Why captured payload bytes are not delivered.
cdef enum DropCause:
    DROP_RETRANSMITTED = 0
    DROP_OUT_OF_WINDOW = 1
    DROP_AFTER_END = 2
    DROP_NO_MEMORY = 3
    DROP_CAPTURED_TWICE = 4
    DROP_KEEP_ALIVE = 5

cdef enum StreamOddity:
    ODD_OVERLAP = 0
    ODD_OUT_OF_WINDOW = 1
    ODD_AFTER_END = 2
    ODD_HELD_LIMIT = 3
    ODD_CONFLICT = 4
    ODD_EVICTED = 5
    ODD_RESET = 6           # an RST that no receiver would take
    ODD_RESET_TAKEN_BACK = 7
    ODD_HANDSHAKE = 8       # a SYN in the middle of a connection that continued

# What TCP had to do twice, or could not do.
cdef struct TcpEvent:
    int kind
    int sender
    int stream          # endpoint whose bytes it is about,
    int64_t offset      # and where in its stream; -1: nowhere
    int64_t bytes       # -1: no number
    int64_t count
    int64_t time
    int64_t frame
    int64_t capture

cdef enum:
    EVENTS = 16         # that wait until it is known whose they are

cdef struct QueuedSegment:
    QueuedSegment* next
    uint32_t seq
    uint32_t length
    uint32_t captured
    bint is_rest            # of a segment of which another part comes before it
    bint is_again           # all of its segment was held already, and it is counted as sent again
    bint has_ack
    bint stamped
    uint32_t stamp          # of its sender's clock
    uint32_t ack            # the other direction may not have begun yet, see midstream.pxd
    Arrival arrival
    uint8_t* data

cdef struct Recent:
    uint32_t seq
    uint32_t length
    uint64_t hash

# A segment that was sent again before it was acknowledged.
cdef struct Again:
    int64_t offset      # stream position of its first byte
    int64_t time
    int64_t since       # when this direction had sent something before
    bint proven         # the receiver had asked for it by repeating its acknowledgement

cdef enum:
    AGAIN = 4                   # the number of the latest that are remembered
    NEAR_TRIPS = 8

# When a receiver first acknowledged the bytes before a position, and those until soon after.
cdef struct Passed:
    int64_t offset
    int64_t time

cdef enum:
    PASSED = 16                 # the number of the latest that are remembered: a power of two

# A packet of the latest ones, for copies of it; see duplicates.pyx.
cdef struct Seen:
    uint32_t mark
    uint32_t when           # its time in microseconds, 24 bits, and a hash of the place it was captured at

cdef enum:
    SEEN = 64               # a power of two

# Bytes that the receiver said it has, while others before them were missing.
cdef struct Range:
    uint32_t start
    uint32_t end            # the number behind

cdef enum:
    SACKED = 8              # the number of ranges that are kept of a direction

# What tells whether a reset comes from the side that it names, see resets.pyx.
cdef struct ResetMarks:
    bint acknowledges       # has an acknowledgement: its sender knows the connection
    bint stamped            # has a timestamp,
    bint others_stamped     # as its sender's other packets have
    bint compared           # its sender sent something before
    int32_t ttl_step        # its time to live less the nearest of its sender's packets before
    int32_t ident_step      # the same of IP's identification, modulo 2^16; -1: it does not count its sender's packets
    uint32_t window

cdef struct Direction:
    bint known              # next_seq means something
    bint syn
    bint fin
    bint fin_done
    bint catching_up        # waits, in the middle of handing on, for what the other direction had sent before
    uint32_t isn
    bint other_syn          # a SYN with another initial number came while this connection was alive
    uint32_t other_isn
    uint32_t next_seq
    uint32_t first_seq      # of a direction without a SYN: the number of its first byte that was seen
    uint32_t fin_seq
    uint32_t acked          # highest acknowledgement of this direction's bytes, by its receiver
    bint acked_known
    uint32_t acked_from     # and the first one that was seen
    int64_t acked_frame     # where the latest was that covered bytes not shown by then
    int64_t acked_time
    uint32_t fewer_acked    # the highest of those since that covered less,
    uint32_t fewer_acks     # and how many these are in a row
    uint32_t sent           # highest number that its sender said it had come to, without payload,
    bint sent_known
    int64_t sent_frame      # the packet that said so
    int64_t sent_time
    bint sent_stamped
    uint32_t sent_stamp     # and when, by its own clock
    Range sacked[8]         # in no order; see sack.pxd
    uint32_t num_sacked
    uint32_t flight         # most bytes in flight at one time
    bint beginning          # where the stream begins is not settled: what came is held
    int64_t begun_at        # packets of the connection by then
    uint32_t told_ack       # what its latest segment with payload or FIN acknowledged
    uint32_t at_reset       # how far it had come when the connection was reset
    bint goes_on_unseen     # behind the reset its sender showed that it had sent what is not here
    int64_t offset          # stream position of next_seq; 0 is the first byte after the handshake or in the capture
    QueuedSegment* queued
    QueuedSegment* queue_last
    int64_t reorder_bytes
    int64_t reorder_num
    int64_t evidence_at     # packets of the connection when the receiver was first seen to have missing bytes
    int64_t packets
    int64_t bytes           # distinct payload bytes delivered
    int64_t retransmitted
    int64_t out_of_order
    int64_t missing
    int64_t lost            # of what is missing: its receiver acknowledged that it never came
    int64_t lost_before     # of what was sent again: its first copy never came here
    uint32_t largest        # payload of the largest segment whose receipt is proven,
    uint32_t largest_sent   # and of those since all of them were acknowledged
    int64_t retransmissions # segments that only repeat
    int64_t closed_since    # when its receive window became zero, or NO_TIME
    int64_t zero_window     # nanoseconds that it was zero, the current spell not included
    bint timed              # a segment waits for its acknowledgement:
    uint32_t timed_seq      # the number behind it
    int64_t timed_at
    int64_t round_trip      # smallest time from a segment of this direction to its acknowledgement, or -1
    int64_t floor           # the handshake's, or 0
    int64_t near[2]         # smallest of the latest NEAR_TRIPS or fewer that nothing held up, and of as many before
    int64_t num_near        # how many of these there were
    Passed passed[16]
    int64_t num_passed
    int64_t loaded_until    # a queue on the way held up acknowledgements: until then it may do so again
    bint stamped            # its segments have stamps: see timestamps.pxd
    uint32_t first_stamp
    int64_t first_stamp_time
    int64_t spell_since     # when the current spell began
    int64_t behind[2]       # least time from stamp to capture, of this spell and the one before; from that of the first
    int repeated_acks       # in a row: the receiver asks for something that is missing,
    int64_t repeated_time   # since this packet
    int64_t repeated_frame
    int64_t repeated_capture
    int64_t sent_at         # its latest segment with payload
    Again again[4]
    int64_t num_again
    int64_t hole_since      # when the hole before the held segments was noticed
    int64_t mended          # nanoseconds that the stream waited for segments that then came
    bint mending            # held segments are handed on because what was missing has come
    int64_t queue_ready      # when the latest segment handed on, while others were held behind it, was ready
    int64_t strange         # consecutive segments far outside the window
    Recent recent[8]        # the latest segments delivered
    uint32_t num_recent
    uint64_t network        # that its first packet came from
    Seen seen[64]
    uint32_t num_seen
    uint32_t least_ttl      # of IP, in all packets but resets, those of other places included;
    uint32_t most_ttl       # 0: there was none
    uint32_t last_ident     # of IP, in the latest packet,
    bint idents_differ      # and whether they tell packets from each other
    bint numbered           # and count the packets of this direction: see tail_loss.pxd
    bint bare               # the latest packet had no payload
    uint32_t unseen         # packets missing before the latest one
    int64_t silence         # before that, where some are missing
    int64_t seen_time       # of the latest packet
    ResetMarks reset_marks  # of the latest reset

cdef struct Connection:
    Connection* chain       # same hash bucket
    Connection* older
    Connection* newer
    uint64_t hash
    int64_t id              # ordinal of the packet that opened it
    int64_t capture         # number of the capture it began in
    int64_t seen_at         # see Streams
    int64_t ordinal         # of its latest packet
    int64_t touched         # the same, copies of packets included
    int64_t reset_touched   # when its RST began to wait
    bint is_behind          # its latest packet came when others had shown later times
    int64_t num_ids         # that were given to calls since that packet
    uint8_t address[2][16]  # [0] is the smaller endpoint; direction d is what endpoint d sends
    uint16_t port[2]
    Direction direction[2]
    int opener              # endpoint that sent the SYN, or -1
    bint ended
    int end
    int64_t packets
    int64_t first_time
    int64_t last_time
    int64_t first_frame
    int64_t last_frame
    int64_t last_capture    # number of the capture that has it
    int64_t syn_time
    int64_t first_syn_time
    int64_t connect_time    # nanoseconds from the first SYN to the first answer to one, or -1
    int64_t round_trip      # nanoseconds from SYN to the handshake's last ACK, or -1
    int closer              # endpoint that closed it first, with FIN or RST, or -1
    int64_t close_frame
    int64_t close_time
    int fin_by              # endpoint that sent the first FIN, or -1
    int64_t fin_frame
    int64_t fin_time
    bint refused            # its SYN was answered by an RST
    int64_t syn_retries
    int reset_by            # endpoint whose RST waits to be believed, or -1
    int32_t reset_ahead     # how far it was from the number expected
    int64_t reset_time
    Connection* reset_older # of those that wait like this
    Connection* reset_newer
    int other_opener        # of the connection that `other_isn` may be about
    int64_t duplicates      # packets captured again
    int reset_sender        # of the latest reset that counts,
    uint32_t reset_seq      # its number,
    bint reset_answers_unseen   # and whether it answers a packet that is not here
    int64_t reset_at
    int64_t reset_frame
    int64_t reset_capture
    ResetMarks reset_marks
    int icmp_error          # what ICMP said of its packets (IcmpError), or -1,
    uint8_t icmp_from[16]   # who said so,
    int64_t icmp_frame      # and where
    TcpEvent* events        # that wait, see kafka/tcp_events.pyx: NULL, or room for EVENTS, half of what the rest takes
    int num_events
    int64_t events_seen
    int64_t events_lost     # of these, beyond the limit
    uint32_t encapsulation  # of the first packet that came through tunnels; see Segment
    void* kafka            # what the rooms above keep for this connection

cdef struct StreamSink:
    void* context
    void (*bytes)(void* context, Connection* connection, int direction, Arrival* arrival, Span data) noexcept nogil
    void (*gap)(void* context, Connection* connection, int direction, Arrival* arrival, int64_t num, int cause) noexcept nogil
    void (*dropped)(void* context, int64_t capture, int cause, int64_t num) noexcept nogil
    void (*ended)(void* context, Connection* connection) noexcept nogil
    void (*oddity)(void* context, Connection* connection, int direction, Arrival* arrival, int oddity, int64_t value) noexcept nogil
    void (*event)(void* context, Connection* connection, TcpEvent* event) noexcept nogil

# Where rows come from, in the order in which one analyzer of all connections gives them: a packet, and what of its work.
# Silent connections go in the order of their latest packets, resets in that in which they began to wait.
cdef enum Place:
    PLACE_FIRST = 0
    PLACE_RESETS = 0x2000000000000000
    PLACE_OWN = 0x7FFFFFFFFFFFFFFE
    PLACE_LAST = 0x7FFFFFFFFFFFFFFF

# Connections by their latest segment.
cdef struct Ages:
    Connection* oldest
    Connection* newest
    int64_t num

cdef struct Streams:
    Connection** buckets
    uint64_t num_buckets
    uint64_t seed
    int64_t num
    int64_t frames_before   # packets of the captures before this one
    int64_t ordinal         # of the current packet, counted over all captures from 1; the caller that hands segments in sets it
    int64_t capture
    int64_t seen_at         # number of the place where the capture was taken: a connection continues in captures of one place only
    int64_t reorder_total
    int64_t event_rooms     # connections with room for events
    int64_t now             # time of the latest segment, or NO_TIME
    int64_t latest          # time of any so far
    int64_t place[2]        # see Place
    bint alone              # what became of connections may depend on those of other buckets
    Ages open
    Ages ended
    bint has_forgotten      # ended ones, by the time of another connection's packet
    Connection* last        # of the packet before
    Connection* first_reset # connections whose RST waits to be believed
    Connection* last_reset
    Limits limits
    StreamSink sink
    void* above             # the context of the caller that hands segments in
    Samples* samples        # of the current capture; or NULL: captures are not compared
    bint no_memory

cdef Connection* find_connection(Streams* streams, Segment* segment, int sender) noexcept nogil
cdef Connection* add_connection(Streams* streams, Segment* segment, int sender) noexcept nogil
cdef void note_icmp_error(void* opaque, Segment* quoted, int error, const uint8_t* source) noexcept nogil
cdef void adopt_connection(Streams* streams, Connection* connection) noexcept nogil
cdef void drop_events(Streams* streams, Connection* connection) noexcept nogil
cdef inline int64_t connections_bytes(Streams* streams) noexcept nogil:
    return (streams.reorder_total + streams.num * <int64_t>sizeof(Connection)
            + streams.event_rooms * <int64_t>(EVENTS * sizeof(TcpEvent)))

cdef void begin_connection(Streams* streams, Connection* connection) noexcept nogil
cdef void mark_ended(Streams* streams, Connection* connection, bint ended) noexcept nogil
cdef void forget_ended(Streams* streams, int64_t time) noexcept nogil
cdef void remove_connection(Streams* streams, Connection* connection) noexcept nogil
cdef void link_reset(Streams* streams, Connection* connection) noexcept nogil
cdef void unlink_reset(Streams* streams, Connection* connection) noexcept nogil
