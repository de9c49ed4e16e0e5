# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""Keys and what they open: the one place of the compiled rooms that calls a library of cryptography.

Rules
  1. The interpreter is met once per run of records, not once per packet; inside, the library is called per record.
  2. What does not open changes nothing. What else goes wrong in Python is kept as `failure`, which feed() raises.
  3. A key's bytes stay in Python; nothing here looks at them but at the fixed part of nonces.

    1.3       nonce: iv xor number       additional: header                          in: plaintext | type | zeros
    explicit  nonce: iv4 | 8 of record   additional: number | type | version | length    (AES-GCM, AES-CCM of 1.2)
    implicit  nonce: iv xor number       additional: number | type | version | length    (ChaCha20-Poly1305 of 1.2)
    whole     nonce: number              additional: header                              (CBC: all is up to `decrypt`)

Source: RFC 8446 5.2 and 5.3; RFC 5246 6.2.3, RFC 5288 3, RFC 6655 3, RFC 7905 2.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.memoryview cimport PyMemoryView_FromMemory
from cpython.buffer cimport PyBUF_READ
from cpython.ref cimport Py_INCREF, Py_XDECREF, PyObject
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from kwsniff.core.bytes.buffer cimport append, append_raw
from kwsniff.core.bytes.span cimport Span, be16, copy_out, drop, has, keep, make_span, u8
from kwsniff.core.tls.hello cimport Hello
from kwsniff.core.tls.record_layer cimport RECORD_DATA, RECORD_HEADER
from kwsniff.core.tls.tls_state cimport EPOCH_HANDSHAKE, Opened, Opening

cdef enum Kind:
    KEY_1_3 = 0
    KEY_EXPLICIT = 1
    KEY_IMPLICIT = 2
    KEY_WHOLE = 3

KINDS = ("1.3", "explicit", "implicit", "whole")

cdef enum:
    EXPLICIT = 8                # bytes of a nonce in the record
    ADDITIONAL = 13
    MOST_GUESSES = 2_000_000    # records that are tried in all, some seconds,
    CONNECTION_GUESSES = 200_000    # and for a direction of a connection;
    FIRST_RECORDS = 64          # numbers of a handshake, and of all where one of the hellos shows that it begins here


cdef class Key:
    """`decrypt(nonce, data, additional)` gives plaintext or raises; `iv` has 12 bytes, 4 of them for `explicit`;
    `overhead`: bytes of a record beyond header and plaintext, -1 where that is not the same for all."""

    cdef object decrypt
    cdef int kind
    cdef uint8_t[12] iv
    cdef int64_t overhead

    def __init__(self, kind, decrypt, bytes iv, overhead):
        self.kind = KINDS.index(kind)
        self.decrypt = decrypt
        self.overhead = overhead
        copy_out(make_span(<const uint8_t*>PyBytes_AS_STRING(iv), <size_t>len(iv)), 0, self.iv, <size_t>len(iv))


cdef class Keyring:
    """Where keys come from: `find(hellos, side, epoch)` gives what Key takes, or None; side 0 is the client's. `hellos`:
    client's and server's random, cipher suite, version, each None where it was not captured; whether it encrypts and then
    MACs; session id; marks of the ticket that resumes a session and of the one given, or 0; whether it is resumed.
    `guess(hellos, sides)` gives sessions to try where a hello is missing: (client_random, cipher suite, version, side, epoch,
    what Key takes); `guess(hellos, (), client_random)` tells which of them it was. It may be None."""

    def __init__(self, find, guess=None):
        self.find = find
        self.guess = guess
        self.guesses = MOST_GUESSES

    def take_failure(self):
        """What went wrong where nothing can be raised, once."""
        failure, self.failure = self.failure, None
        return failure


cdef void* take_key(Opening* opening, Hello* hello, int side, int epoch) noexcept nogil:
    """A key, which is the caller's to drop; NULL if there is none."""
    if opening.keyring == NULL or hello == NULL:
        return NULL
    with gil:
        return ask(<Keyring><object>opening.keyring, hello, side, epoch)


cdef void* ask(Keyring keyring, Hello* hello, int side, int epoch) noexcept:
    try:
        parts = keyring.find(told(hello), side, epoch)
        if parts is None:
            return NULL
        key = Key(*parts)
        Py_INCREF(key)
        return <void*>key
    except BaseException as error:
        keyring.failure = error
        return NULL


cdef told(Hello* hello):
    return (
        (<const char*>hello.client_random)[:32] if hello.client_random_known else None,
        (<const char*>hello.server_random)[:32] if hello.server_random_known else None,
        hello.cipher if hello.cipher_known else None,
        hello.version if hello.version_known else None,
        bool(hello.encrypt_then_mac),
        (<const char*>hello.session_id)[:hello.session_id_num],
        hello.ticket_shown if hello.resumed else 0,
        hello.ticket_given,
        bool(hello.resumed),
    )


cdef void* guess_key(Opening* opening, Hello* hello, int direction, Span record, int* epoch,
                     uint64_t* number) noexcept nogil:
    """Whose record this is, by trying the sessions at hand, low numbers first: its key, with the hello filled in. NULL: none.
    `number`: how many are tried at most, or 0; then which it was."""
    if opening.keyring == NULL:
        return NULL
    with gil:
        return try_sessions(opening, <Keyring><object>opening.keyring, hello, direction, record, epoch, number)


cdef void* try_sessions(Opening* opening, Keyring keyring, Hello* hello, int direction, Span record, int* epoch,
                        uint64_t* number) noexcept:
    cdef int64_t tries
    cdef Key key
    try:
        sides = [side for side in (0, 1) if hello.client < 0 or (side == 0) == (hello.client == direction)]
        sessions = [] if keyring.guess is None else [
            (*session, Key(*parts)) for *session, parts in keyring.guess(told(hello), sides)
        ]
        tries = min(CONNECTION_GUESSES, keyring.guesses) // max(len(sessions), 1)
        if hello.num_read:
            tries = min(tries, FIRST_RECORDS)
        if number[0]:
            tries = min(tries, <int64_t>number[0])
        number[0] = 0
        while sessions and <int64_t>number[0] < tries and keyring.failure is None:
            for random, cipher, version, side, keys, key in sessions:
                if keys == EPOCH_HANDSHAKE and number[0] >= FIRST_RECORDS:
                    continue
                keyring.guesses -= 1
                opening.plain.len = opening.opened.len = 0
                if open_record(opening, key, number[0], record):
                    fill_in(hello, random, cipher, version, direction if side == 0 else 1 - direction)
                    keyring.guess(told(hello), (), random)
                    epoch[0] = keys
                    Py_INCREF(key)
                    return <void*>key
            number[0] += 1
    except BaseException as error:
        keyring.failure = error
    return NULL


cdef fill_in(Hello* hello, bytes random, cipher, version, int client):
    memcpy(hello.client_random, PyBytes_AS_STRING(random), 32)
    hello.client_random_known = hello.cipher_known = hello.version_known = True
    hello.cipher = cipher
    hello.version = version
    hello.client = client
    hello.num_read += 1


cdef void drop_key(void* key) noexcept nogil:
    if key != NULL:
        with gil:
            Py_XDECREF(<PyObject*>key)


cdef int64_t key_overhead(void* key) noexcept nogil:
    """Bytes of a record beyond header and plaintext (with 1.3's type, without its padding), or -1."""
    cdef int64_t overhead
    with gil:
        overhead = (<Key>key).overhead
    return overhead


cdef void note_proven(Opening* opening) noexcept nogil:
    with gil:
        (<Keyring><object>opening.keyring).opened += 1


cdef size_t open_run(Opening* opening, void* key, uint64_t number, Span records, int64_t most) noexcept nogil:
    """Opens whole records from the front of `records` on, `most` of them (-1: all), up to the first one that is not data or
    does not open: what they hold is in `opening.plain`, what they were in `opening.opened`. Returns how many opened."""
    cdef size_t num = 0
    opening.plain.len = 0
    opening.opened.len = 0
    with gil:
        while most and is_whole(records):
            if not open_record(opening, <Key>key, number + num, keep(records, RECORD_HEADER + be16(records, 3))):
                break
            num += 1
            most -= 1
            if last_kind(opening) != RECORD_DATA:
                break
            records = drop(records, RECORD_HEADER + be16(records, 3))
    return num


cdef inline bint is_whole(Span records) noexcept nogil:
    return has(records, RECORD_HEADER, be16(records, 3)) and records.num > RECORD_HEADER


cdef inline int last_kind(Opening* opening) noexcept nogil:
    return (<Opened*>opening.opened.data)[opening.opened.len // sizeof(Opened) - 1].kind


cdef bint open_record(Opening* opening, Key key, uint64_t number, Span record) noexcept:
    cdef Opened opened
    cdef Span plain
    cdef bytes result
    try:
        result = decrypt(key, number, record)
    except Exception:
        return False
    except BaseException as error:
        (<Keyring><object>opening.keyring).failure = error
        return False
    plain = make_span(<const uint8_t*>PyBytes_AS_STRING(result), <size_t>PyBytes_GET_SIZE(result))
    opened.kind = <int>u8(record, 0)
    opened.length = <uint32_t>record.num
    if key.kind == KEY_1_3:
        while plain.num and u8(plain, plain.num - 1) == 0:
            plain = keep(plain, plain.num - 1)
        opened.kind = <int>u8(plain, plain.num - 1) if plain.num else 0
        plain = keep(plain, plain.num - 1 if plain.num else 0)
    opened.plain = <uint32_t>plain.num
    return append(&opening.plain, plain) and append_raw(&opening.opened, &opened, sizeof(Opened))


cdef bytes decrypt(Key key, uint64_t number, Span record):
    """Raises what the library raises for what does not open."""
    cdef uint8_t[12] nonce
    cdef uint8_t[13] more
    cdef uint64_t big = number
    cdef Span data = drop(record, RECORD_HEADER)
    cdef size_t num_more = RECORD_HEADER, num_nonce = 12
    cdef int64_t plain
    cdef int i
    memcpy(nonce, key.iv, 12)
    if key.kind == KEY_1_3 or key.kind == KEY_IMPLICIT:
        for i in range(8):
            nonce[11 - i] ^= <uint8_t>(big & 0xFF)
            big >>= 8
    elif key.kind == KEY_EXPLICIT:
        copy_out(data, 0, &nonce[4], EXPLICIT)
        data = drop(data, EXPLICIT)
    else:
        num_nonce = 8
        for i in range(8):
            nonce[7 - i] = <uint8_t>(big & 0xFF)
            big >>= 8
    if key.kind == KEY_EXPLICIT or key.kind == KEY_IMPLICIT:
        plain = <int64_t>record.num - RECORD_HEADER - key.overhead
        if plain < 0:
            raise ValueError
        big = number
        for i in range(8):
            more[7 - i] = <uint8_t>(big & 0xFF)
            big >>= 8
        copy_out(record, 0, &more[8], 3)
        more[11] = <uint8_t>(plain >> 8)
        more[12] = <uint8_t>(plain & 0xFF)
        num_more = ADDITIONAL
    else:
        copy_out(record, 0, more, RECORD_HEADER)
    return key.decrypt(
        PyBytes_FromStringAndSize(<char*>nonce, <Py_ssize_t>num_nonce),
        PyMemoryView_FromMemory(<char*>data.at, <Py_ssize_t>data.num, PyBUF_READ),
        PyBytes_FromStringAndSize(<char*>more, <Py_ssize_t>num_more),
    )


cdef bint find_number(Opening* opening, void* key, Span record, uint64_t least, uint64_t num, int64_t* tries,
                      uint64_t* number) noexcept nogil:
    """Tries `num` numbers from `least` on, as long as there are `tries` left."""
    cdef uint64_t i
    opening.plain.len = 0
    opening.opened.len = 0
    with gil:
        for i in range(num):
            if tries[0] <= 0:
                return False
            tries[0] -= 1
            if open_record(opening, <Key>key, least + i, record):
                number[0] = least + i
                return True
            if (<Keyring><object>opening.keyring).failure is not None:
                return False
    return False
