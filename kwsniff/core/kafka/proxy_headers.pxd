# cython: language_level=3
# PROXY headers and other preambles of proxies and load balancers, skipped piece by piece. proxy_headers.pyx
# has the rules.

from libc.stdint cimport int64_t

from kwsniff.core.kafka.kafka_connection cimport Context, KafkaConnection
from kwsniff.core.kafka.frames cimport Framing
from kwsniff.core.bytes.span cimport Span
from kwsniff.core.tcp.arrivals cimport Arrival

cdef enum Carrier:
    CARRIER_NONE = 0
    CARRIER_SOCKS5 = 1
    CARRIER_CONNECT = 2

# What is next in a direction before what is carried.
cdef enum Phase:
    PHASE_START = 0         # a PROXY header, the beginning of a tunnel, or neither
    PHASE_SOCKS_ASKS = 1    # name and password, or the request
    PHASE_SOCKS_METHOD = 2  # the proxy's choice
    PHASE_SOCKS_STATUS = 3  # whether it takes the password
    PHASE_SOCKS_REPLY = 4
    PHASE_HTTP_ANSWER = 5
    PHASE_HTTP_AGAIN = 6    # another CONNECT, with what the proxy asked for
    PHASE_PASSED = 7        # all of it is over
    PHASE_BROKEN = 8        # it is not what it began as, or the proxy refused

cdef Span peel(Context* context, KafkaConnection* kafka, int direction, Arrival* arrival, int64_t* offset,
                 Span data) noexcept nogil
cdef bint keep_more(Context* context, Framing* framing, Span data) noexcept nogil
cdef void note_early(Framing* framing, int64_t capture, int64_t num) noexcept nogil
cdef void count_early(Context* context, Framing* framing, int bin) noexcept nogil
