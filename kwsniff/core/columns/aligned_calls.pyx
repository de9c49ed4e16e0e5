# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""Calls on both sides of a proxy, of one conversation: which upstream call belongs to which call of the client.

Rules
  1. Arrays belong to the caller. Their sizes are looked at before they are used.
  2. Rows are in the order of conversations, and of one in the order of `begin`. A proxy keeps the order of requests:
     an upstream call belongs to the first call of its API that waits and that no earlier one belongs to.
  3. An upstream call begins after its call and ends before it does. NO_END is an unknown end, 0 an unknown key.
  4. Of what waits, LONGEST are looked at: requests without a response would make the pass quadratic.

       client   | Fetch 1 ---------------------------->     | Heartbeat ------->
       upstream |     ApiVersions -->   Fetch 1 ----->      |    Heartbeat -->
"""

from libc.stdint cimport INT64_MAX, int64_t, uint8_t
from libc.stdlib cimport calloc, free

cdef enum:
    LONGEST = 4096

NO_END = INT64_MAX
"""Instead of the time of a response that was not captured."""


cdef inline bint belongs(
    const int64_t[::1] apis, const int64_t[::1] keys, const int64_t[::1] ends, Py_ssize_t row,
    int64_t api, int64_t key, int64_t begin, int64_t end,
) noexcept nogil:
    if apis[row] != api or begin > ends[row] or (keys[row] and key and keys[row] != key):
        return False
    return end <= ends[row] or end == INT64_MAX


def align_calls(tuple calls, tuple upstream, int64_t[::1] found):
    """Puts into `found` for each row of `upstream` the row of `calls` that it belongs to, -1 without one.

    Both have columns: the conversation, the API, what is the same on both sides, the first time, the last time.
    """
    cdef const int64_t[::1] talks, apis, keys, begins, ends, up_talks, up_apis, up_keys, up_begins, up_ends
    talks, apis, keys, begins, ends = calls
    up_talks, up_apis, up_keys, up_begins, up_ends = upstream
    cdef Py_ssize_t num = talks.shape[0], rows = up_talks.shape[0], row, low = 0, at
    cdef uint8_t* taken
    if not num == apis.shape[0] == keys.shape[0] == begins.shape[0] == ends.shape[0]:
        raise ValueError("columns of different sizes")
    if not rows == up_apis.shape[0] == up_keys.shape[0] == up_begins.shape[0] == up_ends.shape[0] == found.shape[0]:
        raise ValueError("columns of different sizes")
    taken = <uint8_t*>calloc(num + 1, sizeof(uint8_t))
    if taken is NULL:
        raise MemoryError("no memory for aligned calls")
    with nogil:
        for row in range(rows):
            found[row] = -1
            while low < num and (talks[low] < up_talks[row] or (
                    talks[low] == up_talks[row] and (taken[low] or ends[low] < up_begins[row]))):
                low += 1
            for at in range(low, min(num, low + LONGEST)):
                if talks[at] != up_talks[row] or begins[at] >= up_begins[row]:
                    break
                if not taken[at] and belongs(
                        apis, keys, ends, at, up_apis[row], up_keys[row], up_begins[row], up_ends[row]):
                    found[row], taken[at] = at, 1
                    break
    free(taken)
