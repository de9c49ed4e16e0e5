# cython: language_level=3
# The round trip of one call to its broker, from the acknowledgements of its own bytes and of those near it.
# call_round_trips.pyx has the rules.

from libc.stdint cimport int64_t

from kwsniff.core.kafka.kafka_connection cimport Call, KafkaConnection
from kwsniff.core.tcp.round_trips cimport RoundTrips

cdef extern from *:
    """
    #define LOCAL 1000000LL
    #define LATE 5000000LL
    #define SILENCE 50000000LL
    """
    const int64_t LOCAL             # what a broker takes for a call that waits for no other party
    const int64_t LATE              # a broker's timers may end this much after their time
    const int64_t SILENCE           # longer than acknowledgements are delayed (Linux: 40 ms)

cdef int64_t arrived_again(RoundTrips* asks, Call* call, int64_t sent, int64_t done, int64_t way) noexcept nogil
cdef int64_t way_at_the_time(KafkaConnection* kafka, RoundTrips* asks, RoundTrips* answers, Call* call, int64_t arrived,
                             int64_t done, int64_t way) noexcept nogil
cdef int64_t error_of_way(RoundTrips* asks, RoundTrips* answers, Call* call, int64_t arrived, int64_t usual,
                          int64_t way) noexcept nogil
cdef void note_quicker_answer(RoundTrips* asks, Call* call, int64_t usual, int64_t way) noexcept nogil


cdef inline int64_t at_least(int64_t value, int64_t least) noexcept nogil:
    return value if value > least else least


cdef inline int64_t at_most(int64_t value, int64_t most) noexcept nogil:
    return value if value < most else most
