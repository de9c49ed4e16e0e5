# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""The round trip of one call to its broker, from the acknowledgements of its own bytes and of those near it.

Rules
  1. The shortest of the latest acknowledgements is the way; an answer that came sooner is shorter still.
  2. Where the acknowledgement of a request comes later than any receiver holds it up, its own is.
  3. By how much it may be wrong say the longest of the same, and a later one of its own bytes.

    request ---- way, a queue ----> broker ---- held up? ----> acknowledgement
"""

from libc.stdint cimport int64_t

from kwsniff.core.capture.packets cimport NO_TIME
from kwsniff.core.declared cimport CAPTURE_POINT_BROKER, CAPTURE_POINT_SAME_MACHINE
from kwsniff.core.kafka.kafka_connection cimport Call, KafkaConnection
from kwsniff.core.rows.capture_point cimport find_capture_point
from kwsniff.core.tcp.parts cimport traffic_of
from kwsniff.core.tcp.round_trips cimport AGAIN, PASSED, Again, RoundTrips, farthest_trip, near_trip

cdef extern from *:
    """
    #define PROMPT 35000000LL
    #define LOADED 2000000000LL
    """
    const int64_t PROMPT            # no receiver holds an acknowledgement up for a shorter time
    const int64_t LOADED            # how long a queue on the way is believed to last


cdef int64_t arrived_again(RoundTrips* asks, Call* call, int64_t sent, int64_t done, int64_t way) noexcept nogil:
    """When the last copy of the request passed the capture: later than `sent` if it, or what came before it, was lost."""
    cdef int64_t i, arrived = sent
    cdef Again* again
    for i in range(at_most(asks.num_again, AGAIN)):
        again = &asks.again[i]
        if (again.offset < call.end_offset and arrived < again.time <= done - way + way // 4
                and (again.proven or again.time - sent >= SILENCE + way)):
            arrived = again.time
    return arrived


cdef int64_t way_at_the_time(KafkaConnection* kafka, RoundTrips* asks, RoundTrips* answers, Call* call, int64_t arrived, int64_t done,
                             int64_t way) noexcept nogil:
    """The round trip of the request that `arrived` here: `way`, or more where no receiver holds an acknowledgement up that
    long. A call that waits on purpose may have lost its acknowledgement in all that time: the answer's tells nothing."""
    cdef int64_t acked, took = done - arrived  # at most
    cdef int capture_point
    cdef int64_t most = held_up_most(answers, way)
    if took <= way + LATE or took <= way + most and arrived >= asks.loaded_until:
        return way
    if traffic_of(kafka.connection, 0).missing or traffic_of(kafka.connection, 1).missing:
        return way                      # the capture may have lost the acknowledgement, too
    acked, capture_point = acked_at(asks, call.last.end), find_capture_point(asks, answers)
    if acked == NO_TIME or capture_point == CAPTURE_POINT_BROKER or capture_point == CAPTURE_POINT_SAME_MACHINE or was_repeated(asks, call):
        return way
    took = at_most(acked, done) - arrived
    if acked >= done and call.max_wait.is_known and call.max_wait.value:
        return way
    if took <= way + most and (took <= way + LATE or arrived >= asks.loaded_until):
        return way
    if took > way + most:
        asks.loaded_until = done + LOADED
    return at_most(took, at_least(done - arrived - LOCAL, way))


cdef inline int64_t held_up_most(RoundTrips* answers, int64_t way) noexcept nogil:
    """How long a receiver may hold an acknowledgement up. Linux does for 40 ms, or for a round trip where that is longer
    (tcp_send_delayed_ack)."""
    return at_least(SILENCE, way + (near_trip(answers) if answers.num_near else 0) + 2 * LATE)


cdef int64_t error_of_way(RoundTrips* asks, RoundTrips* answers, Call* call, int64_t arrived, int64_t usual,
                          int64_t way) noexcept nogil:
    """By how much the round trip of this call may differ from `way`: others took longer, and so did the acknowledgement
    of its own bytes."""
    cdef int64_t error, own
    if way == 0 and find_capture_point(asks, answers) == CAPTURE_POINT_BROKER:
        return near_trip(asks)
    error = at_least(at_least(farthest_trip(asks), usual) - at_most(usual, way), 0)
    if way > usual:
        return at_least(error, at_most(way - usual, held_up_most(answers, usual)))
    own = acked_at(asks, call.last.end)
    if own != NO_TIME:
        own -= arrived + way
        if error < own <= PROMPT and not was_repeated(asks, call):
            return own
    return error


cdef void note_quicker_answer(RoundTrips* asks, Call* call, int64_t usual, int64_t way) noexcept nogil:
    """An answer proves that the way takes no longer, for the calls after it, too. One that came in less than half of the
    time was not one to this request, or the capture has packets late."""
    if way < usual <= 2 * way and not was_repeated(asks, call):
        asks.near[0] = way


cdef inline bint was_repeated(RoundTrips* asks, Call* call) noexcept nogil:
    """Whether the request was sent again: which copy an acknowledgement is for is not known (RFC 6298 3)."""
    cdef int64_t i
    for i in range(at_most(asks.num_again, AGAIN)):
        if asks.again[i].offset < call.end_offset and asks.again[i].time >= call.first.time:
            return True
    return False


cdef inline int64_t acked_at(RoundTrips* asks, int64_t end) noexcept nogil:
    """When the bytes before this position of the stream were first acknowledged; NO_TIME: not known."""
    cdef int64_t oldest = at_least(asks.num_passed - PASSED, 0)
    cdef int64_t i = asks.num_passed
    while i > oldest and asks.passed[(i - 1) & (PASSED - 1)].offset >= end:
        i -= 1
    # What the oldest one acknowledged may have been acknowledged before.
    if i == asks.num_passed or i == oldest and asks.num_passed > PASSED:
        return NO_TIME
    return asks.passed[i & (PASSED - 1)].time
