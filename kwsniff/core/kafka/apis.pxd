# cython: language_level=3
# The APIs that there are layouts for, by slot: their number in ascending order of the keys.
#
# Rule 1: nothing is sized by a key. A key goes to its slot through a hash with open addressing, at most half full.
# Rule 2: what an API is for comes from the words of its layout (kwsniff/layout/traits.py); no key is in code.
#
# Rule 3: an API that only the servers of one product have is found by that product's number and its key: key 501 is
#         one API at AutoMQ and another at Inkless. It may not have a key of Kafka's.
#
#     key 9999 -> hash -> slots[i]: slot + 1, 0: free -> ranges[slot]

from libc.stdint cimport int16_t, int32_t, int64_t, uint32_t

cdef enum:
    MOST_DETAIL = 1 << 16       # bytes of one response that go into rows as they are

cdef enum Detail:
    DETAIL_NONE = 0
    DETAIL_REQUEST = 1
    DETAIL_RESPONSE = 2

cdef struct VersionSpan:        # none: last < first
    int16_t first
    int16_t last

cdef struct ApiRange:
    int32_t id                  # product << 16 | key; the product is 0 for APIs of every server
    int16_t first
    int16_t last
    int16_t flexible
    bint internal               # brokers and controllers speak it among themselves
    bint rendezvous             # the answer waits for other members of the group
    bint fallback               # a version the broker lacks is answered as version 0
    VersionSpan shared          # clients and brokers ask it alike
    VersionSpan tokens          # bare tokens follow the answer
    VersionSpan anonymous       # the request's header has no client id
    VersionSpan unnumbered      # some brokers answer with correlation id 0
    int details                 # Detail: whose bytes go into rows as they are
    bint tells                  # its responses show what product the server is

cdef struct Apis:
    ApiRange* ranges
    int32_t num
    int32_t* slots
    uint32_t mask               # number of slots - 1
    int64_t checksum            # of all that is said here


cdef inline int find_slot(const Apis* apis, int key) noexcept nogil:
    """The slot of a key, -1 where no layout has it."""
    cdef uint32_t i = (<uint32_t>key * <uint32_t>0x9E3779B1) >> 16
    cdef int32_t slot
    if apis.num == 0:
        return -1
    while True:
        slot = apis.slots[i & apis.mask] - 1
        if slot < 0 or apis.ranges[slot].id == key:
            return slot
        i += 1


cdef inline ApiRange* find_api(const Apis* apis, int key) noexcept nogil:
    """NULL where no layout has the key."""
    return api_at(apis, find_slot(apis, key))


cdef inline ApiRange* api_at(const Apis* apis, int slot) noexcept nogil:
    """NULL for -1."""
    return &apis.ranges[slot] if slot >= 0 else NULL


cdef inline int find_slot_at(const Apis* apis, int key, int product) noexcept nogil:
    """The slot of a key at the servers of a product; 0: not known which."""
    cdef int slot = find_slot(apis, product << 16 | key) if product and key >= 0 else -1
    return slot if slot >= 0 else find_slot(apis, key)


cdef inline bint in_span(const VersionSpan* span, int version) noexcept nogil:
    return span.first <= version <= span.last


cdef fill_apis(Apis* apis, api_ranges)
cdef void free_apis(Apis* apis) noexcept nogil
