# cython: language_level=3
# What a stream hands on: bytes with the packet that brought them, and gaps with their cause.
#
# Rule 1: a frame and a call keep arrivals by value: a field costs memory in each call that waits.
#
#     Arrival   [ payload, time, frame ][ how far both streams had come by then ]

from libc.stdint cimport int64_t

cdef struct Arrival:
    int64_t time        # of the packet that brought the bytes
    int64_t frame
    int64_t acked       # how far into the other direction's stream its sender had received by then, or -1
    int64_t capture     # number of the capture that has it
    int64_t repeated_before     # segments that either side had repeated before it came,
    int64_t retransmissions     # and when everything before it in its stream was there, itself included
    int64_t zero_window         # nanoseconds that either side had advertised no room by then
    int64_t ready       # when everything before it in its stream was there, too
    int64_t mended      # nanoseconds that its stream had waited for lost segments by then,
    int64_t mended_back # and that the other direction's had
    int64_t late        # nanoseconds that it was longer on its way than usual, as far as stamps and numbers tell; or 0
    int64_t end         # position in its stream behind the packet's payload, where bytes are handed on

cdef enum GapCause:
    GAP_NOT_CAPTURED = 0    # the receiver acknowledged it, so it was on the wire
    GAP_LOST = 1            # nothing says that it ever arrived
    GAP_CUT = 2             # the capture kept only the start of the packet
    GAP_NOT_DECRYPTED = 3   # what the packet brought is there, but not what it means (set by dispatch.pyx)
    GAP_PASSED_OVER = 4     # no byte is missing: they were passed over in search of a frame (set by frames.pyx)
    GAP_CUT_OFF = 5         # its receiver closed the connection before it was sent (set by dispatch.pyx)
