# cython: language_level=3
from libc.stdint cimport int64_t

from kwsniff.core.kafka.dialog cimport Context, Dialog
from kwsniff.core.tcp.connections cimport Connection, TcpEvent

cdef void write_connection(Context* context, Connection* connection, Dialog* dialog) noexcept nogil
cdef void write_event(Context* context, Connection* connection, Dialog* dialog, TcpEvent* event,
                      int64_t call_id) noexcept nogil
