# cython: language_level=3
# What the broker did for the calls before, as far as those in line behind them may have waited for it.
#
# Rule: `front` is ordered, the longest first, which is also the earliest: none later took as long.

from libc.stdint cimport int64_t

from kwsniff.core.kafka.dialog cimport MAX_FRONT, Dialog, Served


cdef inline void note_served(Dialog* dialog, int64_t id, int64_t begun, int64_t ended, int wait) noexcept nogil:
    """Calls behind this one may have waited for it. Whatever was served before it and no longer is outdone: to
    those that come later it leaves no more to wait for."""
    cdef Served* served
    while dialog.num_front and (
            dialog.front[dialog.num_front - 1].ended - dialog.front[dialog.num_front - 1].begun <= ended - begun):
        dialog.num_front -= 1
    if dialog.num_front == MAX_FRONT:
        dialog.num_front -= 1
    served = &dialog.front[dialog.num_front]
    dialog.num_front += 1
    dialog.served_id = id
    served.id = id
    served.begun = begun
    served.ended = ended
    served.wait = wait
