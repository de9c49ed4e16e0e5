# cython: language_level=3
# What merges an analyzer's rows with those of others needs from it: how much it kept, which topics have
# names. parallel.pyx has the rules.

from kwsniff.core.kafka.kafka_connection cimport Context
from kwsniff.core.tcp.stream_table cimport Streams
from kwsniff.core.wire.topic_ids cimport TopicIds

cdef tuple tell_shares(Streams* streams, Context* context)
cdef dict tell_names(TopicIds* ids, bint awaited)
cdef dict tell_learned(TopicIds* ids)
