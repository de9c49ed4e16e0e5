# cython: language_level=3
# Finds the beginning of a record from any offset in a capture. record_starts.pyx has the rules.

from kwsniff.core.capture.packets cimport Reader

cdef feed_head(Reader* reader, bytes head)
