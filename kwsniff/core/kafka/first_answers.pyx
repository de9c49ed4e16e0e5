# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""The first bytes of the side that answers, while they do not show yet what they are.

Rules
  1. They are kept only while a TLS alert may become of them, which is seven bytes long.
  2. What is kept is fed on when more comes, and counted at the latest when the connection ends.

    | 15 | 03 | 0x | 00 02 | level | description |      or a response: | size u32 | correlation id ...
"""

from libc.stdint cimport int64_t, uint8_t

from kwsniff.core.kafka.dialog cimport Context
from kwsniff.core.kafka.frames cimport Framing
from kwsniff.core.kafka.preambles cimport keep_more, note_early
from kwsniff.core.octets.buffer cimport contents
from kwsniff.core.octets.octets cimport Octets, copy_out, keep, make_octets
from kwsniff.core.tcp.connections cimport Arrival
from kwsniff.core.tls.hello cimport may_be_alert


cdef bint wait_for_alert(Context* context, Framing* framing, Arrival* arrival, int64_t offset,
                         Octets data) noexcept nogil:
    """Keeps the first bytes of answers while a TLS alert may become of them."""
    cdef uint8_t[ANSWER_BYTES] room
    if not may_be_alert(join_kept(framing, data, room)):
        return False
    if framing.kept.len == 0:
        framing.first = arrival[0]
        framing.offset = offset
    if not keep_more(context, framing, data):
        return False
    note_early(framing, arrival.capture, <int64_t>data.num)
    return True


cdef Octets join_kept(Framing* framing, Octets data, uint8_t* room) noexcept nogil:
    """The first ANSWER_BYTES of what was kept and what comes now."""
    cdef Octets kept = keep(contents(&framing.kept), ANSWER_BYTES)
    if kept.num == 0:
        return data
    data = keep(data, ANSWER_BYTES - kept.num)
    copy_out(kept, 0, room, kept.num)
    if data.num:            # behind a gap there are none, and no address either
        copy_out(data, 0, &room[kept.num], data.num)
    return make_octets(room, kept.num + data.num)
