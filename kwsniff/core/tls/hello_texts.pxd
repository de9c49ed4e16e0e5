# cython: language_level=3
from libc.stdint cimport uint8_t, uint16_t

from kwsniff.core.octets.octets cimport Octets

cdef Octets name_alert(int number, uint8_t* room) noexcept nogil
cdef Octets name_version(uint16_t version, uint8_t* room) noexcept nogil
cdef Octets name_suite(uint16_t number, uint8_t* room) noexcept nogil
