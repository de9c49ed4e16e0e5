# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""TLS connections that ended while their records wait for secrets, which processes write a little later.

Rules
  1. What waits is a copy: the addresses and ports may be used again meanwhile.
  2. It waits while secrets may come, at most `ended_seconds` by the packets' clock, and while memory has room (is_too_much).
     Then, or when the analysis ends, it ends unopened as any other (dispatch.pyx).

    end --[ records wait ]--> sealed: oldest <-> ... <-> newest --[ secrets, or too much ]--> rows
"""

from libc.stdint cimport int64_t
from libc.stdlib cimport free

from kwsniff.core.kafka.kafka_connection cimport Context, KafkaConnection
from kwsniff.core.tcp.connection cimport Connection
from kwsniff.core.tcp.parts cimport bytes_of, copy_of
from kwsniff.core.tls.decryption cimport end_cipher, retry_sealed
from kwsniff.core.tls.tls_state cimport tls_bytes, waits_for_secrets


cdef bint keep_sealed(Context* context, Connection* connection, KafkaConnection* kafka) noexcept nogil:
    """Whether the connection of a connection that has ended is kept for secrets; the connection itself goes."""
    cdef Connection* copy
    if not context.opening.may_come or context.closing or not waits_for_secrets(kafka.tls):
        return False
    copy = copy_of(connection)
    if copy == NULL:
        return False
    copy.kafka = kafka
    kafka.connection = copy
    copy.newer = NULL
    copy.older = context.sealed.newest
    if copy.older != NULL:
        copy.older.newer = copy
    else:
        context.sealed.oldest = copy
    context.sealed.newest = copy
    context.sealed.num += 1
    context.kept_total += bytes_of(copy)
    return True


cdef Connection* next_opened(Context* context, Connection* connection) noexcept nogil:
    """Secrets have come: the first from `connection` on of which nothing waits any more; NULL: there is none."""
    cdef KafkaConnection* kafka
    while connection != NULL:
        kafka = <KafkaConnection*>connection.kafka
        context.kept_total -= tls_bytes(kafka.tls)
        retry_sealed(&context.opening, kafka.tls, connection)
        context.kept_total += tls_bytes(kafka.tls)
        if not waits_for_secrets(kafka.tls):
            end_cipher(&context.opening, kafka.tls, connection)
            return connection
        connection = connection.newer
    return NULL


cdef void free_sealed(Context* context, Connection* connection) noexcept nogil:
    """Its connection is over."""
    if connection.older != NULL:
        connection.older.newer = connection.newer
    else:
        context.sealed.oldest = connection.newer
    if connection.newer != NULL:
        connection.newer.older = connection.older
    else:
        context.sealed.newest = connection.older
    context.sealed.num -= 1
    context.kept_total -= bytes_of(connection)
    free(connection.events)
    free(connection)
