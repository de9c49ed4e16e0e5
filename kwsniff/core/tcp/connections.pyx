# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""Which connection a segment belongs to: a hash table by addresses and ports, and an order by age.

Rules
  1. The two endpoints are ordered, so that both directions find the same connection.
  2. The hash is seeded: a hostile capture cannot choose addresses that share one bucket.
  3. What came from another network than a conversation's packets is part of it where its numbers say so: one conversation
     may carry another tag in each direction, and be captured twice. Where they do not, it is another conversation; of one
     pair of addresses and ports there are not more than MOST_NETWORKS.
  4. What was captured at another place is another connection, with a hash of its own: the conversation is seen twice, and
     each place has its own clock.
  5. Ended connections stay until their addresses are used again or they were silent for `ended_seconds`: what comes late
     is theirs. By then they are as good as unknown, whether or not the time of another connection's packet, which may be
     out of order, has taken them away. Where there are too many connections they go first.

    buckets[hash] -> connection -> chain -> ...        open: oldest <-> ... <-> newest, by their latest segment
                                                       ended: the same

Source: RFC 9293 3.4 (numbers).
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp, memcpy, memset

from kwsniff.core.declared cimport ENDING_OPEN, ICMP_ERROR_NONE, ICMP_ERROR_TOO_BIG
from kwsniff.core.bytes.hash cimport mix
from kwsniff.core.capture.packets cimport NO_TIME, TCP_ACK, TCP_SYN, Segment
from kwsniff.core.tcp.connection cimport Ages
from kwsniff.core.tcp.control_block cimport ControlBlock, Direction, block_of
from kwsniff.core.tcp.lifecycle cimport ResetMarks
from kwsniff.core.tcp.segments cimport distance, source_endpoint
from kwsniff.core.tcp.stream_table cimport Streams

cdef enum:
    MOST_NETWORKS = 16
    FAR_BEHIND = -(1 << 24)         # a tap's delay, in bytes of a fast network
    FAR_AHEAD = 1 << 20             # a loss

cdef extern from *:
    """
    #define SECOND 1000000000LL
    #define DISORDER (60 * SECOND)      /* that packets of several captures may be in */
    """
    const int64_t SECOND
    const int64_t DISORDER


cdef inline uint64_t seed_at(Streams* streams, int64_t place) noexcept nogil:
    """What is seen at another place has other hashes."""
    return mix(streams.seed, <uint64_t>place)


cdef inline uint64_t hash_endpoints(uint64_t seed, const uint8_t* low, const uint8_t* high,
                                    uint32_t ports) noexcept nogil:
    cdef uint64_t words[4]
    memcpy(words, low, 16)
    memcpy(&words[2], high, 16)
    return mix(mix(mix(mix(mix(seed, words[0]), words[1]), words[2]), words[3]), ports)


cdef inline bint same_endpoints(Connection* connection, const uint8_t* low, const uint8_t* high,
                                uint16_t low_port, uint16_t high_port) noexcept nogil:
    return (connection.port[0] == low_port and connection.port[1] == high_port
            and memcmp(connection.address[0], low, 16) == 0 and memcmp(connection.address[1], high, 16) == 0)


cdef inline bint is_near(int32_t ahead) noexcept nogil:
    return FAR_BEHIND <= ahead <= FAR_AHEAD


cdef inline int64_t strangeness(Connection* connection, Segment* segment, int sender) noexcept nogil:
    """How far the segment is from being this conversation's: 0, it comes from where the others of its direction, or else
    its answers, came from; -1, neither that nor its numbers fit; else how far its numbers are off, and one."""
    cdef Direction* own = &block_of(connection).direction[sender]
    cdef Direction* other = &block_of(connection).direction[1 - sender]
    cdef int64_t off = 1
    cdef int32_t ahead
    if own.seen.num and own.seen.network == segment.network:
        return 0
    if not own.seen.num and other.seen.num and other.seen.network == segment.network:
        return 0
    if segment.flags & TCP_SYN and own.snd.syn:
        if segment.seq != own.snd.isn:
            return -1
    elif own.snd.known or own.snd.acked_known:
        ahead = distance(segment.seq, own.snd.next_seq if own.snd.known else own.snd.acked)
        if not is_near(ahead):
            return -1
        off += ahead if ahead > 0 else -<int64_t>ahead
    if segment.flags & TCP_ACK and (other.snd.known or other.snd.acked_known):
        ahead = distance(segment.ack, other.snd.next_seq if other.snd.known else other.snd.acked)
        if not is_near(ahead):
            return -1
        off += ahead if ahead > 0 else -<int64_t>ahead
    return off


cdef inline Ages* ages_of(Streams* streams, Connection* connection) noexcept nogil:
    return &streams.ended if connection.ended else &streams.open


cdef inline bint is_over(Streams* streams, Connection* connection, int64_t time, int64_t disorder) noexcept nogil:
    """It has ended, and nothing that comes at this time is of it."""
    return (connection.ended and connection.last_time != NO_TIME and time != NO_TIME
            and time - connection.last_time > streams.limits.ended_seconds * SECOND + disorder)


cdef Connection* find_connection(Streams* streams, Segment* segment, int sender) noexcept nogil:
    """The connection of this segment, now the newest one; NULL if there is none. `sender` orders the endpoints."""
    cdef const uint8_t* low = &segment.source[0] if sender == 0 else &segment.target[0]
    cdef const uint8_t* high = &segment.target[0] if sender == 0 else &segment.source[0]
    cdef uint16_t low_port = segment.source_port if sender == 0 else segment.target_port
    cdef uint16_t high_port = segment.target_port if sender == 0 else segment.source_port
    cdef Connection* connection = streams.last
    cdef Connection* best = NULL
    cdef int64_t strange, least = -1
    cdef uint64_t hash
    cdef int num = 0
    if (connection != NULL and not connection.ended and block_of(connection).direction[sender].seen.num
            and block_of(connection).direction[sender].seen.network == segment.network
            and same_endpoints(connection, low, high, low_port, high_port)):
        block_of(connection).links.touched = streams.ordinal
        return connection
    hash = hash_endpoints(seed_at(streams, streams.seen_at), low, high, <uint32_t>low_port << 16 | high_port)
    connection = streams.buckets[hash & (streams.num_buckets - 1)]
    while connection != NULL:
        if (block_of(connection).links.hash == hash and block_of(connection).links.seen_at == streams.seen_at
                and same_endpoints(connection, low, high, low_port, high_port)
                and not is_over(streams, connection, segment.time, 0)):
            strange = strangeness(connection, segment, sender)
            num += 1
            if best == NULL or strange >= 0 and (least < 0 or strange < least):
                best = connection
                least = strange
            if strange == 0:
                break
        connection = block_of(connection).links.chain
    if best == NULL or least < 0 and num < MOST_NETWORKS:
        return NULL
    connection = best
    if ages_of(streams, connection).newest != connection:
        unlink_age(streams, connection)
        link_newest(streams, connection)
    streams.last = connection
    return connection


cdef Connection* add_connection(Streams* streams, Segment* segment, int sender) noexcept nogil:
    """A connection for a segment that has none, as the newest one; NULL when memory is refused."""
    cdef Connection* connection = <Connection*>calloc(1, sizeof(ControlBlock))
    if connection == NULL:
        return NULL
    if streams.has_forgotten and segment.time < streams.latest - DISORDER:
        streams.alone = True        # it may be one that would not be over by its own time
    memcpy(connection.address[sender], segment.source, 16)
    memcpy(connection.address[1 - sender], segment.target, 16)
    connection.port[sender] = segment.source_port
    connection.port[1 - sender] = segment.target_port
    block_of(connection).reset.by = -1
    block_of(connection).links.seen_at = streams.seen_at
    adopt_connection(streams, connection)
    begin_connection(streams, connection)
    streams.last = connection
    return connection


cdef void note_icmp_error(void* opaque, Segment* quoted, int error, const uint8_t* source) noexcept nogil:
    """What ICMP says of a packet of a connection that is known. The first error stays, but one that only asks for smaller
    packets. It is not a packet of the connection: nothing else depends on it."""
    cdef Streams* streams = <Streams*>opaque
    cdef int sender = source_endpoint(quoted)
    cdef const uint8_t* low = &quoted.source[0] if sender == 0 else &quoted.target[0]
    cdef const uint8_t* high = &quoted.target[0] if sender == 0 else &quoted.source[0]
    cdef uint16_t low_port = quoted.source_port if sender == 0 else quoted.target_port
    cdef uint16_t high_port = quoted.target_port if sender == 0 else quoted.source_port
    cdef uint64_t hash = hash_endpoints(seed_at(streams, streams.seen_at), low, high, <uint32_t>low_port << 16 | high_port)
    cdef Connection* connection = streams.buckets[hash & (streams.num_buckets - 1)]
    while connection != NULL:
        if (not connection.ended and block_of(connection).links.hash == hash and block_of(connection).links.seen_at == streams.seen_at
                and same_endpoints(connection, low, high, low_port, high_port)
                and (not block_of(connection).direction[sender].snd.known
                     or is_near(distance(quoted.seq, block_of(connection).direction[sender].snd.next_seq)))):
            if block_of(connection).icmp.kind in (ICMP_ERROR_NONE, ICMP_ERROR_TOO_BIG) and block_of(connection).icmp.kind != error:
                block_of(connection).icmp.kind = error
                block_of(connection).icmp.frame = quoted.frame
                memcpy(block_of(connection).icmp.source, source, 16)
            return
        connection = block_of(connection).links.chain


cdef void adopt_connection(Streams* streams, Connection* connection) noexcept nogil:
    """Takes up a connection that was known before, as the newest one."""
    cdef Connection** bucket
    block_of(connection).links.hash = hash_endpoints(seed_at(streams, block_of(connection).links.seen_at), connection.address[0], connection.address[1],
                                     <uint32_t>connection.port[0] << 16 | connection.port[1])
    if <uint64_t>streams.num >= streams.num_buckets:
        grow_buckets(streams)
    bucket = &streams.buckets[block_of(connection).links.hash & (streams.num_buckets - 1)]
    block_of(connection).links.chain = bucket[0]
    bucket[0] = connection
    streams.num += 1
    link_newest(streams, connection)
    block_of(connection).links.reset_older = NULL
    block_of(connection).links.reset_newer = NULL
    if block_of(connection).reset.by >= 0 and not connection.ended:
        link_reset(streams, connection)


cdef void drop_events(Streams* streams, Connection* connection) noexcept nogil:
    streams.event_rooms -= connection.events != NULL
    free(connection.events)
    connection.events = NULL
    connection.num_events = 0


cdef void begin_connection(Streams* streams, Connection* connection) noexcept nogil:
    """Makes it one that nothing is known of yet but its addresses and ports."""
    if connection.ended:
        mark_ended(streams, connection, False)
    memset(block_of(connection).direction, 0, 2 * sizeof(Direction))
    connection.id = streams.ordinal
    connection.capture = streams.capture
    block_of(connection).direction[0].traffic.closed_since = NO_TIME
    block_of(connection).direction[1].traffic.closed_since = NO_TIME
    block_of(connection).direction[0].trips.smallest = -1
    block_of(connection).direction[1].trips.smallest = -1
    connection.opener = -1
    connection.end = ENDING_OPEN
    connection.packets = 0
    connection.first_time = NO_TIME
    connection.last_time = NO_TIME
    connection.first_frame = 0
    block_of(connection).handshake.syn_time = NO_TIME
    block_of(connection).handshake.first_syn_time = NO_TIME
    block_of(connection).handshake.connect_time = -1
    block_of(connection).handshake.round_trip = -1
    block_of(connection).closing.closer = -1
    block_of(connection).closing.close_frame = 0
    block_of(connection).closing.close_time = NO_TIME
    block_of(connection).closing.fin_by = -1
    block_of(connection).closing.fin_frame = 0
    block_of(connection).closing.fin_time = NO_TIME
    connection.refused = False
    block_of(connection).handshake.unscaled = False
    block_of(connection).handshake.syn_retries = 0
    block_of(connection).reset.by = -1
    block_of(connection).reset.since = NO_TIME
    block_of(connection).handshake.other_opener = -1
    connection.duplicates = 0
    connection.encapsulation = 0
    block_of(connection).reset.sender = -1
    block_of(connection).reset.answers_unseen = False
    memset(&block_of(connection).reset.marks, 0, sizeof(ResetMarks))
    block_of(connection).icmp.kind = ICMP_ERROR_NONE
    connection.num_events = 0
    connection.events_seen = 0
    connection.events_lost = 0
    connection.kafka = NULL


cdef void grow_buckets(Streams* streams) noexcept nogil:
    cdef uint64_t num = streams.num_buckets * 2, i
    cdef Connection** buckets = <Connection**>calloc(num, sizeof(Connection*))
    cdef Connection* connection
    cdef Connection* chain
    if buckets == NULL:
        return      # longer chains, nothing lost
    for i in range(streams.num_buckets):
        connection = streams.buckets[i]
        while connection != NULL:
            chain = block_of(connection).links.chain
            block_of(connection).links.chain = buckets[block_of(connection).links.hash & (num - 1)]
            buckets[block_of(connection).links.hash & (num - 1)] = connection
            connection = chain
    free(streams.buckets)
    streams.buckets = buckets
    streams.num_buckets = num


cdef void mark_ended(Streams* streams, Connection* connection, bint ended) noexcept nogil:
    unlink_age(streams, connection)
    connection.ended = ended
    link_newest(streams, connection)


cdef void forget_ended(Streams* streams, int64_t time) noexcept nogil:
    while streams.ended.oldest != NULL and is_over(streams, streams.ended.oldest, time, DISORDER):
        streams.has_forgotten = True
        remove_connection(streams, streams.ended.oldest)


cdef void remove_connection(Streams* streams, Connection* connection) noexcept nogil:
    """Forgets a connection that has ended."""
    cdef Connection** link = &streams.buckets[block_of(connection).links.hash & (streams.num_buckets - 1)]
    while link[0] != connection:
        link = &block_of(link[0]).links.chain
    link[0] = block_of(connection).links.chain
    unlink_age(streams, connection)
    if streams.last == connection:
        streams.last = NULL
    streams.num -= 1
    drop_events(streams, connection)
    free(connection)


cdef void link_reset(Streams* streams, Connection* connection) noexcept nogil:
    """As the latest one whose RST waits to be believed."""
    block_of(connection).links.reset_touched = streams.ordinal
    if block_of(connection).reset.since < streams.latest or block_of(connection).reset.since == NO_TIME:
        streams.alone = True    # one that waits longer may be before it
    block_of(connection).links.reset_newer = NULL
    block_of(connection).links.reset_older = streams.last_reset
    if streams.last_reset != NULL:
        block_of(streams.last_reset).links.reset_newer = connection
    else:
        streams.first_reset = connection
    streams.last_reset = connection


cdef void unlink_reset(Streams* streams, Connection* connection) noexcept nogil:
    if block_of(connection).links.reset_older != NULL:
        block_of(block_of(connection).links.reset_older).links.reset_newer = block_of(connection).links.reset_newer
    elif streams.first_reset == connection:
        streams.first_reset = block_of(connection).links.reset_newer
    if block_of(connection).links.reset_newer != NULL:
        block_of(block_of(connection).links.reset_newer).links.reset_older = block_of(connection).links.reset_older
    elif streams.last_reset == connection:
        streams.last_reset = block_of(connection).links.reset_older
    block_of(connection).links.reset_older = NULL
    block_of(connection).links.reset_newer = NULL


cdef inline void link_newest(Streams* streams, Connection* connection) noexcept nogil:
    cdef Ages* ages = ages_of(streams, connection)
    block_of(connection).links.touched = streams.ordinal
    connection.newer = NULL
    connection.older = ages.newest
    if ages.newest != NULL:
        ages.newest.newer = connection
    else:
        ages.oldest = connection
    ages.newest = connection
    ages.num += 1


cdef inline void unlink_age(Streams* streams, Connection* connection) noexcept nogil:
    cdef Ages* ages = ages_of(streams, connection)
    ages.num -= 1
    if connection.older != NULL:
        connection.older.newer = connection.newer
    elif ages.oldest == connection:
        ages.oldest = connection.newer
    if connection.newer != NULL:
        connection.newer.older = connection.older
    elif ages.newest == connection:
        ages.newest = connection.older
