"""The first stage: every split is walked once, and what it holds for each bucket noted in a file.

A split is trusted when the one before ended where it begins. Where one did not (bytes that looked like a
record, a pcapng section that changed what packets mean), the part behind is scanned again.
"""

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING

from kwsniff.core.capture.file_splits import Scan, meet, scan
from kwsniff.errors import CaptureError
from kwsniff.sources.times import TimeRange
from kwsniff.spark.inputs import SHRUNK, Capture, Mapped, mapped, split
from kwsniff.spark.jobs import run_tasks
from kwsniff.spark.parts import check_root
from kwsniff.spark.values import known

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LEAST_TASKS = 4
known(Scan)
_Key = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class Split:
    """A part of a capture: from the record at `begin` to the first one at or after `end`."""

    name: str
    head: bytes
    begin: int
    end: int


@known
@dataclass(frozen=True, slots=True)
class Scanned:
    """A scan whose lists lie in a file: what all buckets need, then each of them; `ends`: where they end."""

    scan: Scan
    path: str
    ends: tuple[int, ...]

    def shared(self) -> bytes:
        """What all buckets need."""
        return self._list(0)

    def runs(self, bucket: int) -> bytes:
        """What one bucket needs."""
        return self._list(bucket + 1)

    def _list(self, number: int) -> bytes:
        begin = self.ends[number - 1] if number else 0
        if self.ends[number] == begin:
            return b""
        with Path(self.path).open("rb") as file:
            file.seek(begin)
            return file.read(self.ends[number] - begin)


def scan_split(
    split: Split,
    *,
    folder: str,
    num_buckets: int,
    limits: Mapping[str, int],
    since: int | None = None,
    until: int | None = None,
) -> Scanned:
    """The task: one walk over a split."""
    check_root(folder)
    walk = partial(scan, num_buckets=num_buckets, limits=limits, since=since, until=until)
    with mapped(split.name) as file:
        size = -1
        while size != file.size:  # what it lost meanwhile was never read, or not as it was
            size = file.size
            found = _walk(split, file, size, walk)
    path = Path(folder) / f"{uuid.uuid4().hex}.runs"
    with path.open("wb") as file:
        for each in (found.shared, *found.runs):
            file.write(each)
    ends = tuple(accumulate(map(len, (found.shared, *found.runs))))
    return Scanned(found._replace(shared=b"", runs=()), str(path), ends)


def _walk(split: Split, file: Mapped, size: int, walk: Callable[..., Scan]) -> Scan:
    """What the split holds of the first `size` bytes, to which the file may have shrunk."""
    if size < len(split.head):
        raise CaptureError(f"{split.name}: {SHRUNK}")
    is_gone = size <= split.begin
    begin, end = (0, len(split.head)) if is_gone else (split.begin, min(split.end, size))
    with memoryview(file.data)[:size] as there:
        found = walk(split.head, there, begin, end)
    if size >= split.end:
        return found
    if is_gone:
        found = found._replace(begin=split.begin, end=split.begin)
    return found._replace(asked=split.end, stop=found.stop or "truncated")


def scan_captures(
    spark: "SparkSession",
    captures: Sequence[Capture],
    *,
    folder: str,
    num_buckets: int,
    limits: Mapping[str, int],
    split_bytes: int,
    times: TimeRange,
) -> list[list[Scanned]]:
    """The scans of every capture, which together are all of it that can be read; none of those read whole."""
    # A split is walked in less time than it takes Spark to start a task.
    most = max(num_buckets, _LEAST_TASKS)
    work = partial(
        scan_split,
        folder=folder,
        num_buckets=num_buckets,
        limits=dict(limits),
        since=times.since,
        until=times.until,
    )
    parts = [
        (number, Split(capture.name, capture.head, begin, end))
        for number, capture in enumerate(captures)
        if capture.head is not None
        for begin, end in split(capture, split_bytes)
    ]
    files: list[dict[_Key, Scanned]] = [{} for _ in captures]
    scans: list[list[Scan]] = [[] for _ in captures]
    for (number, _), one in zip(
        parts, run_tasks(spark, work, [part for _, part in parts], most=most), strict=True
    ):
        files[number][_key(one.scan)] = one
        scans[number].append(one.scan)
    while again := _again(captures, scans):
        done = run_tasks(spark, work, list(again.values()))
        for number, one in zip(again, done, strict=True):
            files[number][_key(one.scan)] = one
            scans[number].append(one.scan)
    return [[files[number][_key(one)] for one in of_one] for number, of_one in enumerate(scans)]


def _again(captures: Sequence[Capture], scans: list[list[Scan]]) -> dict[int, Split]:
    """By the capture's number, the part of it that must be scanned again; keeps of `scans` what holds."""
    parts = {}
    for number, capture in enumerate(captures):
        if capture.head is not None:
            scans[number], part = meet(capture.head, scans[number])
            if part is not None:
                parts[number] = Split(capture.name, part.head, part.begin, part.end)
    return parts


def _key(one: Scan) -> _Key:
    return one.begin, one.end, one.asked, one.head
