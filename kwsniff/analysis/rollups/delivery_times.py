"""How long records take from Produce to their readers, by topic and reader, in bounded memory."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa

from kwsniff.analysis.rollups.percentiles import LatencySketch
from kwsniff.tables.arrays import valid_rows, whole_numbers
from kwsniff.tables.compute import filter_rows
from kwsniff.tables.grouping import Groups

MOST_READERS: Final = 200
"""Topics and readers that are counted one by one, with percentiles; what comes after is counted together."""
OTHERS: Final = "(others)"
PARTS: Final = (
    "before_wire_ns",
    "produce_ns",
    "replication_ns",
    "fetch_wait_ns",
    "fetch_ns",
    "processing_ns",
)
_PERCENTILES: Final = (50, 99)

Key = tuple[str | None, str | None, str | None]


@dataclass(slots=True)
class Way:
    """Batches of one topic that one reader fetched."""

    batches: int = 0
    to_fetch: LatencySketch = field(default_factory=LatencySketch)
    to_commit: LatencySketch = field(default_factory=LatencySketch)
    parts: list[int] = field(default_factory=lambda: [0] * len(PARTS))

    def as_dict(self) -> dict[str, Any]:
        """Nanoseconds from Produce to fetch and to commit, sums of the parts, and which is the longest."""
        total = sum(self.parts)
        longest = max(range(len(PARTS)), key=self.parts.__getitem__)
        return {
            "batches": self.batches,
            **{f"fetch_p{each}_ns": self.to_fetch.percentile(each) for each in _PERCENTILES},
            **{f"commit_p{each}_ns": self.to_commit.percentile(each) for each in _PERCENTILES},
            **dict(zip(PARTS, self.parts, strict=True)),
            "mostly": {"part": PARTS[longest], "share": round(self.parts[longest] / total, 4)}
            if total
            else None,
        }


class Ways:
    """Adds up rows of deliveries that have both a Produce and a reader."""

    def __init__(self) -> None:
        self._ways: dict[Key, Way] = {}

    def add(self, batch: pa.RecordBatch) -> None:
        """`batch`: rows of deliveries."""
        batch = filter_rows(batch, valid_rows(batch["produced_time"]) & valid_rows(batch["fetched_time"]))
        if not batch.num_rows:
            return
        produced, fetched = (whole_numbers(batch[name], null=0) for name in ("produced_time", "fetched_time"))
        committed = whole_numbers(batch["committed_time"], null=0)
        known = valid_rows(batch["committed_time"])
        parts = [whole_numbers(batch[name], null=0) for name in PARTS]
        groups = Groups(batch, ("topic", "topic_id", "group_id", "client_id"))
        ends = np.cumsum(groups.counts())[:-1]
        each_rows = np.split(np.argsort(groups.numbers, kind="stable"), ends)
        for rows, (topic, topic_id, group, client) in zip(each_rows, groups.labels(), strict=True):
            way = self._find((topic_id if topic is None else topic, group, client if group is None else None))
            way.batches += len(rows)
            way.to_fetch.add((fetched - produced)[rows] * 1000)
            done = rows[known[rows]]
            way.to_commit.add((committed - produced)[done] * 1000)
            for place, took in enumerate(parts):
                way.parts[place] += int(took[rows].sum())

    def as_dicts(self, names: Mapping[str, str]) -> list[dict[str, Any]]:
        """The slowest first. `names`: topic id -> topic."""
        found = [
            {
                "topic": topic and names.get(topic, topic),
                "group_id": group,
                "client_id": client,
                **way.as_dict(),
            }
            for (topic, group, client), way in self._ways.items()
        ]
        return sorted(found, key=lambda each: -(each["fetch_p99_ns"] or 0))

    def _find(self, key: Key) -> Way:
        if key not in self._ways and len(self._ways) >= MOST_READERS:
            key = (OTHERS, None, None)
        return self._ways.setdefault(key, Way())
