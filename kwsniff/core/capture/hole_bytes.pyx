# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""The bytes that other captures miss, looked for in the packets of one place.

Rules
  1. Packets are read by the one reader (packets.pyx); no stream is rebuilt: sequence numbers say which bytes a packet has.
  2. Memory: the numbers of what is wanted, and at most as many bytes as the caller says.
  3. Of each byte every copy is handed out. Whether they agree, the caller sees.

    wanted     source -> target | seq, num |  ...in the order of sources, targets and numbers
    packet     source -> target    [ payload ]
    Piece                          [ what both have ]
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memset

from kwsniff.core.bytes.buffer cimport Buffer, append, append_raw, release
from kwsniff.core.bytes.hash cimport mix
from kwsniff.core.bytes.span cimport drop, keep, make_span
from kwsniff.core.capture.packets cimport (
    NO_TIME, STOP_NOT_A_CAPTURE, STOP_NO_MEMORY, TCP_ACK, TCP_RST, TCP_SYN, Reader, Segment, feed_reader, free_reader,
    start_reader,
)
from kwsniff.core.capture.samples cimport hash_end

from kwsniff.errors import CaptureError
from kwsniff.limits import Limits

# As Python writes it: native numbers of 64 bits.
cdef struct Wanted:
    uint64_t way            # of its packets, see `way`
    int64_t seq
    int64_t num
    int64_t since           # times of the connection here
    int64_t until

cdef struct Piece:
    int64_t number          # of what is wanted
    int64_t begin           # in it
    int64_t num
    int64_t at              # where its bytes are
    int64_t capture         # number of the capture, from 0
    int64_t ack             # what the segment acknowledges; -1: nothing

cdef struct Acked:
    uint64_t way            # of what is acknowledged
    int64_t is_known
    int64_t highest


def way(source, target):
    return <uint64_t>mix(<uint64_t><int64_t>source, <uint64_t><int64_t>target)


cdef void look(void* owner, Segment* segment) noexcept nogil:
    (<HoleBytes>owner).take(segment)


cdef class HoleBytes:
    cdef Reader reader
    cdef Buffer wanted
    cdef Buffer acked
    cdef Buffer pieces
    cdef Buffer data
    cdef size_t most
    cdef int64_t capture
    cdef bint reading
    cdef bint no_room
    cdef object bounds

    def __cinit__(self):
        memset(&self.reader, 0, sizeof(Reader))
        memset(&self.wanted, 0, sizeof(Buffer))
        memset(&self.acked, 0, sizeof(Buffer))
        memset(&self.pieces, 0, sizeof(Buffer))
        memset(&self.data, 0, sizeof(Buffer))

    def __init__(self, wanted, asked, most, *, limits=None):
        cdef bytes numbers = bytes(wanted)
        cdef bytes ways = bytes(asked)
        cdef Acked acked
        cdef Py_ssize_t i
        self.bounds = Limits.with_changes(dict(limits or {}))
        self.most = most
        self.capture = -1
        if not append_raw(&self.wanted, <const char*>numbers, len(numbers) // sizeof(Wanted) * sizeof(Wanted)):
            raise MemoryError
        memset(&acked, 0, sizeof(Acked))
        for i in range(len(ways) // 8):
            acked.way = (<const uint64_t*><const char*>ways)[i]
            if not append_raw(&self.acked, &acked, sizeof(Acked)):
                raise MemoryError

    def __dealloc__(self):
        free_reader(&self.reader)
        release(&self.wanted)
        release(&self.acked)
        release(&self.pieces)
        release(&self.data)

    def open_capture(self):
        free_reader(&self.reader)
        self.capture += 1
        self.reading = True
        start_reader(&self.reader, look, <void*>self, <size_t>self.bounds.packet_bytes,
                     <uint32_t>self.bounds.interfaces, <uint32_t>self.bounds.ip_reassembly)

    def feed(self, data):
        cdef Py_buffer view
        if not self.reading:
            raise ValueError("no capture is open")
        PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
        try:
            with nogil:
                feed_reader(&self.reader, make_span(<const uint8_t*>view.buf, <size_t>view.len))
        finally:
            PyBuffer_Release(&view)
        if self.reader.stop == STOP_NOT_A_CAPTURE:
            raise CaptureError("not a pcap or pcapng capture")
        if self.reader.stop == STOP_NO_MEMORY:
            raise MemoryError

    @property
    def is_full(self):
        return self.no_room

    def found(self):
        return told(&self.pieces), told(&self.data), told(&self.acked)

    cdef void take(self, Segment* segment) noexcept nogil:
        cdef uint64_t source = hash_end(segment.source, segment.source_port)
        cdef uint64_t target = hash_end(segment.target, segment.target_port)
        if segment.flags & TCP_ACK and self.acked.len:
            self.take_ack(mix(target, source), segment.ack)
        if segment.payload.num and not segment.flags & (TCP_SYN | TCP_RST):
            self.take_payload(mix(source, target), segment)

    cdef void take_ack(self, uint64_t way, uint32_t ack) noexcept nogil:
        cdef Acked* acked = <Acked*>self.acked.data
        cdef size_t low = 0, high = self.acked.len // sizeof(Acked), middle
        while low < high:
            middle = (low + high) >> 1
            if acked[middle].way < way:
                low = middle + 1
            else:
                high = middle
        if low < self.acked.len // sizeof(Acked) and acked[low].way == way:
            if not acked[low].is_known or <int32_t>(ack - <uint32_t>acked[low].highest) > 0:
                acked[low].is_known = 1
                acked[low].highest = ack

    cdef size_t find(self, uint64_t way, int64_t seq) noexcept nogil:
        """Number of the first that is wanted from this way and number on."""
        cdef Wanted* wanted = <Wanted*>self.wanted.data
        cdef size_t low = 0, high = self.wanted.len // sizeof(Wanted), middle
        while low < high:
            middle = (low + high) >> 1
            if wanted[middle].way < way or wanted[middle].way == way and wanted[middle].seq < seq:
                low = middle + 1
            else:
                high = middle
        return low

    cdef void take_payload(self, uint64_t way, Segment* segment) noexcept nogil:
        """The one before may reach into the segment; numbers go round, so before the first is the last."""
        cdef Wanted* wanted = <Wanted*>self.wanted.data
        cdef size_t first = self.find(way, 0)
        cdef size_t last, at, before, i
        if first == self.wanted.len // sizeof(Wanted) or wanted[first].way != way:
            return
        last = self.find(way, <int64_t>1 << 32)
        at = self.find(way, segment.seq)
        before = at - 1 if at > first else last - 1
        if <uint32_t>wanted[before].seq - segment.seq >= segment.payload.num:
            self.take_part(before, segment)
        for i in range(last - first):
            if at == last:
                at = first
            if <uint32_t>wanted[at].seq - segment.seq >= segment.payload.num:
                return
            self.take_part(at, segment)
            at += 1

    cdef void take_part(self, size_t number, Segment* segment) noexcept nogil:
        cdef Wanted* wanted = &(<Wanted*>self.wanted.data)[number]
        cdef int64_t ahead = <int32_t>(<uint32_t>wanted.seq - segment.seq)
        cdef int64_t begin = ahead if ahead > 0 else 0
        cdef int64_t end = ahead + wanted.num
        cdef Piece piece
        if end > <int64_t>segment.payload.num:
            end = <int64_t>segment.payload.num
        if begin >= end or segment.time != NO_TIME and not wanted.since <= segment.time <= wanted.until:
            return
        if self.data.len + self.pieces.len + <size_t>(end - begin) + sizeof(Piece) > self.most:
            self.no_room = True
            return
        piece.number = <int64_t>number
        piece.begin = begin - ahead
        piece.num = end - begin
        piece.at = <int64_t>self.data.len
        piece.capture = self.capture
        piece.ack = segment.ack if segment.flags & TCP_ACK else -1
        if append(&self.data, keep(drop(segment.payload, <size_t>begin), <size_t>(end - begin))):
            append_raw(&self.pieces, &piece, sizeof(Piece))


cdef bytes told(Buffer* buffer):
    return (<const char*>buffer.data)[:buffer.len] if buffer.len else b""
