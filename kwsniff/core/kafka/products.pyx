# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""What a server's answers show of its product: APIs that Kafka does not have, features, cluster id, hosts.

Rules
  1. A connection decides by its own answers: which others were captured, and in which order they are read, changes nothing.
  2. It decides once, and for calls that begin after that. Those before stay as they were read: a name is not guessed.
  3. Of several products that one answer shows, the one with the lowest number counts: the first of servers.tsv.
  4. Python is asked once per word. What it said is kept in as many places as there are; a word that needs one of them
     takes it from another. Of each kind the first MOST_WORDS of an answer count, so that neither a thousand brokers nor
     what an author of a capture wrote can ask for more.

    answer of ApiVersions, Metadata -> its tape -> words -> known_words, or recognise() -> kafka.product
"""

from libc.stdint cimport int64_t, uint8_t, uint64_t

from kwsniff.core.bytes.hash cimport hash_span
from kwsniff.core.bytes.span cimport Span, drop, keep, make_span
from kwsniff.core.kafka.apis cimport find_slot
from kwsniff.core.kafka.kafka_connection cimport Context, KafkaConnection, KnownWord
from kwsniff.core.wire.meaning cimport MEANING_API_KEY, MEANING_CLUSTER_ID, MEANING_FEATURE, MEANING_HOST, MEANING_TOPIC
from kwsniff.core.wire.tape cimport KIND_INT16, KIND_STRING, Cell, Op

PROOFS = ("api", "feature", "cluster_id", "host")


cdef void learn_product(Context* context, KafkaConnection* kafka, const Op* ops, Span message) noexcept nogil:
    """From an answer whose cells are in the tape."""
    cdef size_t i
    cdef Cell* cell
    cdef const Op* op
    cdef int[4] words = [0, 0, 0, 0]
    cdef int kind, found = 0
    if context.recognise == NULL or kafka.num_told >= MOST_TOLD:
        return
    kafka.num_told += 1
    for i in range(context.tape.num):
        cell = &context.tape.cells[i]
        op = &ops[cell.node]
        if op.meaning == MEANING_TOPIC:        # what follows is about topics
            break
        kind = proof_of(context, op, cell)
        if kind < 0 or words[kind] == MOST_WORDS:
            continue
        words[kind] += 1
        if kind == PROOF_API:
            found = lower(found, ask_number(context, cell.value))
        else:
            found = lower(found, ask(context, kind, keep(drop(message, cell.offset), <size_t>cell.value)))
    kafka.product = found


cdef inline int proof_of(Context* context, const Op* op, const Cell* cell) noexcept nogil:
    """What kind of proof a cell may be; -1 for none."""
    if op.kind == KIND_INT16:
        return PROOF_API if op.meaning == MEANING_API_KEY and find_slot(&context.apis, <int>cell.value) < 0 else -1
    if op.kind != KIND_STRING or cell.value <= 0:
        return -1
    if op.meaning == MEANING_FEATURE:
        return PROOF_FEATURE
    if op.meaning == MEANING_CLUSTER_ID:
        return PROOF_CLUSTER_ID
    return PROOF_HOST if op.meaning == MEANING_HOST else -1


cdef inline int lower(int one, int other) noexcept nogil:
    """The lower of two products' numbers; 0 means no product."""
    return one if other == 0 or 0 < one < other else other


cdef int ask_number(Context* context, int64_t number) noexcept nogil:
    cdef uint8_t[8] digits
    cdef int at = 8
    if number <= 0:
        return 0
    while number and at:
        at -= 1
        digits[at] = <uint8_t>(48 + number % 10)
        number //= 10
    return ask(context, PROOF_API, make_span(&digits[at], <size_t>(8 - at)))


cdef int ask(Context* context, int kind, Span word) noexcept nogil:
    """The number of the product that a word shows, or 0."""
    cdef uint64_t hash = hash_span(word, <uint64_t>kind + 1)
    cdef KnownWord* known = &context.known_words[hash & 255]
    if known.hash != hash or hash == 0:
        known.product = context.recognise(context.owner, kind, word)
        known.hash = hash
    return known.product
