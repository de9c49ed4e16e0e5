# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""A walk over the records of captures that copies each to the bucket of its connection.

Rules
  1. Records are read by the one reader (packets.pyx); here they are counted and copied as they are.
  2. Any chunking gives the same: what a chunk breaks off is carried over.
  3. A bucket gets the packets of its connections, ICMP errors about these, and what cannot be placed without state: IP fragments, and the
     blocks that say how packets are to be read. Those are kept once for all buckets (the shared place).
  4. The caller that feeds bounds what waits in the buckets: it asks how much that is, and takes it. What is named
     counts as if it were copied, since the reader of the bucket copies it.

    bytes | record record record ...        places | bucket 0 | bucket 1 | ... | shared
             0      1      shared                     part | part             ends of parts: where a capture ends, or
                                                                              what waits is taken
"""

from cpython.buffer cimport PyBUF_READ, PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.memoryview cimport PyMemoryView_FromMemory
from libc.stdint cimport UINT64_MAX, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from kwsniff.core.capture.shuffle_index cimport PartEnd, Place, end_place, take_record
from kwsniff.core.capture.packets cimport (
    BLOCK_INTERFACE, BLOCK_SECRETS, BLOCK_SECTION, BLOCK_STATISTICS, FORMAT_PCAPNG, NO_TIME, STOP_DAMAGED, STOP_NO_MEMORY,
    STOP_NONE, STOP_NOT_A_CAPTURE, TLS_KEY_LOG, Reader, Segment, bound_reader, bucket_of, free_reader, read_unit,
    start_reader,
)
from kwsniff.core.capture.record_starts cimport feed_head
from kwsniff.core.capture.samples cimport Sample, Samples, begin_samples, take_sample, tell_samples
from kwsniff.core.capture.capture_stats cimport tell_contents, tell_times
from kwsniff.core.bytes.buffer cimport Buffer, append, append_raw, contents, release, shrink
from kwsniff.core.bytes.span cimport Span, drop, file32, keep, make_span

from collections import namedtuple
from zlib import crc32

from kwsniff.core.capture.packets import PACKET_VERDICTS
from kwsniff.errors import CaptureError, UsageError
from kwsniff.limits import Limits

cdef enum:
    MOST_BUCKETS = 65536
    NO_BUCKET = 0xFFFFFFFF
    MOST_KEPT = 1 << 28         # bytes of memory that stay for what comes next

Scan = namedtuple("Scan", (
    "begin", "end", "asked", "packets", "counts", "fragments", "first_time", "last_time", "other_first_time",
    "other_last_time", "stop", "head", "next_head", "secrets", "samples",
), module="kwsniff.core.capture.file_splits")


cdef struct Walk:
    Reader reader
    uint64_t begin
    uint64_t offset             # of the next record
    uint64_t skipped            # bytes of the current block that are passed over
    uint64_t end                # the walk ends with the first record that begins here or behind it
    uint32_t num_buckets        # 0: nothing is copied
    uint32_t least_named        # bytes of runs that are named instead; 0: none are
    uint32_t bucket             # of the current record
    uint32_t epoch
    Place* places               # num_buckets, and the shared one behind them
    int64_t first_frame
    int64_t part_frame          # the packet before the current part
    bint from_section           # a section began: what came before it is not needed any more
    bint secrets                # a block of TLS secrets came
    Samples samples
    Buffer head                 # sections and interfaces that came


cdef void place_segment(void* opaque, Segment* segment) noexcept nogil:
    cdef Walk* walk = <Walk*>opaque
    walk.bucket = bucket_of(segment, walk.num_buckets) if walk.num_buckets > 1 else 0
    if walk.samples.most:
        take_sample(&walk.samples, segment)


cdef void place_quoted(void* opaque, Segment* quoted, int error, const uint8_t* sender) noexcept nogil:
    """An ICMP error goes where the connection is that it is about."""
    place_segment(opaque, quoted)


cdef void pass_secrets(void* owner, Span text) noexcept nogil:
    """Their blocks are read whole, for the readers of the parts."""
    pass


cdef bint keep_block(Walk* walk, uint32_t kind, Span block) noexcept nogil:
    """Notes a block that changes how packets are to be read."""
    if kind == BLOCK_SECTION:
        walk.from_section = True
        walk.head.len = 0
    elif kind != BLOCK_INTERFACE:
        return True
    return append(&walk.head, block)


cdef size_t walk_record(Walk* walk, Span rest) noexcept nogil:
    """Reads and places one record; 0 when more bytes of it are needed, or it cannot be read."""
    cdef Reader* reader = &walk.reader
    cdef int64_t frame = reader.frame
    cdef bint blocks = reader.format == FORMAT_PCAPNG
    cdef uint32_t kind = file32(rest, 0, reader.swapped) if blocks else 0
    cdef size_t used
    walk.bucket = NO_BUCKET
    reader.fragmented = False
    if kind == BLOCK_SECRETS:
        if rest.num < 12:
            reader.need = 12
            return 0
        walk.secrets = walk.secrets or file32(rest, 8, reader.swapped) == TLS_KEY_LOG
    used = read_unit(reader, rest)
    if used == 0 or reader.skip:
        walk.skipped = used
        return used
    walk.offset += used
    if reader.fragmented or blocks and kind in (BLOCK_SECTION, BLOCK_INTERFACE, BLOCK_STATISTICS, BLOCK_SECRETS):
        walk.bucket = walk.num_buckets
        walk.epoch += 1
        if blocks and not keep_block(walk, kind, keep(rest, used)):
            reader.stop = STOP_NO_MEMORY
    if walk.bucket != NO_BUCKET and walk.num_buckets and not take_record(
            &walk.places[walk.bucket], keep(rest, used), walk.offset, frame - walk.part_frame, reader.frame - frame,
            walk.epoch, walk.least_named if walk.bucket < walk.num_buckets else 0):
        reader.stop = STOP_NO_MEMORY
    return used


cdef void walk_bytes(Walk* walk, Span data) noexcept nogil:
    cdef Reader* reader = &walk.reader
    cdef size_t take
    while data.num and reader.stop == STOP_NONE and walk.offset < walk.end:
        if reader.skip:
            take = data.num if data.num < reader.skip else <size_t>reader.skip
            reader.skip -= take
            walk.skipped += take
            data = drop(data, take)
            if reader.skip == 0:
                walk.offset += walk.skipped
        elif reader.carry.len:
            take = reader.need - reader.carry.len
            if not append(&reader.carry, keep(data, take)):
                reader.stop = STOP_NO_MEMORY
                return
            data = drop(data, take)
            if reader.carry.len < reader.need:
                return
            if walk_record(walk, contents(&reader.carry)):
                reader.carry.len = 0
        else:
            take = walk_record(walk, data)
            if take:
                data = drop(data, take)
            elif reader.stop == STOP_NONE and not append(&reader.carry, data):
                reader.stop = STOP_NO_MEMORY
                return
            else:
                return


cdef bint end_part(Walk* walk) noexcept nogil:
    """What waits in the places becomes a part of its own; false when memory is refused."""
    cdef Reader* reader = &walk.reader
    cdef PartEnd end
    cdef uint32_t i
    memset(&end, 0, sizeof(PartEnd))
    end.packets = reader.frame - walk.part_frame
    end.first = reader.first_time
    end.last = reader.last_time
    if reader.tcp_frame > walk.part_frame:
        end.tcp = reader.tcp_time
        end.tcp_frame = reader.tcp_frame - walk.part_frame
    for i in range(walk.num_buckets + 1):
        end_place(&walk.places[i])
        walk.places[i].frames = 0
    walk.part_frame = reader.frame
    return append_raw(&walk.places[walk.num_buckets].out, &end, sizeof(PartEnd))


cdef class Router:
    cdef Walk walk
    cdef bytes head
    cdef bint reading
    cdef dict limits
    cdef object bounds

    def __cinit__(self):
        memset(&self.walk, 0, sizeof(Walk))

    def __init__(self, num_buckets, limits=None, *, since=None, until=None, samples=0):
        if not 0 <= num_buckets <= MOST_BUCKETS:
            raise UsageError(f"{num_buckets} buckets: take 1 to {<int>MOST_BUCKETS}")
        self.limits = dict(limits or {})
        self.bounds = (NO_TIME if since is None else since, NO_TIME if until is None else until)
        Limits.with_changes(self.limits)
        self.walk.num_buckets = num_buckets
        self.walk.samples.most = samples * sizeof(Sample)
        self.walk.places = <Place*>calloc(<size_t>self.walk.num_buckets + 1, sizeof(Place))
        if self.walk.places == NULL:
            raise MemoryError

    def __dealloc__(self):
        cdef uint32_t i
        if self.walk.places != NULL:
            for i in range(self.walk.num_buckets + 1):
                release(&self.walk.places[i].out)
            free(self.walk.places)
        release(&self.walk.head)
        release(&self.walk.samples.kept)
        free_reader(&self.walk.reader)

    def open(self, bytes head, begin=0, end=None, *, least_named=0):
        cdef Walk* walk = &self.walk
        if self.reading or walk.num_buckets and walk.reader.frame != walk.part_frame:
            raise UsageError("a capture is open already, or was not cut")
        limits = Limits.with_changes(self.limits)
        walk.begin = begin if begin else <uint64_t>len(head)
        walk.end = UINT64_MAX if end is None else <uint64_t>end
        if walk.begin < <uint64_t>len(head):
            raise UsageError(f"byte {begin} is not behind the head of a capture, which has {len(head)}")
        walk.offset = walk.begin
        walk.least_named = least_named
        walk.skipped = 0
        walk.from_section = walk.secrets = False
        walk.head.len = 0
        begin_samples(&walk.samples)
        free_reader(&walk.reader)
        start_reader(&walk.reader, place_segment, walk, <size_t>limits.packet_bytes, <uint32_t>limits.interfaces, 1)
        walk.reader.scanning = True
        walk.reader.icmp_sink = place_quoted
        walk.reader.take_secrets = pass_secrets
        bound_reader(&walk.reader, self.bounds[0], self.bounds[1])
        feed_head(&walk.reader, head)
        # The reader tells a damaged capture from none by whether it has seen packets.
        walk.reader.frame = 1 if walk.begin > <uint64_t>len(head) else 0
        walk.first_frame = walk.part_frame = walk.reader.frame
        self.head = head
        self.reading = True

    def feed(self, data):
        cdef Py_buffer view
        if not self.reading:
            raise UsageError("no capture is open")
        PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
        try:
            with nogil:
                walk_bytes(&self.walk, make_span(<const uint8_t*>view.buf, <size_t>view.len))
        finally:
            PyBuffer_Release(&view)
        if self.walk.reader.stop == STOP_NO_MEMORY:
            raise MemoryError
        if self.walk.reader.stop == STOP_NOT_A_CAPTURE:
            raise CaptureError("not a pcap or pcapng capture")
        return self.walk.reader.stop == STOP_NONE and self.walk.offset < self.walk.end

    @property
    def packets(self):
        return self.walk.reader.frame - self.walk.part_frame

    @property
    def waiting(self):
        cdef uint64_t total = 0
        cdef uint32_t i
        for i in range(self.walk.num_buckets + 1):
            total += self.walk.places[i].out.len + self.walk.places[i].elsewhere
        return total

    @property
    def named(self):
        cdef uint64_t total = 0
        cdef uint32_t i
        for i in range(self.walk.num_buckets + 1):
            total += self.walk.places[i].elsewhere
        return total

    def cut(self):
        cdef Buffer ends
        cdef int64_t end, packets = self.walk.reader.frame - self.walk.part_frame
        cdef uint32_t i
        memset(&ends, 0, sizeof(Buffer))
        if not end_part(&self.walk):
            raise MemoryError
        try:
            for i in range(self.walk.num_buckets + 1):
                end = <int64_t>self.walk.places[i].out.len
                if not append_raw(&ends, &end, 8):
                    raise MemoryError
            return packets, (<const char*>ends.data)[:ends.len]
        finally:
            release(&ends)

    def take(self, write):
        cdef size_t kept = 0
        cdef uint32_t i
        cdef Place* place
        for i in range(self.walk.num_buckets + 1):
            place = &self.walk.places[i]
            if place.begun:
                raise UsageError("cut before you take")
            if place.out.len:
                write(PyMemoryView_FromMemory(<char*>place.out.data, <Py_ssize_t>place.out.len, PyBUF_READ))
            place.elsewhere = 0
            kept += place.out.cap
            shrink(&place.out, MOST_KEPT if kept < <size_t>MOST_KEPT else 0)

    def close(self):
        cdef Walk* walk = &self.walk
        cdef Reader* reader = &walk.reader
        cdef int64_t packets = reader.frame - walk.first_frame
        if not self.reading:
            raise UsageError("no capture is open")
        self.reading = False
        stop = None
        if reader.stop == STOP_DAMAGED:
            stop = "damaged"
        elif reader.carry.len or reader.skip or walk.end != UINT64_MAX and walk.offset < walk.end:
            stop = "truncated"
        changed = (<const char*>walk.head.data)[:walk.head.len] if walk.head.len else b""
        counts = {
            f"packets_{name}": reader.verdicts[<int>number] - reader.fragment_verdicts[<int>number]
            for number, name in enumerate(PACKET_VERDICTS)
        }
        counts["tcp_payload_bytes"] = reader.payload_bytes
        held = tell_contents(reader.fragment_tunnels, reader.fragment_unread)
        for name, number in tell_contents(reader.tunnels, reader.unread).items():
            if number != held.get(name, 0):
                counts[name] = number - held.get(name, 0)
        return Scan(
            begin=walk.begin,
            end=walk.offset,
            asked=walk.offset + reader.carry.len if walk.end == UINT64_MAX else walk.end,
            packets=packets,
            counts=counts,
            fragments=sum([reader.fragment_verdicts[<int>number] for number in range(len(PACKET_VERDICTS))]),
            **tell_times(reader),
            stop=stop,
            head=crc32(self.head),
            next_head=(changed if walk.from_section else self.head + changed) if changed else None,
            secrets=walk.secrets,
            samples=tell_samples(&walk.samples),
        )
