"""The first stage: every byte of the captures is read once, and every packet put into the file of its bucket.

A split is trusted when the one before ended where it begins. Where one did not (bytes that looked like a
record, a pcapng section that changed what packets mean), the part behind is walked again.
"""

import io
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final

from kwsniff.analysis.capture_points import CapturePoints, find_places, join_samples, samples_of_each
from kwsniff.core.capture.file_splits import Scan, find_record, meet
from kwsniff.core.capture.partitioner import Router
from kwsniff.errors import CaptureError
from kwsniff.sources.files import Opener, opened_capture
from kwsniff.sources.times import TimeRange
from kwsniff.spark.inputs import Capture, Split, share_out
from kwsniff.spark.jobs import Items, is_here, run_tasks
from kwsniff.spark.serialization import register
from kwsniff.spark.shuffle import PacketFile, PacketWriter, Stretch
from kwsniff.spark.storage import Place
from kwsniff.spark.stored_captures import Stores, opener_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

READ_BYTES: Final = 8 << 20
_REST_BYTES: Final = 1 << 18  # bytes read at a time of a record that continues after its split
_LEAST_NAMED: Final = 1 << 15  # bytes side by side: a request of its own is cheaper than a copy
_FEW_BUCKETS: Final = 8  # each may read all of what lies in memory for less than a copy costs
register(Scan)


@register
@dataclass(slots=True)
class Walked:
    """Facts from a walk over a split, and the location of its packets."""

    capture: int
    scan: Scan
    stretches: list[Stretch]
    size: int
    """Of what was read, decompressed."""
    truncated: bool = False
    note: str | None = None
    file: PacketFile | None = None


@register
@dataclass(slots=True)
class Routed:
    """What one task gives. `bytes_read`: of captures."""

    file: PacketFile
    walks: list[Walked] = field(default_factory=list)
    bytes_read: int = 0


def scan_split(
    number: int,
    *,
    tasks: Items,
    folder: Place,
    num_buckets: int,
    limits: Mapping[str, int],
    since: int | None = None,
    until: int | None = None,
    stores: Stores | None = None,
    least_named: int = 0,
    samples: int = 0,
) -> Routed:
    """The task: reads its splits from front to back. `least_named`, `samples`: as Router has them."""
    folder.check()
    router = Router(num_buckets, limits, since=since, until=until, samples=samples)
    walks = []
    bytes_read = 0
    with PacketWriter(folder, num_buckets) as packets:
        for split in tasks.load(number):
            stretches: list[Stretch | None] = []
            opener = opener_of(split.name, stores)
            found: Walked | None
            if split.compression:
                found, num = _walk_packed(split, router, packets, stretches, opener)
            else:
                least = 0 if opener else least_named
                found, num = _walk_plain(split, router, packets, stretches, opener, least_named=least)
            bytes_read += num
            if found is not None:
                packets.cut(router, stretches)
                walks.append((found, stretches))
        packets.write(router)
        file = packets.file
    for found, stretches in walks:
        found.stretches = [each for each in stretches if each is not None]
    return Routed(file, [found for found, _ in walks], bytes_read)


def _walk_packed(
    split: Split,
    router: Router,
    packets: PacketWriter,
    stretches: list[Stretch | None],
    opener: Opener | None,
) -> tuple[Walked, int]:
    """A compressed capture, from its first byte to its last."""
    size, head = 0, len(split.head)
    router.open(split.head)
    with opened_capture(split.name, READ_BYTES, opener) as file:
        for buffer in file.buffers():
            size += len(buffer)
            rest, head = buffer[head:], max(head - len(buffer), 0)
            if not router.feed(rest):
                break
            packets.relieve(router, stretches)
        found = Walked(split.capture, router.close(), [], size, file.truncated, file.note)
        return found, file.consumed


def _walk_plain(
    split: Split,
    router: Router,
    packets: PacketWriter,
    stretches: list[Stretch | None],
    opener: Opener | None,
    *,
    least_named: int,
) -> tuple[Walked | None, int]:
    """None: no record is known to begin in it."""
    with _open(split.name, opener) as file:
        begin = split.begin or len(split.head)
        file.seek(begin)
        # To find a record more may be needed than the split has.
        most = split.size if not split.exact else max(split.end, begin)
        space = memoryview(bytearray(max(min(READ_BYTES, most - begin), 1)))
        num = file.readinto(space[: most - begin]) or 0
        read = num
        if not split.exact:
            place = find_record(split.head, space[:num], begin, at=begin, earliest=split.first_second)
            if place is None or place >= split.end:
                return None, read
            space_at, begin = place - begin, place
        else:
            space_at = 0
        router.open(split.head, begin, split.end, least_named=least_named)
        wanted = router.feed(space[space_at:num])
        at = begin + num - space_at
        while wanted and num and at < split.size:
            packets.relieve(router, stretches)
            left = (split.end if at < split.end else min(at + _REST_BYTES, split.size)) - at
            num = file.readinto(space[: min(left, len(space))]) or 0
            read += num
            at += num
            wanted = router.feed(space[:num])
        packets.relieve(router, stretches)
        return Walked(split.capture, router.close(), [], split.size), read


def _open(name: str, opener: Opener | None) -> io.RawIOBase:
    try:
        return opener(name).raw if opener else io.FileIO(name)
    except FileNotFoundError as error:
        raise CaptureError(
            f"{name}: workers do not see it; captures have to be under the same path on all machines"
        ) from error
    except OSError as error:
        raise CaptureError(f"{name}: cannot be read ({error.strerror or error})") from error


def scan_captures(
    spark: "SparkSession",
    captures: Sequence[Capture],
    *,
    folder: Place,
    num_buckets: int,
    limits: Mapping[str, int],
    split_bytes: int,
    times: TimeRange,
    stores: Stores | None = None,
) -> tuple[list[list[Walked]], int]:
    """The walks of every capture, which together are all of it that can be read; and bytes that were read."""
    work = partial(
        scan_split,
        folder=folder,
        num_buckets=num_buckets,
        limits=dict(limits),
        since=times.since,
        until=times.until,
        stores=stores,
        least_named=_least_named(captures, num_buckets) if is_here(spark) else 0,
        samples=samples_of_each(len(captures)),
    )
    walks: list[dict[tuple[int, ...], Walked]] = [{} for _ in captures]
    scans: list[list[Scan]] = [[] for _ in captures]
    bytes_read = 0
    waiting = share_out(captures, split_bytes)
    while waiting:
        tasks = Items.write(folder, waiting)
        for routed in run_tasks(spark, partial(work, tasks=tasks), range(len(waiting))):
            bytes_read += routed.bytes_read
            for walk in routed.walks:
                walk.file = routed.file
                walks[walk.capture][_key(walk.scan)] = walk
                scans[walk.capture].append(walk.scan)
        waiting = _again(captures, scans)
    return [[walks[number][_key(one)] for one in of_one] for number, of_one in enumerate(scans)], bytes_read


def places_of(captures: Sequence[Capture], walks: Sequence[Sequence[Walked]]) -> CapturePoints:
    """Where the captures were taken, as the packets tell that walks have kept."""
    if len(captures) < 2:
        return CapturePoints()
    samples = [join_samples(walk.scan.samples for walk in walked) for walked in walks]
    return find_places([capture.name for capture in captures], samples)


def _least_named(captures: Sequence[Capture], num_buckets: int) -> int:
    """How many bytes are worth reading where they are, on the machine that has just read them."""
    size = sum(capture.size for capture in captures if capture.compression is None)
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return 1 if num_buckets <= _FEW_BUCKETS and size <= memory // 2 else _LEAST_NAMED


def _again(captures: Sequence[Capture], scans: list[list[Scan]]) -> list[list[Split]]:
    """The parts that must be walked again; keeps of `scans` what holds."""
    parts = []
    for number, capture in enumerate(captures):
        if capture.compression is None:
            scans[number], part = meet(capture.head, scans[number], capture.size)
            if part is not None:
                one = Split(number, capture.name, capture.size, part.head, 0, None, part.begin, part.end)
                parts.append([one])
    return parts


def _key(one: Scan) -> tuple[int, ...]:
    return one.begin, one.end, one.asked, one.head
