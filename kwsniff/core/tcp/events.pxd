# cython: language_level=3
# What TCP had to do twice, or could not do.

from libc.stdint cimport int64_t

cdef struct TcpEvent:
    int kind
    int sender
    int stream          # endpoint whose bytes it is about,
    int64_t offset      # and where in its stream; -1: nowhere
    int64_t bytes       # -1: no number
    int64_t count
    int64_t time
    int64_t frame
    int64_t capture
    bint lost_before    # of what was sent again: no earlier copy came here

cdef enum:
    EVENTS = 16         # that wait until it is known whose they are
