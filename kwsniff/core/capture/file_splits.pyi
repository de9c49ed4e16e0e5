"""One capture file read by many: where records begin, and which walks over them hold together.

A driver cuts a capture into splits; a task walks each with a `Router` (partitioner.pyi), which keeps the
records of every bucket of connections; the driver checks that the walks meet, and gives every bucket to an
analyzer of its own, which reads what was kept for it, in the capture's order:

    head = read_head(data)                          # data: the beginning of the file, or all of it
    scans = [walk(head, begin, end) for begin, end in splits]       # by Routers, in parallel
    while True:
        scans, again = meet(head, scans, size)
        if again is None:
            break
        scans.append(walk(again.head, again.begin, again.end))

    analyzer = Analyzer(..., bucket=(number, num_buckets))   # one per bucket, over all captures, in parallel
    for each capture:
        analyzer.open_capture(name)
        analyzer.feed(head)
        frames = 0
        for each part of its walks:
            analyzer.begin_runs(own, shared, frames_before=frames)
            while analyzer.feed_runs():
                ... take the tables that are large enough
            frames += packets of the part
        facts = analyzer.close_capture(end=scans[-1].stop if scans else None)
    analyzer.finish()

The rows of all buckets are those of one analyzer that was fed all captures, ids and frame numbers included.
The facts of the capture are `capture_facts(scans, facts of any one bucket)`; bins of `accounting()` are
summed over the buckets; topic names of all buckets (`topic_names()`) correct rows of any of them that had to
show an id. A capture that is fed whole to every bucket's analyzer gives the same result.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from typing_extensions import Buffer

class Scan(NamedTuple):
    """What one walk over the records of a split found. Picklable."""

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
    secrets: bool
    """Whether a pcapng block of TLS secrets was among them."""
    samples: tuple[int, bytes]
    """As Analyzer.samples, of these records."""

class Again(NamedTuple):
    """A part of the capture that must be scanned (again), before any part behind it can be trusted."""

    begin: int
    end: int
    head: bytes

def read_head(data: Buffer) -> bytes:
    """The first bytes of a capture, as many as it takes to begin reading anywhere: pcap's file header,
    pcapng's blocks before the first packet. Raises CaptureError for what is not a capture. Empty: a capture
    too short to have one."""

def find_record(head: bytes, data: Buffer, offset: int, *, at: int = 0, earliest: int = 0) -> int | None:
    """The first record boundary at or after `offset` of the file; None when none can be found from there on
    (the split before then goes on to the end, or to the next boundary that was found).

    `data` is the whole file, or what follows place `at` of it; then `earliest` is the second of the first
    packet (0: not known). All readings of the bytes are followed until those that are left agree. Records
    inside records (a capture as the payload of a message) end with the record around them; what looks right
    by design all the same is found out by `meet`. The same question always gets the same answer, whoever
    asks. Reads about the snapshot length behind `offset`.
    """

def scan(
    head: bytes,
    data: Buffer,
    begin: int,
    end: int,
    num_buckets: int = 0,
    limits: Mapping[str, int] | None = None,
    *,
    since: int | None = None,
    until: int | None = None,
) -> Scan:
    """Walks the records from boundary `begin` (0: behind the head) to the first boundary at or after `end`,
    and keeps none of them.

    `data` is the whole file. Otherwise as a Router. Raises UsageError for bounds outside the file.
    """

def meet(head: bytes, scans: Iterable[Scan], size: int = 0) -> tuple[list[Scan], Again | None]:
    """The scans that hold together from the beginning of the capture of `size` bytes on, in order, and the
    part to scan (again), if any: do so, add it to the scans that came back, ask again. Without one, the
    scans are all of the capture that can be read; with one, those behind it follow them.

    A scan is trusted because the one before ended exactly where it begins, with the head that it was
    scanned with. Those behind one that stopped are left out. With no scans at all there is nothing to scan
    again.
    """

def capture_facts(scans: Sequence[Scan], facts: Mapping[str, Any], size: int) -> dict[str, Any]:
    """What close_capture() of one analyzer that was fed the whole file (`size` bytes) tells: from the scans
    as `meet` left them, and from what close_capture() told any one bucket."""
