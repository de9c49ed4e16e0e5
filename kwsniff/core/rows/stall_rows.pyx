# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""Stalls of a call, written as rows.

Rules
  1. A stall is cut to the time of its call's message, and written once: the sum of a call's stalls is part of its
     transmission and its network time.
  2. What ended before the message began held up no call that comes later.

    asked --- request ----- arrived        left ----- response --- answered
          [ stall ]   [ sent again ]        [ sent again ]  [ stall ]
"""

from libc.stdint cimport int64_t
from libc.string cimport memset

from kwsniff.core.columns.columns cimport *
from kwsniff.core.declared cimport *
from kwsniff.core.kafka.kafka_connection cimport Call, Context, KafkaConnection
from kwsniff.core.rows.rows cimport capture_name, put_known, put_time
from kwsniff.core.tcp.stall_marks cimport Stall


cdef void write_stalls(Context* context, KafkaConnection* kafka, Call* call, int64_t asked, int64_t arrived, int64_t left,
                       int64_t answered) noexcept nogil:
    take_stalls(context, kafka, call, asked, arrived, left, answered)


cdef int take_stalls(Context* context, KafkaConnection* kafka, Call* call, int64_t asked, int64_t arrived, int64_t left,
                     int64_t answered) noexcept nogil:
    """Writes those between these times. The cause that took most of them, -1: there were none. `call` may be NULL."""
    cdef Stall* stalls = <Stall*>kafka.stalls.data
    cdef Stall stall
    cdef int64_t[NUM_STALL_CAUSES] sums
    cdef int64_t i, kept = 0, since, until, num = <int64_t>(kafka.stalls.len // sizeof(Stall))
    cdef int cause, largest = -1
    memset(sums, 0, sizeof(sums))
    for i in range(num):
        stall = stalls[i]
        since = asked if stall.sender == kafka.client else left
        until = arrived if stall.sender == kafka.client else answered
        if stall.since >= until:
            stalls[kept] = stall            # of a later call
            kept += 1
            continue
        cut(&stall, since, until)
        if stall.took > 0:
            sums[stall.cause] += stall.took
            write_stall(context, kafka, call, &stall)
    kafka.stalls.len = <size_t>kept * sizeof(Stall)
    for cause in range(NUM_STALL_CAUSES):
        if sums[cause] > 0 and (largest < 0 or sums[cause] > sums[largest]):
            largest = cause
    return largest


cdef inline void cut(Stall* stall, int64_t since, int64_t until) noexcept nogil:
    if stall.since < since:
        stall.since = since
    if stall.until > until:
        stall.until = until
    if stall.until - stall.since < stall.took:
        stall.took = stall.until - stall.since


cdef void write_stall(Context* context, KafkaConnection* kafka, Call* call, Stall* stall) noexcept nogil:
    cdef Table* table = &context.tables[<int>TABLE_STALLS]
    if not begin_row(table):
        return
    put_string(table, STALLS_CAPTURE, capture_name(context, stall.capture))
    put_int64(table, STALLS_CONNECTION_ID, kafka.connection.id)
    put_known(table, STALLS_CALL_ID, call != NULL, call.id if call != NULL else 0)
    put_enum(table, STALLS_DIRECTION, STALL_DIRECTION_TO_BROKER if stall.sender == kafka.client else STALL_DIRECTION_TO_CLIENT)
    put_time(table, STALLS_START_TIME, stall.since)
    put_int64(table, STALLS_DURATION_NS, stall.took)
    put_enum(table, STALLS_CAUSE, stall.cause)
    put_known(table, STALLS_BYTES, stall.bytes >= 0, stall.bytes)
    put_int64(table, STALLS_FIRST_FRAME, stall.first_frame)
    put_int64(table, STALLS_LAST_FRAME, stall.last_frame)
    end_row(table)
