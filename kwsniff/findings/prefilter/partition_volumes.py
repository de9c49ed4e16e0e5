"""Bytes written per partition: sums and bounds for the rules about partitions and codecs."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from kwsniff.core.columns.partition_sums import (
    SEEN,
    WRITTEN,
    follow_ends,
    place_rows,
    sum_by_code,
    sum_places,
)
from kwsniff.findings.api_purposes import names_of
from kwsniff.findings.prefilter.dictionaries import (
    Numbers,
    as_bytes,
    codes_in,
    column_in,
    encode,
    from_bytes,
    numbers_of,
)
from kwsniff.findings.prefilter.top_k import TopK
from kwsniff.findings.prefilter.topic_names import Shown
from kwsniff.tables.arrays import distinct, valid_rows
from kwsniff.tables.compute import filter_rows

MOST_PARTITIONS: Final = 100_000
_FEW: Final = 1 << 20
_LARGE_BATCH: Final = 4096  # bytes, as `uncompressed` has it
_FAR: Final = np.iinfo(np.int64).max // 4
_NOTHING: Final = np.zeros(0, np.uint8)


class Volumes:
    """Bytes written, by topic and partition.

    Infinite figures say that there are more partitions than are counted.
    """

    OF_PARTITIONS = (
        "call_id", "client_id", "api_name", "time", "topic", "partition", "record_bytes",
        "high_watermark", "last_stable_offset", "base_offset", "record_count",
    )  # fmt: skip

    def __init__(self, *, nameless: bool = False) -> None:
        """`nameless`: topics may get their names later, so that those without are counted by id."""
        self._written = _Written()
        self._by_id = _Written() if nameless else None
        self._held_back = 0
        self.shown = Shown()

    def add(self, batch: pa.RecordBatch) -> None:
        """Counts rows of partitions."""
        ends = numbers_of(batch, "high_watermark", null=-1)
        self._held_back += int(np.count_nonzero(numbers_of(batch, "last_stable_offset", null=_FAR) < ends))
        self._written.add(batch)
        if self._by_id and (part := _shown_by_id(batch, self.OF_PARTITIONS)):
            self._by_id.add(part)

    def figures(self) -> dict[str, float]:
        """`hot_times`: how many times its fair share a partition gets that is half of its topic or more;
        `rewound`: how many Produce responses have an offset below that of an earlier one, at least 1 where
        the order of all is not known."""
        figures = {"hot_times": self._written.hot_times(), "rewound": self._written.count_rewound()}
        return {**figures, "held_back": self._held_back}

    def sums(self) -> Mapping[str, Mapping[str, Sequence[Any]]]:
        """The columns of the views `topic_width` and `written`; none where there are too many partitions, or
        writers without a name. `topic_width`: partitions that the capture can show.
        """
        return {} if self.shown.is_crowded else self._written.sums(self.shown)

    def name_topics(self, names: Mapping[str, str]) -> None:
        """What was counted by id counts by name, as far as `names` (id -> topic) says it."""
        if self._by_id:
            self._written.merge(self._by_id.state(), names)

    def state(self) -> tuple[Any, ...]:
        """What was counted, for `add_up`."""
        by_id = self._by_id.state() if self._by_id else ()
        return self._held_back, self.shown.state(), self._written.state(), by_id

    def merge(self, state: tuple[Any, ...]) -> None:
        """Adds what another one counted."""
        held_back, shown, written, by_id = state
        self._held_back += held_back
        self.shown.merge(shown)
        self._written.merge(written)
        if self._by_id and by_id != ():
            self._by_id.merge(by_id)


class _Written:
    """Bytes written to the partitions of topics."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, int], int] = {}
        self._clients: dict[int, set[str]] = {}
        self._sums = np.zeros((4, 0), np.int64)
        """Bytes, calls, the first and the last time, by number."""
        self._ends = np.zeros(0, np.int64)
        """The greatest offset of each number."""
        self._rewound = 0
        self._proofs = TopK()
        self._seen: dict[str, Numbers] = {}
        """Topic -> a byte for each number up to its greatest partition: whether it was seen."""
        self._room = _FEW
        self._crowded = False
        self._unnamed = False
        """Whether a client without a client id wrote: its address is in connections."""

    def add(self, batch: pa.RecordBatch) -> None:
        """Counts rows of partitions."""
        topics, words = codes_in(batch, "topic")
        partitions = column_in(batch, "partition")
        least, most = partitions.bounds(null=0)
        width = most + 1
        self._crowded |= least < 0 or len(words) * width > _FEW
        if self._crowded:
            return
        apis, names = codes_in(batch, "api_name")
        produces = _places(names, names_of("is_produce"))
        self._crowded |= len(produces) > 1
        if self._crowded:
            return
        places, widths = np.empty(batch.num_rows, np.int64), np.zeros(len(words), np.int64)
        used = np.zeros(len(words) * width, np.uint8)
        columns = topics, partitions, apis, column_in(batch, "record_bytes")
        # whether those without a topic rewind is not known
        self._rewound += place_rows(columns, produces[0], width, places, widths, used)
        for code in np.flatnonzero(widths).tolist():
            begin = code * width
            self._mark_seen(words[code], used[begin : begin + int(widths[code])] & SEEN)
        numbers = self._number_places(used & WRITTEN, words, width)
        offsets = column_in(batch, "base_offset"), column_in(batch, "record_count")
        self._rewound += follow_ends(places, numbers, offsets, self._ends)
        self._add_written(batch, places, numbers)
        self._look_around()

    def state(self) -> tuple[Any, ...] | None:
        """What was counted, for `add_up`; None where there are too many partitions."""
        if self._crowded:
            return None
        clients = [[*self._clients.get(number, ())] for number in range(len(self._known))]
        counted = as_bytes(self._sums), self._proofs.state()
        seen = {topic: found.tobytes() for topic, found in self._seen.items()}
        offsets = self._ends.tobytes(), self._rewound
        return [*self._known], clients, *counted, seen, self._unnamed, offsets

    def merge(self, state: tuple[Any, ...] | None, names: Mapping[str, str] | None = None) -> None:
        """Adds what another one counted. `names`: it counted by id; what has none of them is left out."""
        self._crowded |= state is None
        if state is None or self._crowded:
            return
        known, clients, sums, proofs, seen, unnamed, (ends, rewound) = state
        called = {topic: topic if names is None else names.get(topic) for topic in seen}
        numbers = np.array([self._number_place((called[topic], at)) for topic, at in known], np.int64)
        self._make_room()
        chosen = numbers >= 0
        bytes_, calls, first, last = from_bytes(sums, 4)[:, chosen]
        for add, into, values in (
            (np.add, 0, bytes_),
            (np.add, 1, calls),
            (np.minimum, 2, first),
            (np.maximum, 3, last),
        ):
            add.at(self._sums[into], numbers[chosen], values)
        others = np.frombuffer(ends, np.int64)[chosen]
        # which of both were earlier is not known
        self._rewound += rewound + int(np.count_nonzero((self._ends[numbers[chosen]] >= 0) & (others >= 0)))
        np.maximum.at(self._ends, numbers[chosen], others)
        self._proofs.merge(proofs, numbers)
        for number, some in zip(numbers.tolist(), clients, strict=True):
            if number >= 0 and some:
                self._clients.setdefault(number, set()).update(some)
        for topic, found in seen.items():
            if name := called[topic]:
                self._mark_seen(name, np.frombuffer(found, np.uint8))
        self._unnamed |= unnamed and bool(chosen.any())
        self._look_around()

    def hot_times(self) -> float:
        """See the figures of Volumes."""
        if self._crowded:
            return np.inf
        most, total, calls = dict[str, int](), dict[str, int](), dict[str, int]()
        for (topic, _), number in self._known.items():
            most[topic] = max(most.get(topic, 0), int(self._sums[0, number]))
            total[topic] = total.get(topic, 0) + int(self._sums[0, number])
            calls[topic] = calls.get(topic, 0) + int(self._sums[1, number])
        hot = [
            most[topic] / total[topic] * len(self._seen[topic])
            for topic in most
            if calls[topic] >= 30 and 2 * most[topic] >= total[topic]
        ]
        return max(hot, default=0)

    def count_rewound(self) -> float:
        """See the figures of Volumes."""
        return np.inf if self._crowded else self._rewound

    def sums(self, shown: Shown) -> Mapping[str, Mapping[str, Sequence[Any]]]:
        """See those of Volumes."""
        if self._crowded or self._unnamed:
            return {}
        names = [sorted(self._clients[number]) for number in self._known.values()]
        bytes_, calls, first, last = self._sums.tolist()
        return {
            "topic_width": {
                "topic": [*self._seen],
                "partitions": [self._width(topic, found, shown) for topic, found in self._seen.items()],
            },
            "written": {
                "topic": [topic for topic, _ in self._known],
                "partition": [partition for _, partition in self._known],
                "bytes": bytes_,
                "calls": calls,
                "client": [each[0] if each else None for each in names],
                "clients": [", ".join(each) for each in names],
                "first_time": first,
                "last_time": last,
                "call_ids": [self._proofs.list_ids(number) for number in self._known.values()],
            },
        }

    def _number_places(self, used: Numbers, words: list[str], width: int) -> Numbers:
        """The number of each place among all that were ever written; -1 of those that were not."""
        numbers = np.full(len(used), -1, np.int64)
        for place in np.flatnonzero(used).tolist():
            topic, partition = divmod(place, width)
            numbers[place] = self._number_place((words[topic], partition))
        self._make_room()
        return numbers

    def _number_place(self, place: tuple[str | None, int]) -> int:
        topic, partition = place
        return -1 if topic is None else self._known.setdefault((topic, partition), len(self._known))

    def _make_room(self) -> None:
        if missing := len(self._known) - self._sums.shape[1]:
            new = np.repeat(np.array([[0], [0], [_FAR], [0]], np.int64), missing, axis=1)
            self._sums = np.concatenate([self._sums, new], axis=1)
            self._ends = np.append(self._ends, np.full(missing, -1, np.int64))
            self._proofs.make_room(len(self._known))

    def _width(self, topic: str, found: Numbers, shown: Shown) -> int:
        """Partitions that are in the capture, and lower ones that it can show."""
        found = found.copy()
        found[[*shown.partitions(topic, len(found) - 1)]] = SEEN
        return int(np.count_nonzero(found))

    def _mark_seen(self, topic: str, found: Numbers) -> None:
        before = self._seen.get(topic, _NOTHING)
        if len(before) < len(found):
            self._room -= len(found) - len(before)
            before = self._seen[topic] = np.pad(before, (0, len(found) - len(before)))
        before[: len(found)] |= found

    def _look_around(self) -> None:
        self._crowded |= max(len(self._known), len(self._seen)) > MOST_PARTITIONS or self._room < 0

    def _add_written(self, batch: pa.RecordBatch, places: Numbers, numbers: Numbers) -> None:
        clients, words = codes_in(batch, "client_id")
        width = len(words) + 1
        size = self._sums.shape[1] * width
        writers = np.zeros(size if size <= _FEW else 0, np.uint8)
        columns = (*(column_in(batch, name) for name in ("record_bytes", "time", "call_id")), clients)
        sum_places(places, numbers, columns, self._sums, self._proofs.keys, self._proofs.ids, writers)
        pairs = np.flatnonzero(writers)
        if size > _FEW:
            rows = np.flatnonzero(places >= 0)
            pairs = distinct(numbers[places[rows]] * width + encode(batch, "client_id")[0][rows] + 1)
        for pair in pairs.tolist():
            number, code = divmod(pair, width)
            if code:
                self._clients.setdefault(number, set()).add(words[code - 1])
            else:
                self._unnamed = True


def _shown_by_id(batch: pa.RecordBatch, columns: Sequence[str]) -> pa.RecordBatch | None:
    """The rows whose topics have an id and no name, with the name instead of the id."""
    names = batch.schema.names
    if "topic_id" not in names or "topic" not in names or not batch["topic"].null_count:
        return None
    chosen = ~valid_rows(batch["topic"]) & valid_rows(batch["topic_id"])
    if not chosen.any():
        return None
    part = batch.select([name for name in (*columns, "topic_id") if name in names and name != "topic"])
    part = part.rename_columns(["topic" if name == "topic_id" else name for name in part.schema.names])
    return part if chosen.all() else filter_rows(part, chosen)


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
        columns = clients, column_in(batch, "bytes"), codecs, apis
        (plain,) = _places(words, {"none"})
        for produces in _places(names, names_of("is_produce")):
            sum_by_code(columns, plain, produces, sums)
        for code in np.flatnonzero(sums[1]).tolist():
            name = known[code] if code < len(known) else None
            total, number = sums[:, code].tolist()
            self._add_total(name, total, number)

    def state(self) -> tuple[Any, ...]:
        """What was counted, for `add_up`."""
        return self._sums, self._codecs, self._rest

    def merge(self, state: tuple[Any, ...]) -> None:
        """Adds what another one counted."""
        sums, codecs, rest = state
        self._codecs |= codecs
        self._rest += rest
        for name, (total, number) in sums.items():
            self._add_total(name, total, number)

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

    def _add_total(self, name: str | None, total: int, number: int) -> None:
        if name in self._sums or len(self._sums) < MOST_PARTITIONS:
            before = self._sums.get(name, (0, 0))
            self._sums[name] = before[0] + total, before[1] + number
        else:
            self._rest += total


def _places(words: list[str], wanted: Collection[str]) -> list[int]:
    """The indexes of these texts in a list; an invalid code if all are absent."""
    return [place for place, word in enumerate(words) if word in wanted] or [len(words) + 1]
