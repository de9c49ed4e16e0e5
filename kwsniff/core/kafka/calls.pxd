# cython: language_level=3
# Requests that wait for their response, from the first byte to their row. calls.pyx has the rules.

from kwsniff.core.declared cimport BIN_ANSWERED, BIN_NO_RESPONSE_EXPECTED, BIN_RESPONSE_NOT_CAPTURED, BIN_UNANSWERED
from kwsniff.core.kafka.kafka_connection cimport CHOICE_ROW, Call, Context, KafkaConnection, count_bytes, lost_bin
from kwsniff.core.wire.facts cimport Facts
from kwsniff.core.kafka.frames cimport Frame
from kwsniff.core.kafka.memory_budget cimport drain_if_full
from kwsniff.core.kafka.row_sink cimport write_call, write_latency, write_partitions
from kwsniff.core.kafka.call_stalls cimport settle_unanswered
from kwsniff.core.kafka.tcp_events cimport settle_events

cdef Call* add_call(Context* context, KafkaConnection* kafka, Frame* frame) noexcept nogil
cdef void finish_oldest(Context* context, KafkaConnection* kafka, int status, int reason) noexcept nogil
cdef void finish_passed(Context* context, KafkaConnection* kafka) noexcept nogil
cdef void finish_all(Context* context, KafkaConnection* kafka) noexcept nogil


cdef inline bint needs_no_answer(Call* call) noexcept nogil:
    """A Produce with acks=0. It waits only where the broker answers these, too."""
    return call.has_acks and call.acks == 0


cdef inline void finish_call(Context* context, KafkaConnection* kafka, Call* call, int status, int reason, Frame* response,
                             Facts* facts) noexcept nogil:
    cdef int[4] bins = [BIN_ANSWERED, BIN_NO_RESPONSE_EXPECTED, BIN_UNANSWERED, BIN_RESPONSE_NOT_CAPTURED]
    cdef int bin = bins[status] if kafka.confirmed else lost_bin(kafka)
    drain_if_full(context)
    count_bytes(context, call.bytes_capture, bin, call.captured)
    if response != NULL:
        count_bytes(context, response.capture, bin, response.captured)
    if kafka.confirmed and call.choice != CHOICE_ROW:
        kafka.num_calls += 1
    elif kafka.confirmed:
        write_call(context, kafka, call, status, reason, response, facts)
        settle_events(context, kafka, call, response)
        write_partitions(context, kafka, call, facts)
        if response != NULL:
            write_latency(context, kafka, call, response, facts)
        elif kafka.stalls.len:
            settle_unanswered(context, kafka, call)
