# cython: language_level=3
from kwsniff.core.capture.packets cimport Reader

cdef feed_head(Reader* reader, bytes head)
