# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""What merges an analyzer's rows with those of others needs from it: how much it kept, which topics have names.

Rules
  1. A bound of all connections holds for all analyzers: where the most that each kept between two questions adds up to
     less, one analyzer of all had never reached it.
  2. A name counts from the packet behind that of its message on, as it does within one analyzer.

    packets     |............ a turn ............|............ a turn ............|
    kept by 0        ^ most                             ^ most
    kept by 1                    ^ most           ^ most
"""

from libc.stdint cimport uint8_t, uint32_t
from libc.string cimport memset

from kwsniff.core.kafka.kafka_connection cimport Context, Shared
from kwsniff.core.kafka.memory_budget cimport note_shared
from kwsniff.core.limits cimport Limits
from kwsniff.core.bytes.span cimport Span, make_span
from kwsniff.core.rows.rows cimport write_uuid
from kwsniff.core.tcp.stream_table cimport Streams
from kwsniff.core.wire.topic_ids cimport TopicEntry, TopicIds, find_topic


cdef tuple tell_shares(Streams* streams, Context* context):
    """The most of each since this was last asked, as shares of the bounds."""
    cdef Shared most = context.shared
    cdef Limits* limits = &context.limits
    memset(&context.shared, 0, sizeof(Shared))
    note_shared(streams, context)
    return (
        most.connections / <double>limits.connections, most.topic_ids / <double>limits.topic_ids,
        most.held / <double>limits.reorder_bytes_total, most.frames / <double>limits.frame_kept_bytes_total,
        most.waiting / <double>limits.in_flight_bytes_total, most.memory / <double>context.most_bytes,
    )


cdef dict tell_names(TopicIds* ids, bint awaited):
    """Topic id, as Kafka prints it, -> name; `awaited`: of those alone that rows show by their ids."""
    return {
        shown: name for shown, (name, _, was_awaited) in tell_all(ids).items() if was_awaited or not awaited
    }


cdef dict tell_learned(TopicIds* ids):
    """Topic id -> (name, the packet that named it)."""
    return {shown: (name, packet) for shown, (name, packet, _) in tell_all(ids).items()}


cdef dict tell_all(TopicIds* ids):
    cdef TopicEntry* entries = <TopicEntry*>ids.entries.data
    cdef uint8_t[22] text
    cdef uint32_t i
    cdef Span id, name
    told = {}
    for i in range(ids.num):
        if entries[i].name_len:
            id = make_span(<const uint8_t*>entries[i].id, 16)
            name = find_topic(ids, id)
            write_uuid(id, text)
            shown = (<const char*>name.at)[:name.num].decode("utf-8", "replace")
            told[text[:22].decode()] = (shown, entries[i].learned_at, bool(entries[i].awaited))
    return told
