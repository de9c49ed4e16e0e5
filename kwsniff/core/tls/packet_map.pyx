# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""Which packet brought which byte of the plaintext, and how far the plain stream had come at a position of the encrypted one.

Rules
  1. Every byte comes with time and frame of the packet that its encrypted byte was in, the last byte of a record with
     its last packet: before that, the record was unreadable.
  2. An acknowledgement of encrypted bytes means the plaintext of the records that were whole there.
  3. What is remembered is bounded: of too many packets under one record the last ones count as one, of too many turns
     the oldest go.

    packets    [  1  ][  2  ][  3  ]
    records  [ a ][ b         ][ c ...
               5 bytes of header, then (about) the plaintext, then tag and padding

Source: RFC 8446 5.2, 5246 6.2.3.
"""

from libc.stdint cimport int64_t, uint32_t
from libc.string cimport memmove, memset

from kwsniff.core.bytes.buffer cimport Buffer, append, append_raw, contents, shrink
from kwsniff.core.bytes.span cimport Span, drop, keep
from kwsniff.core.tcp.arrivals cimport Arrival
from kwsniff.core.tcp.connection cimport Connection
from kwsniff.core.tls.record_layer cimport RECORD_DATA, RECORD_HEADER
from kwsniff.core.tls.tls_state cimport Carrier, Opened, Opening, Tls, TlsSide, Turn

cdef enum:
    MOST_CARRIERS = 512         # packets that are distinguished in what is kept
    MOST_TURNS = 4096           # runs of records that the receiver has not acknowledged
    SPARE_KEPT = 4096           # of an empty buffer that stays


cdef inline Carrier* carriers_of(TlsSide* side) noexcept nogil:
    return <Carrier*>side.carriers.data


cdef inline size_t num_carriers(TlsSide* side) noexcept nogil:
    return side.carriers.len // sizeof(Carrier)


cdef bint keep_bytes(TlsSide* side, Arrival* arrival, Span data) noexcept nogil:
    """Behind what is kept; False when memory is refused."""
    cdef Carrier carrier
    cdef size_t num = num_carriers(side)
    if not append(&side.kept, data):
        return False
    if num >= MOST_CARRIERS:
        carriers_of(side)[num - 1].end = <uint32_t>side.kept.len
        carriers_of(side)[num - 1].arrival = arrival[0]
        return True
    carrier.end = <uint32_t>side.kept.len
    carrier.arrival = arrival[0]
    return append_raw(&side.carriers, &carrier, sizeof(Carrier))


cdef void forget_bytes(TlsSide* side, size_t num) noexcept nogil:
    """The first `num` bytes that are kept are done with."""
    cdef Carrier* carriers = carriers_of(side)
    cdef size_t i, passed = 0, left = num_carriers(side)
    cdef Span rest
    if num == 0:
        return
    side.place += <int64_t>num
    if num >= side.kept.len:
        shrink(&side.kept, SPARE_KEPT)
        side.carriers.len = 0
        return
    rest = drop(contents(&side.kept), num)
    memmove(side.kept.data, rest.at, rest.num)
    side.kept.len = rest.num
    while passed < left and carriers[passed].end <= num:
        passed += 1
    for i in range(passed, left):
        carriers[i - passed] = carriers[i]
        carriers[i - passed].end -= <uint32_t>num
    side.carriers.len -= passed * sizeof(Carrier)


cdef Carrier first_carrier(TlsSide* side) noexcept nogil:
    return carriers_of(side)[0]


cdef Arrival arrival_at(TlsSide* side, uint32_t at) noexcept nogil:
    """Of the packet that brought this byte of what is kept."""
    cdef size_t i = 0
    while i + 1 < num_carriers(side) and carriers_of(side)[i].end <= at:
        i += 1
    return carriers_of(side)[i].arrival


# -- positions --------------------------------------------------------------------------------------------------

cdef void note_turn(TlsSide* side) noexcept nogil:
    """The position of the plain stream when the encrypted one has come to what is kept."""
    cdef Turn turn
    cdef Buffer* turns = &side.turns
    cdef size_t num = turns.len // sizeof(Turn), half
    if num and (<Turn*>turns.data)[num - 1].plain == side.plain:
        return
    if num >= MOST_TURNS:
        half = num // 2 * sizeof(Turn)
        memmove(turns.data, &(<Turn*>turns.data)[num // 2], turns.len - half)
        turns.len -= half
    turn.cipher = side.place
    turn.plain = side.plain
    append_raw(turns, &turn, sizeof(Turn))


cdef int64_t plain_at(TlsSide* side, int64_t cipher) noexcept nogil:
    """How far the plain stream had come at this position of the encrypted one; beyond what came, how far it may be then."""
    cdef Turn* turns = <Turn*>side.turns.data
    cdef size_t low = 0, high = side.turns.len // sizeof(Turn), middle
    if high == 0:
        return cipher
    if turns[high - 1].cipher <= cipher:
        return turns[high - 1].plain + cipher - turns[high - 1].cipher
    while low < high:
        middle = (low + high) // 2
        if turns[middle].cipher <= cipher:
            low = middle + 1
        else:
            high = middle
    return turns[low - 1].plain if low else 0


# -- handing on -------------------------------------------------------------------------------------------------

cdef inline Arrival plain_arrival(Tls* tls, int direction, Arrival* arrival) noexcept nogil:
    cdef Arrival plain = arrival[0]
    if plain.acked >= 0:
        plain.acked = plain_at(&tls.side[1 - direction], plain.acked)
    return plain


cdef void hand_on(Opening* opening, Tls* tls, Connection* connection, int direction, Arrival* arrival,
                  Span data) noexcept nogil:
    """The next bytes of the plain stream."""
    cdef TlsSide* side = &tls.side[direction]
    cdef Arrival plain
    cdef int cause
    if data.num == 0:
        return
    if not tls.begun:
        tls.begun = True
        opening.sink.begin(opening.sink.context, connection)
    if side.owed:
        cause = side.owed - 1
        side.owed = 0
        hand_gap(opening, tls, connection, direction, arrival, -1, cause)
    plain = plain_arrival(tls, direction, arrival)
    opening.sink.bytes(opening.sink.context, connection, direction, &plain, side.plain, data)
    side.plain += <int64_t>data.num


cdef void hand_gap(Opening* opening, Tls* tls, Connection* connection, int direction, Arrival* arrival, int64_t num,
                   int cause) noexcept nogil:
    """Bytes of the plain stream are missing: `num` of them, or an unknown number."""
    cdef TlsSide* side = &tls.side[direction]
    cdef Arrival plain
    if num == 0:
        return
    if not tls.begun or side.owed:
        side.owed = cause + 1
        return
    plain = plain_arrival(tls, direction, arrival)
    opening.sink.gap(opening.sink.context, connection, direction, &plain, side.plain, num, cause)
    if num > 0:
        side.plain += num


cdef struct Share:
    Span rest
    size_t carrier
    size_t num              # bytes of `rest` that are this carrier's


cdef void hand_on_opened(Opening* opening, Tls* tls, Connection* connection, int direction, Arrival* arrival,
                         uint32_t at) noexcept nogil:
    """The data of the records that were opened last: all of one packet, or (NULL) of what is kept from `at` on."""
    cdef Opened* opened = <Opened*>opening.opened.data
    cdef size_t i, num = opening.opened.len // sizeof(Opened)
    cdef Span data = contents(&opening.plain)
    cdef Share share
    if num and opened[num - 1].kind != RECORD_DATA:
        data = keep(data, data.num - opened[num - 1].plain)
        num -= 1
    if arrival != NULL:
        hand_on(opening, tls, connection, direction, arrival, data)
        return
    memset(&share, 0, sizeof(Share))
    share.rest = data
    for i in range(num):
        if opened[i].plain:
            give(opening, tls, connection, direction, &share, at + RECORD_HEADER, opened[i].plain - 1)
            give(opening, tls, connection, direction, &share, at + opened[i].length - 1, 1)
        at += opened[i].length
    give_collected(opening, tls, connection, direction, &share)


cdef void give(Opening* opening, Tls* tls, Connection* connection, int direction, Share* share, uint32_t at,
               uint32_t num) noexcept nogil:
    """Shares out the next `num` bytes, whose encrypted ones begin at `at` of what is kept."""
    cdef TlsSide* side = &tls.side[direction]
    cdef uint32_t end, take
    while num:
        end = carriers_of(side)[share.carrier].end
        take = num
        if share.carrier + 1 < num_carriers(side):
            if end <= at:
                give_collected(opening, tls, connection, direction, share)
                share.carrier += 1
                continue
            if end - at < num:
                take = end - at
        share.num += take
        at += take
        num -= take


cdef void give_collected(Opening* opening, Tls* tls, Connection* connection, int direction, Share* share) noexcept nogil:
    cdef TlsSide* side = &tls.side[direction]
    if share.num:
        hand_on(opening, tls, connection, direction, &carriers_of(side)[share.carrier].arrival, keep(share.rest, share.num))
        share.rest = drop(share.rest, share.num)
        share.num = 0
