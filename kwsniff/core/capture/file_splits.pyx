# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""Splits of a capture file for several readers: where records begin, and which walks over them join.

Rules
  1. Records are read by the one reader (packets.pyx); partitioner.pyx counts and copies them.
  2. A boundary is trusted only because the walk from the file's beginning arrived there: `meet` says so. What
     `find_record` gives is a good guess that makes parallel walks possible.

    file    | head |  split 0  |  split 1  | ...      walked in parallel
            bucket 0 | . .. |   . |                   each bucket then reads its own records, part by part
            bucket 1 |.    .| .. .|
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport uint8_t

from kwsniff.core.bytes.span cimport Span, drop, file32, make_span
from kwsniff.core.capture.packets cimport (
    BLOCK_CUSTOM, BLOCK_CUSTOM_NO_COPY, BLOCK_ENHANCED, BLOCK_JOURNAL, BLOCK_PACKET, BLOCK_SIMPLE, BLOCK_SYSDIG,
    BLOCK_SYSDIG_2, BLOCK_SYSDIG_2_FLAGS, BLOCK_SYSDIG_FLAGS, BLOCK_SYSDIG_LARGE, BLOCK_SYSDIG_LARGE_FLAGS, FORMAT_PCAP,
    FORMAT_PCAPNG, STOP_NO_MEMORY, STOP_NONE, STOP_NOT_A_CAPTURE, Reader, Segment, free_reader, read_unit, start_reader,
)

from collections import namedtuple
from zlib import crc32

from kwsniff.core.capture.record_starts import find_record
from kwsniff.core.capture.partitioner import Router, Scan
from kwsniff.errors import CaptureError, UsageError

cdef enum:
    MOST_HEAD = 1 << 24         # blocks behind it count as coming in the middle
    MOST_INTERFACES = 1 << 20   # the head is as long as 16 MiB anyway

Again = namedtuple("Again", ("begin", "end", "head"), module="kwsniff.core.capture.file_splits")


def scan(bytes head, data, begin, end, num_buckets=0, limits=None, *, since=None, until=None):
    view = memoryview(data)
    if not (begin or len(head)) <= view.nbytes or not 0 <= end <= view.nbytes:
        raise UsageError(f"bytes {begin} to {end} are not inside a capture of {view.nbytes} bytes")
    router = Router(num_buckets, limits, since=since, until=until)
    router.open(head, begin, end)
    router.feed(view[begin or len(head):])
    return router.close()


cdef void pass_by(void* opaque, Segment* segment) noexcept nogil:
    pass


def read_head(data):
    cdef Reader reader
    cdef Py_buffer view
    cdef Span whole, rest
    cdef size_t used
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    start_reader(&reader, pass_by, NULL, MOST_HEAD, MOST_INTERFACES, 1)
    reader.scanning = True
    try:
        whole = make_span(<const uint8_t*>view.buf, <size_t>view.len)
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


def meet(bytes head, scans, size=0):
    scans = list(scans)
    known = {(one.begin, one.head): one for one in scans}
    last = max((one.asked for one in scans), default=size)
    last = max(last, size)
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
    if not kept and at == last and (at, crc32(head)) in known:
        kept.append(known[at, crc32(head)])     # a capture that has no packets
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
