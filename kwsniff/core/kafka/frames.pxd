# cython: language_level=3
# Ordered bytes and gaps of one direction to length-prefixed frames. frames.pyx has the rules.

from libc.stdint cimport int32_t, int64_t, uint8_t

from kwsniff.core.bytes.buffer cimport Buffer
from kwsniff.core.limits cimport Limits
from kwsniff.core.bytes.span cimport Span
from kwsniff.core.tcp.arrivals cimport Arrival

cdef enum FramingState:
    FRAMING_START = 0       # nothing seen yet: bytes are collected until they show what they are
    FRAMING_IN_STEP = 1     # frame follows frame
    FRAMING_LOST = 2        # looking for the start of a frame
    FRAMING_IGNORED = 3     # not ours

cdef enum Look:
    LOOK_NO = 0
    LOOK_MORE = 1           # too few bytes to tell
    LOOK_YES = 2
    LOOK_ODD = 3            # a request, if its body is one: its client's name has control characters

cdef struct Frame:
    Span bytes            # from the size prefix on: all of it, or what is whole up to the first missing byte
    int64_t length          # size prefix included
    int64_t offset          # stream position of its first byte
    Arrival first           # packet of its first byte
    Arrival last            # packet of its last byte
    bint ended              # the packet of its last byte is known
    bint torn
    int cause               # GapCause of the first missing byte, or -1 when a limit kept it from being kept
    int found               # Found: the first frame after a search must prove itself
    int64_t captured        # payload bytes that the latest capture gave it
    int64_t capture

cdef enum Found:
    FOUND_IN_STEP = 0       # where the frame before ended
    FOUND_INSIDE = 1        # somewhere in a segment
    FOUND_AT_SEGMENT = 2    # where a segment begins

cdef enum:
    EARLY = 4               # captures by which the first bytes of a direction are distinguished
    CHAIN_LENGTH = 3        # headers in a row that make a chain of responses believable

# A response seen while searching, of which only the header was read.
cdef struct Link:
    int64_t offset
    int64_t length
    int32_t correlation_id
    Arrival first
    Arrival last
    bint ended

cdef struct Framing:
    int state
    int direction           # 0 client to broker, 1 broker to client
    Buffer kept             # bytes of the current frame
    int64_t have            # bytes of the frame that went by, missing ones included
    int64_t need            # its length with prefix, 0 while the prefix is not whole
    bint torn
    int cause
    int found
    Arrival first
    int64_t offset          # stream position of the frame's first byte
    int64_t captured        # bytes of the current frame that the latest capture gave
    int64_t capture
    int64_t searched
    int64_t gaps            # times that bytes of this direction were missing
    int gap_cause           # of the latest of them
    int64_t hole_end        # stream position behind all that was missing or passed over unread,
    int64_t lost_end        # and behind what of it was never acknowledged
    int num_early           # before it is known what the direction carries: the captures that its bytes came from,
    int64_t early[4]        # and how many each of them gave
    int64_t early_capture[4]
    uint8_t tail[8]         # out of step: segments too short to tell what they begin
    size_t tail_num         # the first of them, of the capture before, are `early`
    int64_t tail_offset
    Arrival tail_first
    Link chain[3]
    int chain_num
    int64_t chain_next      # stream position where the chain's next header must be, or that of its last one

cdef struct FrameSink:
    void* context
    void* kafka
    # Whether a frame could begin here. `data` may continue beyond it; `first`: a segment begins here too.
    int (*look)(void* context, void* kafka, int direction, Span data, bint first) noexcept nogil
    # A whole or torn frame. False: this was no frame, the stream is out of step.
    bint (*frame)(void* context, void* kafka, int direction, Frame* frame) noexcept nogil
    # Responses that were passed while searching and are believed in now, because the next ones followed in step.
    void (*chained)(void* context, void* kafka, Link* chain, int num) noexcept nogil
    # Whether a chain of headers alone may be believed in here.
    bint (*may_chain)(void* context, void* kafka) noexcept nogil
    # Payload bytes that ended up in no frame; continued: the next capture has the rest of their frame.
    void (*passed)(void* context, void* kafka, int64_t capture, int64_t num, bint continued) noexcept nogil
    # The stream is out of step (value: bytes skipped so far, or the impossible length), or in step again.
    void (*out_of_step)(void* context, void* kafka, int direction, Arrival* arrival, int64_t offset, bint lost, int64_t value) noexcept nogil

cdef void feed_framing(Framing* framing, FrameSink* sink, Limits* limits, int64_t* kept_total,
                       Arrival* arrival, int64_t offset, Span data) noexcept nogil
cdef void skip_framing(Framing* framing, FrameSink* sink, Limits* limits, int64_t* kept_total,
                       Arrival* arrival, int64_t offset, int64_t num, int cause) noexcept nogil
cdef void follow_chain(Framing* framing, Limits* limits, Arrival* arrival, int64_t offset, Span data) noexcept nogil
cdef void cut_off_framing(Framing* framing, FrameSink* sink, int64_t* kept_total, Arrival* arrival) noexcept nogil
cdef void free_framing(Framing* framing, int64_t* kept_total) noexcept nogil
cdef void lose_step(Framing* framing, int64_t* kept_total) noexcept nogil
