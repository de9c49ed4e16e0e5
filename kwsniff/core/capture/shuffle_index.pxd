# cython: language_level=3
# The records that a bucket reads of a part of a capture, one behind the other, and how they are fed.
# shuffle_index.pyx has the rules.

from libc.stdint cimport int64_t, uint32_t, uint64_t

from kwsniff.core.bytes.buffer cimport Buffer
from kwsniff.core.bytes.span cimport Span
from kwsniff.core.capture.shuffle_windows cimport Window
from kwsniff.core.capture.packets cimport Reader

# In front of records that lie side by side.
cdef struct RunHeader:
    uint32_t skip           # packets between the run before and this one
    uint32_t packets
    uint32_t num            # bytes; with NAMED: of the capture, at the offset (u64) that is here instead of them

cdef enum:
    NAMED = 0x80000000
    NAMED_BYTES = 8             # of the offset

# A bucket's current runs; packets count from the part's first one.
cdef struct Place:
    Buffer out
    size_t header_at        # of the current run, in `out`
    bint begun
    RunHeader run
    int64_t frames          # up to the end of the current run
    uint32_t epoch          # what all buckets read came in between: a run does not continue over it
    bint named              # the current run
    uint64_t end            # of its last record, in the capture
    uint64_t elsewhere      # bytes that are named

# After the runs that all buckets read: what the part's other packets showed.
cdef struct PartEnd:
    int64_t packets
    int64_t first
    int64_t last
    int64_t tcp             # time of the part's last segment,
    int64_t tcp_frame       # its number in the part; 0: there is none

# The progress of reading runs.
cdef struct Run:
    Span left             # the bytes of the current run where it has them, and what follows it
    uint64_t num            # bytes left of it
    bint named              # they are in the capture,
    uint64_t offset         # from here on
    int64_t frames_before
    int64_t frames
    bint begun
    bint ended
    bint broken             # not what a walk wrote

cdef struct Runs:
    Run own
    Run shared
    PartEnd end
    int64_t frames_before
    uint32_t num_buckets

cdef enum Fed:
    FED_SOME = 0            # more are left
    FED_ALL = 1
    FED_OTHER = 2           # this is not what was routed
    FED_ERROR = 3           # the capture cannot be read: the window says why
    FED_NO_MEMORY = 4

cdef bint take_record(Place* place, Span record, uint64_t end, int64_t frame, int64_t frames, uint32_t epoch,
                      uint32_t least_named) noexcept nogil
cdef void end_place(Place* place) noexcept nogil
cdef bint start_runs(Runs* runs, Span own, Span shared, int64_t frames_before,
                     uint32_t num_buckets) noexcept nogil
cdef int raise_unfed(int fed, Window* window) except -1
cdef int feed_some(Runs* runs, Reader* reader, Window* window, uint64_t most) noexcept nogil
