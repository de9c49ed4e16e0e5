# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""Latency of a call by part (network, queue wait, broker, ...): never negative, adding up to the total.

Rules
  1. A broker takes a connection's next request when the response before it has been sent (KafkaChannel is muted
     meanwhile): until then a request waits behind its predecessors.
  2. What lies beyond the capture point is the network's: a round trip to the broker, as acknowledgements near the call
     tell it; that of the request's own last segment where its acknowledgement came later than any receiver delays it: a
     full link, in whose queue the request waited; by how much longer than usual its answer came by the broker's own
     stamps and the numbers of its packets (tcp/timestamps.pxd, tcp/tail_loss.pxd), and the time until a lost segment had come
     again. A segment sent again counts when the receiver had asked for it, or had been silent for longer than it may
     delay an acknowledgement, and when the answer came late enough to be its fruit; a hole in what the capture shows
     counts from when it was noticed until it was filled. Where an answer to the next request was what showed it, as
     soon as one could come, the lost answer had been on its way: the broker, quick then, is not blamed for the time
     before.
  3. A broker that throttles by KIP-219 answers immediately and leaves the connection muted for the throttle time; what the
     next request waits for that is deliberate. One from before answers late: the throttle lies in the call itself.
  4. A fetch that came back with less than min_bytes and no error, after max_wait or more, waited max_wait for data
     (DelayedFetch), and the few milliseconds by which the broker's timer was late. What is left is the broker's: one
     that stalls is blamed. One that came back with data waited for it if the batches were made meanwhile, by their own
     timestamps, and did not if they leave more to be fetched; but less than min_bytes may be the end of a segment, at
     which a broker answers. One with read_committed waits for the end of a transaction
     as well (the last stable offset, KIP-98): the marker of that end, made meanwhile, proves it; a first batch that is
     of a transaction may have been held back, and then what is left proves nothing. Of a wait whose end no message shows, all is deliberate but
     a usual broker's own time, and never more than max_wait.
  5. JoinGroup and SyncGroup wait for the other members (DelayedJoin): the layouts call them rendezvous. The first
     generation of a group waits group.initial.rebalance.delay.ms. Where nothing proves a wait, of fetches neither, a
     call that was short did not wait: brokers' own clocks say so of nearly all.
  6. A Produce with acks=-1 waits for followers; only errors about them prove it. Until then the time is the broker's.
  7. Failed authentication is answered late on purpose (connection.failed.authentication.delay.ms).
  8. Where an answer begins before its question has ended, the overlap is the question's.

    t0 --- request --- t1 . lost . way . queue ........ s ....................... way . lost . t2 --- response --- t3
       transmission       network        behind others    deliberate wait | broker   network       transmission
"""

from libc.stdint cimport INT64_MAX, int16_t, int32_t, int64_t

from kwsniff.core.columns.columns cimport *
from kwsniff.core.kafka.kafka_connection cimport Call, Context, KafkaConnection, Served, waiting_call
from kwsniff.core.wire.facts cimport Facts
from kwsniff.core.kafka.frames cimport Frame
from kwsniff.core.capture.packets cimport NO_TIME
from kwsniff.core.tcp.arrivals cimport GAP_CUT_OFF
from kwsniff.core.rows.rows cimport put_call_head, put_known
from kwsniff.core.declared cimport *
from kwsniff.core.kafka.apis cimport ApiRange, api_at
from kwsniff.core.kafka.head_of_line cimport note_served
from kwsniff.core.rows.stall_rows cimport take_stalls
from kwsniff.core.rows.call_round_trips cimport (
    LATE, LOCAL, SILENCE, arrived_again, at_least, at_most, error_of_way, note_quicker_answer, way_at_the_time,
)
from kwsniff.core.rows.capture_point cimport is_way_known, way_to_broker
from kwsniff.core.tcp.parts cimport handshake_of, round_trips_of
from kwsniff.core.tcp.round_trips cimport AGAIN, Again, RoundTrips

cdef enum:
    READ_COMMITTED = 1
    UNKNOWN_TOPIC_OR_PARTITION = 3
    NOT_LEADER_OR_FOLLOWER = 6
    REQUEST_TIMED_OUT = 7
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20
    REBALANCE_IN_PROGRESS = 27
    SASL_AUTHENTICATION_FAILED = 58
    FENCED_LEADER_EPOCH = 74
    UNKNOWN_TOPIC_ID = 100

cdef extern from *:
    """
    #define MILLISECOND 1000000LL
    #define SHORT 5000000LL
    #define LONG_PRODUCE 3000000LL
    #define FIRST_DELAY 3000000000LL
    #define FAILURE_DELAY 100000000LL
    """
    const int64_t MILLISECOND
    const int64_t SHORT             # nothing that took less was waited for, unless something proves it
    const int64_t LONG_PRODUCE      # one that takes longer may have waited for followers
    const int64_t FIRST_DELAY       # group.initial.rebalance.delay.ms, its default
    const int64_t FAILURE_DELAY     # connection.failed.authentication.delay.ms, its default

cdef struct Parts:
    int64_t request
    int64_t network
    int64_t queue
    int64_t broker
    int64_t deliberate
    int64_t response
    int wait
    int64_t behind                  # call id, or 0
    int queued_behind_wait
    int64_t arrived                 # the last copy of the request
    int64_t left                    # the answer, as far as lost segments tell
    bint is_way_known
    int64_t way                     # the round trip to the broker that the network has
    int64_t way_error


cdef inline int64_t within(int64_t value, int64_t least, int64_t most) noexcept nogil:
    return at_most(at_least(value, least), most)


cdef Parts split(Context* context, KafkaConnection* kafka, Call* call, Frame* response, Facts* facts) noexcept nogil:
    cdef Parts parts
    cdef RoundTrips* asks = round_trips_of(kafka.connection, kafka.client)
    cdef RoundTrips* answers = round_trips_of(kafka.connection, 1 - kafka.client)
    cdef int64_t sent = within(call.last.ready, call.first.time, response.last.ready)
    cdef int64_t answered = within(response.first.ready, sent, response.last.ready)
    cdef int64_t done, arrived, way, usual, turn, lost
    parts.request = sent - call.first.time
    lost = within(call.first.ready - call.first.time + call.last.mended - call.first.mended, 0, parts.request)
    parts.request -= lost
    parts.network = lost
    parts.response = response.last.ready - answered
    lost = within(response.last.mended - response.first.mended + repaired(answers, answered, response.last.ready), 0,
                  parts.response)
    parts.response -= lost
    parts.network += lost
    # What the answer's hole took lies at the end, what the request's took at the beginning.
    done = answered - within(response.first.mended - call.last.mended_back, 0, answered - sent)
    way = usual = way_to_broker(asks, answers)
    arrived = arrived_again(asks, call, sent, done, way)
    # What came with lost packets first is not known.
    if response.first.mended == call.last.mended_back:
        way = way_at_the_time(kafka, asks, answers, call, arrived, done, way)
    if way > done - arrived:
        way = done - arrived
        if response.first.mended == call.last.mended_back:
            note_quicker_answer(asks, call, usual, way)
    parts.is_way_known = is_way_known(asks)
    parts.way = way
    parts.way_error = error_of_way(asks, answers, call, arrived, usual, way) if parts.is_way_known else 0
    if had_left(context, kafka, call, response, facts, done, way):
        done = at_most(done, arrived + way + LOCAL)
    parts.arrived, parts.left = arrived, done
    # This time the answer was longer on its way than usual.
    done -= within(response.first.late, 0, done - arrived - way)
    parts.network += answered - done + arrived - sent + way
    # From here on the clock is the broker's, later by the way that an answer has.
    arrived += way
    turn = arrived
    if kafka.answered_at != NO_TIME:
        turn = within(kafka.answered_at, arrived, done)
    parts.queue = turn - arrived
    find_front(&parts, kafka, arrived)
    split_broker(&parts, context, kafka, call, facts, turn, done, way // 2)
    note_served(kafka, call.id, turn, response.last.time,
                parts.wait if 2 * parts.deliberate >= response.last.time - turn else <int>WAIT_NONE)
    return parts


cdef void split_broker(Parts* parts, Context* context, KafkaConnection* kafka, Call* call, Facts* facts, int64_t turn,
                       int64_t done, int64_t later) noexcept nogil:
    """What of the time from `turn` to `done` was deliberate; `later`: how much later than by the broker's clock."""
    cdef int64_t rest
    parts.wait = WAIT_NONE
    parts.deliberate = 0
    if kafka.muted_until != NO_TIME and kafka.muted_until > turn:
        parts.deliberate = at_most(kafka.muted_until, done) - turn
        parts.wait = WAIT_THROTTLE if parts.deliberate else WAIT_NONE
    rest = done - turn - parts.deliberate
    if facts != NULL and facts.has_throttle and facts.held_back and facts.throttle > 0 \
            and rest >= facts.throttle * MILLISECOND:
        parts.deliberate += facts.throttle * MILLISECOND
        rest -= facts.throttle * MILLISECOND
        parts.wait = WAIT_THROTTLE
    if facts != NULL and not facts.broken:
        if call.max_wait.is_known and call.max_wait.value > 0:
            rest = take_long_poll(parts, kafka, call, facts, rest, done - rest - later, done - later)
        elif parts.wait == WAIT_NONE and rest > LOCAL:
            rest = take_other_wait(parts, context, call, facts, rest)
    parts.broker = rest


cdef inline bint ends_wait(int16_t error) noexcept nogil:
    """A fetch that waits is answered with these when its partition goes to another leader, or is deleted."""
    return (error == NOT_LEADER_OR_FOLLOWER or error == UNKNOWN_TOPIC_OR_PARTITION or error == FENCED_LEADER_EPOCH
            or error == UNKNOWN_TOPIC_ID)


cdef int64_t take_long_poll(Parts* parts, KafkaConnection* kafka, Call* call, Facts* facts, int64_t rest, int64_t begun,
                            int64_t done) noexcept nogil:
    """`begun`, `done`: by the broker's clock."""
    cdef int64_t asked = call.min_bytes.value if call.min_bytes.is_known else 1
    cdef int64_t most = call.max_wait.value * MILLISECOND
    cdef int64_t made = facts.made_first.value if asked <= 1 else facts.made_last.value
    cdef int64_t late
    cdef bint held_back = call.isolation.is_known and call.isolation.value == READ_COMMITTED and facts.transactional
    cdef bint ended_early = 0 < facts.record_bytes < asked
    if facts.made_last.is_known and facts.made_last.value > done // MILLISECOND:
        kafka.clocks_differ = True
    if facts.num_errors == 0 and facts.record_bytes < asked and rest >= most:
        late = within(rest - most - LOCAL, 0, LATE)
        parts.deliberate += most + late
        parts.wait = WAIT_LONG_POLL
        return rest - most - late
    if rest <= LOCAL or parts.wait != WAIT_NONE or facts.more_left and not held_back and not ended_early \
            or facts.num_errors and facts.record_bytes < asked and not ends_wait(facts.first_error):
        return rest
    if held_back and facts.record_bytes >= asked and not kafka.clocks_differ and facts.ended_last.is_known \
            and begun // MILLISECOND < facts.ended_last.value <= done // MILLISECOND:
        parts.wait = WAIT_TRANSACTION
    elif (facts.record_bytes >= asked and facts.made_first.is_known and not kafka.clocks_differ
            and begun // MILLISECOND < made <= done // MILLISECOND):
        parts.wait = WAIT_DATA
    elif rest <= SHORT:
        return rest
    else:
        parts.wait = WAIT_LONG_POLL_POSSIBLE if facts.record_bytes < asked else \
            WAIT_TRANSACTION_POSSIBLE if held_back else WAIT_DATA_POSSIBLE
    parts.deliberate += at_most(rest - LOCAL, most)
    return rest - at_most(rest - LOCAL, most)


cdef inline bint is_rendezvous(Context* context, Call* call) noexcept nogil:
    cdef ApiRange* api = api_at(&context.apis, call.slot)
    return api != NULL and api.rendezvous


cdef int64_t take_other_wait(Parts* parts, Context* context, Call* call, Facts* facts, int64_t rest) noexcept nogil:
    """Of a call that took longer than a broker needs."""
    if facts.first_error == SASL_AUTHENTICATION_FAILED:
        parts.wait = WAIT_AUTHENTICATION_DELAY if rest >= FAILURE_DELAY else WAIT_AUTHENTICATION_DELAY_POSSIBLE
    elif call.has_acks and call.acks == -1:
        if facts.first_error == REQUEST_TIMED_OUT or facts.first_error == NOT_ENOUGH_REPLICAS_AFTER_APPEND:
            parts.wait = WAIT_REPLICAS
        else:
            if facts.num_errors == 0 and rest > LONG_PRODUCE:
                parts.wait = WAIT_REPLICAS_POSSIBLE
            return rest
    elif rest > SHORT and is_rendezvous(context, call) and (
            facts.num_errors == 0 or facts.first_error == REBALANCE_IN_PROGRESS):
        parts.wait = WAIT_GROUP_POSSIBLE
        if facts.generation.is_known and facts.generation.value == 1 and rest >= FIRST_DELAY:
            parts.wait = WAIT_GROUP
    else:
        return rest
    parts.deliberate += rest - LOCAL
    return LOCAL


# -- behind whom ------------------------------------------------------------------------------------------------

cdef inline int64_t overlap(Served* served, int64_t since) noexcept nogil:
    """How much of what the broker did for it lies behind `since`."""
    return at_least(served.ended - at_least(served.begun, since), 0)


cdef void find_front(Parts* parts, KafkaConnection* kafka, int64_t arrived) noexcept nogil:
    """The call that took most of the time in line."""
    cdef int64_t most = -1, took
    cdef int i
    parts.behind = 0
    if parts.queue <= 0:
        return
    for i in range(kafka.num_front):
        took = overlap(&kafka.front[i], arrived)
        if took > most:
            most = took
            parts.behind = kafka.front[i].id
            parts.queued_behind_wait = kafka.front[i].wait


# -- the network ------------------------------------------------------------------------------------------------

cdef inline bint had_left(Context* context, KafkaConnection* kafka, Call* call, Frame* response, Facts* facts,
                          int64_t noticed, int64_t way) noexcept nogil:
    """Whether the answer is what was missing, and its hole was noticed as soon as the next request could be answered.
    Calls that wait on purpose may have done so until then."""
    cdef Call* next
    if (response.first.mended == call.last.mended_back or response.first.time != response.first.ready
            or kafka.num == 0 or facts == NULL or facts.num_errors or call.max_wait.is_known and call.max_wait.value
            or is_rendezvous(context, call)):
        return False
    next = waiting_call(kafka, 0)
    return next.ended and next.last.ready != NO_TIME and way <= noticed - next.last.ready <= way + SHORT


cdef int64_t repaired(RoundTrips* own, int64_t since, int64_t until) noexcept nogil:
    """What segments that this direction sent again took of that time."""
    cdef int64_t i, took = 0
    cdef Again* again
    for i in range(at_most(own.num_again, AGAIN)):
        again = &own.again[i]
        if since < again.time <= until and (again.proven or again.time - again.since >= SILENCE):
            took += again.time - at_least(again.since, since)
    return took


# -- rows -------------------------------------------------------------------------------------------------------

cdef void write_latency(Context* context, KafkaConnection* kafka, Call* call, Frame* response, Facts* facts) noexcept nogil:
    """A row for a call of which both messages' first and last packets are known, with times that run forward."""
    cdef Table* table = &context.tables[<int>TABLE_LATENCIES]
    cdef Parts parts
    cdef int64_t round_trip
    cdef int stall
    if response.torn and response.cause == GAP_CUT_OFF and call.first.time != NO_TIME and response.first.time != NO_TIME:
        # the client gave up inside it: no latency, but its stalls are known
        take_stalls(context, kafka, call, call.first.time, call.last.time, response.first.time, <int64_t>INT64_MAX)
        return
    if (not call.ended or not response.ended or call.first.time == NO_TIME or call.last.time == NO_TIME
            or response.first.time == NO_TIME or response.last.time == NO_TIME
            or response.last.ready < call.first.time):
        return
    if not begin_row(table):
        return
    parts = split(context, kafka, call, response, facts)
    put_call_head(context, table, kafka, call, LATENCIES_CALL_ID, LATENCIES_CAPTURE, LATENCIES_CONNECTION_ID,
                  LATENCIES_API_KEY, LATENCIES_API_NAME, LATENCIES_API_VERSION, LATENCIES_CLIENT_ID, LATENCIES_BROKER_ADDRESS,
                  LATENCIES_BROKER_PORT)
    put_int64(table, LATENCIES_REQUEST_TIME, call.first.time)
    put_int64(table, LATENCIES_TOTAL_NS, response.last.ready - call.first.time)
    put_int64(table, LATENCIES_REQUEST_TRANSMISSION_NS, parts.request)
    put_int64(table, LATENCIES_NETWORK_NS, parts.network)
    put_int64(table, LATENCIES_QUEUE_WAIT_NS, parts.queue)
    put_int64(table, LATENCIES_BROKER_NS, parts.broker)
    put_int64(table, LATENCIES_DELIBERATE_WAIT_NS, parts.deliberate)
    put_int64(table, LATENCIES_RESPONSE_TRANSMISSION_NS, parts.response)
    put_enum(table, LATENCIES_WAIT, parts.wait)
    if parts.behind:
        put_int64(table, LATENCIES_QUEUED_BEHIND, parts.behind)
        put_enum(table, LATENCIES_QUEUED_BEHIND_WAIT, parts.queued_behind_wait)
    else:
        put_null(table, LATENCIES_QUEUED_BEHIND)
        put_null(table, LATENCIES_QUEUED_BEHIND_WAIT)
    round_trip = handshake_of(kafka.connection).round_trip
    put_known(table, LATENCIES_ROUND_TRIP_NS, round_trip >= 0, round_trip)
    put_int32(table, LATENCIES_RETRANSMISSIONS,
              <int32_t>at_least(response.last.retransmissions - call.first.repeated_before, 0))
    put_int64(table, LATENCIES_ZERO_WINDOW_NS, at_least(response.last.zero_window - call.first.zero_window, 0))
    stall = take_stalls(context, kafka, call, call.first.time, parts.arrived, parts.left, response.last.ready) if kafka.stalls.len else -1
    if stall < 0:
        put_null(table, LATENCIES_TRANSMISSION_STALL)
    else:
        put_enum(table, LATENCIES_TRANSMISSION_STALL, stall)
    put_known(table, LATENCIES_BROKER_ROUND_TRIP_NS, parts.is_way_known, parts.way)
    put_known(table, LATENCIES_BROKER_ROUND_TRIP_ERROR_NS, parts.is_way_known, parts.way_error)
    end_row(table)
