# cython: language_level=3
# The statistics of a capture, as facts for Python. capture_stats.pyx has the rules.

from libc.stdint cimport int64_t

from kwsniff.core.capture.reader cimport Reader

cdef dict tell_contents(int64_t* tunnels, int64_t* unread)
cdef dict tell_fragments(Reader* reader)
cdef dict tell_packets(Reader* reader)
cdef dict tell_times(Reader* reader)
