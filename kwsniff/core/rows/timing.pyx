# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""Where the time of a call went: parts that are never negative and add up to the whole.

Rules
  1. A broker takes a connection's next request when the response before it has been sent (KafkaChannel is muted
     meanwhile): until then a request waits behind its predecessors.
  2. A broker that throttles by KIP-219 answers at once and leaves the connection muted for the throttle time; what the
     next request waits for that is deliberate. One from before answers late: the throttle lies in the call itself.
  3. A fetch that came back with less than min_bytes and no error, after max_wait or more, waited max_wait for data
     (DelayedFetch). One that came back with data may have waited, too: nothing on the wire says how long, so that time
     stays with the broker and `wait` says so.
  4. Where an answer begins before its question has ended, the overlap is the question's.

    t0 ---- request ---- t1 ... P ........ s ....................... t2 --- response --- t3
       transmission         queue    deliberate wait | broker            transmission
"""

from libc.stdint cimport int32_t, int64_t

from kwsniff.core.columns.columns cimport *
from kwsniff.core.kafka.dialog cimport Call, Context, Dialog
from kwsniff.core.wire.facts cimport Facts
from kwsniff.core.kafka.frames cimport Frame
from kwsniff.core.capture.packets cimport NO_TIME
from kwsniff.core.rows.rows cimport put_call_head
from kwsniff.core.columns.verdicts cimport *

cdef extern from *:
    """
    #define MILLISECOND 1000000LL
    """
    const int64_t MILLISECOND

cdef struct Parts:
    int64_t request
    int64_t queue
    int64_t broker
    int64_t deliberate
    int64_t response
    int wait


cdef inline int64_t at_least(int64_t value, int64_t least) noexcept nogil:
    return value if value > least else least


cdef inline int64_t at_most(int64_t value, int64_t most) noexcept nogil:
    return value if value < most else most


cdef Parts split(Dialog* dialog, Call* call, Frame* response, Facts* facts) noexcept nogil:
    cdef Parts parts
    cdef int64_t sent = at_most(at_least(call.last.time, call.first.time), response.last.time)
    cdef int64_t answered = at_most(at_least(response.first.time, sent), response.last.time)
    cdef int64_t begun = sent
    cdef int64_t rest
    parts.wait = WAIT_NONE
    parts.deliberate = 0
    parts.request = sent - call.first.time
    parts.response = response.last.time - answered
    if dialog.answered_at != NO_TIME:
        begun = at_most(at_least(dialog.answered_at, sent), answered)
    parts.queue = begun - sent
    if dialog.muted_until != NO_TIME and dialog.muted_until > begun:
        parts.deliberate = at_most(dialog.muted_until, answered) - begun
        parts.wait = WAIT_THROTTLE if parts.deliberate else WAIT_NONE
    rest = answered - begun - parts.deliberate
    if facts != NULL and facts.has_throttle and facts.held_back and facts.throttle > 0 \
            and rest >= facts.throttle * MILLISECOND:
        parts.deliberate += facts.throttle * MILLISECOND
        rest -= facts.throttle * MILLISECOND
        parts.wait = WAIT_THROTTLE
    if call.max_wait.is_known and call.max_wait.value > 0 and facts != NULL and not facts.broken:
        rest = take_long_poll(&parts, call, facts, rest)
    parts.broker = rest
    return parts


cdef int64_t take_long_poll(Parts* parts, Call* call, Facts* facts, int64_t rest) noexcept nogil:
    cdef int64_t asked = call.min_bytes.value if call.min_bytes.is_known else 1
    cdef int64_t most = call.max_wait.value * MILLISECOND
    if facts.num_errors == 0 and facts.record_bytes < asked and rest >= most:
        parts.deliberate += most
        parts.wait = WAIT_LONG_POLL
        return rest - most
    if facts.record_bytes >= asked and rest > MILLISECOND and parts.wait == WAIT_NONE:
        parts.wait = WAIT_LONG_POLL_POSSIBLE
    return rest


cdef void write_latency(Context* context, Dialog* dialog, Call* call, Frame* response, Facts* facts) noexcept nogil:
    """A row for a call of which both messages' first and last packets are known, with times that run forward."""
    cdef Table* table = &context.tables[<int>TABLE_LATENCIES]
    cdef Parts parts
    if (not call.ended or not response.ended or call.first.time == NO_TIME or call.last.time == NO_TIME
            or response.first.time == NO_TIME or response.last.time < call.first.time):
        return
    if not begin_row(table):
        return
    parts = split(dialog, call, response, facts)
    put_call_head(context, table, dialog, call, LATENCY_CALL_ID, LATENCY_CAPTURE, LATENCY_CONNECTION_ID,
                  LATENCY_API_KEY, LATENCY_API_VERSION, LATENCY_CLIENT_ID, LATENCY_BROKER_ADDRESS,
                  LATENCY_BROKER_PORT)
    put_int64(table, LATENCY_REQUEST_TIME, call.first.time)
    put_int64(table, LATENCY_TOTAL, response.last.time - call.first.time)
    put_int64(table, LATENCY_REQUEST_TRANSMISSION, parts.request)
    put_int64(table, LATENCY_QUEUE_WAIT, parts.queue)
    put_int64(table, LATENCY_BROKER, parts.broker)
    put_int64(table, LATENCY_DELIBERATE_WAIT, parts.deliberate)
    put_int64(table, LATENCY_RESPONSE_TRANSMISSION, parts.response)
    put_enum(table, LATENCY_WAIT, parts.wait)
    if dialog.connection.round_trip >= 0:
        put_int64(table, LATENCY_ROUND_TRIP, dialog.connection.round_trip)
    else:
        put_null(table, LATENCY_ROUND_TRIP)
    put_int32(table, LATENCY_RETRANSMISSIONS,
              <int32_t>at_least(response.last.retransmissions - call.first.retransmissions, 0))
    put_int64(table, LATENCY_ZERO_WINDOW, at_least(response.last.zero_window - call.first.zero_window, 0))
    end_row(table)
