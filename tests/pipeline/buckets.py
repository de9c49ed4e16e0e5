"""An analysis by splits and buckets, as a driver does it, and the whole one that it must equal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from tempfile import TemporaryFile
from typing import Any, NamedTuple

from kwsniff.analyzers import start_analyzer
from kwsniff.core.analyzer import Analyzer
from kwsniff.core.capture import file_splits
from kwsniff.core.capture.partitioner import Router
from kwsniff.core.declared import COLUMNS, ENUMS
from kwsniff.layout.catalog import load_catalog
from kwsniff.tables.build import Builder

CATALOG = load_catalog()
BUILDER = Builder(CATALOG, ENUMS)

Cut = Callable[[bytes, bytes], Sequence[int]]
"""Head and capture to offsets, the first behind the head, the last the capture's end."""

Times = tuple[int | None, int | None]


class Result(NamedTuple):
    rows: dict[str, Counter[tuple[Any, ...]]]
    facts: list[dict[str, Any]]
    bins: list[Counter[str]]


class Part(NamedTuple):
    """What a walk kept of a part of a capture, for each bucket and, last, for all of them."""

    packets: int
    kept: tuple[bytes, ...]


class Walked(NamedTuple):
    scan: file_splits.Scan
    parts: tuple[Part, ...]


def every(num_bytes: int) -> Cut:
    """Splits of so many bytes, where records are found."""
    return lambda head, data: find_cuts(head, data, num_bytes)


def find_cuts(head: bytes, data: bytes, split_bytes: int) -> list[int]:
    """Rising record boundaries, from behind the head to the end of the file."""
    cuts = [len(head)]
    for at in range(split_bytes, len(data), split_bytes):
        found = file_splits.find_record(head, data, at) if at > cuts[-1] else None
        if found is not None and found > cuts[-1]:
            cuts.append(found)
    return [*cuts, len(data)] if len(data) > cuts[-1] else cuts


def walk(  # noqa: PLR0917
    head: bytes,
    data: Any,
    begin: int,
    end: int,
    num_buckets: int,
    limits: Mapping[str, int] | None = None,
    times: Times = (None, None),
    *,
    piece: int = 1 << 30,
    waiting: int = 1 << 30,
    least_named: int = 0,
) -> Walked:
    """One split, fed in pieces, its parts taken when so many bytes wait."""
    router = Router(num_buckets, limits, since=times[0], until=times[1])
    router.open(head, begin, end, least_named=least_named)
    parts = []

    def take() -> None:
        kept: list[bytes] = []
        packets, ends = router.cut()
        router.take(lambda view: kept.append(bytes(view)))
        sizes = memoryview(ends).cast("q").tolist()
        waited = iter(kept)
        parts.append(Part(packets, tuple(next(waited) if size else b"" for size in sizes)))
        assert [*map(len, parts[-1].kept)] == sizes

    with memoryview(data) as view:
        for at in range(begin or len(head), len(data), piece):
            with view[at : at + piece] as fed:
                wanted = router.feed(fed)
            if router.waiting > waiting:
                take()
            if not wanted:
                break
    scan = router.close()
    take()
    return Walked(scan, tuple(parts))


def scanned(
    data: bytes,
    num_buckets: int,
    cut: Cut,
    limits: Mapping[str, int] | None = None,
    times: Times = (None, None),
    **pieces: int,
) -> tuple[bytes, list[Walked], int]:
    """The head, the walks that hold together, and how many had to be made again."""
    head = file_splits.read_head(data)
    cuts = cut(head, data)
    found: dict[tuple[int, ...], Walked] = {}

    def scan(head: bytes, begin: int, end: int) -> file_splits.Scan:
        one = walk(head, data, begin, end, num_buckets, limits, times, **pieces)
        found[one.scan.begin, one.scan.end, one.scan.asked, one.scan.head] = one
        return one.scan

    scans = [scan(head, begin, end) for begin, end in pairwise(cuts)]
    repeated = 0
    while True:
        scans, again = file_splits.meet(head, scans, len(data))
        if again is None:
            return head, [found[one.begin, one.end, one.asked, one.head] for one in scans], repeated
        scans.append(scan(again.head, again.begin, again.end))
        repeated += 1
        assert repeated <= 3 * len(cuts), "every repeated scan goes on where the others did not"


def whole(captures: Sequence[bytes], times: Times = (None, None), **options: Any) -> Result:
    """One analyzer, fed every capture whole."""
    analyzer = start_analyzer(CATALOG, **options)
    analyzer.bound(*times)
    facts = []
    for number, data in enumerate(captures):
        analyzer.open_capture(f"{number}.pcap")
        analyzer.feed(data)
        facts.append(analyzer.close_capture() | {"bytes": len(data)})
    return finished([analyzer], facts, len(captures))


def bucketed(
    captures: Sequence[bytes],
    num_buckets: int,
    cut: Cut | None,
    *,
    most: int = 1 << 20,
    limits: Mapping[str, int] | None = None,
    times: Times = (None, None),
    piece: int = 1 << 30,
    waiting: int = 1 << 30,
    least_named: int = 0,
    **options: Any,
) -> Result:
    """One analyzer for each bucket, fed its own records; without `cut` fed every capture whole."""
    scans: list[tuple[bytes, list[Walked]]] = [(b"", []) for _ in captures]
    if cut:
        for number, data in enumerate(captures):
            head, walked, _ = scanned(
                data, num_buckets, cut, limits, times, piece=piece, waiting=waiting, least_named=least_named
            )
            scans[number] = (head, walked)
    analyzers = []
    facts: list[list[dict[str, Any]]] = [[] for _ in captures]
    for bucket in range(num_buckets):
        analyzer = start_analyzer(CATALOG, bucket=(bucket, num_buckets), limits=limits, **options)
        analyzer.bound(*times)
        for number, (data, (head, found)) in enumerate(zip(captures, scans, strict=True)):
            analyzer.open_capture(f"{number}.pcap")
            if cut is None:
                analyzer.feed(data)
                facts[number].append(analyzer.close_capture() | {"bytes": len(data)})
                continue
            analyzer.feed(head)
            parts = [part for one in found for part in one.parts]
            with on_disk(data) as capture:
                feed_parts(analyzer, parts, bucket, capture=capture, most=most)
            found_scans = [one.scan for one in found]
            told = analyzer.close_capture(end=found_scans[-1].stop if found else None)
            facts[number].append(file_splits.capture_facts(found_scans, told, len(data)))
        analyzers.append(analyzer)
    assert all(each == of_one[0] for of_one in facts for each in of_one), (
        "every bucket tells the same of a file"
    )
    return finished(analyzers, [of_one[0] for of_one in facts], len(captures))


def feed_parts(
    analyzer: Analyzer, parts: Sequence[Part], bucket: int, *, capture: int, most: int = 1 << 20
) -> None:
    """Feeds what a bucket has of a capture, whose head was fed and which is open at that descriptor."""
    frames = 0
    for part in parts:
        analyzer.begin_runs(part.kept[bucket], part.kept[-1], frames_before=frames, capture=capture)
        while analyzer.feed_runs(most):
            pass
        frames += part.packets


@contextmanager
def on_disk(capture: bytes) -> Iterator[int]:
    """The descriptor of a file that holds the capture."""
    with TemporaryFile() as file:
        file.write(capture)
        file.flush()
        yield file.fileno()


def finished(analyzers: Sequence[Analyzer], facts: list[dict[str, Any]], num_captures: int) -> Result:
    names: dict[str, str] = {}
    for analyzer in analyzers:
        analyzer.finish()
        names |= analyzer.topic_names()
    rows: dict[str, Counter[tuple[Any, ...]]] = {table: Counter() for table in COLUMNS}
    bins: list[Counter[str]] = [Counter() for _ in range(num_captures)]
    for analyzer in analyzers:
        for table in filter(analyzer.rows, COLUMNS):
            rows[table].update(
                frozen(row, names) for row in BUILDER.build(table, analyzer.drain(table)).to_pylist()
            )
        for number, count in enumerate(bins):
            count.update(analyzer.accounting(number))
    return Result(rows, facts, bins)


def frozen(row: dict[str, Any], names: Mapping[str, str]) -> tuple[Any, ...]:
    """The row with the names of topics that any message gave."""
    if row.get("topics"):
        row["topics"] = tuple(names.get(topic, topic) for topic in row["topics"])
    if "topic_id" in row and row["topic"] is None:
        row["topic"] = names.get(row["topic_id"])
    return tuple(tuple(value) if isinstance(value, list) else value for value in row.values())
