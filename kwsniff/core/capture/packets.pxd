# cython: language_level=3
# Capture files to TCP segments: pcap and pcapng. packets.pyx has the rules.

from libc.stdint cimport int64_t, uint32_t

from kwsniff.core.capture.reader cimport *
from kwsniff.core.bytes.span cimport Span

cdef void start_reader(Reader* reader, SegmentSink sink, void* context, size_t max_record,
                       uint32_t max_interfaces, uint32_t max_datagrams) noexcept nogil
cdef void bound_reader(Reader* reader, int64_t since, int64_t until) noexcept nogil
cdef void feed_reader(Reader* reader, Span data) noexcept nogil
cdef void free_reader(Reader* reader) noexcept nogil
cdef size_t read_unit(Reader* reader, Span data) noexcept nogil
cdef int64_t count_drops(Reader* reader) noexcept nogil
cdef uint32_t bucket_of(Segment* segment, uint32_t num_buckets) noexcept nogil
