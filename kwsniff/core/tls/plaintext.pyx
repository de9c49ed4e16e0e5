# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""TCP segments of TLS connections to segments of the plain streams inside them, between packets and streams.

Rules
  1. Nothing is decrypted here: pieces of plaintext come from outside, one per frame that completed some, in the order
     of the frames. A frame without a piece completed nothing.
  2. A connection is passed on as it is until its first piece; what it carries is then found out anew. One that never
     gets a piece goes through untouched.
  3. From then on the streams get plaintext when its records are complete, under the numbers of the plain stream.
     Acknowledgements follow: a number of the encrypted stream means the plaintext that was complete there.
     Where it is known at which byte the records begin, every byte comes with time and frame of the packet it was in.
  4. Encrypted bytes that repeat are shown as repeated plain ones, without contents. Records that could not be
     decrypted, and more than a record that was acknowledged and gave no plaintext, are bytes cut from their packet;
     exchanges.pyx calls them not decrypted.
  5. Sessions are bounded like connections; what is remembered of numbers is bounded per direction.

    encrypted  --[ handshake ]--[ record ][ record ][re      cord]--
    plain      --[ handshake ]--[ plain  ][ plain  ][       plain]--
                                ^ first piece                   ^ when this segment completes the record

Source: RFC 8446, 5246 (records), 9293 (sequence numbers).
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memcmp, memset

from kwsniff.core.octets.buffer cimport append_raw, contents
from kwsniff.core.tls.arrivals cimport (
    anchor, forget_carriers, is_placed, note_carrier, pass_on, pass_share, record_at, spread,
)
from kwsniff.core.octets.octets cimport Octets, copy_out, drop, keep
from kwsniff.core.capture.packets cimport TCP_ACK, TCP_FIN, TCP_RST, TCP_SYN, Reader, Segment
from kwsniff.core.tcp.segments cimport distance, source_endpoint
from kwsniff.core.tcp.connections cimport Arrival, Connection, StreamSink, TcpEvent
from kwsniff.core.tcp.streams cimport take_segment
from kwsniff.core.tls.sessions cimport (
    Begin, Piece, PieceHead, Plaintext, Record, Side, TlsSession, Turn, drop_front, find_session,
    forget_session,
)

cdef enum:
    LONGEST_RECORD = 18437      # 2^14 + 2048 and its header (RFC 5246 6.2.3)
    MOST_TURNS = 8192           # frames with plaintext that the receiver has not acknowledged
    SPARE_TURNS = 64            # acknowledged ones that are kept: they are moved out together


cdef void decrypt_segments(Plaintext* plaintext, Reader* reader) noexcept nogil:
    """From here on, the reader's segments take this way."""
    reader.sink = take_cipher
    reader.context = plaintext


cdef void decrypt_streams(Plaintext* plaintext, StreamSink* sink, Begin begin) noexcept nogil:
    """From here on, what the streams hand over passes through here; `begin` is told where the plaintext of a connection
    begins, which may be in its middle."""
    plaintext.next = sink[0]
    plaintext.begin = begin
    sink.context = plaintext
    sink.bytes = take_opened
    sink.gap = take_gap
    sink.dropped = take_dropped
    sink.ended = take_session_end
    sink.oddity = take_oddity
    sink.event = take_event


# -- pieces -----------------------------------------------------------------------------------------------------

cdef Piece take_piece(Plaintext* plaintext, int64_t frame) noexcept nogil:
    """The records that this frame completed; none, if it completed none."""
    cdef PieceHead head
    cdef Piece piece
    cdef Octets body, records, data
    cdef size_t i
    cdef uint64_t wanted = <uint64_t>(plaintext.frames_before + frame)
    memset(&piece, 0, sizeof(Piece))
    while True:
        if plaintext.pieces.num < sizeof(PieceHead):
            if plaintext.dry:
                return piece
            plaintext.fetch(plaintext.owner)
            continue
        memset(&head, 0, sizeof(PieceHead))
        copy_out(plaintext.pieces, 0, &head, sizeof(PieceHead))
        if head.frame > wanted:
            return piece
        body = drop(plaintext.pieces, sizeof(PieceHead))
        records = keep(body, head.num_records * sizeof(Record))
        data = keep(drop(body, records.num), head.num_bytes)
        plaintext.pieces = drop(body, records.num + data.num)
        if head.frame == wanted:        # an earlier frame did not come here, and what it completed is lost
            piece.records = records
            piece.data = data
            break
    for i in range(piece.records.num // sizeof(Record)):
        piece.length += record_at(&piece, i).length
        piece.lost += record_at(&piece, i).lost
    return piece


# -- numbers ----------------------------------------------------------------------------------------------------

cdef inline Turn turn_at(Side* side, size_t number) noexcept nogil:
    cdef Turn turn
    memset(&turn, 0, sizeof(Turn))
    copy_out(contents(&side.turns), number * sizeof(Turn), &turn, sizeof(Turn))
    return turn


cdef void note_turn(Plaintext* plaintext, Side* side) noexcept nogil:
    cdef Turn turn
    if side.turns.len >= MOST_TURNS * sizeof(Turn):
        drop_front(&side.turns, MOST_TURNS // 2 * sizeof(Turn))
    turn.cipher = side.cipher_end
    turn.plain = side.plain_end
    if not append_raw(&side.turns, &turn, sizeof(Turn)):
        plaintext.streams.no_memory = True


cdef uint32_t to_plain(Side* side, uint32_t number) noexcept nogil:
    """The plain stream's number for one of the encrypted stream."""
    cdef size_t i = side.turns.len // sizeof(Turn)
    cdef Turn turn
    if distance(number, side.cipher_end) >= 0:
        return side.plain_end + (1 if side.fin and number != side.cipher_end else 0)
    while i:
        i -= 1
        turn = turn_at(side, i)
        if distance(number, turn.cipher) >= 0:
            return turn.plain
    return turn_at(side, 0).plain if side.turns.len else number


cdef void take_acknowledgement(Side* other, uint32_t number) noexcept nogil:
    cdef size_t passed = 0, num = other.turns.len // sizeof(Turn)
    if other.acked_known and distance(number, other.acked) <= 0:
        return
    other.acked = number
    other.acked_known = True
    # What is older than the last acknowledgement is not asked for again, but by late duplicates.
    while passed + 1 < num and distance(number, turn_at(other, passed + 1).cipher) >= 0:
        passed += 1
    if passed > SPARE_TURNS:
        drop_front(&other.turns, (passed - SPARE_TURNS // 2) * sizeof(Turn))


# -- segments ---------------------------------------------------------------------------------------------------

cdef void take_cipher(void* opaque, Segment* segment) noexcept nogil:
    """Passes a segment on to the streams, as that of the plain stream where there is one."""
    cdef Plaintext* plaintext = <Plaintext*>opaque
    cdef int sender = source_endpoint(segment)
    cdef TlsSession* session = find_session(plaintext, segment, sender)
    cdef Piece piece = take_piece(plaintext, segment.frame)
    plaintext.current = session
    plaintext.unopened = False
    plaintext.streams.ordinal = plaintext.streams.frames_before + segment.frame
    if session == NULL:
        take_segment(plaintext.streams, segment)
        return
    session.packets += 1
    if segment.flags & TCP_SYN or not session.opened and piece.data.num == 0:
        if not session.opened:
            follow(plaintext, &session.side[sender], segment, &piece)
        take_segment(plaintext.streams, segment)
        return
    if not session.opened:
        open_session(plaintext, session, segment, sender)
        if plaintext.current != session:
            return                          # the segment as it was has ended it
    segment.sack = keep(segment.payload, 0)     # numbers of the encrypted stream
    if segment.flags & TCP_ACK:
        plaintext.unopened = distance(segment.ack, session.side[1 - sender].opened) > 0
        take_acknowledgement(&session.side[1 - sender], segment.ack)
        segment.ack = to_plain(&session.side[1 - sender], segment.ack)
    plaintext.reader.payload_bytes -= <int64_t>segment.payload.num
    if not session.side[sender].known:
        start_side(plaintext, &session.side[sender], segment.seq)
    if brings_nothing(&session.side[sender], segment, &piece):
        repeat(&session.side[sender], segment)
        pass_on(plaintext, segment)
    else:
        replace(plaintext, session, &session.side[sender], segment, &piece)


cdef void follow(Plaintext* plaintext, Side* own, Segment* segment, Piece* piece) noexcept nogil:
    """How far a direction has come that is not open, and where its records begin."""
    cdef uint32_t end = segment.seq + segment.length
    if segment.flags & TCP_SYN:
        own.cipher_end = end + 1
        own.known = True
        own.anchored = False
        return
    if segment.length == 0:
        return
    if not own.known:
        own.cipher_end = segment.seq
        own.known = True
    anchor(own, segment)
    if distance(end, own.cipher_end) > 0:
        own.cipher_end = end
    if own.anchored:
        note_carrier(plaintext, own, segment, end)
        if piece.records.num and is_placed(own, segment, piece):
            own.records_at += piece.length
        forget_carriers(own)


cdef void start_side(Plaintext* plaintext, Side* side, uint32_t number) noexcept nogil:
    """Both streams stand at the same number here."""
    side.known = True
    side.cipher_end = number
    side.plain_end = number
    side.opened = number
    note_turn(plaintext, side)


cdef void open_session(Plaintext* plaintext, TlsSession* session, Segment* segment, int sender) noexcept nogil:
    """The first piece has come: from here on, the numbers of the plain stream go their own way."""
    cdef Side* own = &session.side[sender]
    cdef Side* other = &session.side[1 - sender]
    cdef Segment raw = segment[0]
    cdef bint fills = own.known and distance(segment.seq, own.cipher_end) < 0
    if fills:
        # The streams wait for it, and hold what came before it.
        raw.flags &= ~<uint32_t>TCP_FIN
        plaintext.reader.payload_bytes += <int64_t>raw.payload.num
        take_segment(plaintext.streams, &raw)
        segment.mark = 0                    # what follows is no copy of it
        if plaintext.current != session:
            return
    session.opened = True
    session.restart = True
    start_side(plaintext, own, own.cipher_end if fills else segment.seq)
    if other.known:
        start_side(plaintext, other, other.cipher_end)
    elif segment.flags & TCP_ACK:
        start_side(plaintext, other, segment.ack)


cdef inline bint brings_nothing(Side* own, Segment* segment, Piece* piece) noexcept nogil:
    if segment.flags & TCP_RST:
        return True
    return (piece.records.num == 0 and not (segment.flags & TCP_FIN and not own.fin)
            and distance(segment.seq + segment.length, own.cipher_end) <= 0)


cdef void repeat(Side* own, Segment* segment) noexcept nogil:
    """What repeats encrypted bytes repeats the plain ones that they gave."""
    cdef uint32_t end = to_plain(own, segment.seq + segment.length)
    cdef bint empty = segment.length == 0 or segment.flags & TCP_RST
    segment.payload = keep(segment.payload, 0)
    segment.seq = to_plain(own, segment.seq)
    segment.length = 0 if empty else end - segment.seq


cdef void replace(Plaintext* plaintext, TlsSession* session, Side* own, Segment* segment, Piece* piece) noexcept nogil:
    """A segment with something new in it takes the numbers of the plain stream, and what it completed."""
    cdef uint32_t end = segment.seq + segment.length
    cdef bint fin = segment.flags & TCP_FIN and not own.fin
    cdef bint placed
    if distance(segment.seq, own.cipher_end) > 0:
        own.hole = True
    anchor(own, segment)
    if distance(end, own.cipher_end) > 0:
        own.cipher_end = end
    if segment.length:
        note_carrier(plaintext, own, segment, end)
    if piece.data.num == 0 and (own.broken or fin and own.hole or is_lost(plaintext, session, own)):
        piece.lost = own.cipher_end - own.opened
        own.anchored = False
    own.fin = own.fin or fin
    placed = piece.records.num and is_placed(own, segment, piece)
    if piece.data.num or piece.lost:
        own.opened = own.cipher_end
        own.hole = False
        own.broken = piece.data.num == 0
        own.silent_since = 0
    if placed and piece.data.num:
        spread(plaintext, session, own, segment, piece)
    else:
        pass_share(plaintext, own, segment, piece.data, piece.lost)
    if plaintext.current == session:
        note_turn(plaintext, own)
        if placed:
            own.records_at += piece.length
        forget_carriers(own)


cdef bint is_lost(Plaintext* plaintext, TlsSession* session, Side* own) noexcept nogil:
    """Whether more than a record gave no plaintext although its receiver has had it for some packets."""
    if (distance(own.cipher_end, own.opened) <= LONGEST_RECORD or not own.acked_known
            or distance(own.acked, own.opened) <= LONGEST_RECORD):
        own.silent_since = 0
        return False
    if own.silent_since == 0:
        own.silent_since = session.packets
    return session.packets - own.silent_since >= plaintext.patience


# -- what the streams say ---------------------------------------------------------------------------------------

cdef void take_opened(void* opaque, Connection* connection, int side, Arrival* arrival, Octets data) noexcept nogil:
    """Bytes of a run that decrypts. With the first plaintext, what was made of the handshake is forgotten."""
    cdef Plaintext* plaintext = <Plaintext*>opaque
    cdef Arrival copy = arrival[0]
    if plaintext.unopened:
        copy.acked = -1         # how much plaintext that is, nobody knows yet
    if plaintext.current != NULL and plaintext.current.restart:
        plaintext.current.restart = False
        plaintext.begin(plaintext.next.context, connection)
    if plaintext.extra:
        connection.packets -= 1
        connection.direction[side].packets -= 1
    plaintext.next.bytes(plaintext.next.context, connection, side, &copy, data)


cdef void take_gap(void* opaque, Connection* connection, int side, Arrival* arrival, int64_t num, int cause) noexcept nogil:
    cdef StreamSink* next = &(<Plaintext*>opaque).next
    next.gap(next.context, connection, side, arrival, num, cause)


cdef void take_dropped(void* opaque, int64_t capture, int cause, int64_t num) noexcept nogil:
    cdef StreamSink* next = &(<Plaintext*>opaque).next
    next.dropped(next.context, capture, cause, num)


cdef void take_oddity(void* opaque, Connection* connection, int side, Arrival* arrival, int oddity,
                      int64_t value) noexcept nogil:
    cdef StreamSink* next = &(<Plaintext*>opaque).next
    next.oddity(next.context, connection, side, arrival, oddity, value)


cdef void take_event(void* opaque, Connection* connection, TcpEvent* event) noexcept nogil:
    cdef StreamSink* next = &(<Plaintext*>opaque).next
    next.event(next.context, connection, event)


cdef void take_session_end(void* opaque, Connection* connection) noexcept nogil:
    cdef Plaintext* plaintext = <Plaintext*>opaque
    plaintext.next.ended(plaintext.next.context, connection)
    forget_session(plaintext, connection)
