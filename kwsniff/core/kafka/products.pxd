# cython: language_level=3
# Which product a server is, as far as that decides which layouts its APIs have. products.pyx has the rules.

from kwsniff.core.bytes.span cimport Span
from kwsniff.core.kafka.kafka_connection cimport Context, KafkaConnection
from kwsniff.core.wire.tape cimport Op

cdef enum:
    MOST_TOLD = 8               # answers of a connection that are looked at
    MOST_WORDS = 16             # of an answer and a kind

cdef enum Proof:                # what a word is, in the order of PROOFS
    PROOF_API
    PROOF_FEATURE
    PROOF_CLUSTER_ID
    PROOF_HOST

cdef void learn_product(Context* context, KafkaConnection* kafka, const Op* ops, Span message) noexcept nogil
