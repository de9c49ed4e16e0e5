# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""What a request says of each partition, kept until its response comes.

Rules
  1. What one call keeps is bounded (`most_facts`); what exceeds it is left out.
  2. The name of a topic is kept once for all of its partitions.

    call.parts  | PartRow | PartRow | ...        call.text  ... | name of the first topic | of the second | ...
"""

from libc.stdint cimport int32_t, int64_t, uint32_t
from libc.string cimport memcpy

from kwsniff.core.kafka.kafka_connection cimport PartRow
from kwsniff.core.bytes.buffer cimport append, append_raw
from kwsniff.core.bytes.span cimport Span, make_span, wipe
from kwsniff.core.wire.facts cimport PartitionHit


cdef void keep_parts(Context* context, Call* call, Facts* facts) noexcept nogil:
    """Copies what the request says of its partitions out of its bytes."""
    cdef PartitionHit* hits = <PartitionHit*>facts.partition_hits.data
    cdef PartitionHit* hit
    cdef PartRow row
    cdef size_t i, num = facts.partition_hits.len // sizeof(PartitionHit)
    cdef Span named = make_span(NULL, 0)
    call.parts.len = 0
    wipe(&row, sizeof(PartRow))
    row.name_len = -1
    for i in range(num):
        hit = &hits[i]
        if <int64_t>(call.parts.len + sizeof(PartRow) + call.text.len + hit.topic.num) > call.most_facts:
            return
        if hit.topic.at != named.at:        # partitions of one topic point at the same name
            named = hit.topic
            row.name_at = <uint32_t>call.text.len
            row.name_len = <int32_t>hit.topic.num if hit.topic.at != NULL else -1
            if not append(&call.text, hit.topic):
                return
        row.has_topic_id = hit.topic_id.at != NULL and hit.topic_id.num == 16
        if row.has_topic_id:
            memcpy(row.topic_id, hit.topic_id.at, 16)
        row.partition = hit.partition
        row.offset = hit.offset
        row.record_bytes = hit.record_bytes
        row.records = hit.records
        row.batches = hit.batches
        if not append_raw(&call.parts, &row, sizeof(PartRow)):
            return
