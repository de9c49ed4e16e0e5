"""An analysis by splits and buckets, as a driver does it, and the whole one that it must equal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from kwsniff.analysis.analyze import analyzer_arguments
from kwsniff.core.analyzer import Analyzer
from kwsniff.core.capture import file_splits
from kwsniff.core.declared import COLUMNS, ENUMS
from kwsniff.layout.catalog import load_catalog
from kwsniff.tables.build import Builder

CATALOG = load_catalog()
ARGUMENTS = analyzer_arguments(CATALOG)

Cut = Callable[[bytes, bytes], Sequence[int]]
"""Head and capture to offsets, the first behind the head, the last the capture's end."""

Times = tuple[int | None, int | None]


class Result(NamedTuple):
    rows: dict[str, Counter[tuple[Any, ...]]]
    facts: list[dict[str, Any]]
    bins: list[Counter[str]]


def every(num_bytes: int) -> Cut:
    """Splits of so many bytes, where records are found."""
    return lambda head, data: file_splits.find_cuts(head, data, num_bytes)


def scanned(
    data: bytes,
    num_buckets: int,
    cut: Cut,
    limits: Mapping[str, int] | None = None,
    times: Times = (None, None),
) -> tuple[bytes, list[file_splits.Scan], int]:
    """The head, the scans that hold together, and how many had to be made again."""
    head = file_splits.read_head(data)
    cuts = cut(head, data)
    since, until = times

    def scan(head: bytes, begin: int, end: int) -> file_splits.Scan:
        return file_splits.scan(head, data, begin, end, num_buckets, limits, since=since, until=until)

    scans = [scan(head, begin, end) for begin, end in pairwise(cuts)]
    repeated = 0
    while True:
        scans, again = file_splits.meet(head, scans)
        if again is None:
            return head, scans, repeated
        scans.append(scan(again.head, again.begin, again.end))
        repeated += 1
        assert repeated <= 3 * len(cuts), "every repeated scan goes on where the others did not"


def whole(captures: Sequence[bytes], times: Times = (None, None), **options: Any) -> Result:
    """One analyzer, fed every capture whole."""
    analyzer = Analyzer(*ARGUMENTS, **options)
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
    **options: Any,
) -> Result:
    """One analyzer for each bucket, fed its own records; without `cut` fed every capture whole."""
    scans = [scanned(data, num_buckets, cut, limits, times)[:2] if cut else (b"", []) for data in captures]
    analyzers = []
    facts: list[list[dict[str, Any]]] = [[] for _ in captures]
    for bucket in range(num_buckets):
        analyzer = Analyzer(*ARGUMENTS, bucket=(bucket, num_buckets), limits=limits, **options)
        analyzer.bound(*times)
        for number, (data, (head, found)) in enumerate(zip(captures, scans, strict=True)):
            analyzer.open_capture(f"{number}.pcap")
            if cut is None:
                analyzer.feed(data)
                facts[number].append(analyzer.close_capture() | {"bytes": len(data)})
                continue
            analyzer.feed(head)
            frames = 0
            for one in found:
                analyzer.begin_runs(data, one.runs[bucket], one.shared, begin=one.begin, frames_before=frames)
                while analyzer.feed_runs(most):
                    pass
                frames += one.packets
            told = analyzer.close_capture(end=found[-1].stop if found else None)
            facts[number].append(file_splits.capture_facts(found, told, len(data)))
        analyzers.append(analyzer)
    assert all(each == of_one[0] for of_one in facts for each in of_one), (
        "every bucket tells the same of a file"
    )
    return finished(analyzers, [of_one[0] for of_one in facts], len(captures))


def finished(analyzers: Sequence[Analyzer], facts: list[dict[str, Any]], num_captures: int) -> Result:
    names: dict[str, str] = {}
    for analyzer in analyzers:
        analyzer.finish()
        names |= analyzer.topic_names()
    builder = Builder(CATALOG, ENUMS)
    rows: dict[str, Counter[tuple[Any, ...]]] = {table: Counter() for table in COLUMNS}
    bins: list[Counter[str]] = [Counter() for _ in range(num_captures)]
    for analyzer in analyzers:
        for table in COLUMNS:
            rows[table].update(
                frozen(row, names) for row in builder.build(table, analyzer.take(table)).to_pylist()
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
