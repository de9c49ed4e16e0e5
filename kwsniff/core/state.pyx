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

    head | context | topic ids | streams | connection* (held* held* dialog?) | reader
    dialog: struct | 2 x frame bytes | calls (struct, text)* | parked (struct, bytes)* | texts | hello? | tls?
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset

from kwsniff.core.octets.buffer cimport Buffer, contents
from kwsniff.core.tcp.connections cimport EVENTS, adopt_connection, Connection, Direction, Held, Streams, TcpEvent
from kwsniff.core.octets.checkpoint cimport Source, get, get_bytes, get_span, put, put_bytes
from kwsniff.core.kafka.dialog cimport Call, Context, Dialog, Parked, Slots
from kwsniff.core.capture.fragments cimport DATAGRAM_BYTES, Datagram
from kwsniff.core.kafka.fetch_sessions cimport session_bytes
from kwsniff.core.kafka.session_parts cimport index_session
from kwsniff.core.kafka.memory cimport learned_bytes, parked_slots
from kwsniff.core.limits cimport Limits
from kwsniff.core.shapes cimport KWSNIFF_SHAPES
from kwsniff.core.octets.octets cimport Octets, copy_out, has, make_octets
from kwsniff.core.capture.packets cimport IcmpSink, Interface, Reader, SegmentSink
from kwsniff.core.tls.hello cimport Hello, hello_bytes
from kwsniff.core.tls.saved_tls cimport load_hello, load_tls, save_hello, save_tls
from kwsniff.core.tls.sealed cimport Tls, tls_bytes
from kwsniff.core.wire.saved_topic_ids cimport load_topic_ids, save_topic_ids

cdef enum:
    STATE_VERSION = 11

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
    head.sizes[0] = sizeof(Connection)
    head.sizes[1] = sizeof(Dialog)
    head.sizes[2] = sizeof(Call)
    head.sizes[3] = sizeof(Parked)
    head.sizes[4] = sizeof(Held)
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


cdef bint load_state(Octets state, Context* context, Streams* streams, Reader* reader) noexcept nogil:
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
    cdef Held* held
    cdef int i
    cdef bint ok = (put(out, connection, sizeof(Connection))
                    and (connection.num_events == 0
                         or put(out, connection.events, connection.num_events * sizeof(TcpEvent))))
    for i in range(2):
        held = connection.direction[i].held
        while ok and held != NULL:
            ok = put(out, held, sizeof(Held)) and put_bytes(out, make_octets(held.data, held.captured))
            held = held.next
    if ok and connection.dialog != NULL:
        ok = save_dialog(out, <Dialog*>connection.dialog)
    return ok


cdef void load_connection(Source* source, Context* context, Streams* streams) noexcept nogil:
    cdef Connection* connection = <Connection*>calloc(1, sizeof(Connection))
    cdef Direction* own
    cdef int64_t[2] num
    cdef bint with_dialog
    cdef int i
    if connection == NULL or not get(source, connection, sizeof(Connection)):
        source.failed = True
        free(connection)
        return
    with_dialog = connection.dialog != NULL
    connection.dialog = NULL
    connection.events = NULL
    for i in range(2):
        own = &connection.direction[i]
        num[i] = own.held_num
        own.held = NULL
        own.held_last = NULL
        own.held_num = 0
        own.held_bytes = 0
    adopt_connection(streams, connection)       # from here on it is freed with the others
    load_events(source, streams, connection)
    for i in range(2):
        while num[i] and not source.failed:
            load_held(source, streams, &connection.direction[i])
            num[i] -= 1
    if with_dialog and not source.failed:
        load_dialog(source, context, connection)


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


cdef void load_held(Source* source, Streams* streams, Direction* own) noexcept nogil:
    cdef Held head
    cdef Held* held
    cdef Octets data
    get(source, &head, sizeof(Held))
    data = get_span(source)
    if source.failed or data.num != head.captured:
        source.failed = True
        return
    held = <Held*>malloc(sizeof(Held) + data.num)
    if held == NULL:
        source.failed = True
        return
    held[0] = head
    held.next = NULL
    held.data = <uint8_t*>&held[1]
    copy_out(data, 0, held.data, data.num)
    if own.held_last == NULL:
        own.held = held
    else:
        own.held_last.next = held
    own.held_last = held
    own.held_num += 1
    own.held_bytes += held.length
    streams.held_total += <int64_t>(sizeof(Held) + held.captured)


cdef bint save_dialog(Buffer* out, Dialog* dialog) noexcept nogil:
    cdef Call* call
    cdef int64_t i
    cdef bint ok = put(out, dialog, sizeof(Dialog))
    for i in range(2):
        ok = ok and put_bytes(out, contents(&dialog.framing[i].kept))
    for i in range(dialog.num):
        call = &dialog.calls[(dialog.head + i) & (dialog.num_slots - 1)]
        ok = (ok and put(out, call, sizeof(Call)) and put_bytes(out, contents(&call.text))
              and put_bytes(out, contents(&call.parts)))
    for i in range(dialog.num_parked):
        ok = (ok and put(out, &dialog.parked[i], sizeof(Parked))
              and put_bytes(out, contents(&dialog.parked[i].bytes)))
    return (ok and put_bytes(out, contents(&dialog.client_id)) and put_bytes(out, contents(&dialog.software_name))
            and put_bytes(out, contents(&dialog.software_version))
            and put_bytes(out, contents(&dialog.sasl_mechanism)) and put_bytes(out, contents(&dialog.principal))
            and put_bytes(out, contents(&dialog.early_messages))
            and put_bytes(out, contents(&dialog.session.parts)) and put_bytes(out, contents(&dialog.session.topics))
            and put_bytes(out, contents(&dialog.session.text))
            and (dialog.hello == NULL or save_hello(out, dialog.hello))
            and (dialog.tls == NULL or save_tls(out, dialog.tls)))


cdef void detach(Dialog* dialog) noexcept nogil:
    """Forgets addresses of another process."""
    cdef int i
    dialog.hello = NULL
    dialog.tls = NULL
    dialog.calls = NULL
    dialog.num_slots = 0
    dialog.num = 0
    dialog.head = 0
    dialog.parked = NULL
    dialog.num_parked = 0
    memset(&dialog.client_id, 0, sizeof(Buffer))
    memset(&dialog.software_name, 0, sizeof(Buffer))
    memset(&dialog.software_version, 0, sizeof(Buffer))
    memset(&dialog.sasl_mechanism, 0, sizeof(Buffer))
    memset(&dialog.principal, 0, sizeof(Buffer))
    memset(&dialog.early_messages, 0, sizeof(Buffer))
    memset(&dialog.session.parts, 0, sizeof(Buffer))
    memset(&dialog.session.topics, 0, sizeof(Buffer))
    memset(&dialog.session.text, 0, sizeof(Buffer))
    memset(&dialog.session.part_slots, 0, sizeof(Slots))
    memset(&dialog.session.topic_slots, 0, sizeof(Slots))
    for i in range(2):
        memset(&dialog.framing[i].kept, 0, sizeof(Buffer))


cdef void load_dialog(Source* source, Context* context, Connection* connection) noexcept nogil:
    cdef Dialog* dialog = <Dialog*>calloc(1, sizeof(Dialog))
    cdef int64_t num
    cdef int num_parked, i
    cdef bint with_hello, with_tls
    if dialog == NULL:
        source.failed = True
        return
    get(source, dialog, sizeof(Dialog))
    num = dialog.num
    num_parked = dialog.num_parked
    context.num_dialogs += 1
    dialog.connection = connection
    with_hello = dialog.hello != NULL
    with_tls = dialog.tls != NULL
    detach(dialog)
    memset(dialog.texts, 0, sizeof(dialog.texts))       # they tell places in another run's dictionaries
    connection.dialog = dialog
    for i in range(2):
        get_bytes(source, &dialog.framing[i].kept)
        context.kept_total += <int64_t>dialog.framing[i].kept.cap
    load_calls(source, context, dialog, num)
    load_parked(source, context, dialog, num_parked)
    get_bytes(source, &dialog.client_id)
    get_bytes(source, &dialog.software_name)
    get_bytes(source, &dialog.software_version)
    get_bytes(source, &dialog.sasl_mechanism)
    get_bytes(source, &dialog.principal)
    get_bytes(source, &dialog.early_messages)
    get_bytes(source, &dialog.session.parts)
    get_bytes(source, &dialog.session.topics)
    get_bytes(source, &dialog.session.text)
    if not source.failed and dialog.session.topics.len and not index_session(&dialog.session, context.topic_ids.seed):
        source.failed = True
    context.waiting_total += session_bytes(dialog)
    context.learned_total += learned_bytes(dialog)
    if with_hello and not source.failed:
        load_encrypted(source, context, dialog, with_tls)


cdef void load_encrypted(Source* source, Context* context, Dialog* dialog, bint with_tls) noexcept nogil:
    dialog.hello = load_hello(source)
    if dialog.hello != NULL:
        context.kept_total += hello_bytes(dialog.hello)
    if with_tls and not source.failed:
        dialog.tls = load_tls(source, dialog.hello)
        if dialog.tls != NULL:
            context.kept_total += tls_bytes(dialog.tls)


cdef void load_calls(Source* source, Context* context, Dialog* dialog, int64_t num) noexcept nogil:
    cdef int64_t i, num_slots = 4
    if num == 0 or source.failed:
        return
    if num < 0 or num > context.limits.outstanding_calls or not has(source.left, 0, <size_t>num * sizeof(Call)):
        source.failed = True
        return
    while num_slots < num:
        num_slots *= 2
    dialog.calls = <Call*>calloc(<size_t>num_slots, sizeof(Call))
    if dialog.calls == NULL:
        source.failed = True
        return
    dialog.num_slots = num_slots
    context.waiting_total += num_slots * <int64_t>sizeof(Call)
    for i in range(num):
        get(source, &dialog.calls[i], sizeof(Call))
        get_bytes(source, &dialog.calls[i].text)
        get_bytes(source, &dialog.calls[i].parts)
        context.waiting_total += <int64_t>(dialog.calls[i].text.cap + dialog.calls[i].parts.cap)
        dialog.num += 1


cdef void load_parked(Source* source, Context* context, Dialog* dialog, int num) noexcept nogil:
    cdef int i
    if num == 0 or source.failed:
        return
    if num < 0 or num > context.limits.parked_responses:
        source.failed = True
        return
    dialog.parked = <Parked*>calloc(<size_t>context.limits.parked_responses, sizeof(Parked))
    if dialog.parked == NULL:
        source.failed = True
        return
    context.waiting_total += parked_slots(context)
    for i in range(num):
        get(source, &dialog.parked[i], sizeof(Parked))
        get_bytes(source, &dialog.parked[i].bytes)
        context.waiting_total += <int64_t>dialog.parked[i].bytes.cap
        dialog.num_parked += 1


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
