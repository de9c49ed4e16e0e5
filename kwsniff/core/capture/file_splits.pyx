# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""One capture file read by many: where records begin, which of them which bucket needs, and how a bucket reads those.

Rules
  1. Records are read by the one reader (packets.pyx); here they are found, placed and counted.
  2. A boundary is trusted only because the walk from the file's beginning arrived there: `meet` says so. What
     `find_record` gives is a good guess that makes parallel walks possible.
  3. A bucket reads the packets of its connections, and what nobody can place without state: IP fragments, and the
     blocks that say how packets are to be read. Those are listed once for all buckets (`shared`).

    file    | head |  split 0  |  split 1  | ...      scanned in parallel
            bucket 0 | . .. |   . |                   each bucket then reads its own records, split by split
            bucket 1 |.    .| .. .|
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from kwsniff.core.capture.record_starts cimport feed_head
from kwsniff.core.octets.buffer cimport Buffer, append, release
from kwsniff.core.octets.octets cimport Octets, drop, file32, keep, make_octets
from kwsniff.core.capture.packets cimport (
    BLOCK_CUSTOM, BLOCK_CUSTOM_NO_COPY, BLOCK_ENHANCED, BLOCK_INTERFACE, BLOCK_JOURNAL, BLOCK_PACKET,
    BLOCK_SECTION, BLOCK_SIMPLE, BLOCK_STATISTICS, BLOCK_SYSDIG, BLOCK_SYSDIG_2, BLOCK_SYSDIG_2_FLAGS,
    BLOCK_SYSDIG_FLAGS, BLOCK_SYSDIG_LARGE, BLOCK_SYSDIG_LARGE_FLAGS, FORMAT_PCAP, FORMAT_PCAPNG, NO_TIME,
    STOP_DAMAGED, STOP_NO_MEMORY, STOP_NONE, STOP_NOT_A_CAPTURE, Reader, Segment, bound_reader, bucket_of, free_reader,
    read_unit, start_reader,
)
from kwsniff.core.capture.told cimport tell_contents, tell_times
from kwsniff.core.capture.bucket_lists cimport Place, Times, end_place, end_split, take_record

from collections import namedtuple
from zlib import crc32

from kwsniff.core.capture.record_starts import find_record
from kwsniff.errors import CaptureError, UsageError
from kwsniff.limits import Limits

cdef enum:
    MOST_BUCKETS = 65536
    MOST_HEAD = 1 << 24         # blocks behind it count as coming in the middle
    NO_BUCKET = 0xFFFFFFFF
    MOST_INTERFACES = 1 << 20   # the head is as long as 16 MiB anyway

_VERDICTS = ("tcp", "not_ip", "not_tcp", "fragment", "malformed", "unknown_link_type", "other_time")

Scan = namedtuple("Scan", (
    "begin", "end", "asked", "packets", "counts", "fragments", "first_time", "last_time", "other_first_time", "other_last_time", "stop", "head", "next_head",
    "shared", "runs",
), module="kwsniff.core.capture.file_splits")
Again = namedtuple("Again", ("begin", "end", "head"), module="kwsniff.core.capture.file_splits")


# -- scanning ---------------------------------------------------------------------------------------------------

cdef struct Walk:
    Reader reader
    Octets data
    uint64_t begin
    uint64_t offset
    uint32_t num_buckets
    uint32_t bucket             # of the record under way
    Place* places               # num_buckets, and the shared one behind them
    bint from_section           # a section began: what came before it is not needed any more
    Buffer head                 # sections and interfaces that came


cdef void place_segment(void* opaque, Segment* segment) noexcept nogil:
    cdef Walk* walk = <Walk*>opaque
    walk.bucket = bucket_of(segment, walk.num_buckets)


cdef bint keep_block(Walk* walk, Octets block) noexcept nogil:
    """Notes a block that changes how packets are to be read."""
    cdef uint32_t kind = file32(block, 0, walk.reader.swapped)
    if kind == BLOCK_SECTION:
        walk.from_section = True
        walk.head.len = 0
    elif kind != BLOCK_INTERFACE:
        return True
    return append(&walk.head, block)


cdef void walk_records(Walk* walk, uint64_t end) noexcept nogil:
    cdef Reader* reader = &walk.reader
    cdef Octets rest
    cdef size_t used
    cdef int64_t frame, first_frame = reader.frame
    cdef uint32_t kind = 0
    cdef bint blocks = reader.format == FORMAT_PCAPNG
    while walk.offset < end and reader.stop == STOP_NONE:
        rest = drop(walk.data, <size_t>walk.offset)
        frame = reader.frame
        walk.bucket = NO_BUCKET
        reader.fragmented = False
        if blocks:
            kind = file32(rest, 0, reader.swapped)
        used = read_unit(reader, rest)
        if used == 0 or reader.skip:
            return
        if reader.fragmented or blocks and kind in (BLOCK_SECTION, BLOCK_INTERFACE, BLOCK_STATISTICS):
            walk.bucket = walk.num_buckets
            if blocks and not keep_block(walk, keep(rest, used)):
                reader.stop = STOP_NO_MEMORY
                return
        if walk.bucket != NO_BUCKET and not take_record(&walk.places[walk.bucket], walk.offset - walk.begin, used,
                                                        frame - first_frame, reader.frame - frame):
            reader.stop = STOP_NO_MEMORY
            return
        walk.offset += used


cdef bytes as_bytes(Buffer* buffer):
    return (<const char*>buffer.data)[:buffer.len] if buffer.len else b""


def scan(bytes head, data, uint64_t begin, uint64_t end, num_buckets, limits=None, *, since=None, until=None):
    cdef Walk walk
    cdef Py_buffer view
    cdef uint32_t i
    if not 0 < num_buckets <= MOST_BUCKETS:
        raise UsageError(f"{num_buckets} buckets: take 1 to {<int>MOST_BUCKETS}")
    bounds = Limits.with_changes(dict(limits or {}))
    memset(&walk, 0, sizeof(Walk))
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        walk.data = make_octets(<const uint8_t*>view.buf, <size_t>view.len)
        walk.begin = begin if begin else <uint64_t>len(head)
        walk.offset = walk.begin
        if not <uint64_t>len(head) <= walk.begin <= <uint64_t>view.len or end > <uint64_t>view.len:
            raise UsageError(f"bytes {begin} to {end} are not inside a capture of {view.len} bytes")
        walk.num_buckets = num_buckets
        walk.places = <Place*>calloc(<size_t>walk.num_buckets + 1, sizeof(Place))
        if walk.places == NULL:
            raise MemoryError
        start_reader(&walk.reader, place_segment, &walk, <size_t>bounds.packet_bytes,
                     <uint32_t>bounds.interfaces, 1)
        walk.reader.scanning = True
        bound_reader(&walk.reader, NO_TIME if since is None else since, NO_TIME if until is None else until)
        feed_head(&walk.reader, head)
        # The reader tells a damaged capture from none by whether it has seen packets.
        walk.reader.frame = 1 if walk.begin > <uint64_t>len(head) else 0
        with nogil:
            walk_records(&walk, end)
        return make_scan(&walk, head, end)
    finally:
        for i in range(walk.num_buckets + 1 if walk.places != NULL else 0):
            release(&walk.places[i].out)
        free(walk.places)
        release(&walk.head)
        free_reader(&walk.reader)
        PyBuffer_Release(&view)


cdef make_scan(Walk* walk, bytes head, uint64_t asked):
    cdef Reader* reader = &walk.reader
    cdef int64_t packets = reader.frame - (1 if walk.begin > <uint64_t>len(head) else 0)
    cdef Times times
    cdef uint32_t i
    stop = None
    if reader.stop == STOP_NO_MEMORY:
        raise MemoryError
    if reader.stop == STOP_NOT_A_CAPTURE:
        raise CaptureError("not a pcap or pcapng capture")
    if reader.stop == STOP_DAMAGED:
        stop = "damaged"
    elif walk.offset < asked:
        stop = "truncated"
    times.first = reader.first_time
    times.last = reader.last_time
    times.tcp = reader.tcp_time
    times.tcp_frame = reader.tcp_frame - (reader.frame - packets) if reader.tcp_frame else 0
    if not end_split(&walk.places[walk.num_buckets], walk.offset - walk.begin, packets):
        raise MemoryError
    for i in range(walk.num_buckets):
        if not end_place(&walk.places[i]):
            raise MemoryError
    counts = {
        f"packets_{name}": reader.verdicts[<int>number] - reader.fragment_verdicts[<int>number]
        for number, name in enumerate(_VERDICTS)
    }
    counts["tcp_payload_bytes"] = reader.payload_bytes
    held = tell_contents(reader.fragment_tunnels, reader.fragment_unread)
    for name, number in tell_contents(reader.tunnels, reader.unread).items():
        if number != held.get(name, 0):
            counts[name] = number - held.get(name, 0)
    changed = as_bytes(&walk.head)
    return Scan(
        begin=walk.begin,
        end=walk.offset,
        asked=asked,
        packets=packets,
        counts=counts,
        fragments=sum([reader.fragment_verdicts[<int>number] for number in range(len(_VERDICTS))]),
        **tell_times(reader),
        stop=stop,
        head=crc32(head),
        next_head=(changed if walk.from_section else head + changed) if changed else None,
        shared=(<const char*>&times)[:sizeof(Times)] + as_bytes(&walk.places[walk.num_buckets].out),
        runs=tuple([as_bytes(&walk.places[i].out) for i in range(walk.num_buckets)]),
    )


# -- for drivers ------------------------------------------------------------------------------------------------

def read_head(data):
    cdef Reader reader
    cdef Py_buffer view
    cdef Octets whole, rest
    cdef size_t used
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    start_reader(&reader, place_segment, NULL, MOST_HEAD, MOST_INTERFACES, 1)
    reader.scanning = True
    try:
        whole = make_octets(<const uint8_t*>view.buf, <size_t>view.len)
        rest = whole
        while reader.format != FORMAT_PCAP and whole.num - rest.num < MOST_HEAD:
            if reader.format == FORMAT_PCAPNG and file32(rest, 0, reader.swapped) in (
                    BLOCK_PACKET, BLOCK_SIMPLE, BLOCK_ENHANCED, BLOCK_CUSTOM, BLOCK_CUSTOM_NO_COPY, BLOCK_JOURNAL,
                    BLOCK_SYSDIG, BLOCK_SYSDIG_FLAGS, BLOCK_SYSDIG_2, BLOCK_SYSDIG_2_FLAGS, BLOCK_SYSDIG_LARGE,
                    BLOCK_SYSDIG_LARGE_FLAGS):
                break
            used = read_unit(&reader, rest)
            if used == 0 or reader.skip or reader.stop != STOP_NONE:
                break
            rest = drop(rest, used)
        if reader.stop == STOP_NOT_A_CAPTURE:
            raise CaptureError("not a pcap or pcapng capture")
        if reader.stop == STOP_NO_MEMORY:
            raise MemoryError
        return (<const char*>whole.at)[:whole.num - rest.num] if whole.num > rest.num else b""
    finally:
        free_reader(&reader)
        PyBuffer_Release(&view)


def find_cuts(bytes head, data, split_bytes):
    if split_bytes < 1:
        raise UsageError(f"splits of {split_bytes} bytes")
    size = memoryview(data).nbytes
    latest = len(head)
    cuts = [latest]
    for at in range(split_bytes, size, split_bytes):
        found = find_record(head, data, at) if at > latest else None
        if found is not None and found > latest:
            latest = found
            cuts.append(latest)
    if size > latest:
        cuts.append(size)
    return cuts


def meet(bytes head, scans):
    scans = list(scans)
    known = {(one.begin, one.head): one for one in scans}
    last = max((one.asked for one in scans), default=0)
    kept = []
    at = len(head)
    while at < last:
        one = known.get((at, crc32(head)))
        if one is None or one.end == at and not one.stop:
            later = [other for other in scans if other.begin > at]
            return kept + later, Again(at, min([other.begin for other in later], default=last), head)
        kept.append(one)
        if one.stop:
            break
        at = one.end
        head = one.next_head or head
    return kept, None


def capture_facts(scans, facts, size):
    whole = dict(facts)
    fragments = whole.pop("fragments", {})      # none: nothing follows the head
    if fragments:
        for name in fragments.keys() | {name for one in scans for name in one.counts}:
            whole[name] = fragments.get(name, 0) + sum([one.counts.get(name, 0) for one in scans])
    whole["bytes"] = size
    whole["packets"] = sum(one.packets for one in scans)
    for name, chosen in (("first_time", min), ("last_time", max), ("other_first_time", min), ("other_last_time", max)):
        whole[name] = chosen([time for one in scans if (time := getattr(one, name)) is not None], default=None)
    stop = scans[len(scans) - 1].stop if scans else None
    whole["truncated"] = stop == "truncated"
    whole["damaged"] = stop == "damaged"
    return whole
