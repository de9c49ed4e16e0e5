# cython: language_level=3
# Names of what hellos and alerts have as numbers: versions, cipher suites, alerts. hello_texts.pyx has the
# rules.

from libc.stdint cimport uint8_t, uint16_t

from kwsniff.core.bytes.span cimport Span

cdef Span name_alert(int number, uint8_t* room) noexcept nogil
cdef Span name_version(uint16_t version, uint8_t* room) noexcept nogil
cdef Span name_suite(uint16_t number, uint8_t* room) noexcept nogil
