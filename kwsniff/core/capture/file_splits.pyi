"""One capture file read by many: where records begin, and which of them which bucket of connections needs.

A driver cuts a capture into splits of some 128 to 256 MB, scans them in parallel, checks that they meet,
and gives every bucket of connections to an analyzer of its own, which reads only its own records, in the
capture's order:

    head = read_head(data)                          # data: mmap of the file
    cuts = find_cuts(head, data, split_bytes)
    scans = [scan(head, data, begin, end, num_buckets) for begin, end in pairwise(cuts)]  # in parallel
    while True:
        scans, again = meet(head, scans)
        if again is None:
            break
        scans.append(scan(again.head, data, again.begin, again.end, num_buckets))

    analyzer = Analyzer(..., bucket=(number, num_buckets))   # one per bucket, over all captures, in parallel
    for each capture:
        analyzer.open_capture(name)
        analyzer.feed(head)
        frames = 0
        for one in scans:
            analyzer.begin_runs(
                data, one.runs[number], one.shared, begin=one.begin, frames_before=frames
            )
            while analyzer.feed_runs():
                ... take the tables that are large enough
            frames += one.packets
        facts = analyzer.close_capture(end=scans[-1].stop if scans else None)
    analyzer.finish()

The rows of all buckets are those of one analyzer that was fed all captures, ids and frame numbers included.
The facts of the capture are `capture_facts(scans, facts of any one bucket)`; bins of `accounting()` are
summed over the buckets; topic names of all buckets (`topic_names()`) mend rows of any of them that had to
show an id. A capture that cannot be mapped (compressed, or a pipe) is fed whole to every bucket's analyzer,
with the same result.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from typing_extensions import Buffer

class Scan(NamedTuple):
    """What one walk over the records of a split found. Picklable; `runs` is nearly all of its size."""

    begin: int
    """Offset of the first record."""
    end: int
    """Offset behind the last record that was read: where the next scan must begin."""
    asked: int
    """The end that was asked for."""
    packets: int
    """Records that count as frames, as Wireshark numbers them."""
    counts: dict[str, int]
    """packets_tcp, packets_not_ip, packets_not_tcp, packets_fragment, packets_malformed,
    packets_unknown_link_type, packets_other_time and tcp_payload_bytes, as close_capture() tells
    them, IP fragments left out: what became of those, buckets find out."""
    fragments: int
    """IP fragments: packets that every bucket reads."""
    first_time: int | None
    """Nanoseconds since the epoch, smallest and largest, None where no packet has a time."""
    last_time: int | None
    other_first_time: int | None
    """The same of packets outside of the bounds."""
    other_last_time: int | None
    stop: str | None
    """truncated (the file ends inside a record), damaged (a record cannot be): nothing follows `end`."""
    head: int
    """Which head it was scanned with: a check sum."""
    next_head: bytes | None
    """What it takes to read on behind it, where pcapng sections or interfaces in the middle changed that."""
    shared: bytes
    """For Analyzer.begin_runs of every bucket: what all of them need."""
    runs: tuple[bytes, ...]
    """For Analyzer.begin_runs of each bucket: which bytes of the split it needs."""

class Again(NamedTuple):
    """A part of the capture that must be scanned (again), before any part behind it can be trusted."""

    begin: int
    end: int
    head: bytes

def read_head(data: Buffer) -> bytes:
    """The first bytes of a capture, as many as it takes to begin reading anywhere: pcap's file header,
    pcapng's blocks before the first packet. Raises CaptureError for what is no capture. Empty: a capture
    too short to have one."""

def find_record(head: bytes, data: Buffer, offset: int) -> int | None:
    """The first record boundary at or after `offset` of the whole file `data`; None when none can be told
    from there on (the split before then goes on to the end, or to the next boundary that was found).

    All readings of the bytes are followed until those that are left agree. Records inside records (a
    capture as the payload of a message) end with the record around them; what looks right by design all the
    same is found out by `meet`. The same question always gets the same answer, whoever asks. Reads about
    the snapshot length behind `offset`.
    """

def scan(
    head: bytes,
    data: Buffer,
    begin: int,
    end: int,
    num_buckets: int,
    limits: Mapping[str, int] | None = None,
    *,
    since: int | None = None,
    until: int | None = None,
) -> Scan:
    """Walks the records from boundary `begin` (0: behind the head) to the first boundary at or after `end`.

    `data` is the whole file. `limits` as the Analyzer's, `since` and `until` as for its
    `bound`. The interpreter is not held. Raises UsageError for
    bounds outside the file, or a number of buckets outside 1 to 65536.
    """

def find_cuts(head: bytes, data: Buffer, split_bytes: int) -> list[int]:
    """Rising record boundaries about `split_bytes` apart, from behind the head to the end of the file; at
    least one split unless nothing follows the head."""

def meet(head: bytes, scans: Iterable[Scan]) -> tuple[list[Scan], Again | None]:
    """The scans that hold together from the beginning of the capture on, in order, and the part to scan
    (again), if any: do so, add it to the scans that came back, ask again. Without one, the scans are all of
    the capture that can be read; with one, those behind it stand after them.

    A scan is trusted because the one before ended exactly where it begins, with the head that it was
    scanned with. Those behind one that stopped are left out. With no scans at all there is nothing to scan
    again.
    """

def capture_facts(scans: Sequence[Scan], facts: Mapping[str, Any], size: int) -> dict[str, Any]:
    """What close_capture() of one analyzer that was fed the whole file (`size` bytes) tells: from the scans
    as `meet` left them, and from what close_capture() told any one bucket."""
