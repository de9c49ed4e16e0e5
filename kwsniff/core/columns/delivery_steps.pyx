# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, autotestdict=False
"""The steps of delivered batches: times of calls that saw them -> columns of the table deliveries, in one pass.

Rules
  1. Arrays belong to the caller. Their sizes are looked at before they are used, and each place when it is.
  2. Times are microseconds that a capture's author may have chosen: sums and differences wrap around.
  3. A step ends at the latest when a later one is reached, so that no part is negative and parts add up.

       record -- before wire -- sent -- produce -- ready -- replication -- seen
                                                        -- wait -- shown -- fetch -- fetched -- processing -- committed
"""

from libc.stdint cimport int64_t, uint64_t

cdef int64_t NO_TIME = -(<int64_t>1 << 62)
cdef int64_t NO_NUMBER = -1
cdef int64_t LONGEST = <int64_t>1 << 53  # more microseconds would not fit as nanoseconds

UNKNOWN = NO_TIME
"""Instead of a time that nothing shows."""

cdef enum:
    FLAG_IN_SYNC = 1
    FLAG_STABLE = 2

IN_SYNC, STABLE = FLAG_IN_SYNC, FLAG_STABLE
"""Flags: the response came when all in-sync replicas had the batch; the reader takes only what is stable."""

STEPS = (
    "record_time", "produced_time", "acknowledged_time", "visible_time", "fetched_time", "committed_time",
    "produced_call_id", "visible_call_id", "fetched_call_id", "committed_call_id",
    "total_ns", "before_wire_ns", "produce_ns", "replication_ns", "fetch_wait_ns", "fetch_ns", "processing_ns",
)
"""The columns that `make_steps` fills."""

cdef enum:
    RECORD
    PRODUCED
    ACKNOWLEDGED
    VISIBLE
    FETCHED
    COMMITTED
    PRODUCED_CALL
    VISIBLE_CALL
    FETCHED_CALL
    COMMITTED_CALL
    TOTAL
    BEFORE_WIRE
    PRODUCE
    REPLICATION
    FETCH_WAIT
    FETCH
    PROCESSING
    NUM_STEPS


cdef inline int64_t read_value(const int64_t[::1] column, int64_t place, int64_t none) noexcept nogil:
    return column[place] if 0 <= place < column.shape[0] else none


cdef inline int64_t convert_ns(int64_t took) noexcept nogil:
    """Microseconds as nanoseconds; NO_NUMBER for those of clocks that differ."""
    return took * 1000 if 0 <= took < LONGEST else NO_NUMBER


cdef inline int64_t subtract(int64_t end, int64_t begin) noexcept nogil:
    return <int64_t>(<uint64_t>end - <uint64_t>begin)


cdef inline int64_t measure(int64_t begin, int64_t end) noexcept nogil:
    return NO_NUMBER if begin == NO_TIME or end == NO_TIME else convert_ns(subtract(end, begin))


cdef inline int64_t find_first(int64_t one, int64_t other) noexcept nogil:
    """The first of two times, or the one that is known."""
    if one == NO_TIME:
        return other
    return one if other == NO_TIME or one < other else other


def make_steps(tuple sightings, tuple places, int64_t[:, ::1] steps):
    """The steps of each row, UNKNOWN where a time is missing, -1 where a call or a part is.

    `sightings`, by column: when the request began, when the first byte of the response came and the last, the id of
    the call, the greatest timestamp of the batch, flags. `places` of each row, -1 without: of the batch, of its
    Produce, its Fetch, the first high watermark beyond it and the first commit beyond it.
    """
    cdef const int64_t[::1] begins, shown, ends, calls, stamps, flags, batches, produced, fetched, reached, commits
    begins, shown, ends, calls, stamps, flags = sightings
    batches, produced, fetched, reached, commits = places
    cdef Py_ssize_t row, num = begins.shape[0], rows = batches.shape[0]
    if not num == shown.shape[0] == ends.shape[0] == calls.shape[0] == stamps.shape[0] == flags.shape[0]:
        raise ValueError("columns of different sizes")
    if not rows == produced.shape[0] == fetched.shape[0] == reached.shape[0] == commits.shape[0]:
        raise ValueError("columns of different sizes")
    if steps.shape[0] != NUM_STEPS or steps.shape[1] != rows:
        raise ValueError("steps of different sizes")
    with nogil:
        for row in range(rows):
            steps[RECORD, row] = read_value(stamps, batches[row], NO_TIME)
            steps[PRODUCED, row] = read_value(begins, produced[row], NO_TIME)
            steps[ACKNOWLEDGED, row] = read_value(ends, produced[row], NO_TIME)
            steps[FETCHED, row] = read_value(ends, fetched[row], NO_TIME)
            steps[PRODUCED_CALL, row] = read_value(calls, produced[row], NO_NUMBER)
            steps[FETCHED_CALL, row] = read_value(calls, fetched[row], NO_NUMBER)
            find_visible(shown, calls, flags, produced[row], fetched[row], reached[row], steps, row)
            find_commit(begins, calls, commits[row], steps, row)
            make_parts(read_value(shown, fetched[row], NO_TIME), steps, row)


cdef inline void find_visible(
    const int64_t[::1] shown, const int64_t[::1] calls, const int64_t[::1] flags,
    int64_t produced, int64_t fetched, int64_t reached, int64_t[:, ::1] steps, Py_ssize_t row,
) noexcept nogil:
    """When a batch could be read, and the call that shows it."""
    cdef int64_t time = read_value(shown, reached, NO_TIME), call = read_value(calls, reached, NO_NUMBER)
    cdef int64_t own = read_value(shown, produced, NO_TIME), sent = steps[PRODUCED, row]
    cdef bint strict = read_value(flags, fetched, 0) & FLAG_STABLE
    if read_value(flags, produced, 0) & FLAG_IN_SYNC and not strict and own != NO_TIME:
        if time == NO_TIME or own < time:
            time, call = own, steps[PRODUCED_CALL, row]
    if sent == NO_TIME or time < sent:
        time, call = NO_TIME, NO_NUMBER
    steps[VISIBLE, row], steps[VISIBLE_CALL, row] = time, call


cdef inline void find_commit(
    const int64_t[::1] begins, const int64_t[::1] calls, int64_t commit, int64_t[:, ::1] steps, Py_ssize_t row,
) noexcept nogil:
    """A commit counts once the batch was there."""
    cdef int64_t time = read_value(begins, commit, NO_TIME), call = read_value(calls, commit, NO_NUMBER)
    if time <= NO_TIME or time < steps[FETCHED, row]:
        time, call = NO_TIME, NO_NUMBER
    steps[COMMITTED, row], steps[COMMITTED_CALL, row] = time, call


cdef inline void make_parts(int64_t shown, int64_t[:, ::1] steps, Py_ssize_t row) noexcept nogil:
    """`shown`: the first byte of the Fetch response."""
    cdef int64_t record = steps[RECORD, row], produced = steps[PRODUCED, row], fetched = steps[FETCHED, row]
    cdef int64_t committed = steps[COMMITTED, row], acknowledged = steps[ACKNOWLEDGED, row]
    cdef int64_t visible = steps[VISIBLE, row], seen = NO_TIME, wire = NO_NUMBER, sent = produced, after
    cdef bint consistent = produced == NO_TIME or shown == NO_TIME or shown >= produced
    if steps[VISIBLE_CALL, row] == steps[FETCHED_CALL, row]:
        visible = NO_TIME  # only what another call shows ends the replication
    if not consistent:
        sent = NO_TIME
    if record != NO_TIME and produced != NO_TIME:
        wire = subtract(produced, record)
    if visible != NO_TIME:
        seen = find_first(visible, shown)
    if acknowledged != NO_TIME:
        acknowledged = find_first(find_first(acknowledged, visible), shown)
    after = sent if acknowledged == NO_TIME else acknowledged
    steps[TOTAL, row] = NO_NUMBER
    if consistent:
        steps[TOTAL, row] = measure(
            record if wire >= 0 or sent == NO_TIME else sent, fetched if committed == NO_TIME else committed
        )
    steps[BEFORE_WIRE, row] = convert_ns(wire)
    steps[PRODUCE, row] = measure(sent, acknowledged)
    steps[REPLICATION, row] = NO_NUMBER if sent == NO_TIME else measure(after, seen)
    steps[FETCH_WAIT, row] = NO_NUMBER if sent == NO_TIME else measure(after if seen == NO_TIME else seen, shown)
    steps[FETCH, row] = measure(shown, fetched)
    steps[PROCESSING, row] = measure(fetched, committed)
