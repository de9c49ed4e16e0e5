# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""TLS sessions by their endpoints, and how far each of their directions has come.

Rules
  1. A session lives as long as its connection does in the streams; the one that was silent longest makes room.
  2. What is remembered of a direction is bounded: the oldest goes first.
"""

from libc.stdint cimport uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp, memcpy, memmove

from kwsniff.core.octets.buffer cimport Buffer, contents, release
from kwsniff.core.octets.hash cimport mix
from kwsniff.core.octets.octets cimport Octets, drop
from kwsniff.core.capture.packets cimport Reader, Segment
from kwsniff.core.tcp.connections cimport Connection, Streams

cdef enum:
    NUM_BUCKETS = 65536


cdef bint start_sessions(Plaintext* plaintext, Streams* streams, Reader* reader, uint64_t most, uint64_t seed,
                          int64_t patience) noexcept nogil:
    plaintext.streams = streams
    plaintext.reader = reader
    plaintext.most = most
    plaintext.seed = seed
    plaintext.patience = patience
    plaintext.num_buckets = NUM_BUCKETS
    plaintext.buckets = <TlsSession**>calloc(NUM_BUCKETS, sizeof(TlsSession*))
    return plaintext.buckets != NULL


cdef void free_sessions(Plaintext* plaintext) noexcept nogil:
    while plaintext.oldest != NULL:
        remove_session(plaintext, plaintext.oldest)
    free(plaintext.buckets)
    plaintext.buckets = NULL


cdef TlsSession* find_session(Plaintext* plaintext, Segment* segment, int sender) noexcept nogil:
    cdef TlsSession wanted
    cdef TlsSession* session = plaintext.newest
    memcpy(wanted.address[sender], segment.source, 16)
    memcpy(wanted.address[1 - sender], segment.target, 16)
    wanted.port[sender] = segment.source_port
    wanted.port[1 - sender] = segment.target_port
    if session != NULL and same_session(session, &wanted):
        return session
    session = look_up(plaintext, &wanted)
    if session == NULL:
        return add_session(plaintext, &wanted)
    unlink_age(plaintext, session)
    link_newest(plaintext, session)
    return session


cdef inline bint same_session(TlsSession* a, TlsSession* b) noexcept nogil:
    return (a.port[0] == b.port[0] and a.port[1] == b.port[1]
            and memcmp(a.address[0], b.address[0], 16) == 0 and memcmp(a.address[1], b.address[1], 16) == 0)


cdef TlsSession* look_up(Plaintext* plaintext, TlsSession* wanted) noexcept nogil:
    """The session of these endpoints, or NULL; sets the hash of `wanted`."""
    cdef uint64_t[4] words
    cdef TlsSession* session
    memcpy(words, wanted.address[0], 16)
    memcpy(&words[2], wanted.address[1], 16)
    wanted.hash = mix(mix(mix(mix(mix(plaintext.seed, words[0]), words[1]), words[2]), words[3]),
                      <uint32_t>wanted.port[0] << 16 | wanted.port[1])
    session = plaintext.buckets[wanted.hash & (plaintext.num_buckets - 1)]
    while session != NULL and not same_session(session, wanted):
        session = session.chain
    return session


cdef TlsSession* add_session(Plaintext* plaintext, TlsSession* wanted) noexcept nogil:
    cdef TlsSession* session
    cdef TlsSession** bucket = &plaintext.buckets[wanted.hash & (plaintext.num_buckets - 1)]
    if plaintext.num >= plaintext.most and plaintext.oldest != NULL:
        remove_session(plaintext, plaintext.oldest)
    session = <TlsSession*>calloc(1, sizeof(TlsSession))
    if session == NULL:
        plaintext.streams.no_memory = True
        return NULL
    memcpy(session.address, wanted.address, sizeof(session.address))
    memcpy(session.port, wanted.port, sizeof(session.port))
    session.hash = wanted.hash
    session.chain = bucket[0]
    bucket[0] = session
    plaintext.num += 1
    link_newest(plaintext, session)
    return session


cdef void remove_session(Plaintext* plaintext, TlsSession* session) noexcept nogil:
    cdef TlsSession** link = &plaintext.buckets[session.hash & (plaintext.num_buckets - 1)]
    while link[0] != session:
        link = &link[0].chain
    link[0] = session.chain
    unlink_age(plaintext, session)
    if plaintext.current == session:
        plaintext.current = NULL
    plaintext.num -= 1
    release(&session.side[0].turns)
    release(&session.side[1].turns)
    release(&session.side[0].carriers)
    release(&session.side[1].carriers)
    free(session)


cdef void forget_session(Plaintext* plaintext, Connection* connection) noexcept nogil:
    """The connection has ended; another one may follow under its addresses and ports."""
    cdef TlsSession wanted
    cdef TlsSession* session
    memcpy(wanted.address, connection.address, sizeof(wanted.address))
    memcpy(wanted.port, connection.port, sizeof(wanted.port))
    session = look_up(plaintext, &wanted)
    if session != NULL:
        remove_session(plaintext, session)


cdef inline void link_newest(Plaintext* plaintext, TlsSession* session) noexcept nogil:
    session.newer = NULL
    session.older = plaintext.newest
    if plaintext.newest != NULL:
        plaintext.newest.newer = session
    else:
        plaintext.oldest = session
    plaintext.newest = session


cdef inline void unlink_age(Plaintext* plaintext, TlsSession* session) noexcept nogil:
    if session.older != NULL:
        session.older.newer = session.newer
    elif plaintext.oldest == session:
        plaintext.oldest = session.newer
    if session.newer != NULL:
        session.newer.older = session.older
    elif plaintext.newest == session:
        plaintext.newest = session.older


cdef void drop_front(Buffer* buffer, size_t num) noexcept nogil:
    cdef Octets rest = drop(contents(buffer), num)
    if num:
        memmove(buffer.data, rest.at, rest.num)
        buffer.len = rest.num
