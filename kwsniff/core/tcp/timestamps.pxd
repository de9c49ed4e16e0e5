# cython: language_level=3
"""How much longer than usual a segment was on its way, by the clock of its sender (RFC 7323, timestamps).

Rules
  1. A stamp is the sender's time in milliseconds, from a number of its own on. Where it goes slower or faster, or
     was not seen to go for a while, it shows nothing.
  2. The least time between stamp and capture, of the last two spells, is the usual way: two clocks drift apart.
     A stamp that is not believed is not a least time: one damaged segment would make all that follow late.
  3. A stamp is cut to whole milliseconds: up to one of them is rounding.

    sender   | stamp n        | stamp n + 40
    capture  |----- way ----->| .. late ..
"""

from libc.stdint cimport int32_t, int64_t, uint32_t

from kwsniff.core.capture.packets cimport NO_TIME, Segment

cdef struct SenderClock:
    bint stamped            # its segments have stamps
    uint32_t first_stamp
    int64_t first_stamp_time
    int64_t spell_since     # when the current spell began
    int64_t behind[2]       # least time from stamp to capture, of this spell and the one before; from that of the first

cdef extern from *:
    """
    #define STAMP_TICK 1000000LL
    #define STAMP_SPELL 10000000000LL
    #define STAMP_PROOF 250000000LL
    #define STAMP_MOST 100000000LL
    #define STAMP_SLACK 32
    """
    const int64_t STAMP_TICK
    const int64_t STAMP_SPELL       # a least way counts for this long, and then as long again as the one before
    const int64_t STAMP_PROOF       # a clock has to be seen for this long: one of half the speed is off by more than
    const int64_t STAMP_MOST        # what is believed of a way, and
    const int64_t STAMP_SLACK       # this part of the time that it was seen


cdef inline int64_t take_stamp(SenderClock* clock, Segment* segment) noexcept nogil:
    """How much later than usual the segment came, or 0."""
    cdef int64_t behind, since, told
    if not segment.stamped or segment.time == NO_TIME:
        return 0
    if not clock.stamped:
        clock.stamped = True
        clock.first_stamp = segment.stamp
        clock.first_stamp_time = segment.time
        clock.spell_since = segment.time
        clock.behind[0] = 0
        clock.behind[1] = 0
    since = segment.time - clock.first_stamp_time
    told = <int64_t><int32_t>(segment.stamp - clock.first_stamp) * STAMP_TICK
    behind = since - told
    if not -since // STAMP_SLACK - STAMP_TICK < behind < since // STAMP_SLACK + STAMP_MOST:
        return 0
    if segment.time - clock.spell_since > STAMP_SPELL:
        clock.behind[1] = clock.behind[0]
        clock.behind[0] = behind
        clock.spell_since = segment.time
    elif behind < clock.behind[0]:
        clock.behind[0] = behind
    if since < STAMP_PROOF:
        return 0
    behind -= clock.behind[0] if clock.behind[0] < clock.behind[1] else clock.behind[1]
    return behind - STAMP_TICK // 2 if behind > STAMP_TICK else 0
