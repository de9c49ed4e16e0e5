# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""The one bound on memory (`--limit memory`): what it leaves for the parts of an analysis, and what goes beyond it.

Rules
  1. Between two packets what is kept is below `most_bytes`: what the latest messages were read into goes first, then
     connections that have ended, without a word; then those that were silent longest, each with an anomaly.
  2. Inside a packet the bounds of their own hold: of a frame, of what waits, of the cells of one message.

    memory  | interpreter, libraries | what is kept: 1/2 | rows: 1/8 that fill, 1/8 that are written | Python: the rest |
"""

from libc.stdint cimport int64_t
from libc.string cimport memset

from kwsniff.core.capture.packets cimport Segment
from kwsniff.core.columns.columns cimport set_enough
from kwsniff.core.declared cimport ANOMALY_MEMORY_LIMIT
from kwsniff.core.kafka.kafka_connection cimport Shared
from kwsniff.core.kafka.row_sink cimport write_anomaly
from kwsniff.core.limits cimport Limits
from kwsniff.core.tcp.arrivals cimport Arrival
from kwsniff.core.tcp.stream_table cimport Streams, connections_bytes
from kwsniff.core.tcp.streams cimport evict_one
from kwsniff.core.wire.engine cimport free_tape
from kwsniff.core.wire.facts cimport free_facts
from kwsniff.core.wire.tape cimport Cell

cdef enum:
    INTERPRETER = 180_000_000   # with numpy, Arrow and DuckDB: what is there before the first packet
    LEAST_REST = 32_000_000


cdef inline int64_t least_of(int64_t a, int64_t b) noexcept nogil:
    return a if a < b else b


cdef void share_memory(Context* context, bint drained) noexcept nogil:
    """Sets the bounds of the parts. `drained`: the caller takes the rows when they are enough."""
    cdef Limits* limits = &context.limits
    cdef int64_t rest = limits.memory - INTERPRETER
    if rest < LEAST_REST:
        rest = LEAST_REST
    context.most_bytes = rest // 2
    # Beside others it is half: a call for whose texts one analyzer of all had no room finds none here either.
    set_enough(context.tables, rest // (16 if context.beside else 8) if drained else 0)
    if context.beside:
        context.tables[0].spares.most_waiting = rest // 16 // context.num_buckets
    limits.frame_kept_bytes_total = least_of(limits.frame_kept_bytes_total, context.most_bytes // 4 * 3)
    limits.in_flight_bytes_total = least_of(limits.in_flight_bytes_total, context.most_bytes // 2)
    limits.reorder_bytes_total = least_of(limits.reorder_bytes_total, context.most_bytes // 2)


cdef inline void note_most(int64_t* most, int64_t now) noexcept nogil:
    if now > most[0]:
        most[0] = now


cdef void note_shared(Streams* streams, Context* context) noexcept nogil:
    cdef Shared* shared = &context.shared
    note_most(&shared.connections, streams.num)
    note_most(&shared.topic_ids, context.topic_ids.num)
    note_most(&shared.held, streams.reorder_total)
    note_most(&shared.frames, context.kept_total)
    note_most(&shared.waiting, context.waiting_total)
    note_most(&shared.memory, bytes_in_use(context))


cdef void make_room(Streams* streams, Context* context, Segment* segment) noexcept nogil:
    """Forgets what the latest messages were read into, connections that have ended, and those that were silent longest."""
    cdef int64_t num = 0
    if context.tape.cap * sizeof(Cell) > <size_t>SPARE_SCRATCH:
        free_tape(&context.tape)
    if scratch_bytes(context) > SPARE_SCRATCH:
        free_facts(&context.facts)
    while streams.num and bytes_in_use(context) > context.most_bytes:
        num += evict_one(streams)
        context.below = connections_bytes(streams)
    streams.alone = True
    if num:
        tell_limit(context, segment, num)


cdef void tell_limit(Context* context, Segment* segment, int64_t num) noexcept nogil:
    cdef Arrival arrival
    memset(&arrival, 0, sizeof(Arrival))
    arrival.time = segment.time
    arrival.frame = segment.frame
    arrival.capture = <int64_t>(context.capture_name_ends.len // sizeof(int64_t)) - 1
    write_anomaly(context, NULL, -1, &arrival, -1, -1, ANOMALY_MEMORY_LIMIT, num)
