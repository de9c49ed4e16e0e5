# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""Where a capture was taken.

Rules
  1. One side has to be four times as near as the other.
"""

from libc.stdint cimport int64_t

from kwsniff.core.columns.verdicts cimport VANTAGE_BETWEEN, VANTAGE_BROKER, VANTAGE_CLIENT, VANTAGE_UNKNOWN

cdef extern from *:
    """
    #define SAME_MACHINE 100000LL
    """
    const int64_t SAME_MACHINE      # round trips below tell nothing of where the capture was taken


cdef int tell_vantage(int64_t client, int64_t broker) noexcept nogil:
    """Where the capture looks to have been taken, from the round trips to either side (-1: not known)."""
    if client < 0 or broker < 0 or (client < SAME_MACHINE and broker < SAME_MACHINE):
        return VANTAGE_UNKNOWN
    if client < broker // 4:
        return VANTAGE_CLIENT
    return VANTAGE_BROKER if broker < client // 4 else VANTAGE_BETWEEN
