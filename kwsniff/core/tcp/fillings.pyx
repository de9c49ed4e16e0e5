# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""Holes that another place of capture fills, as soon as they show.

Rules
  1. A hole is filled as soon as a packet shows that its bytes have passed: one behind it, or its acknowledgement. What
     was not missed does not look late, out of order or lost.
  2. When the bytes passed here is unknown: they have no time, and the frame of the packet that showed it.
  3. They count as bytes of the stream, and in a bin of their own.

    next_seq v
    ---------[ hole ][ segment ]        fill_held: before the segment is taken
    ---------[ hole ]  <- ack           fill_held: before the acknowledgement is taken
    ---------[ hole ][####]             fill_hole: before a gap is declared
"""

from libc.stdint cimport uint32_t

from kwsniff.core.tcp.control_block cimport Direction, block_of
from kwsniff.core.tcp.delivery cimport deliver_queued, fill_hole
from kwsniff.core.tcp.reorder_queue cimport is_reached
from kwsniff.core.tcp.resets cimport waits_behind_reset


cdef bint fill_held(Streams* streams, Connection* connection, int sender, Arrival* arrival, uint32_t to_seq) noexcept nogil:
    """What `fill_hole` does, and what is held behind that; whether there was any."""
    cdef Direction* own = &block_of(connection).direction[sender]
    if not own.snd.known or own.snd.beginning or waits_behind_reset(connection):
        return False
    if not fill_hole(streams, connection, sender, arrival, to_seq):
        return False
    if not connection.ended and is_reached(&own.queue, own.snd.next_seq):
        deliver_queued(streams, connection, sender, False)
    return True
