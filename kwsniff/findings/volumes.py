"""How much is written where: sums and bounds for the rules about partitions and codecs."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from kwsniff.core.columns.place_sums import place_rows, sum_by_code, sum_places
from kwsniff.findings.coded import Numbers, coded, codes_in, column_in, distinct, numbers_of
from kwsniff.findings.foremost import Foremost

MOST_PARTITIONS: Final = 100_000
_FEW: Final = 1 << 20
_LARGE_BATCH: Final = 4096  # bytes, as `uncompressed` has it
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
        self._sums = np.zeros((4, 0), np.int64)
        """Bytes, calls, the first and the last time, by number."""
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
        topics, words = codes_in(batch, "topic")
        partitions = column_in(batch, "partition")
        least, most = partitions.bounds(null=0)
        width = most + 1
        self._crowded |= least < 0 or len(words) * width > _FEW
        if self._crowded:
            return
        apis, names = codes_in(batch, "api_name")
        places, widths = np.empty(batch.num_rows, np.int64), np.zeros(len(words), np.int64)
        used = np.zeros(len(words) * width, np.uint8)
        columns = topics, partitions, apis, column_in(batch, "record_bytes")
        place_rows(columns, _place(names, "Produce"), width, places, widths, used)
        for code in np.flatnonzero(widths).tolist():
            self._partitions[words[code]] = max(self._partitions.get(words[code], 0), int(widths[code]))
        self._write(batch, places, self._numbered(used, words, width))
        self._crowded |= max(len(self._known), len(self._partitions)) > MOST_PARTITIONS

    def figures(self) -> dict[str, float]:
        """`hot_times`: how many times its fair share a partition gets that is half of its topic or more."""
        if self._crowded:
            return {"hot_times": np.inf, "held_back": self._held_back}
        most, total, calls = dict[str, int](), dict[str, int](), dict[str, int]()
        for (topic, _), number in self._known.items():
            most[topic] = max(most.get(topic, 0), int(self._sums[0, number]))
            total[topic] = total.get(topic, 0) + int(self._sums[0, number])
            calls[topic] = calls.get(topic, 0) + int(self._sums[1, number])
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
        bytes_, calls, first, last = self._sums.tolist()
        return {
            "topic_width": {"topic": [*self._partitions], "partitions": [*self._partitions.values()]},
            "written": {
                "topic": [topic for topic, _ in self._known],
                "partition": [partition for _, partition in self._known],
                "bytes": bytes_,
                "calls": calls,
                "client": [each[0] if each else None for each in names],
                "clients": [", ".join(each) for each in names],
                "first_time": first,
                "last_time": last,
                "call_ids": [self._proofs.of(number) for number in self._known.values()],
            },
        }

    def _numbered(self, used: Numbers, words: list[str], width: int) -> Numbers:
        """The number of each place among all that were ever written; -1 of those that were not."""
        numbers = np.full(len(used), -1, np.int64)
        for place in np.flatnonzero(used).tolist():
            topic, partition = divmod(place, width)
            numbers[place] = self._known.setdefault((words[topic], partition), len(self._known))
        if missing := len(self._known) - self._sums.shape[1]:
            new = np.repeat(np.array([[0], [0], [_FAR], [0]], np.int64), missing, axis=1)
            self._sums = np.concatenate([self._sums, new], axis=1)
            self._proofs.make_room(len(self._known))
        return numbers

    def _write(self, batch: pa.RecordBatch, places: Numbers, numbers: Numbers) -> None:
        clients, words = codes_in(batch, "client_id")
        width = len(words) + 1
        size = self._sums.shape[1] * width
        writers = np.zeros(size if size <= _FEW else 0, np.uint8)
        columns = (*(column_in(batch, name) for name in ("record_bytes", "time", "call_id")), clients)
        sum_places(places, numbers, columns, self._sums, self._proofs.keys, self._proofs.ids, writers)
        pairs = np.flatnonzero(writers)
        if size > _FEW:
            rows = np.flatnonzero(places >= 0)
            pairs = distinct(numbers[places[rows]] * width + coded(batch, "client_id")[0][rows] + 1)
        for pair in pairs.tolist():
            number, code = divmod(pair, width)
            if code:
                self._clients.setdefault(number, set()).add(words[code - 1])
            else:
                self._unnamed = True


class Plain:
    """Bytes produced without compression, by client id, and the codecs seen."""

    OF_BATCHES = ("api_name", "client_id", "codec", "bytes")

    def __init__(self) -> None:
        self._sums: dict[str | None, tuple[int, int]] = {}
        """Client id -> bytes, batches."""
        self._codecs: set[str] = set()
        self._rest = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Counts rows of record_batches."""
        codecs, words = codes_in(batch, "codec")
        self._codecs.update(
            word for code, word in enumerate(words) if word not in self._codecs and codecs.count(code)
        )
        apis, names = codes_in(batch, "api_name")
        clients, known = codes_in(batch, "client_id")
        sums = np.zeros((2, len(known) + 1), np.int64)
        sum_by_code(
            (clients, column_in(batch, "bytes"), codecs, apis),
            _place(words, "none"), _place(names, "Produce"), sums,
        )  # fmt: skip
        for code in np.flatnonzero(sums[1]).tolist():
            name = known[code] if code < len(known) else None
            total, number = sums[:, code].tolist()
            if name in self._sums or len(self._sums) < MOST_PARTITIONS:
                before = self._sums.get(name, (0, 0))
                self._sums[name] = before[0] + total, before[1] + number
            else:
                self._rest += total

    def figures(self, *, sure: bool) -> dict[str, float]:
        """The most that one client wrote in batches that are large on average, at most; how many codecs there
        are. `sure`: the rule looks at all batches; of fewer of them, more may be large."""
        crowded = self._rest > 0
        large = [
            total
            for total, number in self._sums.values()
            if crowded or not sure or total >= _LARGE_BATCH * number
        ]
        return {
            "plain_bytes": max(large, default=0) + self._rest,
            "codecs": len(self._codecs),
        }


def _place(words: list[str], word: str) -> int:
    """Where a text stands in a list; what no code is where it does not."""
    return words.index(word) if word in words else len(words) + 1
