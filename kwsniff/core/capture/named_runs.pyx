# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""Runs of records that a walk named by their offset, as they are fed: with the records.

Rules
  1. Runs are not trusted to be whole, nor to be of this capture: reading and writing stay inside.
  2. Captures are read by offset, never mapped: one that shrinks is an error, not the end of the process.
  3. Runs that are near each other are read by one request, with what lies between.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from libc.errno cimport EINTR, errno
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy

from kwsniff.core.capture.bucket_lists cimport NAMED, NAMED_BYTES, RunHeader
from kwsniff.core.octets.buffer cimport Room, make_room, take_room
from kwsniff.core.octets.octets cimport Octets, copy_out, drop, make_octets

import os

from kwsniff.errors import CaptureError

cdef extern from "unistd.h" nogil:
    ssize_t pread(int descriptor, void* target, size_t num, int64_t at)

cdef enum:
    MOST_GAP = 1 << 13          # bytes that cost no more than a request
    WINDOW = 1 << 16

cdef struct Window:
    uint64_t offset             # in the capture
    uint64_t num
    uint8_t data[WINDOW]

cdef enum Put:
    PUT_ALL = 0
    PUT_BROKEN = 1
    PUT_SHORT = 2
    PUT_ERROR = 3


cdef bint next_header(Octets* left, RunHeader* header, uint64_t* at) noexcept nogil:
    """Takes a header off, and where it has one, the offset that its records are named by; false where there is none."""
    if left.num < sizeof(RunHeader):
        return False
    copy_out(left[0], 0, header, sizeof(RunHeader))
    left[0] = drop(left[0], sizeof(RunHeader))
    if not header.num & <uint32_t>NAMED:
        return header.num <= left.num
    if left.num < NAMED_BYTES:
        return False
    copy_out(left[0], 0, at, NAMED_BYTES)
    left[0] = drop(left[0], NAMED_BYTES)
    return at[0] < <uint64_t>1 << 62


cdef int read_at(int descriptor, Room room, uint64_t at, uint64_t least, uint64_t* num) noexcept nogil:
    """Reads at least so many bytes, and as many as there is room for where there are more."""
    cdef ssize_t done
    num[0] = 0
    while num[0] < least:
        done = pread(descriptor, room.at, room.num, <int64_t>(at + num[0]))
        if done < 0 and errno == EINTR:
            continue
        if done <= 0:
            return PUT_SHORT if done == 0 else PUT_ERROR
        num[0] += <uint64_t>done
        take_room(&room, <size_t>done)
    return PUT_ALL


cdef bint goes_on(Octets left, uint64_t end) noexcept nogil:
    """Whether what is named next lies near behind."""
    cdef RunHeader header
    cdef uint64_t at = 0
    return (left.num and next_header(&left, &header, &at) and header.num & <uint32_t>NAMED
            and at >= end and at - end <= MOST_GAP)


cdef int put_named_run(Window* window, int descriptor, uint8_t* target, uint64_t at, uint64_t num,
                       Octets left) noexcept nogil:
    """`left`: the runs behind it."""
    cdef int put
    cdef uint64_t done
    if at < window.offset or at + num > window.offset + window.num:
        if num >= WINDOW or not goes_on(left, at + num):
            return read_at(descriptor, make_room(target, <size_t>num), at, num, &done)
        window.offset = at
        put = read_at(descriptor, make_room(window.data, WINDOW), at, num, &window.num)
        if put != PUT_ALL:
            return put
    copy_out(make_octets(window.data, <size_t>window.num), <size_t>(at - window.offset), target, <size_t>num)
    return PUT_ALL


cdef int put_runs(Octets left, int descriptor, Window* window, Room room) noexcept nogil:
    cdef RunHeader header
    cdef uint64_t at = 0
    cdef uint8_t* place
    cdef bint named
    cdef int put
    while left.num:
        if not next_header(&left, &header, &at):
            return PUT_BROKEN
        named = header.num & <uint32_t>NAMED
        header.num &= ~<uint32_t>NAMED
        place = take_room(&room, sizeof(RunHeader))
        if place == NULL:
            return PUT_BROKEN
        memcpy(place, &header, sizeof(RunHeader))
        place = take_room(&room, header.num)
        if place == NULL:
            return PUT_BROKEN
        if named:
            put = put_named_run(window, descriptor, place, at, header.num, left)
            if put != PUT_ALL:
                return put
        else:
            copy_out(left, 0, place, header.num)
            left = drop(left, header.num)
    return PUT_ALL if room.num == 0 else PUT_BROKEN


def size_with_named(runs):
    cdef Py_buffer view
    cdef Octets left
    cdef RunHeader header
    cdef uint64_t at = 0
    cdef uint64_t total = 0
    cdef bint any_named = False
    PyObject_GetBuffer(runs, &view, PyBUF_SIMPLE)
    try:
        left = make_octets(<const uint8_t*>view.buf, <size_t>view.len)
        while left.num:
            if not next_header(&left, &header, &at):
                raise CaptureError("what was kept of a capture is damaged")
            total += sizeof(RunHeader) + (header.num & ~<uint32_t>NAMED)
            if header.num & <uint32_t>NAMED:
                any_named = True
            else:
                left = drop(left, header.num)
    finally:
        PyBuffer_Release(&view)
    return total if any_named else None


def put_named(runs, int descriptor, target):
    cdef Py_buffer view, room
    cdef int put, why
    cdef Window* window
    PyObject_GetBuffer(runs, &view, PyBUF_SIMPLE)
    try:
        PyObject_GetBuffer(target, &room, PyBUF_WRITABLE)
        try:
            window = <Window*>calloc(1, sizeof(Window))
            if window == NULL:
                raise MemoryError
            with nogil:
                put = put_runs(make_octets(<const uint8_t*>view.buf, <size_t>view.len), descriptor, window,
                               make_room(<uint8_t*>room.buf, <size_t>room.len))
                why = errno
                free(window)
        finally:
            PyBuffer_Release(&room)
    finally:
        PyBuffer_Release(&view)
    if put == PUT_ERROR:
        raise OSError(why, os.strerror(why))
    if put != PUT_ALL:
        raise CaptureError("what was kept of the capture is not what it was when it was walked")
