"""How much is written where: bounds for the rules about partitions, lag and codecs."""

from collections.abc import Iterator
from typing import Final, Self

import numpy as np
import pyarrow as pa

from kwsniff.findings.coded import Numbers, coded, numbers_of

MOST_PARTITIONS: Final = 100_000
_FEW: Final = 1 << 20
_FAR: Final = np.iinfo(np.int64).max // 4
_NONE: Final = np.iinfo(np.uint64).max


class Volumes:
    """Bytes written and offsets reached, by topic and partition.

    Infinite figures say that there are more partitions than are counted.
    """

    OF_PARTITIONS = (
        "api_name", "topic", "partition", "record_bytes",
        "high_watermark", "last_stable_offset", "last_offset", "offset",
    )  # fmt: skip

    def __init__(self) -> None:
        self._bytes: dict[str, dict[int, int]] = {}
        self._calls: dict[str, int] = {}
        self._partitions: dict[str, int] = {}
        self._reached: dict[tuple[str, int], int] = {}
        self._started: dict[tuple[str, int], int] = {}
        self._committed: dict[tuple[str, int], tuple[int, int]] = {}
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
        committed = np.flatnonzero(codes == _place(apis, "OffsetCommit"))
        where = places.codes[produced]
        self._write(places, where, numbers_of(batch, "record_bytes", null=0)[produced])
        for topic, partition in places.named(np.bincount(places.codes, minlength=places.size)):
            self._partitions[topic] = max(self._partitions.get(topic, 0), partition + 1)
        last = numbers_of(batch, "last_offset", null=-2)[produced]
        self._reach(places, _Bounds(places.size).add(places.codes, ends).add(where, last + 1))
        offsets = numbers_of(batch, "offset", null=-1)[committed]
        self._commit(places, _Bounds(places.size).add(places.codes[committed], offsets))
        self._crowded |= len(self._reached) + len(self._committed) > MOST_PARTITIONS
        self._crowded |= sum(map(len, self._bytes.values())) > MOST_PARTITIONS

    def figures(self) -> dict[str, float]:
        """`hot_times`: how many times its fair share a partition gets, if that is half of its topic or more;
        `lag`: by how much that of a partition can have grown."""
        if self._crowded:
            return {"hot_times": np.inf, "lag": np.inf, "held_back": self._held_back}
        hot = [
            max(parts.values()) / sum(parts.values()) * self._partitions[topic]
            for topic, parts in self._bytes.items()
            if self._calls[topic] >= 30 and 2 * max(parts.values()) >= sum(parts.values()) > 0
        ]
        lags = [self._growth(place) for place in self._committed.keys() & self._reached.keys()]
        return {"hot_times": max(hot, default=0), "lag": max(lags, default=0), "held_back": self._held_back}

    def _growth(self, place: tuple[str, int]) -> int:
        """How much the lag of a partition can have grown: it is what was reached less what was committed."""
        least, most = self._committed[place]
        reached = self._reached[place]
        return min(reached - least, reached - self._started[place] + most - least)

    def _write(self, places: "_Places", where: Numbers, sizes: Numbers) -> None:
        calls = np.bincount(where, minlength=places.size)
        total = np.bincount(where, np.maximum(sizes, 0), places.size).tolist()
        for code in np.flatnonzero(calls).tolist():
            if name := places.name(code):
                topic, partition = name
                mine = self._bytes.setdefault(topic, {})
                mine[partition] = mine.get(partition, 0) + int(total[code])
                self._calls[topic] = self._calls.get(topic, 0) + int(calls[code])

    def _reach(self, places: "_Places", bounds: "_Bounds") -> None:
        for code, least, most in bounds.found():
            if name := places.name(code):
                self._reached[name] = max(self._reached.get(name, -1), most)
                self._started[name] = min(self._started.get(name, _FAR), least)

    def _commit(self, places: "_Places", bounds: "_Bounds") -> None:
        for code, least, most in bounds.found():
            if name := places.name(code):
                before, after = self._committed.get(name, (_FAR, -1))
                self._committed[name] = (min(before, least), max(after, most))


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


class _Bounds:
    """The least and the greatest offset of each place; negative ones are none."""

    def __init__(self, size: int) -> None:
        self._least = np.full(size, _NONE, np.uint64)
        self._most = np.full(size, -1, np.int64)

    def add(self, where: Numbers, offsets: Numbers) -> Self:
        """More offsets, and where they are."""
        np.maximum.at(self._most, where, offsets)
        np.minimum.at(self._least, where, offsets.astype(np.int64, copy=False).view(np.uint64))
        return self

    def found(self) -> Iterator[tuple[int, int, int]]:
        """Place, least, greatest."""
        places = np.flatnonzero(self._most >= 0)
        return zip(places.tolist(), self._least[places].tolist(), self._most[places].tolist(), strict=True)


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
