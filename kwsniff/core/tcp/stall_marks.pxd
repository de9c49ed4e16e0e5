# cython: language_level=3
# What a direction remembers so that the end of a stall shows its cause.
#
# Rule 1: a packet writes one number of it; the rest is written when something is acknowledged, or goes wrong.
# Rule 2: `windows` has one entry for each of RoundTrips.passed.
#
#     data ---- sent_frame ====== stall ====== until ---- data

from libc.stdint cimport int64_t, uint32_t

cdef struct StallMarks:
    int scale               # of the windows that this side advertises, one more than its SYN says; 0: not known
    uint32_t mss            # the most payload that this side takes in a segment, or 0
    int64_t sent_frame      # its latest segment with payload
    int64_t until           # when its latest stall ended
    int64_t closed_from     # the latest time that this side had no room, if that is over
    int64_t closed_until
    int64_t again_offset    # stream position of what it sent again,
    int again_num           # and how often in a row
    uint32_t window         # the latest of `windows`
    int64_t trip            # what the latest acknowledgement took that was timed
    uint32_t windows[32]    # as its receiver advertised them, unscaled


# A stretch in which a direction had something to send and nothing of it came.
cdef struct Stall:
    int cause
    int sender              # endpoint whose bytes did not come
    int64_t since
    int64_t until
    int64_t took            # of several in a row: together
    int64_t offset          # stream position of what ended it
    int64_t bytes           # in flight meanwhile, or -1
    int64_t first_frame
    int64_t last_frame
    int64_t capture
