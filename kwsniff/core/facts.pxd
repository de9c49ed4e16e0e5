# cython: language_level=3
from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t

from kwsniff.core.buffer cimport Buffer
from kwsniff.core.octets cimport Octets
from kwsniff.core.tape cimport Op, Tape
from kwsniff.core.topic_ids cimport TopicIds

cdef enum:
    NO_PARTITION = -0x80000000

cdef extern from *:
    """
    #define TOPIC_BY_ID 0x80000000u
    """
    # In the length of a topic: its 16 bytes are a topic id, and no name is known for it.
    const uint32_t TOPIC_BY_ID

# Spans point into the message; they are good until its bytes go.
cdef struct ErrorHit:
    uint32_t node
    int16_t code
    int64_t partition       # NO_PARTITION when the error belongs to none
    Octets topic            # at == NULL: none
    Octets topic_id
    Octets group
    Octets message

cdef struct Facts:
    Octets client_id
    Octets group
    Octets transactional_id
    Octets software_name
    Octets software_version
    Octets sasl_mechanism
    Buffer topics           # Octets, one per distinct topic; `num` has TOPIC_BY_ID set where there is only an id
    Buffer errors           # ErrorHit
    int32_t num_errors
    int16_t first_error
    bint broken             # the message broke off: what is not here may be in the rest
    bint has_error          # the message has an error field, whatever its value
    bint has_acks
    int16_t acks
    bint has_throttle
    int64_t throttle
    bint has_partitions
    int64_t partitions
    bint has_records
    bint records_uncounted  # some record set's count needs decompression
    int64_t records
    int64_t record_bytes

cdef void gather_facts(Facts* facts, const Op* ops, Tape* tape, Octets message, TopicIds* topic_ids) noexcept nogil
cdef void free_facts(Facts* facts) noexcept nogil
