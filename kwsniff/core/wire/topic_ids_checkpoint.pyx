# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""Which topic ids have names, in a saved state.

Rules
  1. They are learned again: bounds hold as for those of a capture.
  2. Ids that rows show without a name are saved, too: the name may still come.

    | num | id: 16 | awaited | name | id: 16 | ...
"""

from libc.stdint cimport uint8_t, uint32_t

from kwsniff.core.bytes.buffer cimport Buffer
from kwsniff.core.bytes.checkpoint cimport Source, get, get_span, put, put_bytes
from kwsniff.core.bytes.span cimport make_span
from kwsniff.core.wire.topic_ids cimport TopicEntry, TopicIds, await_topic, learn_topic


cdef bint save_topic_ids(Buffer* out, TopicIds* ids) noexcept nogil:
    cdef TopicEntry* entries = <TopicEntry*>ids.entries.data
    cdef uint32_t i
    cdef bint ok = put(out, &ids.num, 4)
    for i in range(ids.num):
        ok = (ok and put(out, entries[i].id, 16) and put(out, &entries[i].awaited, sizeof(entries[i].awaited))
              and put_bytes(out, make_span(entries[i].name, entries[i].name_len)))
    return ok


cdef void load_topic_ids(Source* source, TopicIds* ids) noexcept nogil:
    cdef uint8_t[16] id
    cdef bint awaited = False
    cdef uint32_t num = 0, i
    get(source, &num, 4)
    for i in range(num):
        get(source, id, 16)
        get(source, &awaited, sizeof(awaited))
        if awaited:
            await_topic(ids, make_span(id, 16))
        learn_topic(ids, make_span(id, 16), get_span(source))
        if source.failed:
            return
