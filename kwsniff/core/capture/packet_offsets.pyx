# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""The offsets of the packets of some connections in a capture, for copying them.

Rules
  1. Records are read by the one reader (packets.pyx); here they are only placed.
  2. What is handed out are numbers: eight int64 for each packet, three for each block that says how packets are read.

    packet | offset, size, frame, connection, sender, payload bytes, TCP flags, time
    block  | offset, size, type
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport bsearch, qsort
from libc.string cimport memcpy, memset

from kwsniff.core.bytes.buffer cimport Buffer, append_raw, release
from kwsniff.core.bytes.hash cimport mix
from kwsniff.core.bytes.span cimport Span, drop, file32, make_span
from kwsniff.core.capture.packets cimport (
    BLOCK_INTERFACE, BLOCK_SECRETS, BLOCK_SECTION, FORMAT_PCAPNG, FORMAT_UNKNOWN, NO_TIME, PACKET_OTHER_TIME, STOP_NONE,
    STOP_NO_MEMORY, STOP_NOT_A_CAPTURE, Reader, Segment, bound_reader, free_reader, read_unit, start_reader,
)

from kwsniff.errors import CaptureError
from kwsniff.limits import Limits

cdef struct PacketPlace:
    int64_t offset
    int64_t size
    int64_t frame
    int64_t connection
    int64_t sender
    int64_t payload
    int64_t flags
    int64_t time

cdef struct BlockPlace:
    int64_t offset
    int64_t size
    int64_t kind


cdef int by_number(const void* one, const void* other) noexcept nogil:
    cdef int64_t a = (<const int64_t*>one)[0]
    cdef int64_t b = (<const int64_t*>other)[0]
    return (a > b) - (a < b)


cdef uint64_t endpoint(const uint8_t* address, uint32_t port) noexcept nogil:
    cdef uint64_t[2] words
    memcpy(words, address, 16)
    return mix(mix(words[0], words[1]), port)


cdef void note_segment(void* opaque, Segment* segment) noexcept nogil:
    cdef PacketPlace* place = <PacketPlace*>opaque
    cdef uint64_t source = endpoint(segment.source, segment.source_port)
    cdef uint64_t target = endpoint(segment.target, segment.target_port)
    place.connection = <int64_t>mix(source + target, source ^ target)
    place.sender = <int64_t>source
    place.payload = segment.length
    place.flags = segment.flags
    place.time = segment.time


def endpoint_number(bytes address, port):
    if len(address) != 16:
        raise ValueError("an address has 16 bytes; IPv4 is ::ffff:a.b.c.d")
    return <int64_t>endpoint(<const uint8_t*><const char*>address, port)


def connection_number(one, other):
    cdef uint64_t a = <uint64_t><int64_t>one
    cdef uint64_t b = <uint64_t><int64_t>other
    return <int64_t>mix(a + b, a ^ b)


cdef class PacketPlaces:
    cdef Reader reader
    cdef PacketPlace place      # of the current record
    cdef Buffer packets
    cdef Buffer blocks
    cdef Buffer wanted
    cdef bint all

    def __cinit__(self):
        memset(&self.reader, 0, sizeof(Reader))
        memset(&self.packets, 0, sizeof(Buffer))
        memset(&self.blocks, 0, sizeof(Buffer))
        memset(&self.wanted, 0, sizeof(Buffer))

    def __init__(self, connections, *, limits=None, since=None, until=None):
        bounds = Limits.with_changes(dict(limits or {}))
        self.all = connections is None
        numbers = b"" if connections is None else bytes(connections)
        if not append_raw(&self.wanted, <const char*>numbers, <size_t>len(numbers)):
            raise MemoryError
        if self.wanted.len:
            qsort(self.wanted.data, self.wanted.len // 8, 8, by_number)
        start_reader(&self.reader, note_segment, &self.place, <size_t>bounds.packet_bytes,
                     <uint32_t>bounds.interfaces, <uint32_t>bounds.ip_reassembly)
        bound_reader(&self.reader, NO_TIME if since is None else since, NO_TIME if until is None else until)

    def __dealloc__(self):
        free_reader(&self.reader)
        release(&self.packets)
        release(&self.blocks)
        release(&self.wanted)

    @property
    def stopped(self):
        return self.reader.stop != STOP_NONE

    def feed(self, data):
        cdef Py_buffer view
        cdef int64_t used
        PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
        try:
            with nogil:
                used = self.walk(make_span(<const uint8_t*>view.buf, <size_t>view.len))
        finally:
            PyBuffer_Release(&view)
        if self.reader.stop == STOP_NOT_A_CAPTURE:
            raise CaptureError("not a pcap or pcapng capture")
        if self.reader.stop == STOP_NO_MEMORY:
            raise MemoryError
        packets = (<const char*>self.packets.data)[:self.packets.len] if self.packets.len else b""
        blocks = (<const char*>self.blocks.data)[:self.blocks.len] if self.blocks.len else b""
        self.packets.len = self.blocks.len = 0
        return used, packets, blocks

    cdef int64_t walk(self, Span data) noexcept nogil:
        cdef Span rest = data
        cdef uint32_t kind
        cdef size_t used
        cdef int64_t others
        if self.reader.skip:
            used = rest.num if rest.num < self.reader.skip else <size_t>self.reader.skip
            self.reader.skip -= used
            rest = drop(rest, used)
        while rest.num and self.reader.stop == STOP_NONE and not self.reader.skip:
            kind = 0
            if self.reader.format == FORMAT_PCAPNG:
                if rest.num < 8:
                    break
                kind = file32(rest, 0, self.reader.swapped)
                if kind == BLOCK_SECRETS and rest.num < file32(rest, 4, self.reader.swapped) <= self.reader.max_record:
                    break
            elif self.reader.format == FORMAT_UNKNOWN:
                kind = BLOCK_SECTION
            memset(&self.place, 0, sizeof(PacketPlace))
            self.place.frame = self.reader.frame
            others = self.reader.verdicts[<int>PACKET_OTHER_TIME]
            used = read_unit(&self.reader, rest)
            if used == 0:
                break
            if not self.note(data.num - rest.num, used, kind, self.reader.verdicts[<int>PACKET_OTHER_TIME] == others):
                self.reader.stop = STOP_NO_MEMORY
            rest = drop(rest, used)
        return <int64_t>(data.num - rest.num)

    cdef bint note(self, size_t offset, size_t used, uint32_t kind, bint inside) noexcept nogil:
        cdef BlockPlace block
        cdef bint wanted = self.all
        if kind in (BLOCK_SECTION, BLOCK_INTERFACE, BLOCK_SECRETS):
            block.offset = <int64_t>offset
            block.size = <int64_t>used
            block.kind = kind
            return append_raw(&self.blocks, &block, sizeof(BlockPlace))
        if self.reader.frame == self.place.frame or not inside or self.reader.skip:
            return True
        if self.reader.fragmented:
            wanted = True
        elif not wanted and self.place.connection and self.wanted.len:
            wanted = bsearch(&self.place.connection, self.wanted.data, self.wanted.len // 8, 8, by_number) != NULL
        self.place.frame = self.reader.frame
        self.place.offset = <int64_t>offset
        self.place.size = <int64_t>used
        return not wanted or append_raw(&self.packets, &self.place, sizeof(PacketPlace))
