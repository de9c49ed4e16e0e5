# cython: language_level=3
# TCP segments to ordered bytes and explicit gaps, per connection and direction. streams.pyx has the rules.

from libc.stdint cimport int64_t, uint64_t

from kwsniff.core.capture.packets cimport Segment
from kwsniff.core.limits cimport Limits
from kwsniff.core.tcp.stream_table cimport StreamSink, Streams

cdef bint start_streams(Streams* streams, StreamSink sink, Limits limits, uint64_t seed) noexcept nogil
cdef void take_segment(Streams* streams, Segment* segment) noexcept nogil
cdef void take_time(Streams* streams, int64_t time) noexcept nogil
cdef bint evict_one(Streams* streams) noexcept nogil
cdef void end_streams(Streams* streams) noexcept nogil
cdef void free_streams(Streams* streams) noexcept nogil
