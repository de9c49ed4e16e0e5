"""How much is written where: sums and bounds for the rules about partitions and codecs."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from kwsniff.findings.coded import Numbers, coded, distinct, numbers_of
from kwsniff.findings.foremost import Foremost

MOST_PARTITIONS: Final = 100_000
_FEW: Final = 1 << 20
_FAR: Final = np.iinfo(np.int64).max // 4


class Volumes:
    """Bytes written, by topic and partition.

    Infinite figures say that there are more partitions than are counted.
    """

    OF_PARTITIONS = (
        "call_id", "client_id", "api_name", "time", "topic", "partition", "record_bytes",
        "high_watermark", "last_stable_offset",
    )  # fmt: skip

    def __init__(self) -> None:
        self._known: dict[tuple[str, int], int] = {}
        self._clients: dict[int, set[str]] = {}
        self._bytes = np.zeros(0, np.int64)
        self._calls = np.zeros(0, np.int64)
        self._first = np.zeros(0, np.int64)
        self._last = np.zeros(0, np.int64)
        self._proofs = Foremost()
        self._partitions: dict[str, int] = {}
        self._held_back = 0
        self._crowded = False
        self._unnamed = False
        """Whether somebody wrote who has no name: connections tell their addresses."""

    def add(self, batch: pa.RecordBatch) -> None:
        """Counts rows of partitions."""
        ends = numbers_of(batch, "high_watermark", null=-1)
        self._held_back += int(np.count_nonzero(numbers_of(batch, "last_stable_offset", null=_FAR) < ends))
        places = _Places(batch)
        self._crowded |= places.size > _FEW
        if self._crowded:
            return
        for topic, partition in places.named(np.bincount(places.codes, minlength=places.size)):
            self._partitions[topic] = max(self._partitions.get(topic, 0), partition + 1)
        self._write(batch, places)
        self._crowded |= max(len(self._known), len(self._partitions)) > MOST_PARTITIONS

    def figures(self) -> dict[str, float]:
        """`hot_times`: how many times its fair share a partition gets that is half of its topic or more."""
        if self._crowded:
            return {"hot_times": np.inf, "held_back": self._held_back}
        most, total, calls = dict[str, int](), dict[str, int](), dict[str, int]()
        for (topic, _), number in self._known.items():
            most[topic] = max(most.get(topic, 0), int(self._bytes[number]))
            total[topic] = total.get(topic, 0) + int(self._bytes[number])
            calls[topic] = calls.get(topic, 0) + int(self._calls[number])
        hot = [
            most[topic] / total[topic] * self._partitions[topic]
            for topic in most
            if calls[topic] >= 30 and 2 * most[topic] >= total[topic]
        ]
        return {"hot_times": max(hot, default=0), "held_back": self._held_back}

    def sums(self) -> Mapping[str, Mapping[str, Sequence[Any]]]:
        """The columns of the views `topic_width` and `written`; none where there are too many partitions, or
        writers without a name.
        """
        if self._crowded or self._unnamed:
            return {}
        names = [sorted(self._clients[number]) for number in self._known.values()]
        return {
            "topic_width": {"topic": [*self._partitions], "partitions": [*self._partitions.values()]},
            "written": {
                "topic": [topic for topic, _ in self._known],
                "partition": [partition for _, partition in self._known],
                "bytes": self._bytes.tolist(),
                "calls": self._calls.tolist(),
                "client": [each[0] if each else None for each in names],
                "clients": [", ".join(each) for each in names],
                "first_time": self._first.tolist(),
                "last_time": self._last.tolist(),
                "call_ids": [self._proofs.of(number) for number in self._known.values()],
            },
        }

    def _write(self, batch: pa.RecordBatch, places: "_Places") -> None:
        codes, apis = coded(batch, "api_name")
        sizes = numbers_of(batch, "record_bytes", null=0)
        rows = np.flatnonzero(
            (codes == _place(apis, "Produce")) & (sizes > 0) & (places.codes >= places.width)
        )
        if not len(rows):
            return
        where = self._numbered(places, places.codes[rows])
        sizes, size = sizes[rows].astype(np.int64), len(self._bytes)
        self._bytes += np.bincount(where, sizes, size).astype(np.int64)
        self._calls += np.bincount(where, minlength=size)
        times = numbers_of(batch, "time", null=_FAR)[rows]
        np.minimum.at(self._first, where, times)
        np.maximum.at(self._last, where, np.where(times == _FAR, 0, times))
        self._proofs.add(where, -sizes, numbers_of(batch, "call_id", null=_FAR)[rows])
        self._note_clients(batch, rows, where)

    def _numbered(self, places: "_Places", codes: Numbers) -> Numbers:
        """The number of each row's place among all that were ever written."""
        numbers = np.zeros(places.size, np.int64)
        for code in np.flatnonzero(np.bincount(codes)).tolist():
            numbers[code] = self._known.setdefault(places.name(code), len(self._known))
        if missing := len(self._known) - len(self._bytes):
            self._bytes, self._calls, self._last = (
                np.pad(each, (0, missing)) for each in (self._bytes, self._calls, self._last)
            )
            self._first = np.pad(self._first, (0, missing), constant_values=_FAR)
        found: Numbers = numbers[codes]
        return found

    def _note_clients(self, batch: pa.RecordBatch, rows: Numbers, where: Numbers) -> None:
        codes, words = coded(batch, "client_id")
        width = len(words) + 1
        pairs = where * width + codes[rows] + 1
        few = len(self._bytes) * width <= _FEW
        for pair in (np.flatnonzero(np.bincount(pairs)) if few else distinct(pairs)).tolist():
            number, code = divmod(pair, width)
            if code:
                self._clients.setdefault(number, set()).add(words[code - 1])
            else:
                self._unnamed = True


class _Places:
    """Topic and partition of each row as one number; rows without a topic come first."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        topics, self._words = coded(batch, "topic")
        partitions = numbers_of(batch, "partition", null=0)
        self.width = int(partitions.max()) + 1
        self.size = (len(self._words) + 1) * self.width if partitions.min() >= 0 else _FAR
        self.codes = (topics.astype(np.int64) + 1) * self.width + partitions

    def name(self, code: int) -> tuple[str, int]:
        """Topic and partition."""
        topic, partition = divmod(code, self.width)
        return self._words[topic - 1], partition

    def named(self, counts: Numbers) -> Iterator[tuple[str, int]]:
        """The places with rows, but for those without a topic."""
        for code in np.flatnonzero(counts[self.width :]).tolist():
            yield self.name(code + self.width)


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
