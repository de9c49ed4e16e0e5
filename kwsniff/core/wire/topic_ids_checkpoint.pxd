# cython: language_level=3
# Which topic ids have names, in a saved state. topic_ids_checkpoint.pyx has the rules.

from kwsniff.core.bytes.buffer cimport Buffer
from kwsniff.core.bytes.checkpoint cimport Source
from kwsniff.core.wire.topic_ids cimport TopicIds

cdef bint save_topic_ids(Buffer* out, TopicIds* ids) noexcept nogil
cdef void load_topic_ids(Source* source, TopicIds* ids) noexcept nogil
