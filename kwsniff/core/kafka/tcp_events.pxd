# cython: language_level=3
from kwsniff.core.kafka.dialog cimport Call, Context, Dialog
from kwsniff.core.kafka.frames cimport Frame
from kwsniff.core.tcp.connections cimport Connection, TcpEvent

cdef void take_event(void* opaque, Connection* connection, TcpEvent* event) noexcept nogil
cdef void settle_events(Context* context, Dialog* dialog, Call* call, Frame* response) noexcept nogil
cdef void end_events(Context* context, Connection* connection, Dialog* dialog) noexcept nogil
