# cython: language_level=3
from libc.stdint cimport int64_t, uint32_t, uint64_t

from kwsniff.core.octets.buffer cimport Buffer
from kwsniff.core.octets.octets cimport Octets
from kwsniff.core.capture.packets cimport Reader

# A bucket's list under way; bytes and packets count as in Run.
cdef struct Place:
    Buffer out
    uint64_t written            # everything before it is in `out`
    int64_t frames_written
    uint64_t begin
    uint64_t end                # the run under way; empty: none yet
    int64_t frames_begin
    int64_t frames_end

# Where a list of runs stands: bytes count from the split's begin, packets from its first one.
cdef struct Run:
    Octets left             # what is not decoded yet
    uint64_t offset         # of the next byte to take,
    uint64_t num            # and how many of them
    int64_t frames_before
    int64_t frames
    bint begun
    bint ended
    bint broken             # not what a scan wrote

cdef struct Times:
    int64_t first
    int64_t last
    int64_t tcp             # of the split's last segment,
    int64_t tcp_frame       # its number in the split; 0: there is none

cdef struct Runs:
    Octets data             # from the split's begin to the end of the file
    Run own
    Run shared
    Times times
    int64_t frames_before
    uint32_t num_buckets

cdef enum Fed:
    FED_SOME = 0            # more are left
    FED_ALL = 1
    FED_OTHER = 2           # this is not the file that was scanned

cdef bint take_record(Place* place, uint64_t at, uint64_t num, int64_t frame, int64_t frames) noexcept nogil
cdef bint end_place(Place* place) noexcept nogil
cdef bint end_split(Place* place, uint64_t num, int64_t frames) noexcept nogil
cdef bint start_runs(Runs* runs, Octets data, Octets own, Octets shared, int64_t frames_before,
                     uint32_t num_buckets) noexcept nogil
cdef int feed_some(Runs* runs, Reader* reader, uint64_t most) noexcept nogil
