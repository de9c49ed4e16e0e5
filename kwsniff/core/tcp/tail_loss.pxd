# cython: language_level=3
"""Answers that were lost on their way here with nothing behind them, by the numbers that IP gave them.

Rules
  1. Linux numbers the packets of each connection one after the other; that a SYN-ACK has no number is its mark.
  2. Who has acknowledged all that came, and has everything acknowledged, sends nothing more but payload. Where one to
     three numbers are missing between that acknowledgement and payload that comes a retransmission timeout later, the
     payload is sent again: it had left that much earlier.
  3. The timeout is a round trip and 200 ms more, twice as long each time (RFC 6298 5.5; TCP_RTO_MIN of Linux): no more
     is claimed.

    answers   | ack, n | . n + 1, lost . |------- timeout ------->| n + 2, the same again |

Source: RFC 6298, RFC 6864.
"""

from libc.stdint cimport int64_t, uint32_t

from kwsniff.core.capture.packets cimport NO_TIME, TCP_ACK, TCP_SYN, Segment
from kwsniff.core.tcp.control_block cimport Direction

cdef enum:
    MOST_UNSEEN = 3

cdef extern from *:
    """
    #define LEAST_TIMEOUT 200000000LL
    """
    const int64_t LEAST_TIMEOUT


cdef inline void note_number(Direction* own, Segment* segment) noexcept nogil:
    """How many numbers of its sender's packets are missing before this one, and for how long it was silent."""
    if segment.flags & TCP_SYN:
        own.seen.numbered = segment.flags & TCP_ACK != 0 and segment.ident == 0
        own.seen.unseen = 0
    else:
        own.seen.skipped = (segment.ident - own.seen.last_ident - 1) & 0xFFFF if own.seen.numbered else 0
        own.seen.unseen = own.seen.skipped if own.seen.bare else 0
    if own.seen.unseen:
        own.seen.silence = segment.time - own.seen.seen_time if segment.time != NO_TIME and own.seen.seen_time != NO_TIME else 0
    own.seen.seen_time = segment.time
    own.seen.bare = segment.length == 0 and segment.ident != 0


cdef inline int64_t left_earlier(Direction* own, Direction* other, Segment* segment) noexcept nogil:
    """By how much the segment's payload left earlier than what is seen of it, or 0."""
    cdef int64_t timeout = LEAST_TIMEOUT
    if (own.seen.unseen > MOST_UNSEEN or segment.length == 0 or not own.snd.known or segment.seq != own.snd.next_seq
            or not own.snd.acked_known or own.snd.acked != own.snd.next_seq or own.queue.first != NULL
            or not other.snd.known or not other.snd.acked_known or other.snd.acked != other.snd.next_seq or other.queue.first != NULL):
        return 0
    timeout += own.trips.smallest if own.trips.smallest > other.trips.smallest else other.trips.smallest
    timeout *= (1 << own.seen.unseen) - 1
    return timeout if timeout <= own.seen.silence else 0
