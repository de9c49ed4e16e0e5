# cython: language_level=3
# Requests in flight, for a live capture. in_flight.pyx has the rules.

from libc.stdint cimport int64_t

from kwsniff.core.kafka.kafka_connection cimport Context
from kwsniff.core.tcp.connection cimport Connection

cdef tuple count_waits(Connection* oldest)
cdef list list_waits(Context* context, Connection* oldest, int64_t before, frozenset always, int64_t most)
