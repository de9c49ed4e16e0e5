"""How much is written where: bounds for the rules about partitions, lag and codecs."""

from typing import Final

import numpy as np
import pyarrow as pa

from kwsniff.findings.coded import Numbers, coded, numbers_of

MOST_PARTITIONS: Final = 100_000
_FEW: Final = 1 << 20
_FAR: Final = np.iinfo(np.int64).max // 4


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
        stable = numbers_of(batch, "last_stable_offset", null=-1)
        self._held_back += int(np.count_nonzero((stable >= 0) & (stable < ends)))
        topics, words = coded(batch, "topic")
        partitions = numbers_of(batch, "partition", null=-1)
        width = int(partitions.max()) + 1
        self._crowded |= bool(len(words) * width > _FEW or (partitions < 0).any())
        if self._crowded or not words:
            return
        places = _Places(topics.astype(np.int64, copy=False) * width + partitions, words, width)
        codes, apis = coded(batch, "api_name")
        produced = codes == _place(apis, "Produce")
        committed = codes == _place(apis, "OffsetCommit")
        known = topics >= 0
        self._write(places, known & produced, numbers_of(batch, "record_bytes", null=0))
        self._count_partitions(places, known)
        last = numbers_of(batch, "last_offset", null=-1)
        reached = np.where(produced, np.maximum(ends, last + 1), ends)
        self._reach(places, known & ~committed & (reached >= 0), reached)
        offsets = numbers_of(batch, "offset", null=-1)
        self._commit(places, known & committed & (offsets >= 0), offsets)
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

    def _write(self, places: "_Places", chosen: Numbers, sizes: Numbers) -> None:
        rows = np.flatnonzero(chosen & (sizes > 0))
        if not len(rows):
            return
        where = places.codes[rows]
        calls = np.bincount(where, minlength=places.size)
        total = np.bincount(where, sizes[rows], places.size)
        for code in np.flatnonzero(calls).tolist():
            topic, partition = places.name(code)
            mine = self._bytes.setdefault(topic, {})
            mine[partition] = mine.get(partition, 0) + int(total[code])
            self._calls[topic] = self._calls.get(topic, 0) + int(calls[code])

    def _count_partitions(self, places: "_Places", known: Numbers) -> None:
        seen = np.zeros(places.size, np.bool_)
        seen[places.codes[np.flatnonzero(known)]] = True
        for code in np.flatnonzero(seen).tolist():
            topic, partition = places.name(code)
            self._partitions[topic] = max(self._partitions.get(topic, 0), partition + 1)

    def _reach(self, places: "_Places", chosen: Numbers, reached: Numbers) -> None:
        least, most = _bounds(places, chosen, reached)
        for code in np.flatnonzero(most >= 0).tolist():
            name = places.name(code)
            self._reached[name] = max(self._reached.get(name, -1), int(most[code]))
            self._started[name] = min(self._started.get(name, _FAR), int(least[code]))

    def _commit(self, places: "_Places", chosen: Numbers, offsets: Numbers) -> None:
        least, most = _bounds(places, chosen, offsets)
        for code in np.flatnonzero(most >= 0).tolist():
            name = places.name(code)
            before, after = self._committed.get(name, (_FAR, -1))
            self._committed[name] = (min(before, int(least[code])), max(after, int(most[code])))


class _Places:
    """Topic and partition of each row as one number."""

    def __init__(self, codes: Numbers, words: list[str], width: int) -> None:
        self.codes = codes
        self.size = len(words) * width
        self._words = words
        self._width = width

    def name(self, code: int) -> tuple[str, int]:
        return self._words[code // self._width], code % self._width


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


def _bounds(places: _Places, chosen: Numbers, values: Numbers) -> tuple[Numbers, Numbers]:
    """The least and the greatest of some rows by place; -1 is the greatest of none."""
    least, most = np.full(places.size, _FAR, np.int64), np.full(places.size, -1, np.int64)
    rows = np.flatnonzero(chosen)
    where, values = places.codes[rows], values[rows]
    np.minimum.at(least, where, values)
    np.maximum.at(most, where, values)
    return least, most


def _place(words: list[str], word: str) -> int:
    """Where a text stands in a list; what no code is where it does not."""
    return words.index(word) if word in words else len(words) + 1
