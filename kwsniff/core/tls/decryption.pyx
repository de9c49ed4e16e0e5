# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""Bytes of TLS connections to the plain streams inside them, record by record.

Rules
  1. Whole records of a packet are opened together (keys.pyx); a record that is not whole is kept until it is.
  2. Hellos are read before their records come here (hello.pyx); what changes keys inside records is read here: Finished
     and KeyUpdate of 1.3, change_cipher_spec and hellos of a renegotiation.
  3. Records whose secrets may still come are kept, in the order they came, up to `most_queued`; then they are let go, and
     the next one is found like after a loss (record_resync.pyx).
  4. What does not open is not guessed at: its bytes are a gap of the plain stream.

    CLEAR --[ change_cipher_spec (1.2), first record of data (1.3) ]--> SEALED <--[ loss; found ]--> LOST --> GIVEN_UP

Source: RFC 8446 4.4.4, 4.6.3, 5; RFC 5246 6.2, 7.1, 7.4.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from kwsniff.core.bytes.buffer cimport contents, release, shrink
from kwsniff.core.bytes.span cimport Span, be16, be32, drop, keep, make_span, u8
from kwsniff.core.tcp.arrivals cimport GAP_NOT_DECRYPTED, Arrival
from kwsniff.core.tcp.connection cimport Connection
from kwsniff.core.tls.hello cimport (
    HELLO_COMES, Hello, free_hello, make_hello, take_clear_messages, take_hello, take_opened_alert,
)
from kwsniff.core.tls.keys cimport drop_key, key_overhead, note_proven, open_run
from kwsniff.core.tls.record_layer cimport (
    RECORD_ALERT, RECORD_CHANGE, RECORD_DATA, RECORD_HANDSHAKE, RECORD_HEADER, begins_record,
)
from kwsniff.core.tls.record_resync cimport (
    change_key, find_key, give_up, guess_session, hello_of, is_1_3, lose_record, seek_record,
)
from kwsniff.core.tls.tls_state cimport *
from kwsniff.core.tls.packet_map cimport (
    arrival_at, first_carrier, forget_bytes, hand_gap, hand_on_opened, keep_bytes, note_turn,
)

cdef enum:
    WAITS_FOR_HELLO = 65536     # bytes that wait for the other side's hello
    MESSAGE_HEADER = 4
    CLIENT_HELLO = 1            # types of handshake messages
    SERVER_HELLO = 2
    FINISHED = 20
    KEY_UPDATE = 24


cdef Tls* make_tls(Hello* hello) noexcept nogil:
    """NULL when memory is refused."""
    cdef Tls* tls = <Tls*>calloc(1, sizeof(Tls))
    if tls != NULL:
        tls.hello = hello
        tls.side[0].asked = tls.side[1].asked = -1
        tls.side[0].guessed = tls.side[1].guessed = -1
    return tls


cdef void free_tls(Tls* tls) noexcept nogil:
    """All but the connection's hello."""
    cdef int i
    if tls == NULL:
        return
    for i in range(2):
        drop_key(tls.side[i].key)
        release(&tls.side[i].kept)
        release(&tls.side[i].carriers)
        release(&tls.side[i].turns)
    free_hello(tls.again)
    free(tls)


cdef inline int64_t knowledge(Opening* opening, Tls* tls) noexcept nogil:
    """Another number whenever there may be a key that there was none for before."""
    return opening.version * 256 + tls.hello.num_read + (tls.again.num_read if tls.again != NULL else 0)


# -- what streams hand over -------------------------------------------------------------------------------------

cdef void take_cipher(Opening* opening, Tls* tls, Connection* connection, int direction, Arrival* arrival, int64_t offset,
                      Span data) noexcept nogil:
    cdef TlsSide* side = &tls.side[direction]
    cdef size_t used
    if side.phase == SIDE_GIVEN_UP:
        return
    tls.known = knowledge(opening, tls)
    if side.left:
        used = keep(data, side.left).num
        side.left -= <uint32_t>used
        offset += <int64_t>used
        data = drop(data, used)
    if side.kept.len == 0:
        side.place = offset
        if side.phase != SIDE_LOST:
            used = advance(opening, tls, connection, direction, data, arrival, -1)
            side.place += <int64_t>used
            data = drop(data, used)
    if data.num:
        if not keep_bytes(side, arrival, data):
            give_up(opening, tls, connection, direction, arrival)
            return
        work_off(opening, tls, connection, direction, -1)
    note_turn(side)
    if tls.side[1 - direction].kept.len and tls.side[1 - direction].asked != tls.known:
        retry_sealed(opening, tls, connection)


cdef void work_off(Opening* opening, Tls* tls, Connection* connection, int direction, int64_t most) noexcept nogil:
    """Opens what can be opened of what is kept, `most` records of it (-1: all)."""
    cdef TlsSide* side = &tls.side[direction]
    cdef Arrival arrival
    cdef size_t used
    while side.phase != SIDE_GIVEN_UP:
        if side.phase == SIDE_LOST and not seek_record(opening, tls, connection, direction):
            break
        used = advance(opening, tls, connection, direction, contents(&side.kept), NULL, most)
        if side.phase != SIDE_GIVEN_UP:
            forget_bytes(side, used)
        if side.phase != SIDE_LOST:
            break
    note_turn(side)
    if side.phase == SIDE_GIVEN_UP or side.kept.len == 0 or not is_waiting(tls, side):
        return
    arrival = arrival_at(side, 0)
    if opening.may_come and side.kept.len > <size_t>opening.most_queued:
        let_go(side)
    elif not opening.may_come and (side.kept.len > WAITS_FOR_HELLO or side.phase != SIDE_CLEAR and knows_hellos(tls, side)):
        give_up(opening, tls, connection, direction, &arrival)


cdef inline bint is_waiting(Tls* tls, TlsSide* side) noexcept nogil:
    """Whether there is no key for it, or it does not know yet whether it needs one."""
    return side.key == NULL and (side.phase == SIDE_CLEAR or side.asked == tls.known)


cdef inline bint knows_hellos(Tls* tls, TlsSide* side) noexcept nogil:
    """Those that its keys follow from: of a renegotiation, whose other half may come a little later, its own."""
    cdef Hello* hello = hello_of(tls, side)
    return hello.client_random_known and hello.version_known


cdef void let_go(TlsSide* side) noexcept nogil:
    """Whole records that wait for secrets, but not that they were there: the number of the next one is not known then."""
    cdef Span kept = contents(&side.kept)
    cdef size_t at = 0
    while kept.num - at >= RECORD_HEADER and begins_record(drop(kept, at)):
        if kept.num - at < RECORD_HEADER + be16(kept, at + 3):
            break
        at += RECORD_HEADER + be16(kept, at + 3)
    lose_record(side, <int64_t>at, GAP_NOT_DECRYPTED)
    forget_bytes(side, at)


cdef void retry_sealed(Opening* opening, Tls* tls, Connection* connection) noexcept nogil:
    """More is known: what was kept is gone through again, both directions in the order in which packets brought it."""
    cdef TlsSide* side
    cdef size_t before
    cdef int direction
    cdef bint[2] stuck
    stuck[0] = stuck[1] = False
    tls.known = knowledge(opening, tls)
    while True:
        direction = earlier_side(tls, stuck)
        if direction < 0:
            return
        side = &tls.side[direction]
        before = side.kept.len
        work_off(opening, tls, connection, direction, 1)
        if side.kept.len == before or side.phase == SIDE_GIVEN_UP:
            stuck[direction] = True


cdef int earlier_side(Tls* tls, bint* stuck) noexcept nogil:
    """The direction whose first byte that is kept came first; -1: there is none."""
    cdef int i, best = -1
    cdef Arrival one, other
    for i in range(2):
        if stuck[i] or tls.side[i].kept.len == 0:
            continue
        if best >= 0:
            one = first_carrier(&tls.side[best]).arrival
            other = first_carrier(&tls.side[i]).arrival
            if one.capture < other.capture or one.capture == other.capture and one.frame <= other.frame:
                continue
        best = i
    return best


cdef void take_cipher_gap(Opening* opening, Tls* tls, Connection* connection, int direction, Arrival* arrival,
                          int64_t offset, int64_t num, int cause) noexcept nogil:
    """`num` encrypted bytes from position `offset` on are missing; -1: an unknown number."""
    cdef TlsSide* side = &tls.side[direction]
    cdef int64_t have = <int64_t>side.kept.len, need
    if side.phase == SIDE_GIVEN_UP:
        return
    if side.left and 0 <= num <= <int64_t>side.left:
        side.left -= <uint32_t>num
        return
    if side.left:
        have = 0
        if num >= 0:
            num -= side.left
        side.left = 0
    elif side.phase != SIDE_LOST and have >= RECORD_HEADER and num >= 0 and begins_record(contents(&side.kept)):
        need = RECORD_HEADER + <int64_t>be16(contents(&side.kept), 3)
        if have < need and num <= need - have:
            pass_record(opening, tls, connection, direction, arrival, need, cause)
            side.left = <uint32_t>(need - have - num)
            return
    shrink(&side.kept, 0)
    side.carriers.len = 0
    lose_record(side, have + num if num >= 0 else -1, cause)


cdef void pass_record(Opening* opening, Tls* tls, Connection* connection, int direction, Arrival* arrival,
                      int64_t length, int cause) noexcept nogil:
    """The current record has lost some of its bytes, and none of the next ones: it counts, and cannot be opened."""
    cdef TlsSide* side = &tls.side[direction]
    cdef bint holds_data = u8(contents(&side.kept), 0) == RECORD_DATA
    cdef int64_t plain = -1
    shrink(&side.kept, 0)
    side.carriers.len = 0
    if side.phase != SIDE_SEALED:
        return
    side.number += 1
    if holds_data and side.epoch != EPOCH_HANDSHAKE:
        if side.key != NULL and key_overhead(side.key) >= 0:
            plain = length - RECORD_HEADER - key_overhead(side.key)
        hand_gap(opening, tls, connection, direction, arrival, plain if plain > 0 else -1, cause)


cdef void end_cipher(Opening* opening, Tls* tls, Connection* connection) noexcept nogil:
    """Nothing more comes."""
    cdef TlsSide* side
    cdef Arrival arrival
    cdef int i
    memset(&arrival, 0, sizeof(Arrival))
    if opening.may_come and (is_waiting(tls, &tls.side[0]) or is_waiting(tls, &tls.side[1])):
        tls.side[0].asked = tls.side[1].asked = -1      # a last time
        retry_sealed(opening, tls, connection)
    for i in range(2):
        side = &tls.side[i]
        if not tls.begun or side.phase == SIDE_GIVEN_UP:
            continue
        arrival.time = connection.last_time
        arrival.frame = connection.last_frame
        arrival.capture = connection.last_capture
        arrival.ready = arrival.time
        arrival.acked = -1
        if side.phase == SIDE_LOST:
            hand_gap(opening, tls, connection, i, &arrival, -1, side.cause)


# -- records ----------------------------------------------------------------------------------------------------

cdef size_t advance(Opening* opening, Tls* tls, Connection* connection, int direction, Span data, Arrival* arrival,
                    int64_t most) noexcept nogil:
    """Takes whole records from the front of `data`: of one packet, or (NULL) of what is kept. Returns their bytes."""
    cdef TlsSide* side = &tls.side[direction]
    cdef size_t used = 0, length
    cdef Span rest = data
    while rest.num >= RECORD_HEADER and most and side.phase <= SIDE_SEALED:
        if not begins_record(rest):
            lose_record(side, 0, GAP_NOT_DECRYPTED)
            break
        length = RECORD_HEADER + be16(rest, 3)
        if length > rest.num:
            break
        if side.phase == SIDE_CLEAR:
            if not take_clear(tls, direction, keep(rest, length)):
                if not guess_session(opening, tls, direction, rest, &length):
                    break
            elif side.phase == SIDE_SEALED and u8(rest, 0) == RECORD_DATA:
                continue
        elif is_1_3(tls) and u8(rest, 0) != RECORD_DATA:
            pass                        # a change_cipher_spec that means nothing (RFC 8446 5)
        else:
            length = take_sealed(opening, tls, connection, direction, rest, arrival, <uint32_t>used, most)
            if length == 0:
                break
        used += length
        rest = drop(data, used)
        if most > 0:
            most -= 1
    return used


cdef bint take_clear(Tls* tls, int direction, Span record) noexcept nogil:
    """A record in the clear; one of data is the first that is not. False: it waits for the other side's hello."""
    cdef TlsSide* side = &tls.side[direction]
    cdef int kind = <int>u8(record, 0)
    if kind == RECORD_HANDSHAKE and direction != tls.hello.client:
        take_clear_messages(tls.hello, record)
    if kind != RECORD_CHANGE and kind != RECORD_DATA:
        return True
    if not tls.hello.version_known:
        return False
    if is_1_3(tls):
        if kind == RECORD_DATA:
            side.phase = SIDE_SEALED
            change_key(side, EPOCH_HANDSHAKE)
        return True
    side.phase = SIDE_SEALED
    change_key(side, EPOCH_DATA)
    return True


cdef size_t take_sealed(Opening* opening, Tls* tls, Connection* connection, int direction, Span records,
                        Arrival* arrival, uint32_t at, int64_t most) noexcept nogil:
    """Opens a run of records; returns their bytes, 0 when the first one does not open."""
    cdef TlsSide* side = &tls.side[direction]
    cdef Opened* opened
    cdef Span control
    cdef size_t i, num, length = 0
    cdef int kind
    if not find_key(opening, tls, direction) and not guess_session(opening, tls, direction, records, NULL):
        return 0
    if side.phase == SIDE_LOST:
        return 0
    num = open_run(opening, side.key, side.number, records, most)
    if num == 0:
        lose_record(side, 0, GAP_NOT_DECRYPTED)
        return 0
    if not side.proven:
        side.proven = True
        note_proven(opening)
    side.number += num
    opened = <Opened*>opening.opened.data
    for i in range(num):
        length += opened[i].length
    kind = opened[num - 1].kind
    hand_on_opened(opening, tls, connection, direction, arrival, at)
    if kind != RECORD_DATA:
        control = drop(contents(&opening.plain), opening.plain.len - opened[num - 1].plain)
        take_control(tls, direction, kind, control)
    return length


# -- what changes keys ------------------------------------------------------------------------------------------

cdef void take_control(Tls* tls, int direction, int kind, Span data) noexcept nogil:
    """The contents of a record that is not data."""
    cdef TlsSide* side = &tls.side[direction]
    if kind == RECORD_ALERT:
        take_opened_alert(tls.hello, direction, data)
    elif kind == RECORD_HANDSHAKE and is_1_3(tls):
        read_messages(tls, side, data)
    elif kind == RECORD_HANDSHAKE:
        read_again(tls, direction, data)
    elif kind == RECORD_CHANGE and not is_1_3(tls):
        change_key(side, side.epoch + 1)


cdef void read_messages(Tls* tls, TlsSide* side, Span data) noexcept nogil:
    """Handshake messages of TLS 1.3; they may begin in one record and end in another. Those that change keys end theirs."""
    cdef size_t num
    cdef int kind
    while data.num:
        if side.message_left:
            num = keep(data, side.message_left).num
            side.message_left -= <uint32_t>num
            data = drop(data, num)
        else:
            side.head[side.head_num] = <uint8_t>u8(data, 0)
            side.head_num += 1
            data = drop(data, 1)
            if side.head_num < MESSAGE_HEADER:
                continue
            side.head_num = 0
            side.message_left = be32(make_span(side.head, MESSAGE_HEADER), 0) & 0xFFFFFF
        if side.message_left == 0:
            kind = side.head[0]
            if kind == FINISHED and side.epoch == EPOCH_HANDSHAKE or kind == KEY_UPDATE and side.epoch >= EPOCH_DATA:
                change_key(side, side.epoch + 1)
                return


cdef void read_again(Tls* tls, int direction, Span data) noexcept nogil:
    """Handshake messages of TLS 1.2 inside records: hellos of a renegotiation."""
    cdef uint8_t[5] header = [RECORD_HANDSHAKE, 3, 3, <uint8_t>(data.num >> 8), <uint8_t>(data.num & 0xFF)]
    cdef Hello* again = tls.again
    if u8(data, 0) == CLIENT_HELLO and (again == NULL or again.client_random_known) and data.num > MESSAGE_HEADER:
        free_hello(again)
        again = tls.again = make_hello()
        if again != NULL:
            again.client = tls.hello.client
    if again == NULL:
        return
    if u8(data, 0) == SERVER_HELLO:
        again.side[direction].state = HELLO_COMES
    if again.side[direction].state == HELLO_COMES:
        take_hello(again, direction, make_span(header, RECORD_HEADER))
        take_hello(again, direction, data)
