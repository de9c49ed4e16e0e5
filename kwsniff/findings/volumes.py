"""How much is written where: bounds for the rules about partitions and codecs."""

from collections.abc import Iterator
from typing import Final

import numpy as np
import pyarrow as pa

from kwsniff.findings.coded import Numbers, coded, numbers_of

MOST_PARTITIONS: Final = 100_000
_FEW: Final = 1 << 20
_FAR: Final = np.iinfo(np.int64).max // 4


class Volumes:
    """Bytes written, by topic and partition.

    Infinite figures say that there are more partitions than are counted.
    """

    OF_PARTITIONS = (
        "api_name", "topic", "partition", "record_bytes", "high_watermark", "last_stable_offset",
    )  # fmt: skip

    def __init__(self) -> None:
        self._bytes: dict[str, dict[int, int]] = {}
        self._calls: dict[str, int] = {}
        self._partitions: dict[str, int] = {}
        self._held_back = 0
        self._crowded = False

    def add(self, batch: pa.RecordBatch) -> None:
        """Counts rows of partitions."""
        ends = numbers_of(batch, "high_watermark", null=-1)
        self._held_back += int(np.count_nonzero(numbers_of(batch, "last_stable_offset", null=_FAR) < ends))
        places = _Places(batch)
        self._crowded |= places.size > _FEW
        if self._crowded:
            return
        codes, apis = coded(batch, "api_name")
        produced = np.flatnonzero(codes == _place(apis, "Produce"))
        where = places.codes[produced]
        self._write(places, where, numbers_of(batch, "record_bytes", null=0)[produced])
        for topic, partition in places.named(np.bincount(places.codes, minlength=places.size)):
            self._partitions[topic] = max(self._partitions.get(topic, 0), partition + 1)
        self._crowded |= sum(map(len, self._bytes.values())) > MOST_PARTITIONS

    def figures(self) -> dict[str, float]:
        """`hot_times`: how many times its fair share a partition gets that is half of its topic or more."""
        if self._crowded:
            return {"hot_times": np.inf, "held_back": self._held_back}
        hot = [
            max(parts.values()) / sum(parts.values()) * self._partitions[topic]
            for topic, parts in self._bytes.items()
            if self._calls[topic] >= 30 and 2 * max(parts.values()) >= sum(parts.values()) > 0
        ]
        return {"hot_times": max(hot, default=0), "held_back": self._held_back}

    def _write(self, places: "_Places", where: Numbers, sizes: Numbers) -> None:
        calls = np.bincount(where, minlength=places.size)
        total = np.bincount(where, np.maximum(sizes, 0), places.size).tolist()
        for code in np.flatnonzero(calls).tolist():
            if name := places.name(code):
                topic, partition = name
                mine = self._bytes.setdefault(topic, {})
                mine[partition] = mine.get(partition, 0) + int(total[code])
                self._calls[topic] = self._calls.get(topic, 0) + int(calls[code])


class _Places:
    """Topic and partition of each row as one number."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        topics, self._words = coded(batch, "topic")
        partitions = numbers_of(batch, "partition", null=0)
        self._width = int(partitions.max()) + 1
        self.size = (len(self._words) + 1) * self._width if partitions.min() >= 0 else _FAR
        # Rows without a topic come first.
        self.codes = (topics.astype(np.int64) + 1) * self._width + partitions

    def name(self, code: int) -> tuple[str, int] | None:
        """Topic and partition; None without a topic."""
        topic, partition = divmod(code, self._width)
        return (self._words[topic - 1], partition) if topic else None

    def named(self, counts: Numbers) -> Iterator[tuple[str, int]]:
        """The places with rows, but for those without a topic."""
        for code in np.flatnonzero(counts).tolist():
            if name := self.name(code):
                yield name


class Plain:
    """Bytes produced without compression, by client id, and the codecs seen."""

    OF_BATCHES = ("api_name", "client_id", "codec", "bytes")

    def __init__(self) -> None:
        self._bytes: dict[str | None, int] = {}
        self._codecs: set[str] = set()
        self._rest = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Counts rows of record_batches."""
        codecs, words = coded(batch, "codec")
        used = np.flatnonzero(np.bincount(codecs + 1, minlength=len(words) + 1)[1:])
        self._codecs.update(words[code] for code in used.tolist())
        apis, names = coded(batch, "api_name")
        rows = np.flatnonzero((codecs == _place(words, "none")) & (apis == _place(names, "Produce")))
        if not len(rows):
            return
        codes, clients = coded(batch, "client_id")
        sizes = numbers_of(batch, "bytes", null=0)
        for code, total in enumerate(np.bincount(codes[rows] + 1, sizes[rows]).tolist()):
            name = clients[code - 1] if code else None
            if name in self._bytes or len(self._bytes) < MOST_PARTITIONS:
                self._bytes[name] = self._bytes.get(name, 0) + int(total)
            else:
                self._rest += int(total)

    def figures(self) -> dict[str, float]:
        """The most that one client wrote, at most; how many codecs there are."""
        return {
            "plain_bytes": max(self._bytes.values(), default=0) + self._rest,
            "codecs": len(self._codecs),
        }


def _place(words: list[str], word: str) -> int:
    """Where a text stands in a list; what no code is where it does not."""
    return words.index(word) if word in words else len(words) + 1
