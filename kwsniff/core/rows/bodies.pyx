# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""The bytes of message bodies, for layers above the core that decode a few of them.

Rules
  1. Only calls of APIs whose layout asks for it have a row; it counts in api_calls, which is taken in the same moment.
  2. A message that is longer than there was room for is cut; its reader finds it broken, as on the wire.

    request:  ... correlation id | client id, body ...        response:  ... correlation id | header's rest, body ...
"""

from libc.stdint cimport int64_t

from kwsniff.core.columns.columns cimport *
from kwsniff.core.declared cimport *
from kwsniff.core.kafka.apis cimport DETAIL_RESPONSE, MOST_DETAIL, ApiRange
from kwsniff.core.kafka.kafka_connection cimport KEPT_MESSAGE, Call, Context
from kwsniff.core.kafka.frames cimport Frame
from kwsniff.core.kafka.request_texts cimport kept_text
from kwsniff.core.bytes.span cimport Span, drop, keep, make_span


cdef void write_detail(Context* context, const ApiRange* api, Call* call, Frame* response, int64_t row) noexcept nogil:
    """`row`: of api_calls; `response` is NULL where there is none."""
    cdef Table* table = &context.tables[<int>TABLE_DETAILS]
    cdef Span asked = kept_text(call, KEPT_MESSAGE), answer = make_span(NULL, 0)
    if response != NULL and api.details & DETAIL_RESPONSE:
        answer = drop(response.bytes, 8)
        if answer.num > MOST_DETAIL:
            answer = keep(answer, MOST_DETAIL)
    if (answer.at == NULL and asked.at == NULL) or not begin_row(table):
        return
    put_int64(table, DETAILS_ROW, row)
    put_string(table, DETAILS_REQUEST, asked)
    put_string(table, DETAILS_RESPONSE, answer)
    end_row(table)
