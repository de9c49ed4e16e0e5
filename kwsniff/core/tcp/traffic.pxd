# cython: language_level=3
# What one direction carried, and how: the counters that become columns of `connections`.
#
# Rule 1: nothing decides by these but `retransmissions`, which an arrival takes along.
#
#     bytes | retransmitted | missing [ not captured | lost ]

from libc.stdint cimport int64_t, uint32_t

cdef struct Traffic:
    int64_t packets
    int64_t bytes           # distinct payload bytes delivered
    int64_t retransmissions # segments that only repeat
    int64_t closed_since    # when its receive window became zero, or NO_TIME
    int64_t zero_window     # nanoseconds that it was zero, the current spell not included
    uint32_t largest        # payload of the largest segment whose receipt is proven,
    uint32_t largest_sent   # and of those since all of them were acknowledged
    int64_t retransmitted
    int64_t out_of_order
    int64_t missing
    int64_t lost            # of what is missing: its receiver acknowledged that it never came
    int64_t lost_before     # of what was sent again: its first copy never came here
