# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""Plain streams inside TLS, on their way back into the connection whose records they were in.

Rules
  1. A connection is TLS until its first plaintext; from there on its connection begins again, with what the handshake showed.
  2. Bytes count as not Kafka's when they come, encrypted; plaintext is taken off there, and counted as what it is.
  3. What is missing on the wire is reported when it is missed (dispatch.pyx), what could not be opened here.

    take_bytes -> feed -> feed_cipher -> [ core/tls ] -> take_plain -> feed -> frames
"""

from libc.stdint cimport int64_t
from libc.string cimport memset

from kwsniff.core.declared cimport ANOMALY_NOT_DECRYPTED, BIN_NOT_KAFKA, PROTOCOL_UNDECIDED, ROLE_SOURCE_CONTENT
from kwsniff.core.kafka.kafka_connection cimport NO_PROTOCOL, Context, KafkaConnection, count_bytes, side_of
from kwsniff.core.kafka.protocol_detection cimport feed, settle_start, take_first_bytes
from kwsniff.core.kafka.frames cimport FRAMING_IGNORED, FRAMING_START, Framing, free_framing, skip_framing
from kwsniff.core.kafka.proxy_headers cimport count_early
from kwsniff.core.kafka.row_sink cimport write_anomaly
from kwsniff.core.bytes.span cimport Span
from kwsniff.core.tcp.arrivals cimport GAP_NOT_DECRYPTED, GAP_PASSED_OVER, Arrival
from kwsniff.core.tcp.connection cimport Connection
from kwsniff.core.tcp.stream_table cimport Streams
from kwsniff.core.tls.hello cimport end_hello, hello_bytes
from kwsniff.core.tls.decryption cimport retry_sealed, take_cipher_gap
from kwsniff.core.tls.tls_state cimport TlsSink, tls_bytes


cdef TlsSink plain_sink(Context* context) noexcept nogil:
    cdef TlsSink sink
    sink.context = context
    sink.begin = begin_plain
    sink.bytes = take_plain
    sink.gap = take_plain_gap
    return sink


cdef void begin_plain(void* opaque, Connection* connection) noexcept nogil:
    """What the connection is has to be found out again: nothing of it was read as Kafka's so far."""
    cdef Context* context = <Context*>opaque
    cdef KafkaConnection* kafka = <KafkaConnection*>connection.kafka
    cdef Framing* framing
    cdef int i
    if kafka.hello != NULL:
        context.kept_total -= hello_bytes(kafka.hello)
        end_hello(kafka.hello, 0)
        end_hello(kafka.hello, 1)
        context.kept_total += hello_bytes(kafka.hello)
    if kafka.client < 0 and kafka.hello != NULL and kafka.hello.client >= 0:
        kafka.client = kafka.hello.client
        kafka.role = ROLE_SOURCE_CONTENT
    for i in range(2):
        framing = &kafka.framing[i]
        count_early(context, framing, BIN_NOT_KAFKA)
        if framing.captured:
            count_bytes(context, framing.capture, BIN_NOT_KAFKA, framing.captured)
        free_framing(framing, &context.kept_total)
        memset(framing, 0, sizeof(Framing))
        framing.gap_cause = GAP_PASSED_OVER
        framing.state = FRAMING_START
        if kafka.client >= 0:
            framing.direction = 0 if i == kafka.client else 1
    kafka.protocol = PROTOCOL_UNDECIDED
    kafka.answered_in = NO_PROTOCOL
    kafka.decrypted = True


cdef void take_plain(void* opaque, Connection* connection, int direction, Arrival* arrival, int64_t offset,
                     Span data) noexcept nogil:
    cdef Context* context = <Context*>opaque
    cdef KafkaConnection* kafka = <KafkaConnection*>connection.kafka
    context.frame_sink.kafka = kafka
    count_bytes(context, arrival.capture, BIN_NOT_KAFKA, -<int64_t>data.num)
    kafka.tls.inside = True
    if kafka.framing[direction].state == FRAMING_START:
        take_first_bytes(context, kafka, direction, arrival, offset, data)
    else:
        feed(context, kafka, direction, arrival, offset, data)
    kafka.tls.inside = False


cdef void take_plain_gap(void* opaque, Connection* connection, int direction, Arrival* arrival, int64_t offset,
                         int64_t num, int cause) noexcept nogil:
    cdef Context* context = <Context*>opaque
    cdef KafkaConnection* kafka = <KafkaConnection*>connection.kafka
    if kafka.framing[direction].state == FRAMING_IGNORED:
        return
    if cause == GAP_NOT_DECRYPTED and kafka.framing[direction].gaps == 0:
        write_anomaly(context, connection, -1, arrival, side_of(kafka, direction), offset, ANOMALY_NOT_DECRYPTED, num)
    context.frame_sink.kafka = kafka
    kafka.tls.inside = True
    if kafka.framing[direction].state == FRAMING_START:
        settle_start(context, kafka, direction)
    skip_framing(&kafka.framing[direction], &context.frame_sink, &context.limits, &context.kept_total, arrival,
                 offset, num, cause)
    kafka.tls.inside = False


cdef void gap_cipher(Context* context, KafkaConnection* kafka, int direction, Arrival* arrival, int64_t offset, int64_t num,
                     int cause) noexcept nogil:
    """Encrypted bytes are missing."""
    context.kept_total -= tls_bytes(kafka.tls)
    take_cipher_gap(&context.opening, kafka.tls, kafka.connection, direction, arrival, offset, num, cause)
    context.kept_total += tls_bytes(kafka.tls)


cdef void retry_cipher(Context* context, Streams* streams) noexcept nogil:
    """Secrets have come: those of any connection."""
    cdef Connection* connection = streams.open.oldest
    cdef KafkaConnection* kafka
    while connection != NULL:
        kafka = <KafkaConnection*>connection.kafka
        if kafka != NULL and kafka.tls != NULL:
            context.kept_total -= tls_bytes(kafka.tls)
            retry_sealed(&context.opening, kafka.tls, connection)
            context.kept_total += tls_bytes(kafka.tls)
        connection = connection.newer
