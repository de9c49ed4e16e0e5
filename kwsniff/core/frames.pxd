# cython: language_level=3
from libc.stdint cimport int32_t, int64_t, uint8_t

from kwsniff.core.buffer cimport Buffer
from kwsniff.core.limits cimport Limits
from kwsniff.core.octets cimport Octets
from kwsniff.core.streams cimport Arrival

cdef enum FramingState:
    FRAMING_START = 0       # nothing seen yet: bytes are collected until they show what they are
    FRAMING_IN_STEP = 1     # frame follows frame
    FRAMING_LOST = 2        # looking for the start of a frame
    FRAMING_IGNORED = 3     # not ours

cdef enum Look:
    LOOK_NO = 0
    LOOK_MORE = 1           # too few bytes to tell
    LOOK_YES = 2

cdef struct Frame:
    Octets bytes            # from the size prefix on: all of it, or what is whole up to the first missing byte
    int64_t length          # size prefix included
    int64_t offset          # stream position of its first byte
    Arrival first           # packet of its first byte
    Arrival last            # packet of its last byte
    bint torn
    int cause               # GapCause of the first missing byte, or -1 when a limit kept it from being kept
    bint found              # the first frame after a search

cdef struct Framing:
    int state
    int direction           # 0 client to broker, 1 broker to client
    Buffer kept             # bytes of the frame under way
    int64_t have            # bytes of the frame that went by, missing ones included
    int64_t need            # its length with prefix, 0 while the prefix is not whole
    bint torn
    int cause
    bint found
    Arrival first
    int64_t offset          # stream position of the frame's first byte
    int64_t searched
    int64_t gaps            # times that bytes of this direction were missing

cdef struct FrameSink:
    void* context
    void* dialog
    # Whether a frame could begin here. `data` may go on beyond it; `first`: a segment begins here too.
    int (*look)(void* context, void* dialog, int direction, Octets data, bint first) noexcept nogil
    # A whole or torn frame. False: this was no frame, the stream is out of step.
    bint (*frame)(void* context, void* dialog, int direction, Frame* frame) noexcept nogil
    # The stream is out of step (value: bytes skipped so far, or the impossible length), or in step again.
    void (*out_of_step)(void* context, void* dialog, int direction, Arrival* arrival, int64_t offset, bint lost, int64_t value) noexcept nogil

cdef void feed_framing(Framing* framing, FrameSink* sink, Limits* limits, int64_t* kept_total,
                       Arrival* arrival, int64_t offset, Octets data) noexcept nogil
cdef void skip_framing(Framing* framing, FrameSink* sink, Limits* limits, int64_t* kept_total,
                       Arrival* arrival, int64_t offset, int64_t num, int cause) noexcept nogil
cdef void free_framing(Framing* framing, int64_t* kept_total) noexcept nogil
cdef void lose_step(Framing* framing, int64_t* kept_total) noexcept nogil
