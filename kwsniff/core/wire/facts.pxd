# cython: language_level=3
# One fold over a message's tape: the facts that rows of the tables are made of. facts.pyx has the rules.

from libc.stdint cimport int16_t, int32_t, int64_t, uint32_t

from kwsniff.core.bytes.buffer cimport Buffer
from kwsniff.core.bytes.known cimport Known, know
from kwsniff.core.bytes.span cimport Span
from kwsniff.core.wire.tape cimport Op, Tape
from kwsniff.core.wire.topic_ids cimport TopicIds

cdef enum:
    NO_PARTITION = -0x80000000
    TRANSACTIONAL = 0x10        # attributes of batches of format 2
    CONTROL_BATCH = 0x20

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
    Span topic            # at == NULL: none
    Span topic_id
    Span group
    Span message

# What a struct with a partition in it says of that partition.
cdef struct PartitionHit:
    Span topic            # at == NULL: none
    Span topic_id
    Span group            # where the message speaks of several
    int32_t partition
    Known error
    Known offset            # asked for, committed, or answered
    Known base_offset
    Known last_offset
    Known high_watermark
    Known last_stable_offset
    Known log_start_offset
    Known read_replica      # -1: the leader
    Known record_bytes
    Known records           # unknown where old batches are compressed
    int64_t batches

# What a fetch session drops of a topic: big-endian numbers of partitions.
cdef struct Forgotten:
    Span topic
    Span topic_id
    Span partitions

# What is forgotten with every message comes first; `topics` is the first of what is kept.
cdef struct Facts:
    Span client_id
    Span group
    Span transactional_id
    Span coordinator_key    # whose coordinator is asked for; at == NULL where there are several
    Span software_name
    Span software_version
    Span sasl_mechanism
    Span secret           # the message's own secret bytes: what a client authenticates with
    Span member
    Span group_instance
    Span protocol_type
    Span rack               # of the client itself
    Known key_type          # of coordinator_key
    Known generation
    Known producer_id
    Known producer_epoch
    Known isolation
    Known committed
    Known session_id
    Known session_epoch
    Known max_wait
    Known min_bytes
    Known max_bytes
    Known timeout           # the first one that the message names of itself
    Known replica_id
    int32_t num_errors
    int16_t first_error
    bint broken             # the message broke off: what is not here may be in the rest
    bint has_error          # the message has an error field, whatever its value
    bint has_acks
    int16_t acks
    bint has_throttle
    bint held_back          # the throttle was waited out before the answer was sent
    Known aborted_behind    # an aborted transaction that is listed behind one that began later
    int64_t throttle
    bint has_partitions
    int64_t partitions
    bint has_records
    bint records_uncounted  # some record set's count needs decompression
    int64_t records
    int64_t record_bytes
    Known made_first        # milliseconds since the epoch: when the first of the batches was complete,
    Known made_last         # and when the last one was
    Known ended_last        # when the last marker of a transaction's end (a control batch) was written, likewise
    bint transactional      # of some partition the first batch belongs to a transaction
    bint more_left          # of some partition there is more than what is in here
    Buffer topics           # Span, one per distinct topic; `num` has TOPIC_BY_ID set where there is only an id
    bint wants_partitions   # set by the caller, kept over messages
    bint wants_batches
    size_t most_hits        # of a kind that one message leaves; what comes after is only counted
    Buffer forgotten        # Forgotten
    Buffer partition_hits   # PartitionHit
    Buffer batch_hits       # BatchHit, see batches.pxd
    Buffer errors           # ErrorHit

cdef void gather_facts(Facts* facts, const Op* ops, Tape* tape, Span message, TopicIds* topic_ids) noexcept nogil
cdef void free_facts(Facts* facts) noexcept nogil


# Of each batch: when it was complete, and whether a transaction begins or ends the records.

cdef inline void note_made(Facts* facts, int64_t time) noexcept nogil:
    if not facts.made_first.is_known or time < facts.made_first.value: know(&facts.made_first, time)
    if not facts.made_last.is_known or time > facts.made_last.value: know(&facts.made_last, time)


cdef inline void note_transaction(Facts* facts, int attributes, int64_t time, bint first) noexcept nogil:
    if not attributes & CONTROL_BATCH:
        facts.transactional = facts.transactional or first
    elif not facts.ended_last.is_known or time > facts.ended_last.value:
        know(&facts.ended_last, time)
