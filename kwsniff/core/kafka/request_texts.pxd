# cython: language_level=3
# The texts that a call keeps of its request: one run of bytes, and a span of it for each KeptText.
#
# Rule 1: writers and readers name a KeptText; only the code here knows its place in the bytes.
# Rule 2: what there is no room for is not kept, whole: no text is cut but KEPT_MESSAGE, by its writer.
# Rule 3: topics follow each other inside KEPT_TOPICS; TOPIC_BY_ID in a length says that the bytes are an id.
#
#     call.text   | client id | group | ... | topics: u32 length, bytes, u32 length, bytes ... | member | ... |
#     call.kept[KEPT_GROUP_ID] -> at, num (-1: none)

from libc.stdint cimport int32_t, int64_t, uint32_t

from kwsniff.core.kafka.kafka_connection cimport KEPT_TOPICS, NUM_KEPT_TEXTS, Call, KeptSpan
from kwsniff.core.bytes.buffer cimport append, append_raw, contents
from kwsniff.core.bytes.span cimport Span, drop, file32, keep, make_span
from kwsniff.core.wire.facts cimport TOPIC_BY_ID


cdef inline void forget_texts(Call* call) noexcept nogil:
    cdef int which
    for which in range(<int>NUM_KEPT_TEXTS):
        call.kept[which].num = -1


cdef inline void keep_text(Call* call, int which, Span text) noexcept nogil:
    """Nothing where there is no text (an address of NULL), or no room."""
    cdef KeptSpan* span = &call.kept[which]
    span.num = -1
    span.at = <uint32_t>call.text.len
    if text.at != NULL and <int64_t>(call.text.len + text.num) <= call.most_facts and append(&call.text, text):
        span.num = <int32_t>text.num


cdef inline bint keep_topic(Call* call, Span topic) noexcept nogil:
    """Behind those that are kept already, before any other text follows. False: there is no room."""
    cdef KeptSpan* span = &call.kept[<int>KEPT_TOPICS]
    cdef uint32_t length = <uint32_t>topic.num          # with its flag
    if <int64_t>(call.text.len + (length & ~TOPIC_BY_ID) + 4) > call.most_facts:
        return False
    if span.num < 0:
        span.num = 0
        span.at = <uint32_t>call.text.len
    if not append_raw(&call.text, &length, 4):
        return False
    if not append_raw(&call.text, topic.at, length & ~TOPIC_BY_ID):
        call.text.len -= 4
        return False
    span.num += <int32_t>(length & ~TOPIC_BY_ID) + 4
    return True


cdef inline Span kept_text(Call* call, int which) noexcept nogil:
    """Without an address where none is kept."""
    cdef KeptSpan span = call.kept[which]
    if span.num < 0:
        return make_span(NULL, 0)
    return keep(drop(contents(&call.text), span.at), <size_t>span.num)


cdef inline Span next_topic(Span* left, bint* by_id) noexcept nogil:
    """Takes the first of the topics that are left off them: its name, or its id."""
    cdef uint32_t length = file32(left[0], 0, False)
    cdef Span topic = keep(drop(left[0], 4), length & ~TOPIC_BY_ID)
    by_id[0] = (length & TOPIC_BY_ID) != 0
    left[0] = drop(left[0], 4 + topic.num)
    return topic
