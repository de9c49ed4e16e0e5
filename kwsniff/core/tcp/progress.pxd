# cython: language_level=3
"""How far a direction has come.

Rules
  1. A number means something only near the ones that are known: a window is 1 GiB at most.
  2. What is known of a direction is the furthest of what it showed, what it said and what was acknowledged.
  3. A keep-alive has the number before the next one, with a byte of garbage or none: all else of its sender is
     acknowledged. One byte that its receiver still asks for was sent again.

    acked    next_seq         held             sent
    -----------|-----[ hole ][####]-------------|
              ^ keep-alive

Source: RFC 1122 4.2.3.6, RFC 9293 3.8.4.
"""

from libc.stdint cimport int32_t, uint32_t

from kwsniff.core.capture.packets cimport TCP_FIN, TCP_RST, TCP_SYN, Segment
from kwsniff.core.tcp.control_block cimport Direction
from kwsniff.core.tcp.segments cimport WINDOW, distance


cdef inline uint32_t furthest(Direction* own) noexcept nogil:
    """The highest number that is known of this direction."""
    cdef uint32_t to_seq = own.snd.next_seq if own.snd.known else own.snd.acked
    cdef uint32_t i
    if own.queue.last != NULL and distance(own.queue.last.seq + own.queue.last.length, to_seq) > 0:
        to_seq = own.queue.last.seq + own.queue.last.length
    if own.snd.sent_known and distance(own.snd.sent, to_seq) > 0:
        to_seq = own.snd.sent
    if own.snd.acked_known and distance(own.snd.acked, to_seq) > 0:
        to_seq = own.snd.acked
    for i in range(own.sack.num):
        if distance(own.sack.ranges[i].end, to_seq) > 0:
            to_seq = own.sack.ranges[i].end
    return to_seq


cdef inline bint fits(Direction* own, uint32_t seq) noexcept nogil:
    """Whether a segment with this number can be this stream's at all."""
    return not own.snd.known or -WINDOW <= distance(seq, own.snd.next_seq) <= WINDOW


cdef inline bint is_keep_alive(Direction* own, Segment* segment) noexcept nogil:
    """Whether a segment with payload is one of garbage."""
    if segment.length != 1 or segment.flags & (TCP_SYN | TCP_FIN | TCP_RST):
        return False
    if not own.snd.known:
        return own.snd.acked_known and own.snd.acked == segment.seq + 1 or own.snd.sent_known and own.snd.sent == segment.seq + 1
    return (segment.seq + 1 == own.snd.next_seq and not own.snd.beginning
            and not (own.snd.acked_known and distance(own.snd.acked, segment.seq) <= 0))


cdef inline void note_sent(Direction* own, Segment* segment, uint32_t to_seq) noexcept nogil:
    """A segment without payload says how far its sender has come."""
    if fits(own, to_seq) and (not own.snd.sent_known or distance(to_seq, own.snd.sent) > 0):
        own.snd.sent = to_seq
        own.snd.sent_known = True
        own.check.sent_frame = segment.frame
        own.check.sent_time = segment.time
        own.check.sent_stamped = segment.stamped
        own.check.sent_stamp = segment.stamp
