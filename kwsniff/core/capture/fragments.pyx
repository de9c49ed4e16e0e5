# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""IP fragments to whole datagrams (RFC 791, RFC 8200 4.5).

Rules
  1. The first copy of every eight bytes wins; an overlap changes nothing.
  2. A datagram is whole when its last fragment was seen and no unit before it is missing. What a short snaplen cut off
     stays missing.
  3. A fragment beyond the end that the last one gave, or with another end, is not part of this datagram: what is
     handed on holds no byte that was not captured.
  4. The number of datagrams in reassembly is bounded; the oldest one makes room. None is larger than IP allows.
  5. A whole datagram keeps its place while it is read: fragments inside it, of a tunnel, take others.

    unit      0    1    2    3    4    5
    have      1    1    0    0    1    1(last)
"""

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcmp, memcpy, memset

from kwsniff.core.bytes.span cimport Span, copy_out, make_span


cdef void free_fragments(Fragments* fragments) noexcept nogil:
    cdef uint32_t i
    for i in range(fragments.num):
        free(fragments.datagrams[i].bytes)
    free(fragments.datagrams)
    fragments.datagrams = NULL
    fragments.num = 0


cdef Datagram* find_datagram(Fragments* fragments, const uint8_t* source, const uint8_t* target,
                             uint32_t id, uint64_t network) noexcept nogil:
    cdef Datagram* datagram
    cdef Datagram* oldest = NULL
    cdef uint32_t i
    if fragments.datagrams == NULL:
        fragments.datagrams = <Datagram*>calloc(fragments.limit, sizeof(Datagram))
        if fragments.datagrams == NULL:
            return NULL
        fragments.num = fragments.limit
    for i in range(fragments.num):
        datagram = &fragments.datagrams[i]
        if datagram.lent:
            continue
        if (datagram.used and datagram.id == id and datagram.network == network
                and memcmp(datagram.source, source, 16) == 0 and memcmp(datagram.target, target, 16) == 0):
            return datagram
        if oldest == NULL or not datagram.used and oldest.used or (
                datagram.used == oldest.used and datagram.age < oldest.age):
            oldest = datagram
    if oldest == NULL:
        return NULL
    if oldest.bytes == NULL:
        oldest.bytes = <uint8_t*>malloc(DATAGRAM_BYTES)
        if oldest.bytes == NULL:
            return NULL
    oldest.used = True
    oldest.id = id
    oldest.network = network
    oldest.total = 0
    oldest.units = 0
    memcpy(oldest.source, source, 16)
    memcpy(oldest.target, target, 16)
    memset(oldest.have, 0, sizeof(oldest.have))
    return oldest


cdef void count_units(Datagram* datagram) noexcept nogil:
    """The units that are there before the end, now that it is known."""
    cdef uint32_t unit
    datagram.units = 0
    for unit in range((datagram.total + 7) // 8):
        datagram.units += datagram.have[unit >> 3] >> (unit & 7) & 1


cdef Span join_fragment(Fragments* fragments, const uint8_t* source, const uint8_t* target, uint32_t id,
                          uint64_t network, uint32_t offset, bint more, Span payload, uint32_t length) noexcept nogil:
    """Takes a fragment (`payload`: what was captured of its `length` bytes). Returns the whole payload once it is
    complete, for use until release_datagram; until then a span without an address."""
    cdef Datagram* datagram
    cdef uint32_t unit, at, num
    if offset >= DATAGRAM_BYTES or length > DATAGRAM_BYTES - offset or (more and length % 8):
        return make_span(NULL, 0)
    datagram = find_datagram(fragments, source, target, id, network)
    if datagram == NULL:
        return make_span(NULL, 0)
    fragments.clock += 1
    datagram.age = fragments.clock
    if datagram.total == 0:
        if not more:
            datagram.total = offset + length
            count_units(datagram)
    elif offset + length > datagram.total or not more and offset + length != datagram.total:
        return make_span(NULL, 0)
    at = 0
    while at < length:
        num = length - at if length - at < 8 else 8
        unit = (offset + at) // 8
        if payload.num < at + num:
            break
        if not datagram.have[unit >> 3] & 1 << (unit & 7):
            datagram.have[unit >> 3] |= <uint8_t>(1 << (unit & 7))
            datagram.units += 1
            copy_out(payload, at, &datagram.bytes[unit * 8], num)
        at += num
    if datagram.total == 0 or datagram.units < (datagram.total + 7) // 8:
        return make_span(NULL, 0)
    datagram.lent = True
    return make_span(datagram.bytes, datagram.total)


cdef void release_datagram(Fragments* fragments, Span whole) noexcept nogil:
    cdef uint32_t i
    for i in range(fragments.num):
        if fragments.datagrams[i].bytes == whole.at:
            fragments.datagrams[i].used = False
            fragments.datagrams[i].lent = False
