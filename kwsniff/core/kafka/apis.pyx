# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""The table of APIs, filled once, when an analyzer is set up (apis.pxd)."""

from libc.stdint cimport int32_t, int64_t, uint32_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memset


cdef bint add_api(Apis* apis, const ApiRange* api, int64_t checksum) except False:
    """Adds one more; the keys come in any order, none twice."""
    cdef ApiRange* ranges = <ApiRange*>realloc(apis.ranges, <size_t>(apis.num + 1) * sizeof(ApiRange))
    cdef uint32_t num = 16, i
    cdef int32_t slot
    if ranges == NULL:
        raise MemoryError
    apis.ranges = ranges
    apis.ranges[apis.num] = api[0]
    apis.num += 1
    apis.checksum = checksum
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
    cdef uint32_t i = (<uint32_t>apis.ranges[slot].key * <uint32_t>0x9E3779B1) >> 16
    while apis.slots[i & apis.mask]:
        i += 1
    apis.slots[i & apis.mask] = slot + 1


cdef void free_apis(Apis* apis) noexcept nogil:
    free(apis.ranges)
    free(apis.slots)
    memset(apis, 0, sizeof(Apis))
