# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""The table of APIs, filled once, when an analyzer is set up (apis.pxd).

Rules
  1. What cannot be is refused here with one line; the layouts were checked before, with file and line.
  2. The checksum is of all that was said: a saved state belongs to it.

    (key, first, last, flexible, traits ...)*  ->  ranges, slots
"""

from libc.stdint cimport int32_t, uint32_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memset


from hashlib import blake2b

from kwsniff.errors import UsageError

MOST_KEY = 32767        # keys and versions are int16 on the wire
MOST_ID = 0x7FFFFFFF    # product << 16 | key
NOTHING_SAID = [0, 0, 0, 1, 0, 1, 0, 1, 0, 1, 0, 0, 0, 0]       # of an API, behind its versions


cdef fill_apis(Apis* apis, api_ranges):
    """Of each API what Catalog.spoken tells; its number and versions will do."""
    cdef ApiRange api
    keys = set()
    check = blake2b(digest_size=8)
    for key, first, last, flexible, *said in api_ranges:
        if not (0 <= key <= MOST_ID and key & 0xFFFF <= MOST_KEY and 0 <= first <= last <= MOST_KEY) or key in keys:
            raise UsageError(f"api {key} with versions {first} to {last} cannot be, or is there twice")
        keys.add(key)
        said += NOTHING_SAID[len(said):]
        check.update(repr((key, first, last, flexible, said)).encode())
        api.id, api.first, api.last, api.flexible = key, first, last, flexible
        api.internal, api.rendezvous, api.fallback = said[:3]
        api.shared.first, api.shared.last, api.tokens.first, api.tokens.last = said[3:7]
        api.anonymous.first, api.anonymous.last = said[7:9]
        api.unnumbered.first, api.unnumbered.last = said[9:11]
        api.details, api.tells = said[11:13]
        add_api(apis, &api)
    apis.checksum = int.from_bytes(check.digest(), "little", signed=True)


cdef bint add_api(Apis* apis, const ApiRange* api) except False:
    """Adds one more; the keys come in any order, none twice."""
    cdef ApiRange* ranges = <ApiRange*>realloc(apis.ranges, <size_t>(apis.num + 1) * sizeof(ApiRange))
    cdef uint32_t num = 16, i
    cdef int32_t slot
    if ranges == NULL:
        raise MemoryError
    apis.ranges = ranges
    apis.ranges[apis.num] = api[0]
    apis.num += 1
    while num < 2 * <uint32_t>apis.num:
        num *= 2
    if apis.slots == NULL or num != apis.mask + 1:
        free(apis.slots)
        apis.slots = <int32_t*>calloc(num, sizeof(int32_t))
        if apis.slots == NULL:
            apis.num = 0
            raise MemoryError
        apis.mask = num - 1
        for slot in range(apis.num - 1):
            put_slot(apis, slot)
    put_slot(apis, apis.num - 1)
    return True


cdef void put_slot(Apis* apis, int32_t slot) noexcept nogil:
    cdef uint32_t i = (<uint32_t>apis.ranges[slot].id * <uint32_t>0x9E3779B1) >> 16
    while apis.slots[i & apis.mask]:
        i += 1
    apis.slots[i & apis.mask] = slot + 1


cdef void free_apis(Apis* apis) noexcept nogil:
    free(apis.ranges)
    free(apis.slots)
    memset(apis, 0, sizeof(Apis))
