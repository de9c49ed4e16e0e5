# cython: language_level=3
# Calls that the reader does not want: what a request's header and its connection decide, before its body is read.
#
# Rule 1: only a confirmed connection passes calls over; what proves that a connection is Kafka is read.
# Rule 2: a call that is passed over keeps its number and its place in line and is paired as any other. It gets no row.
# Rule 3: messages that teach something about later calls (`lessons`) are read, from every client.
# Rule 4: what is decided once per connection holds for requests with the client id that the connection was learned to have.
#
#     header ─ client id is the connection's? ─ may_choose(connection) ─ no ─▶ CHOICE_NO_BODY
#            └ API, version, time, correlation id ─────────────── no ─▶ CHOICE_NO_ROW

from kwsniff.core.capture.packets cimport NO_TIME
from kwsniff.core.kafka.apis cimport Apis, in_span
from kwsniff.core.kafka.kafka_connection cimport (
    CHOICE_NO_BODY, CHOICE_NO_ROW, CHOICE_ROW, CONNECTION_UNDECIDED, CONNECTION_WANTED, MOST_CHOICES, Call, Choices,
    Context, KafkaConnection,
)
from kwsniff.core.kafka.frames cimport Frame
from kwsniff.core.bytes.buffer cimport contents
from kwsniff.core.bytes.span cimport Span, be16, drop, has, keep, same_bytes

# Of an API: what is read of it even where its call gets no row.
cdef enum Lesson:
    LESSON_REQUEST = 1
    LESSON_RESPONSE = 2
    LESSON_SESSION = 4          # its responses, where others of its calls may be rows
    LESSON_WANTED = 8           # one of its versions may be a row


cdef fill_choices(Choices* choices, Apis* apis, choice)
cdef int ask_choice(KafkaConnection* kafka, may_choose) except -1


cdef inline int choose_by_client(Context* context, KafkaConnection* kafka, Span data, int slot, int version) noexcept nogil:
    """CHOICE_NO_BODY where the connection and the client id decide it. `data`: the frame."""
    cdef Span known
    cdef int length
    if not context.choices.some or not kafka.confirmed or kafka.tokens or kafka.client < 0:
        return CHOICE_ROW
    if slot < 0 or in_span(&context.apis.ranges[slot].anonymous, version):
        return CHOICE_ROW
    length = <int>(<short>be16(data, 12))
    known = contents(&kafka.client_id)
    if length < 0:
        if known.num:
            return CHOICE_ROW
    elif length == 0 or not has(data, 14, <size_t>length) or not same_bytes(keep(drop(data, 14), <size_t>length), known):
        return CHOICE_ROW
    if kafka.chosen == CONNECTION_UNDECIDED:
        kafka.chosen = context.choices.may_choose(context.owner, kafka)
    return CHOICE_ROW if kafka.chosen == CONNECTION_WANTED else CHOICE_NO_BODY


cdef inline bint is_lesson(Context* context, int slot, int lesson) noexcept nogil:
    """Whether a message of an API is read from every client."""
    return slot < 0 or (context.choices.lessons[slot] & lesson) != 0


cdef inline int choose_by_header(Context* context, KafkaConnection* kafka, Call* call) noexcept nogil:
    """CHOICE_NO_ROW where API, version, time or correlation id decide it."""
    cdef Choices* choices = &context.choices
    cdef int slot
    if not choices.some or not kafka.confirmed or call.doubtful:
        return CHOICE_ROW
    if not choices.first_id <= call.correlation_id <= choices.last_id:
        return CHOICE_NO_ROW
    if call.first.time != NO_TIME and not choices.first_time <= call.first.time <= choices.last_time:
        return CHOICE_NO_ROW
    slot = call.slot
    if slot < 0 or not 0 <= call.version < MOST_CHOICES:
        return CHOICE_ROW
    return CHOICE_ROW if choices.wanted[slot * MOST_CHOICES + call.version] else CHOICE_NO_ROW


cdef inline bint is_response_read(Context* context, KafkaConnection* kafka, Call* call) noexcept nogil:
    """Whether the response of a call is decoded."""
    cdef int slot
    if call.choice == CHOICE_ROW or call.doubtful or not kafka.confirmed:
        return True
    slot = call.slot
    if slot < 0 or context.choices.lessons[slot] & LESSON_RESPONSE:
        return True
    return (call.choice == CHOICE_NO_ROW and (context.choices.lessons[slot] & LESSON_SESSION) != 0
            and (context.choices.lessons[slot] & LESSON_WANTED) != 0)
