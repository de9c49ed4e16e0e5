# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""The filter that Python pushes down to the core (choices.pxd has what the core asks).

Rules
  1. The tables of APIs and versions are filled once; Python is asked once per connection and client id.
"""

from libc.stdint cimport uint8_t
from libc.stdlib cimport calloc
from libc.string cimport memset

from kwsniff.core.kafka.apis cimport Apis, find_slot
from kwsniff.core.kafka.kafka_connection cimport (
    CONNECTION_UNWANTED, CONNECTION_WANTED, MOST_CHOICES, Choices, KafkaConnection,
)
from kwsniff.core.bytes.buffer cimport contents
from kwsniff.core.bytes.span cimport Span


cdef fill_choices(Choices* choices, Apis* apis, choice):
    """`choice`: Choice of analyzer.pyi."""
    cdef size_t num = <size_t>apis.num
    cdef int slot, i
    choices.lessons = <uint8_t*>calloc(num + 1, 1)
    choices.wanted = <uint8_t*>calloc(num + 1, MOST_CHOICES)
    if choices.lessons == NULL or choices.wanted == NULL:
        raise MemoryError
    memset(choices.wanted, 1, num * MOST_CHOICES)
    for key, (lessons, wanted) in choice.apis.items():
        slot = find_slot(apis, key)
        if slot >= 0:
            choices.lessons[slot] = lessons
            for i, each in enumerate(wanted[:MOST_CHOICES]):
                choices.wanted[slot * MOST_CHOICES + i] = each
    choices.first_time, choices.last_time = choice.times
    choices.first_id, choices.last_id = choice.correlation_ids
    choices.some = True


cdef int ask_choice(KafkaConnection* kafka, may_choose) except -1:
    """ConnectionChoice of a connection, by its addresses, ports, number and client id."""
    cdef int client = kafka.client, broker = 1 - kafka.client
    cdef Span name = contents(&kafka.client_id)
    try:
        client_id = (<const char*>name.at)[:name.num].decode() if name.num else None
    except UnicodeDecodeError:          # rows show it repaired
        return CONNECTION_WANTED
    wanted = may_choose({
        "connection_id": kafka.connection.id,
        "client_address": (<const char*>kafka.address[client]).decode(),
        "client_port": kafka.connection.port[client],
        "broker_address": (<const char*>kafka.address[broker]).decode(),
        "broker_port": kafka.connection.port[broker],
        "client_id": client_id,
    })
    return CONNECTION_WANTED if wanted else CONNECTION_UNWANTED
