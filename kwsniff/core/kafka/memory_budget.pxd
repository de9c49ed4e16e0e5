# cython: language_level=3
# What an analysis has kept so far, in bytes, against the one bound on all of it (`--limit memory`).
#
# Rule 1: whatever grows with what the wire says is in one of these totals, or in a bound of its own that is small.
# Rule 2: rows are taken between two calls, never inside one: texts of a call may be pointed into.

from libc.stdint cimport int64_t, uint32_t

from kwsniff.core.capture.packets cimport Segment
from kwsniff.core.kafka.kafka_connection cimport Context, KafkaConnection, OrphanResponse
from kwsniff.core.tcp.stream_table cimport Streams, connections_bytes
from kwsniff.core.wire.tape cimport Cell

cdef enum:
    SPARE_SCRATCH = 1 << 20     # of what one message is read into, that stays for the next one
    LEAST_CELLS = 1 << 16


cdef inline int64_t learned_bytes(KafkaConnection* kafka) noexcept nogil:
    return <int64_t>(kafka.client_id.cap + kafka.software_name.cap + kafka.software_version.cap
                     + kafka.sasl_mechanism.cap + kafka.principal.cap)


cdef inline int64_t orphan_slots(Context* context) noexcept nogil:
    """What a connection takes that has ever had a response without a request."""
    return context.limits.orphan_responses * <int64_t>sizeof(OrphanResponse)


cdef inline int64_t scratch_bytes(Context* context) noexcept nogil:
    """Of what the latest messages were read into, without the tape."""
    return <int64_t>(context.facts.topics.cap + context.facts.forgotten.cap + context.facts.partition_hits.cap
                     + context.facts.batch_hits.cap + context.facts.errors.cap)


cdef inline int64_t lasting_bytes(Context* context) noexcept nogil:
    """All but the tape."""
    return (context.below + context.kept_total + context.waiting_total + context.learned_total
            + context.num_kafka_connections * <int64_t>sizeof(KafkaConnection) + scratch_bytes(context)
            + <int64_t>context.topic_ids.bytes)


cdef inline int64_t bytes_in_use(Context* context) noexcept nogil:
    return lasting_bytes(context) + <int64_t>(context.tape.cap * sizeof(Cell))


cdef inline size_t most_cells(Context* context, size_t message) noexcept nogil:
    """How many fields of a message of `message` bytes there is room for."""
    cdef int64_t room
    if message <= <size_t>LEAST_CELLS:      # about one byte each, at the least
        return <size_t>context.limits.message_fields
    room = (context.most_bytes - lasting_bytes(context)) // <int64_t>sizeof(Cell)
    if room < LEAST_CELLS:
        room = LEAST_CELLS
    return <size_t>(room if room < context.limits.message_fields else context.limits.message_fields)


cdef void note_shared(Streams* streams, Context* context) noexcept nogil
cdef void share_memory(Context* context, bint drained) noexcept nogil
cdef void make_room(Streams* streams, Context* context, Segment* segment) noexcept nogil
cdef void tell_limit(Context* context, Segment* segment, int64_t num) noexcept nogil


cdef inline void drain_if_full(Context* context) noexcept nogil:
    """Before the rows of a call, of a connection, or after a packet."""
    if context.tables[0].spares.filled >= context.tables[0].spares.enough and context.drain != NULL:
        context.drain(context.owner)


cdef inline void keep_within(Streams* streams, Context* context, Segment* segment) noexcept nogil:
    """After a packet: what waits in tables is taken, and what is kept stays below its bound."""
    context.below = connections_bytes(streams)
    if context.tables[0].spares.refused:
        tell_limit(context, segment, context.tables[0].spares.refused)
        context.tables[0].spares.refused = 0
        streams.alone = True
    drain_if_full(context)
    if context.beside:
        note_shared(streams, context)
    if bytes_in_use(context) > context.most_bytes:
        make_room(streams, context, segment)
