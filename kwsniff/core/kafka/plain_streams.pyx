# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""Plain streams inside TLS, on their way back into the dialog whose records they were in.

Rules
  1. A connection is TLS until its first plaintext; from there on its dialog begins again, with what the handshake showed.
  2. Bytes count as not Kafka's when they come, encrypted; plaintext is taken off there, and counted as what it is.
  3. What is missing on the wire is reported when it is missed (exchanges.pyx), what could not be opened here.

    take_bytes -> feed -> feed_cipher -> [ core/tls ] -> take_plain -> feed -> frames
"""

from libc.stdint cimport int64_t
from libc.string cimport memset

from kwsniff.core.declared cimport ANOMALY_NOT_DECRYPTED, BIN_NOT_KAFKA, PROTOCOL_UNDECIDED, ROLE_CONTENT
from kwsniff.core.kafka.dialog cimport NO_PROTOCOL, Context, Dialog, count_bytes, side_of
from kwsniff.core.kafka.first_bytes cimport feed, settle_start, take_first_bytes
from kwsniff.core.kafka.frames cimport FRAMING_IGNORED, FRAMING_START, Framing, free_framing, skip_framing
from kwsniff.core.kafka.preambles cimport count_early
from kwsniff.core.kafka.row_sink cimport write_anomaly
from kwsniff.core.octets.octets cimport Octets
from kwsniff.core.tcp.connections cimport GAP_NOT_DECRYPTED, GAP_PASSED_OVER, Arrival, Connection, Streams
from kwsniff.core.tls.hello cimport end_hello, hello_bytes
from kwsniff.core.tls.opening cimport retry_sealed, take_cipher_gap
from kwsniff.core.tls.sealed cimport TlsSink, tls_bytes


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
    cdef Dialog* dialog = <Dialog*>connection.dialog
    cdef Framing* framing
    cdef int i
    if dialog.hello != NULL:
        context.kept_total -= hello_bytes(dialog.hello)
        end_hello(dialog.hello, 0)
        end_hello(dialog.hello, 1)
        context.kept_total += hello_bytes(dialog.hello)
    if dialog.client < 0 and dialog.hello != NULL and dialog.hello.client >= 0:
        dialog.client = dialog.hello.client
        dialog.role = ROLE_CONTENT
    for i in range(2):
        framing = &dialog.framing[i]
        count_early(context, framing, BIN_NOT_KAFKA)
        if framing.captured:
            count_bytes(context, framing.capture, BIN_NOT_KAFKA, framing.captured)
        free_framing(framing, &context.kept_total)
        memset(framing, 0, sizeof(Framing))
        framing.gap_cause = GAP_PASSED_OVER
        framing.state = FRAMING_START
        if dialog.client >= 0:
            framing.direction = 0 if i == dialog.client else 1
    dialog.protocol = PROTOCOL_UNDECIDED
    dialog.answered_in = NO_PROTOCOL
    dialog.decrypted = True


cdef void take_plain(void* opaque, Connection* connection, int direction, Arrival* arrival, int64_t offset,
                     Octets data) noexcept nogil:
    cdef Context* context = <Context*>opaque
    cdef Dialog* dialog = <Dialog*>connection.dialog
    context.frame_sink.dialog = dialog
    count_bytes(context, arrival.capture, BIN_NOT_KAFKA, -<int64_t>data.num)
    dialog.tls.inside = True
    if dialog.framing[direction].state == FRAMING_START:
        take_first_bytes(context, dialog, direction, arrival, offset, data)
    else:
        feed(context, dialog, direction, arrival, offset, data)
    dialog.tls.inside = False


cdef void take_plain_gap(void* opaque, Connection* connection, int direction, Arrival* arrival, int64_t offset,
                         int64_t num, int cause) noexcept nogil:
    cdef Context* context = <Context*>opaque
    cdef Dialog* dialog = <Dialog*>connection.dialog
    if dialog.framing[direction].state == FRAMING_IGNORED:
        return
    if cause == GAP_NOT_DECRYPTED and dialog.framing[direction].gaps == 0:
        write_anomaly(context, connection, -1, arrival, side_of(dialog, direction), offset, ANOMALY_NOT_DECRYPTED, num)
    context.frame_sink.dialog = dialog
    dialog.tls.inside = True
    if dialog.framing[direction].state == FRAMING_START:
        settle_start(context, dialog, direction)
    skip_framing(&dialog.framing[direction], &context.frame_sink, &context.limits, &context.kept_total, arrival,
                 offset, num, cause)
    dialog.tls.inside = False


cdef void gap_cipher(Context* context, Dialog* dialog, int direction, Arrival* arrival, int64_t offset, int64_t num,
                     int cause) noexcept nogil:
    """Encrypted bytes are missing."""
    context.kept_total -= tls_bytes(dialog.tls)
    take_cipher_gap(&context.opening, dialog.tls, dialog.connection, direction, arrival, offset, num, cause)
    context.kept_total += tls_bytes(dialog.tls)


cdef void retry_cipher(Context* context, Streams* streams) noexcept nogil:
    """Secrets have come: those of any connection."""
    cdef Connection* connection = streams.open.oldest
    cdef Dialog* dialog
    while connection != NULL:
        dialog = <Dialog*>connection.dialog
        if dialog != NULL and dialog.tls != NULL:
            context.kept_total -= tls_bytes(dialog.tls)
            retry_sealed(&context.opening, dialog.tls, connection)
            context.kept_total += tls_bytes(dialog.tls)
        connection = connection.newer
