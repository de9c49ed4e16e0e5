# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, autotestdict=False
"""Calls added up by client and kind of call, in one pass over rows of api_calls.

Rules
  1. Groups are a client's number times the kinds and the kind. A number that has no sums ends the pass.
  2. Calls of brokers do not count. Calls whose request was not captured count only as fetches.
  3. A tick of time in which a client asked is marked once while no other follows; the caller that keeps the marks
     removes repeated ones.

       sums    | calls of group 0, 1, ... | known | empty | took | records | bytes
       spans   | first time of group 0, 1, ... | last time | least wait
       marks   | client << 40 | tick ...
       reads   | fetches of client 0, 1, ... | with records | known | records | last time
"""

from libc.stdint cimport INT64_MAX, int64_t

from kwsniff.core.columns.numbers cimport CHUNK, View, keep_least, look_up, spread, take_views

cdef enum:
    CLIENT
    ADDRESS
    CALLER
    API
    STATUS
    TIME
    CALL_ID
    TOOK
    RECORDS
    BYTES
    WAIT
    END
    NUM_COLUMNS

cdef enum:
    ADDED
    NO_GROUP
    NO_CLOCK


cdef inline void add_call(
    int64_t[:, ::1] sums, int64_t[:, ::1] spans, int64_t group, int64_t[CHUNK]* there, Py_ssize_t row,
) noexcept nogil:
    cdef int64_t time = there[TIME][row], records = there[RECORDS][row], wait = there[WAIT][row]
    sums[0, group] += 1
    if records >= 0:
        sums[1, group] += 1
        sums[4, group] += records
    if records <= 0:
        sums[2, group] += 1
    sums[3, group] += there[TOOK][row]
    if there[BYTES][row] >= 0:
        sums[5, group] += there[BYTES][row]
    if time < spans[0, group]:
        spans[0, group] = time
    if time > spans[1, group]:
        spans[1, group] = time
    if wait >= 0 and wait < spans[2, group]:
        spans[2, group] = wait


cdef inline void add_fetch(
    int64_t[:, ::1] reads, int64_t client, int64_t[CHUNK]* there, Py_ssize_t row,
) noexcept nogil:
    cdef int64_t end = there[TIME][row] if there[END][row] == INT64_MAX else there[END][row]
    reads[0, client] += 1
    if there[BYTES][row] > 0:
        reads[1, client] += 1
    if there[RECORDS][row] >= 0:
        reads[2, client] += 1
        reads[3, client] += there[RECORDS][row]
    if end != INT64_MAX and end > reads[4, client]:
        reads[4, client] = end


cdef inline void mark_tick(
    int64_t[:, ::1] latest, int64_t[:, ::1] marks, Py_ssize_t of, int64_t client, int64_t tick, Py_ssize_t* marked,
) noexcept nogil:
    if tick != latest[of, client]:
        latest[of, client] = tick
        marks[of, marked[of]] = client << 40 | tick
        marked[of] += 1


cdef int sizes_fit(
    int64_t[:, ::1] sums, int64_t[:, ::1] spans, int64_t[:, ::1] keys, int64_t[:, ::1] ids,
    int64_t[:, ::1] latest, int64_t[:, ::1] marks, int64_t[:, ::1] reads, Py_ssize_t rows,
) except -1:
    cdef Py_ssize_t groups = sums.shape[1], clients = latest.shape[1]
    if sums.shape[0] != 6 or spans.shape[0] != 3 or spans.shape[1] != groups or ids.shape[0] != groups:
        raise ValueError("sums of different sizes")
    if keys.shape[0] != groups or keys.shape[1] != ids.shape[1] or not ids.shape[1]:
        raise ValueError("sums of different sizes")
    if latest.shape[0] != 2 or not clients or groups % clients or not groups:
        raise ValueError("marks of different sizes")
    if marks.shape[0] != 2 or marks.shape[1] < rows:
        raise ValueError("marks of different sizes")
    if reads.shape[0] != 5 or reads.shape[1] != clients:
        raise ValueError("fetches of different sizes")
    return 0


cdef class Codes:
    """The meaning of texts, by their codes, null at the end: `named` and `placed` numbers of clients, -1 where a
    client has no name; `of_clients` whether they call; `kinds` those of APIs, `unanswered` where the status is
    not `answered`.
    """

    cdef const int64_t[::1] named
    cdef const int64_t[::1] placed
    cdef const int64_t[::1] of_clients
    cdef const int64_t[::1] kinds
    cdef const int64_t[::1] unanswered
    cdef int64_t answered

    def __init__(self, named, placed, of_clients, kinds, unanswered, int64_t answered):
        self.named, self.placed, self.of_clients, self.answered = named, placed, of_clients, answered
        self.kinds, self.unanswered = kinds, unanswered
        if not (len(named) and len(placed) and len(of_clients) and len(kinds) and len(unanswered)):
            raise ValueError("nothing to look up")


def sum_calls(
    tuple columns, Codes codes, int64_t marked_kind, int64_t fetch_kind, int64_t tick,
    int64_t[:, ::1] sums, int64_t[:, ::1] spans, int64_t[:, ::1] keys, int64_t[:, ::1] ids,
    int64_t[:, ::1] latest, int64_t[:, ::1] marks, int64_t[:, ::1] reads,
):
    """Adds up calls, and marks in which ticks of time a client asked at all, or made calls of `marked_kind`.

    `columns`: client_id, client_address, caller, api_name, status, request_time, call_id, latency_ns,
    record_count, record_bytes, max_wait_ms, response_end_time. `reads`: of calls whose kind is `fetch_kind`
    whatever their status, by client; no time is INT64_MIN.

    `keys` and `ids` keep the earliest calls of each group, `latest` the tick that was marked last, of all calls
    and of that kind, by client. Gives how many marks there are of both; a negative number where a time is not
    the time of a clock.
    """
    cdef View[NUM_COLUMNS] views
    cdef Py_ssize_t[2] marked = [0, 0]
    cdef Py_ssize_t rows = take_views(columns, views, NUM_COLUMNS)
    cdef int found
    sizes_fit(sums, spans, keys, ids, latest, marks, reads, rows)
    if tick <= 0:
        raise ValueError("no time passes in such a tick")
    with nogil:
        found = add_calls(
            views, rows, codes, marked_kind, fetch_kind, tick, sums, spans, keys, ids, latest, marks, reads, marked,
        )
    if found == NO_GROUP:
        raise IndexError("a group that has no sums")
    if found == NO_CLOCK:
        return -1, -1
    return marked[0], marked[1]


cdef int add_calls(
    View* views, Py_ssize_t rows, Codes codes, int64_t marked_kind, int64_t fetch_kind, int64_t tick,
    int64_t[:, ::1] sums, int64_t[:, ::1] spans, int64_t[:, ::1] keys, int64_t[:, ::1] ids,
    int64_t[:, ::1] latest, int64_t[:, ::1] marks, int64_t[:, ::1] reads, Py_ssize_t* marked,
) noexcept nogil:
    cdef int64_t[NUM_COLUMNS][CHUNK] there
    cdef int64_t[NUM_COLUMNS] nulls = [
        -1, -1, -1, -1, -1, INT64_MAX, INT64_MAX, 0, -1, -1, -1, INT64_MAX,
    ]
    cdef Py_ssize_t begin = 0, size, row, at, clients = latest.shape[1], num_kinds = sums.shape[1] // clients
    cdef int64_t client, kind, when
    cdef bint asked
    cdef int found = ADDED
    while begin < rows:
        size = min(CHUNK, rows - begin)
        for at in range(NUM_COLUMNS):
            spread(&views[at], begin, size, nulls[at], there[at])
        for row in range(size):
            if not look_up(codes.of_clients, there[CALLER][row]):
                continue
            asked = there[TIME][row] != INT64_MAX
            kind = look_up(codes.kinds, there[API][row])
            if not asked and kind != fetch_kind:
                continue
            client = look_up(codes.named, there[CLIENT][row])
            if client == -1:
                client = look_up(codes.placed, there[ADDRESS][row])
            if client < 0 or client >= clients:
                return NO_GROUP
            if kind == fetch_kind:
                add_fetch(reads, client, there, row)
                if not asked:
                    continue
            if there[STATUS][row] != codes.answered:
                kind = look_up(codes.unanswered, there[API][row])
            if kind < 0 or kind >= num_kinds:
                return NO_GROUP
            add_call(sums, spans, client * num_kinds + kind, there, row)
            keep_least(keys, ids, client * num_kinds + kind, there[TIME][row], there[CALL_ID][row])
            when = there[TIME][row] // tick
            if there[TIME][row] < 0 or when >> 40:
                found = NO_CLOCK
                continue
            mark_tick(latest, marks, 0, client, when, marked)
            if kind == marked_kind:
                mark_tick(latest, marks, 1, client, when, marked)
        begin += size
    return found
