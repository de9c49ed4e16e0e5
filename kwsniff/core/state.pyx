# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""Everything that an analysis needs to continue, as bytes: connections, unfinished frames, held segments, waiting calls,
names, limits, the open capture.

Rules
  1. A state is for the same build on the same kind of machine: structs are written as they lie in memory. A number
     made of all their declarations (shapes.pxd) and their sizes are at its beginning, and other builds refuse the state: fields
     of the same size in another order, too. It is a checkpoint, not an exchange format.
  2. Pointers are never read back: what they pointed to follows the struct and is allocated again, in one order
     for both ways (`save_X` and `load_X` are side by side).
  3. Every length is checked against the bytes left before anything is allocated; a state that ends early is refused.

    head | context | topic ids | streams | connection* (queued* queued* connection?) | reader
    connection: struct | 2 x frame bytes | calls (struct, text)* | parked (struct, bytes)* | texts | hello? | tls?
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset

from kwsniff.core.bytes.buffer cimport Buffer, contents
from kwsniff.core.tcp.connection cimport Connection
from kwsniff.core.tcp.connections cimport adopt_connection
from kwsniff.core.tcp.stream_table cimport Streams
from kwsniff.core.tcp.control_block cimport ControlBlock, block_of
from kwsniff.core.tcp.events cimport EVENTS, TcpEvent
from kwsniff.core.tcp.reorder_queue cimport QueuedSegment, ReorderQueue
from kwsniff.core.bytes.checkpoint cimport Source, get, get_bytes, get_span, put, put_bytes
from kwsniff.core.kafka.kafka_connection cimport Call, Context, KafkaConnection, OrphanResponse, Slots
from kwsniff.core.capture.fragments cimport DATAGRAM_BYTES, Datagram
from kwsniff.core.kafka.fetch_sessions cimport session_bytes
from kwsniff.core.kafka.fetch_session_partitions cimport index_session
from kwsniff.core.kafka.memory_budget cimport learned_bytes, orphan_slots
from kwsniff.core.limits cimport Limits
from kwsniff.core.shapes cimport KWSNIFF_SHAPES
from kwsniff.core.bytes.span cimport Span, copy_out, has, make_span
from kwsniff.core.capture.packets cimport IcmpSink, Interface, Reader, SegmentSink
from kwsniff.core.tls.hello cimport Hello, hello_bytes
from kwsniff.core.tls.tls_checkpoint cimport load_hello, load_tls, save_hello, save_tls
from kwsniff.core.tls.tls_state cimport Tls, tls_bytes
from kwsniff.core.wire.topic_ids_checkpoint cimport load_topic_ids, save_topic_ids

cdef enum:
    STATE_VERSION = 12

cdef struct Head:
    uint8_t magic[4]
    uint32_t version
    uint64_t shapes
    uint32_t sizes[10]

cdef Head make_head() noexcept nogil:
    cdef Head head
    memset(&head, 0, sizeof(Head))
    memcpy(head.magic, b"KWST", 4)
    head.version = STATE_VERSION
    head.shapes = KWSNIFF_SHAPES
    head.sizes[0] = sizeof(ControlBlock)
    head.sizes[1] = sizeof(KafkaConnection)
    head.sizes[2] = sizeof(Call)
    head.sizes[3] = sizeof(OrphanResponse)
    head.sizes[4] = sizeof(QueuedSegment)
    head.sizes[5] = sizeof(Reader)
    head.sizes[6] = sizeof(Limits)
    head.sizes[7] = sizeof(void*)
    head.sizes[8] = sizeof(Hello)
    head.sizes[9] = sizeof(Tls)
    return head


# -- both ways, part by part ------------------------------------------------------------------------------------

cdef bint save_state(Buffer* out, Context* context, Streams* streams, Reader* reader, bint with_ended) noexcept nogil:
    """False when memory is refused."""
    cdef Head head = make_head()
    return (put(out, &head, sizeof(Head)) and save_context(out, context) and save_streams(out, streams, with_ended)
            and save_reader(out, reader))


cdef bint load_state(Span state, Context* context, Streams* streams, Reader* reader) noexcept nogil:
    """Into rooms that are started and empty. False when the state is none, of another build, or broken off."""
    cdef Source source
    cdef Head head
    cdef Head ours = make_head()
    cdef int i
    source.left = state
    source.failed = False
    get(&source, &head, sizeof(Head))
    if source.failed or head.version != ours.version or head.shapes != ours.shapes:
        return False
    for i in range(10):
        if head.sizes[i] != ours.sizes[i]:
            return False
    for i in range(4):
        if head.magic[i] != ours.magic[i]:
            return False
    load_context(&source, context)
    if source.failed:
        return False
    load_streams(&source, context, streams)
    load_reader(&source, reader)
    return not source.failed and source.left.num == 0


cdef bint save_context(Buffer* out, Context* context) noexcept nogil:
    return (put(out, &context.apis.checksum, 8) and put(out, &context.limits, sizeof(Limits))
            and put(out, context.ports, sizeof(context.ports))
            and put(out, &context.keeps_messages, sizeof(context.keeps_messages))
            and put(out, &context.bucket, 4) and put(out, &context.num_buckets, 4)
            and put(out, &context.since, 8) and put(out, &context.until, 8)
            and put_bytes(out, contents(&context.bins))
            and put_bytes(out, contents(&context.capture_names))
            and put_bytes(out, contents(&context.capture_name_ends)) and save_topic_ids(out, &context.topic_ids))


cdef void load_context(Source* source, Context* context) noexcept nogil:
    cdef int64_t checksum = 0
    get(source, &checksum, 8)           # a call knows its API by the layouts that there were
    if checksum != context.apis.checksum:
        source.failed = True
        return
    get(source, &context.limits, sizeof(Limits))
    get(source, context.ports, sizeof(context.ports))
    get(source, &context.keeps_messages, sizeof(context.keeps_messages))
    get(source, &context.bucket, 4)
    get(source, &context.num_buckets, 4)
    get(source, &context.since, 8)
    get(source, &context.until, 8)
    get_bytes(source, &context.bins)
    get_bytes(source, &context.capture_names)
    get_bytes(source, &context.capture_name_ends)
    context.topic_ids.limit = <uint32_t>context.limits.topic_ids
    load_topic_ids(source, &context.topic_ids)


cdef bint save_streams(Buffer* out, Streams* streams, bint with_ended) noexcept nogil:
    cdef int64_t num = streams.open.num + (streams.ended.num if with_ended else 0)
    return (put(out, &streams.frames_before, 8) and put(out, &streams.ordinal, 8)
            and put(out, &streams.capture, 8) and put(out, &streams.seen_at, 8) and put(out, &streams.now, 8)
            and put(out, &num, 8)
            and save_connections(out, streams.open.oldest)
            and (not with_ended or save_connections(out, streams.ended.oldest)))


cdef bint save_connections(Buffer* out, Connection* connection) noexcept nogil:
    while connection != NULL:
        if not save_connection(out, connection):
            return False
        connection = connection.newer
    return True


cdef void load_streams(Source* source, Context* context, Streams* streams) noexcept nogil:
    cdef int64_t num = 0, i
    get(source, &streams.frames_before, 8)
    get(source, &streams.ordinal, 8)
    get(source, &streams.capture, 8)
    get(source, &streams.seen_at, 8)
    get(source, &streams.now, 8)
    get(source, &num, 8)
    streams.limits = context.limits
    for i in range(num):
        if source.failed:
            return
        load_connection(source, context, streams)


cdef bint save_connection(Buffer* out, Connection* connection) noexcept nogil:
    cdef QueuedSegment* queued
    cdef int i
    cdef bint ok = (put(out, connection, sizeof(ControlBlock))
                    and (connection.num_events == 0
                         or put(out, connection.events, connection.num_events * sizeof(TcpEvent))))
    for i in range(2):
        queued = block_of(connection).direction[i].queue.first
        while ok and queued != NULL:
            ok = put(out, queued, sizeof(QueuedSegment)) and put_bytes(out, make_span(queued.data, queued.captured))
            queued = queued.next
    if ok and connection.kafka != NULL:
        ok = save_kafka(out, <KafkaConnection*>connection.kafka)
    return ok


cdef void load_connection(Source* source, Context* context, Streams* streams) noexcept nogil:
    cdef Connection* connection = <Connection*>calloc(1, sizeof(ControlBlock))
    cdef ReorderQueue* queue
    cdef int64_t[2] num
    cdef bint with_kafka
    cdef int i
    if connection == NULL or not get(source, connection, sizeof(ControlBlock)):
        source.failed = True
        free(connection)
        return
    with_kafka = connection.kafka != NULL
    connection.kafka = NULL
    connection.events = NULL
    for i in range(2):
        queue = &block_of(connection).direction[i].queue
        num[i] = queue.num
        queue.first = NULL
        queue.last = NULL
        queue.num = 0
        queue.bytes = 0
    adopt_connection(streams, connection)       # from here on it is freed with the others
    load_events(source, streams, connection)
    for i in range(2):
        while num[i] and not source.failed:
            load_queued(source, streams, &block_of(connection).direction[i].queue)
            num[i] -= 1
    if with_kafka and not source.failed:
        load_kafka(source, context, connection)


cdef void load_events(Source* source, Streams* streams, Connection* connection) noexcept nogil:
    cdef int num = connection.num_events
    connection.num_events = 0
    if not num:
        return
    if 0 < num <= EVENTS:
        connection.events = <TcpEvent*>malloc(EVENTS * sizeof(TcpEvent))
    if connection.events == NULL:
        source.failed = True
        return
    streams.event_rooms += 1
    get(source, connection.events, num * sizeof(TcpEvent))
    connection.num_events = num


cdef void load_queued(Source* source, Streams* streams, ReorderQueue* queue) noexcept nogil:
    cdef QueuedSegment head
    cdef QueuedSegment* queued
    cdef Span data
    get(source, &head, sizeof(QueuedSegment))
    data = get_span(source)
    if source.failed or data.num != head.captured:
        source.failed = True
        return
    queued = <QueuedSegment*>malloc(sizeof(QueuedSegment) + data.num)
    if queued == NULL:
        source.failed = True
        return
    queued[0] = head
    queued.next = NULL
    queued.data = <uint8_t*>&queued[1]
    copy_out(data, 0, queued.data, data.num)
    if queue.last == NULL:
        queue.first = queued
    else:
        queue.last.next = queued
    queue.last = queued
    queue.num += 1
    queue.bytes += queued.length
    streams.reorder_total += <int64_t>(sizeof(QueuedSegment) + queued.captured)


cdef bint save_kafka(Buffer* out, KafkaConnection* kafka) noexcept nogil:
    cdef Call* call
    cdef int64_t i
    cdef bint ok = put(out, kafka, sizeof(KafkaConnection))
    for i in range(2):
        ok = ok and put_bytes(out, contents(&kafka.framing[i].kept))
    for i in range(kafka.num):
        call = &kafka.calls[(kafka.head + i) & (kafka.num_slots - 1)]
        ok = (ok and put(out, call, sizeof(Call)) and put_bytes(out, contents(&call.text))
              and put_bytes(out, contents(&call.parts)))
    for i in range(kafka.num_orphans):
        ok = (ok and put(out, &kafka.orphans[i], sizeof(OrphanResponse))
              and put_bytes(out, contents(&kafka.orphans[i].bytes)))
    return (ok and put_bytes(out, contents(&kafka.client_id)) and put_bytes(out, contents(&kafka.software_name))
            and put_bytes(out, contents(&kafka.software_version))
            and put_bytes(out, contents(&kafka.sasl_mechanism)) and put_bytes(out, contents(&kafka.principal))
            and put_bytes(out, contents(&kafka.early_messages)) and put_bytes(out, contents(&kafka.stalls))
            and put_bytes(out, contents(&kafka.session.parts)) and put_bytes(out, contents(&kafka.session.topics))
            and put_bytes(out, contents(&kafka.session.text))
            and (kafka.hello == NULL or save_hello(out, kafka.hello))
            and (kafka.tls == NULL or save_tls(out, kafka.tls)))


cdef void detach(KafkaConnection* kafka) noexcept nogil:
    """Forgets addresses of another process."""
    cdef int i
    kafka.hello = NULL
    kafka.tls = NULL
    kafka.calls = NULL
    kafka.num_slots = 0
    kafka.num = 0
    kafka.head = 0
    kafka.orphans = NULL
    kafka.num_orphans = 0
    memset(&kafka.client_id, 0, sizeof(Buffer))
    memset(&kafka.software_name, 0, sizeof(Buffer))
    memset(&kafka.software_version, 0, sizeof(Buffer))
    memset(&kafka.sasl_mechanism, 0, sizeof(Buffer))
    memset(&kafka.principal, 0, sizeof(Buffer))
    memset(&kafka.early_messages, 0, sizeof(Buffer))
    memset(&kafka.stalls, 0, sizeof(Buffer))
    memset(&kafka.session.parts, 0, sizeof(Buffer))
    memset(&kafka.session.topics, 0, sizeof(Buffer))
    memset(&kafka.session.text, 0, sizeof(Buffer))
    memset(&kafka.session.part_slots, 0, sizeof(Slots))
    memset(&kafka.session.topic_slots, 0, sizeof(Slots))
    for i in range(2):
        memset(&kafka.framing[i].kept, 0, sizeof(Buffer))


cdef void load_kafka(Source* source, Context* context, Connection* connection) noexcept nogil:
    cdef KafkaConnection* kafka = <KafkaConnection*>calloc(1, sizeof(KafkaConnection))
    cdef int64_t num
    cdef int num_orphans, i
    cdef bint with_hello, with_tls
    if kafka == NULL:
        source.failed = True
        return
    get(source, kafka, sizeof(KafkaConnection))
    num = kafka.num
    num_orphans = kafka.num_orphans
    context.num_kafka_connections += 1
    kafka.connection = connection
    with_hello = kafka.hello != NULL
    with_tls = kafka.tls != NULL
    detach(kafka)
    memset(kafka.texts, 0, sizeof(kafka.texts))       # they tell places in another run's dictionaries
    connection.kafka = kafka
    for i in range(2):
        get_bytes(source, &kafka.framing[i].kept)
        context.kept_total += <int64_t>kafka.framing[i].kept.cap
    load_calls(source, context, kafka, num)
    load_orphans(source, context, kafka, num_orphans)
    get_bytes(source, &kafka.client_id)
    get_bytes(source, &kafka.software_name)
    get_bytes(source, &kafka.software_version)
    get_bytes(source, &kafka.sasl_mechanism)
    get_bytes(source, &kafka.principal)
    get_bytes(source, &kafka.early_messages)
    get_bytes(source, &kafka.stalls)
    get_bytes(source, &kafka.session.parts)
    get_bytes(source, &kafka.session.topics)
    get_bytes(source, &kafka.session.text)
    if not source.failed and kafka.session.topics.len and not index_session(&kafka.session, context.topic_ids.seed):
        source.failed = True
    context.waiting_total += session_bytes(kafka) + <int64_t>kafka.stalls.cap
    context.learned_total += learned_bytes(kafka)
    if with_hello and not source.failed:
        load_encrypted(source, context, kafka, with_tls)


cdef void load_encrypted(Source* source, Context* context, KafkaConnection* kafka, bint with_tls) noexcept nogil:
    kafka.hello = load_hello(source)
    if kafka.hello != NULL:
        context.kept_total += hello_bytes(kafka.hello)
    if with_tls and not source.failed:
        kafka.tls = load_tls(source, kafka.hello)
        if kafka.tls != NULL:
            context.kept_total += tls_bytes(kafka.tls)


cdef void load_calls(Source* source, Context* context, KafkaConnection* kafka, int64_t num) noexcept nogil:
    cdef int64_t i, num_slots = 4
    if num == 0 or source.failed:
        return
    if num < 0 or num > context.limits.in_flight_requests or not has(source.left, 0, <size_t>num * sizeof(Call)):
        source.failed = True
        return
    while num_slots < num:
        num_slots *= 2
    kafka.calls = <Call*>calloc(<size_t>num_slots, sizeof(Call))
    if kafka.calls == NULL:
        source.failed = True
        return
    kafka.num_slots = num_slots
    context.waiting_total += num_slots * <int64_t>sizeof(Call)
    for i in range(num):
        get(source, &kafka.calls[i], sizeof(Call))
        get_bytes(source, &kafka.calls[i].text)
        get_bytes(source, &kafka.calls[i].parts)
        context.waiting_total += <int64_t>(kafka.calls[i].text.cap + kafka.calls[i].parts.cap)
        kafka.num += 1


cdef void load_orphans(Source* source, Context* context, KafkaConnection* kafka, int num) noexcept nogil:
    cdef int i
    if num == 0 or source.failed:
        return
    if num < 0 or num > context.limits.orphan_responses:
        source.failed = True
        return
    kafka.orphans = <OrphanResponse*>calloc(<size_t>context.limits.orphan_responses, sizeof(OrphanResponse))
    if kafka.orphans == NULL:
        source.failed = True
        return
    context.waiting_total += orphan_slots(context)
    for i in range(num):
        get(source, &kafka.orphans[i], sizeof(OrphanResponse))
        get_bytes(source, &kafka.orphans[i].bytes)
        context.waiting_total += <int64_t>kafka.orphans[i].bytes.cap
        kafka.num_orphans += 1


cdef bint save_reader(Buffer* out, Reader* reader) noexcept nogil:
    cdef Datagram* datagram
    cdef uint32_t i
    cdef bint ok = (put(out, reader, sizeof(Reader)) and put_bytes(out, contents(&reader.carry))
                    and put(out, reader.interfaces, reader.num_interfaces * sizeof(Interface)))
    for i in range(reader.fragments.num):
        datagram = &reader.fragments.datagrams[i]
        ok = ok and put(out, datagram, sizeof(Datagram))
        if datagram.used:
            ok = ok and put(out, datagram.bytes, DATAGRAM_BYTES)
    return ok


cdef void load_reader(Source* source, Reader* reader) noexcept nogil:
    cdef SegmentSink sink = reader.sink
    cdef IcmpSink icmp_sink = reader.icmp_sink
    cdef void* context = reader.context
    cdef uint32_t num_interfaces, num_datagrams, cap = 1
    get(source, reader, sizeof(Reader))
    reader.sink = sink
    reader.icmp_sink = icmp_sink
    reader.context = context
    reader.take_secrets = NULL
    num_interfaces = reader.num_interfaces
    num_datagrams = reader.fragments.num
    reader.interfaces = NULL
    reader.num_interfaces = 0
    reader.fragments.datagrams = NULL
    reader.fragments.num = 0
    get_bytes(source, &reader.carry)
    if source.failed or not has(source.left, 0, num_interfaces * sizeof(Interface)):
        source.failed = True
        return
    if num_interfaces:
        while cap < num_interfaces:
            cap *= 2
        reader.interfaces = <Interface*>calloc(cap, sizeof(Interface))
        if reader.interfaces == NULL:
            source.failed = True
            return
        reader.num_interfaces = num_interfaces
        get(source, reader.interfaces, num_interfaces * sizeof(Interface))
    load_datagrams(source, reader, num_datagrams)


cdef void load_datagrams(Source* source, Reader* reader, uint32_t num) noexcept nogil:
    cdef Datagram* datagram
    cdef uint32_t i
    if num == 0:
        return
    if num != reader.fragments.limit or not has(source.left, 0, num * sizeof(Datagram)):
        source.failed = True
        return
    reader.fragments.datagrams = <Datagram*>calloc(num, sizeof(Datagram))
    if reader.fragments.datagrams == NULL:
        source.failed = True
        return
    reader.fragments.num = num
    for i in range(num):
        datagram = &reader.fragments.datagrams[i]
        get(source, datagram, sizeof(Datagram))
        datagram.bytes = NULL
        if datagram.used:
            datagram.bytes = <uint8_t*>malloc(DATAGRAM_BYTES)
            if datagram.bytes == NULL or not get(source, datagram.bytes, DATAGRAM_BYTES):
                source.failed = True
                return
