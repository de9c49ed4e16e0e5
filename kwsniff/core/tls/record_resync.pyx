# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""Keys for the next record, and the next record itself where some were lost: its beginning, and the number it has.

Rules
  1. A record begins where a header is, with another one, or nothing yet, after the record. Only one that
     opens is believed.
  2. Its number is one of those that the missing bytes leave room for, from the next one on; or one from 0 on, with the
     keys that come next: in a handshake those of data, or of the first update. Tries are bounded for each loss; then the
     direction is given up.
  3. Since every record adds as many bytes, number and missing bytes tell how much plaintext is missing.

    ...[ record 7 ][ missing, 3000 bytes ]....[ 23 3 3 length ][ opens as number 12 ]
                                                 four records lost: 3000 + ... - 4 * 22 bytes of plaintext

Source: RFC 8446 5.2 and 5.3; RFC 5246 6.2.3.
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from kwsniff.core.bytes.buffer cimport contents, release
from kwsniff.core.bytes.span cimport Span, be16, drop, has, keep, u8
from kwsniff.core.tcp.arrivals cimport GAP_NOT_DECRYPTED, Arrival
from kwsniff.core.tcp.connection cimport Connection
from kwsniff.core.tls.hello cimport Hello
from kwsniff.core.tls.keys cimport drop_key, find_number, guess_key, key_overhead, take_key
from kwsniff.core.tls.record_layer cimport RECORD_DATA, RECORD_HEADER, begins_record
from kwsniff.core.tls.tls_state cimport (
    EPOCH_DATA, EPOCH_HANDSHAKE, SIDE_CLEAR, SIDE_GIVEN_UP, SIDE_LOST,
    SIDE_SEALED, Opening, Tls, TlsSide,
)
from kwsniff.core.tls.packet_map cimport arrival_at, forget_bytes, hand_gap

cdef enum:
    LEAST_RECORD = 22           # bytes of the shortest record that can be opened: header, tag, type
    MOST_GUESSED = 16           # records of a direction that secrets at hand are tried with,
    FEW_NUMBERS = 64            # and numbers of all but the first of them, and of a handshake's
    NEAR = 16                   # numbers beyond those that the missing bytes leave room for: padding is none


cdef bint is_1_3(Tls* tls) noexcept nogil:
    return tls.hello != NULL and tls.hello.version_known and tls.hello.version >= 0x0304


# -- keys -------------------------------------------------------------------------------------------------------

cdef void change_key(TlsSide* side, int epoch) noexcept nogil:
    """What follows is opened with other keys, and counted from 0."""
    drop_key(side.key)
    side.key = NULL
    side.asked = -1
    side.epoch = epoch
    side.number = 0


cdef Hello* hello_of(Tls* tls, TlsSide* side) noexcept nogil:
    """The hellos of its keys: those of a renegotiation are new ones."""
    return tls.again if tls.again != NULL and side.epoch > EPOCH_DATA and not is_1_3(tls) else tls.hello


cdef void* key_of(Opening* opening, Tls* tls, int direction, int epoch) noexcept nogil:
    cdef Hello* hello = hello_of(tls, &tls.side[direction])
    if hello == NULL or hello.client < 0:
        return NULL
    return take_key(opening, hello, 0 if direction == hello.client else 1, epoch)


cdef bint find_key(Opening* opening, Tls* tls, int direction) noexcept nogil:
    """Whether there is a key for the next record. Of TLS 1.3 those of the handshake may be missing: then the first record
    of data is found."""
    cdef TlsSide* side = &tls.side[direction]
    if side.key != NULL:
        return True
    if side.asked == tls.known:
        return False
    side.asked = tls.known
    side.key = key_of(opening, tls, direction, side.epoch)
    if side.key == NULL and side.epoch == EPOCH_HANDSHAKE:
        side.key = key_of(opening, tls, direction, EPOCH_DATA)
        if side.key != NULL:
            side.epoch = EPOCH_DATA
            side.number = 0
            lose_record(side, 0, GAP_NOT_DECRYPTED)
    return side.key != NULL


cdef bint guess_session(Opening* opening, Tls* tls, int direction, Span records, size_t* passed) noexcept nogil:
    """Whether secrets at hand open records of a connection of which a hello was not captured: the first of `records`, or
    (`passed`: bytes before it) the first with data that they open. Without ServerHello both directions begin where they
    are. Those before it may be a handshake's: then few numbers have been used. Until then `least` counts what was tried."""
    cdef TlsSide* side = &tls.side[direction]
    cdef TlsSide* other = &tls.side[1 - direction]
    cdef Span rest = records
    cdef uint64_t number = 0, seen = 0
    cdef int epoch = EPOCH_DATA
    cdef bint greeted = tls.hello.version_known
    cdef void* key = NULL
    if tls.hello.client_random_known and tls.hello.version_known:
        return False
    if side.guessed != tls.known:
        side.guessed = tls.known
        side.least = 0
    while begins_record(rest) and has(rest, RECORD_HEADER, be16(rest, 3)) and side.least < MOST_GUESSED:
        if passed == NULL or u8(rest, 0) == RECORD_DATA:
            if seen == side.least:
                number = FEW_NUMBERS if seen else 0
                side.least += 1
                key = guess_key(opening, tls.hello, direction, keep(rest, RECORD_HEADER + be16(rest, 3)), &epoch, &number)
            seen += 1
        if key != NULL or passed == NULL:
            break
        rest = drop(rest, RECORD_HEADER + be16(rest, 3))
    if key == NULL:
        return False
    change_key(side, epoch)
    side.key = key
    side.number = number
    side.phase = SIDE_SEALED
    tls.by_trying = True
    if passed != NULL:
        passed[0] = records.num - rest.num
    if not greeted and other.phase != SIDE_SEALED:
        change_key(other, EPOCH_HANDSHAKE if is_1_3(tls) and number < FEW_NUMBERS else epoch)
        if other.phase != SIDE_LOST:
            lose_record(other, -1, GAP_NOT_DECRYPTED)
        other.was_clear = False
    return True


# -- after a loss -----------------------------------------------------------------------------------------------

cdef void lose_record(TlsSide* side, int64_t missing, int cause) noexcept nogil:
    """`missing` encrypted bytes, or an unknown number, are not there: the next record has to be found."""
    if side.phase == SIDE_LOST:
        if missing < 0 or side.missing < 0:
            side.missing = -1
        else:
            side.missing += missing
        return
    side.was_clear = side.phase == SIDE_CLEAR
    side.phase = SIDE_LOST
    side.missing = missing
    side.cause = cause
    side.least = side.number
    side.tries = 0
    side.left = 0


cdef bint seek_record(Opening* opening, Tls* tls, Connection* connection, int direction) noexcept nogil:
    """Looks for the next record in what is kept. True: that begins with it, and the side is no longer lost."""
    cdef TlsSide* side = &tls.side[direction]
    cdef Span kept = contents(&side.kept)
    cdef Span rest
    cdef size_t at = 0, length
    while kept.num - at >= RECORD_HEADER:
        rest = drop(kept, at)
        if not begins_record(rest):
            at += 1
            continue
        length = RECORD_HEADER + be16(rest, 3)
        if length > rest.num:
            break                       # more comes
        if rest.num - length >= RECORD_HEADER and not begins_record(drop(rest, length)):
            at += 1
            continue
        if side.was_clear and u8(rest, 0) != RECORD_DATA:
            pass_over(side, at)
            side.phase = SIDE_CLEAR
            return True
        if is_1_3(tls) and u8(rest, 0) != RECORD_DATA:
            at += length                # a change_cipher_spec that means nothing (RFC 8446 5)
            continue
        if is_found(opening, tls, connection, direction, keep(rest, length), at):
            return True
        if side.phase == SIDE_GIVEN_UP:
            return False
        if side.key == NULL:
            break                       # its secrets may come
        at += length
    pass_over(side, at)
    return False


cdef void pass_over(TlsSide* side, size_t num) noexcept nogil:
    if side.missing >= 0:
        side.missing += <int64_t>num
    forget_bytes(side, num)


cdef bint is_found(Opening* opening, Tls* tls, Connection* connection, int direction, Span record,
                   size_t at) noexcept nogil:
    """Whether this record, `at` bytes into what is kept, opens with a number that it can have."""
    cdef TlsSide* side = &tls.side[direction]
    cdef uint64_t number = 0, handshakes, room = <uint64_t>opening.most_tries // 2 + 1
    cdef int64_t left, missing = side.missing + <int64_t>at if side.missing >= 0 else -1
    cdef void* key
    cdef int ahead
    cdef Arrival arrival
    if side.was_clear and side.epoch == EPOCH_HANDSHAKE and not is_1_3(tls):
        side.epoch = EPOCH_DATA
    if not find_key(opening, tls, direction):
        return False
    if missing >= 0:
        room = <uint64_t>missing // LEAST_RECORD + NEAR
    handshakes = min(room, <uint64_t>FEW_NUMBERS) if side.epoch == EPOCH_HANDSHAKE else room
    left = opening.most_tries - side.tries
    side.tries = opening.most_tries
    if find_number(opening, side.key, record, side.least, handshakes, &left, &number):
        side.tries = opening.most_tries - left
        arrival = arrival_at(side, <uint32_t>at)
        tell_missing(opening, tls, connection, direction, &arrival, number, missing)
        return go_on(side, number, at)
    for ahead in range(1, 3 if side.epoch == EPOCH_HANDSHAKE else 2):
        key = key_of(opening, tls, direction, side.epoch + ahead) if is_1_3(tls) else NULL
        if key != NULL and find_number(opening, key, record, 0, room, &left, &number):
            side.tries = opening.most_tries - left
            arrival = arrival_at(side, <uint32_t>at)
            if side.epoch != EPOCH_HANDSHAKE or ahead > 1 or number:
                hand_gap(opening, tls, connection, direction, &arrival, -1, side.cause)
            change_key(side, side.epoch + ahead)
            side.key = key
            return go_on(side, number, at)
        drop_key(key)
    side.tries = opening.most_tries - left
    if left <= 0:
        arrival = arrival_at(side, <uint32_t>at)
        give_up(opening, tls, connection, direction, &arrival)
    return False


cdef bint go_on(TlsSide* side, uint64_t number, size_t at) noexcept nogil:
    forget_bytes(side, at)
    side.number = number
    side.phase = SIDE_SEALED
    side.was_clear = False
    side.head_num = 0
    side.message_left = 0
    return True


cdef void tell_missing(Opening* opening, Tls* tls, Connection* connection, int direction, Arrival* arrival,
                       uint64_t number, int64_t missing) noexcept nogil:
    cdef TlsSide* side = &tls.side[direction]
    cdef int64_t overhead = key_overhead(side.key)
    cdef int64_t records = <int64_t>(number - side.least)
    cdef int64_t num = -1
    if side.epoch == EPOCH_HANDSHAKE:
        return
    if missing >= 0 and overhead >= 0:
        num = missing - records * (RECORD_HEADER + overhead)
    if missing == 0 and records == 0:
        return
    hand_gap(opening, tls, connection, direction, arrival, num if num > 0 else -1, side.cause)


cdef void give_up(Opening* opening, Tls* tls, Connection* connection, int direction, Arrival* arrival) noexcept nogil:
    """Nothing more of this direction is opened."""
    cdef TlsSide* side = &tls.side[direction]
    side.phase = SIDE_GIVEN_UP
    drop_key(side.key)
    side.key = NULL
    release(&side.kept)
    release(&side.carriers)
    if tls.begun:
        hand_gap(opening, tls, connection, direction, arrival, -1, GAP_NOT_DECRYPTED)
