# cython: language_level=3
from libc.stdint cimport int64_t

from kwsniff.core.kafka.dialog cimport Context, Dialog
from kwsniff.core.kafka.frames cimport FRAMING_LOST, feed_framing
from kwsniff.core.octets.octets cimport Octets
from kwsniff.core.tcp.connections cimport Arrival, Connection
from kwsniff.core.tls.hello cimport HELLO_COMES
from kwsniff.core.tls.records cimport count_records

cdef Dialog* open_dialog(Context* context, Connection* connection) noexcept nogil
cdef void take_first_bytes(Context* context, Dialog* dialog, int direction, Arrival* arrival, int64_t offset,
                           Octets data) noexcept nogil
cdef void settle_start(Context* context, Dialog* dialog, int direction) noexcept nogil
cdef void settle_rest(Context* context, Dialog* dialog) noexcept nogil
cdef void look_midway(Context* context, Dialog* dialog, int direction, Arrival* arrival, int64_t offset,
                      Octets data) noexcept nogil
cdef void follow_hello(Context* context, Dialog* dialog, int direction, Octets data) noexcept nogil
cdef void feed_cipher(Context* context, Dialog* dialog, int direction, Arrival* arrival, int64_t offset,
                      Octets data) noexcept nogil
cdef void cut_hello(Context* context, Dialog* dialog, int direction) noexcept nogil
cdef int carried_in(Dialog* dialog) noexcept nogil
cdef void turn_away(Context* context, Dialog* dialog, int protocol) noexcept nogil

cdef inline void feed(Context* context, Dialog* dialog, int direction, Arrival* arrival, int64_t offset,
                      Octets data) noexcept nogil:
    if dialog.hello != NULL and not (dialog.tls != NULL and dialog.tls.inside):
        count_records(&dialog.hello.side[direction].records, &dialog.hello.side[1 - direction].records.steps, data)
        if dialog.hello.side[direction].state == HELLO_COMES:
            follow_hello(context, dialog, direction, data)
    if dialog.tls != NULL and not dialog.tls.inside:
        feed_cipher(context, dialog, direction, arrival, offset, data)
        return
    if dialog.client < 0 and dialog.framing[direction].state == FRAMING_LOST:
        look_midway(context, dialog, direction, arrival, offset, data)
        return
    feed_framing(&dialog.framing[direction], &context.frame_sink, &context.limits, &context.kept_total, arrival,
                 offset, data)
