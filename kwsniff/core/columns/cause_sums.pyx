# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, autotestdict=False
"""The time of calls added up by cause, of their groups and of their topics, in one pass over rows of latencies.

Rules
  1. A part of a call's time has one cause, which a word of the row may say: `causes` has it by the word's code,
     null at the end. A group, a word or a topic that has no place in the sums ends the pass.
  2. Topics of a row are codes beside each other, from `starts` on.

       sums    | group 0: calls, the longest, cause 0, cause 1, ...  | group 1: ...
       codes   | 4 | 2 7 | | 2 ...    of all rows        starts | 0 1 3 3 ...     lengths | 1 2 0 1 ...
"""

from libc.stdint cimport int64_t

from kwsniff.core.columns.numbers cimport CHUNK, View, spread, take_views

cdef enum:
    TOTAL
    WAITED
    GROUP
    FIRST_WORD
    SECOND_WORD
    FIRST_PART
    MOST_PARTS = 24


cdef struct Part:
    int64_t took
    int64_t cause


cdef inline void add_parts(
    int64_t[:, ::1] sums, int64_t of, int64_t active, const Part* parts, Py_ssize_t num,
) noexcept nogil:
    cdef Py_ssize_t at
    sums[of, 0] += 1
    sums[of, 1] = max(sums[of, 1], active)
    for at in range(num):
        sums[of, 2 + parts[at].cause] += parts[at].took


cdef inline Py_ssize_t find_parts(
    int64_t[CHUNK]* there, Py_ssize_t row, Py_ssize_t num, const int64_t[::1] words,
    const int64_t[:, ::1] causes, Part* found,
) noexcept nogil:
    """The parts of a row that took time; -1 for a word without a cause."""
    cdef Py_ssize_t at, count = 0, last = causes.shape[1] - 1
    cdef int64_t word
    for at in range(num):
        if not there[FIRST_PART + at][row]:
            continue
        word = -1 if words[at] < 0 else there[FIRST_WORD + words[at]][row]
        if word >= last:
            return -1
        found[count].took = there[FIRST_PART + at][row]
        found[count].cause = causes[at, last if word < 0 else word]
        count += 1
    return count


cdef int sizes_fit(
    const int64_t[::1] words, const int64_t[:, ::1] causes, const int64_t[::1] starts,
    const int64_t[::1] lengths, const int64_t[::1] codes, int64_t[:, ::1] sums, int64_t[:, ::1] topics,
    Py_ssize_t rows,
) except -1:
    cdef Py_ssize_t at, word, row
    if words.shape[0] > MOST_PARTS or causes.shape[0] != words.shape[0] or not causes.shape[1]:
        raise ValueError("parts of different sizes")
    for at in range(words.shape[0]):
        if not -1 <= words[at] <= 1:
            raise ValueError("a word that no column has")
        for word in range(causes.shape[1]):
            if not 0 <= causes[at, word] < sums.shape[1] - 2:
                raise IndexError("a cause that has no sums")
    if lengths.shape[0] != starts.shape[0] or (starts.shape[0] and starts.shape[0] != rows):
        raise ValueError("topics of different sizes")
    if topics.shape[1] != sums.shape[1]:
        raise ValueError("sums of different sizes")
    for row in range(starts.shape[0]):
        if lengths[row] < 0 or starts[row] < 0 or lengths[row] > codes.shape[0] - starts[row]:
            raise IndexError("topics that are not there")
    return 0


def sum_causes(
    tuple columns, const int64_t[::1] words, const int64_t[:, ::1] causes, const int64_t[::1] starts,
    const int64_t[::1] lengths, const int64_t[::1] codes, int64_t[:, ::1] sums, int64_t[:, ::1] topics,
):
    """Adds up the rows of each group, and of each topic.

    `columns`: total_ns, deliberate_wait_ns, the group, two columns of words, and the parts. `words`: which of
    both says the cause of each part, -1 for none; `causes`: by part and code. `starts` and `lengths` are empty
    where topics are not known.
    """
    cdef View[FIRST_PART + MOST_PARTS] views
    cdef int64_t[FIRST_PART + MOST_PARTS][CHUNK] there
    cdef Part[MOST_PARTS] parts
    cdef Py_ssize_t num = words.shape[0], begin = 0, size, row, at, count = 0, place
    cdef Py_ssize_t rows = take_views(columns, views, FIRST_PART + num) if num <= MOST_PARTS else 0
    cdef int64_t active, topic
    cdef bint good = True
    sizes_fit(words, causes, starts, lengths, codes, sums, topics, rows)
    with nogil:
        while good and begin < rows:
            size = min(CHUNK, rows - begin)
            for at in range(FIRST_PART + num):
                spread(&views[at], begin, size, -1 if GROUP <= at < FIRST_PART else 0, there[at])
            for row in range(size):
                active = there[TOTAL][row] - there[WAITED][row]
                count = find_parts(there, row, num, words, causes, parts)
                if count < 0 or there[GROUP][row] < 0 or there[GROUP][row] >= sums.shape[0]:
                    good = False
                    break
                add_parts(sums, there[GROUP][row], active, parts, count)
                if not starts.shape[0]:
                    continue
                for place in range(starts[begin + row], starts[begin + row] + lengths[begin + row]):
                    topic = codes[place]
                    if topic < 0 or topic >= topics.shape[0]:
                        good = False
                        break
                    add_parts(topics, topic, active, parts, count)
            begin += size
    if not good:
        raise IndexError("a group that has no sums")
