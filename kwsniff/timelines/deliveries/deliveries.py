"""Deliveries: batches held until their readers have come, then rows; and how late groups are.

Memory is bounded: when sightings fill their share of the memory limit, the batches of the older half become
rows. A reader that comes later has a row without its Produce, and is counted as left out.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from kwsniff.core.columns.delivery_steps import UNKNOWN
from kwsniff.tables.arrays import Numbers, distinct, numbers, texts, valid_rows, whole_numbers, words_of
from kwsniff.tables.compute import take_rows
from kwsniff.tables.schema import TABLES, coded_schema
from kwsniff.timelines.deliveries.ages import Ages
from kwsniff.timelines.deliveries.sightings import COMMITTED, NUMBERS
from kwsniff.timelines.deliveries.steps import (
    NONE,
    Readings,
    find_batches,
    join_halves,
    make_steps,
    number_rows,
    rank_values,
    read_batches,
)
from kwsniff.timelines.memory_budget import RECORD, MemoryBudget
from kwsniff.timelines.metadata.topic_names import News

MOST_NAMES: Final = 200_000
"""Maximum partitions, and maximum clients and groups; those that come after have no rows."""
_KEPT: Final = (*(name for name in NUMBERS if name != "partition"), "slot", "client", "group")
_BYTES: Final = 8 * len(_KEPT)
_SHARE: Final = 4
"""Sightings take this part of the memory for timelines."""
_LEAST: Final = 1024
_PARTITION: Final = 0xFFFFFFFF
_NO_TEXT: Final = -1
_NO_OFFSET: Final = np.iinfo(np.int64).max
_SHOWN: Final = {"base_offset": "base", "last_offset": "last", "record_count": "record_count"}

Place = tuple[str, int]
"""Name, or # and id of the topic, and number of the partition."""
Reader = tuple[str | None, str | None, str | None]
"""Address and id of a client, and a group for which it commits."""
_ELSEWHERE: Final[Place] = ("", -1)


class Deliveries:
    """Takes sightings in the order in which their calls ended; `batches`: rows of the table."""

    def __init__(self, budget: MemoryBudget | None = None) -> None:
        self._budget = MemoryBudget() if budget is None else budget
        self._most = max(self._budget.most // _SHARE // _BYTES, _LEAST)
        self.batches: list[pa.RecordBatch] = []
        self._schema = coded_schema(TABLES["deliveries"])
        self._held = [{name: np.zeros(0, np.int64) for name in _KEPT}]
        """Sightings, by column: those whose halves were looked for, and behind them what came since."""
        self._num_held = 0
        self._places: dict[Place, int] = {}
        self._clients: dict[tuple[str | None, str | None], int] = {}
        self._groups: dict[str, int] = {}
        self._topics: dict[str, str] = {}
        self._commits: Numbers = np.zeros((3, 0), np.int64)
        """Clients, groups and partitions of commits so far, each once."""
        self._settled: Numbers = np.zeros((2, 0), np.int64)
        """First and last batch of each partition that became rows before the end, by their first offsets."""
        self._ages: Ages | None = None
        """Of what is held, until more comes."""

    def add(self, sightings: pa.RecordBatch | None, news: Sequence[News]) -> None:
        """Takes rows of SIGHTINGS, and topics named meanwhile."""
        for each in news:
            self._topics[each.topic_id] = each.name
        if sightings is None or not sightings.num_rows:
            return
        told = {name: whole_numbers(sightings[name], null=UNKNOWN) for name in NUMBERS}
        told["slot"] = self._slots(sightings, told.pop("partition"))
        told["client"] = self._numbers(self._clients, sightings, ("client_address", "client_id"))
        told["group"] = self._numbers(self._groups, sightings, ("group_id",))
        known = (told["slot"] >= 0) & (told["client"] >= 0)
        known &= (told["kind"] != COMMITTED) | (told["group"] >= 0)
        if not known.all():
            told = {name: column[known] for name, column in told.items()}
        self._note_commits(told)
        self._hold(told)
        self._ages = None
        self._budget.charge(_BYTES * len(told["kind"]))
        if self._num_held > self._most:
            self._settle(self._num_held // 2)

    def has_room(self, number: int) -> bool:
        """Whether none of the batches becomes a row yet if this number of sightings is added."""
        return self._num_held + number <= self._most

    def add_readers(self, readers: Iterable[Reader]) -> None:
        """Takes readers whose commits may be of partitions that are followed elsewhere."""
        slot = self._number(self._places, _ELSEWHERE)
        found = [
            (self._number(self._clients, (address, client_id)), self._number(self._groups, group), slot)
            for address, client_id, group in readers
        ]
        known = np.array([each for each in found if min(each) >= 0] or np.zeros((0, 3)), np.int64)
        self._commits = np.concatenate([self._commits, known.T], axis=1)

    def age_commits(self, commits: pa.RecordBatch) -> pa.RecordBatch:
        """Rows of commits with their lag in time."""
        lag = whole_numbers(commits["lag"], null=NONE)
        ages = np.where(lag == 0, 0, NONE)
        # Most groups have read all when they commit: for them no batch is looked for.
        behind = np.flatnonzero(lag > 0)
        if len(behind):
            rows = take_rows(commits, behind)
            if self._ages is None:
                self._ages = self._order_batches()
            slots = self._find_slots(rows, whole_numbers(rows["partition"], null=0))
            ages[behind] = self._ages.find_ages(rows, slots)
        found = numbers(pa.int64(), np.where(ages >= 0, ages, 0) * 1000, ages >= 0)
        at = commits.schema.get_field_index("lag_ns")
        return pa.RecordBatch.from_arrays(
            [found if place == at else column for place, column in enumerate(commits.columns)],
            schema=commits.schema,
        )

    def drain(self, at_least: int) -> Iterator[pa.RecordBatch]:
        """The rows, if there are enough."""
        if self.batches and sum(batch.num_rows for batch in self.batches) >= at_least:
            yield from self.batches
            self.batches.clear()

    def state(self) -> tuple[Any, ...]:
        """The state for `resume`, without rows."""
        columns = {name: column.tobytes() for name, column in self._columns().items()}
        names = self._places, self._clients, self._groups, self._topics
        return columns, *names, self._commits.tobytes(), self._settled.tobytes()

    def resume(self, state: tuple[Any, ...]) -> None:
        """Continues from a saved state."""
        columns, self._places, self._clients, self._groups, self._topics, commits, settled = state
        self._settled = np.frombuffer(settled, np.int64).reshape(2, -1).copy()
        self._held = [{name: np.frombuffer(columns[name], np.int64).copy() for name in _KEPT}]
        self._num_held = len(self._held[0]["kind"])
        self._commits = np.frombuffer(commits, np.int64).reshape(3, -1)

    def finish(self) -> None:
        """Ends the input: all batches become rows."""
        ages = self._order_batches() if self._commits.size else None
        self._settle(self._num_held)
        self._ages = ages

    def _order_batches(self) -> Ages:
        return Ages(self._columns(), self._merge_slots())

    def _hold(self, told: dict[str, Numbers]) -> None:
        self._held.append(told)
        self._num_held += len(told["kind"])

    def _columns(self) -> dict[str, Numbers]:
        """All sightings, by column, where they are held."""
        if len(self._held) > 1:
            told = {name: np.concatenate([each.pop(name) for each in self._held]) for name in _KEPT}
            join_halves(told)
            self._held = [told]
        return self._held[0]

    def _settle(self, until: int) -> None:
        """Makes rows of the batches that were seen first before the sighting `until`, and lets them go."""
        told = self._columns()
        if not self._num_held:
            return
        told["slot"][:] = self._merge_slots()[told["slot"]]
        seen = find_batches(told)
        is_end = until >= self._num_held
        if not is_end:
            seen = seen.seen_before(until)
        rows = read_batches(told, seen, self._group_of(told))
        self._budget.left_out += self._count_late(told, rows.batch[(rows.fetched >= 0) & (rows.produced < 0)])
        if not is_end:
            self._note_settled(told, rows.batch[rows.produced >= 0])
        if len(rows.batch):
            self.batches.append(self._rows(told, rows))
        left = np.arange(self._num_held if is_end else until, self._num_held)
        if not is_end:
            stays = np.zeros(self._num_held, np.bool_)
            stays[left] = True
            stays[seen.places] = False
            left = np.flatnonzero(stays)
        now = len(left)
        self._held = [{name: told.pop(name).take(left) for name in _KEPT}]
        self._budget.charge(-_BYTES * (self._num_held - now))
        self._num_held = now

    def _note_settled(self, told: dict[str, Numbers], batches: Numbers) -> None:
        """Keeps from which offset to which each partition was let go with its Produce."""
        new = len(self._places) - self._settled.shape[1]
        fresh = np.repeat(np.array([[_NO_OFFSET], [NONE]], np.int64), max(new, 0), axis=1)
        self._settled = np.concatenate([self._settled, fresh], axis=1)
        slots = told["slot"][batches]
        np.minimum.at(self._settled[0], slots, told["base"][batches])
        np.maximum.at(self._settled[1], slots, told["base"][batches])

    def _count_late(self, told: dict[str, Numbers], batches: Numbers) -> int:
        """How many of these came after their Produce was let go."""
        batches = batches[told["slot"][batches] < self._settled.shape[1]]
        slots, base = told["slot"][batches], told["base"][batches]
        first, last = self._settled[:, slots]
        return int(np.count_nonzero((first <= base) & (base <= last)))

    def _rows(self, told: dict[str, Numbers], rows: Readings) -> pa.RecordBatch:
        steps = make_steps(told, rows)
        for name, of in _SHOWN.items():
            steps[name] = told[of].take(rows.batch)
        places, shown = [*self._places], told["slot"][rows.batch]
        steps["partition"] = np.array([partition for _, partition in places], np.int64)[shown]
        ids = {name: topic_id for topic_id, name in self._topics.items()}
        words = [self._words_of(word, ids) for word, _ in places]
        listed = [client_id for _, client_id in self._clients]
        columns = {
            "topic": _encode_words([name for name, _ in words], shown),
            "topic_id": _encode_words([topic_id for _, topic_id in words], shown),
            "group_id": _encode_words([*self._groups], rows.group),
            "client_id": _encode_words(
                listed, np.where(rows.fetched >= 0, told["client"][rows.fetched], _NO_TEXT)
            ),
        }
        for field in self._schema:
            if field.name not in columns:
                none = UNKNOWN if pa.types.is_timestamp(field.type) else NONE
                values = steps[field.name]
                whole = np.ascontiguousarray(values, f"i{field.type.bit_width // 8}")
                columns[field.name] = numbers(field.type, whole, values != none)
        return pa.RecordBatch.from_arrays([columns[name] for name in self._schema.names], schema=self._schema)

    def _words_of(self, word: str, ids: dict[str, str]) -> tuple[str | None, str | None]:
        """Name and id of a topic."""
        return (self._topics.get(word[1:]), word[1:]) if word.startswith("#") else (word, ids.get(word))

    def _merge_slots(self) -> Numbers:
        """For each number of a partition the one it has under its topic's name."""
        own = np.arange(len(self._places))
        for (word, partition), slot in self._places.items():
            if word.startswith("#") and (name := self._topics.get(word[1:])):
                own[slot] = self._places.get((name, partition), slot)
        return own

    def _group_of(self, told: dict[str, Numbers]) -> Numbers:
        """The group that reads with each sighting: the only one for which its client commits, of the
        partition if there are several; NONE else."""
        clients, groups, slots = self._commits
        slots = self._merge_slots()[slots] if len(slots) else slots
        one = _only(clients, groups, len(self._clients))
        found = one[told["client"]]
        several = found == _SEVERAL
        if several.any():
            wide = len(self._places)
            keys = distinct(clients * wide + slots)
            group = _only(np.searchsorted(keys, clients * wide + slots), groups, len(keys))
            wanted = told["client"][several] * wide + told["slot"][several]
            at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
            found[several] = np.where(keys[at] == wanted, group[at], NONE)
        return np.where(found == _SEVERAL, NONE, found)

    def _note_commits(self, told: dict[str, Numbers]) -> None:
        those = told["kind"] == COMMITTED
        if those.any():
            new = np.stack([told[name][those] for name in ("client", "group", "slot")])
            both = np.concatenate([self._commits, new], axis=1)
            self._commits = both[:, number_rows(*both)[1]]

    def _slots(self, rows: pa.RecordBatch, partitions: Numbers) -> Numbers:
        """The number of each partition, new ones among them."""
        return self._match(rows, partitions, add=True)

    def _find_slots(self, rows: pa.RecordBatch, partitions: Numbers) -> Numbers:
        found = self._match(rows, partitions, add=False)
        return np.where(found >= 0, self._merge_slots()[found] if self._places else found, NONE)

    def _match(self, rows: pa.RecordBatch, partitions: Numbers, *, add: bool) -> Numbers:
        names, ids = rows["topic"], rows["topic_id"]
        listed, numbered = words_of(names.dictionary), ids.dictionary.to_pylist()
        named = valid_rows(names)
        code = np.where(
            named, whole_numbers(names.indices, null=0), whole_numbers(ids.indices, 0) + len(listed)
        )
        both = named & valid_rows(ids)
        if add and both.any():
            pairs = whole_numbers(ids.indices, null=0)[both].astype(np.int64) << 32
            for pair in distinct(pairs | whole_numbers(names.indices, null=0)[both]).tolist():
                self._topics.setdefault(numbered[pair >> 32], listed[pair & _PARTITION])
        words = [*listed, *(self._topics.get(each) or f"#{each}" for each in numbered)]
        keys = code.astype(np.int64) << 32 | partitions.astype(np.int64) & _PARTITION
        own, ranks = rank_values(keys)
        slots = np.array([self._slot(words, key, add=add) for key in own.tolist()], np.int64)
        found: Numbers = slots[ranks]
        return found

    def _slot(self, words: Sequence[str], key: int, *, add: bool) -> int:
        place = words[key >> 32], (key & _PARTITION ^ 1 << 31) - (1 << 31)
        return self._number(self._places, place) if add else self._places.get(place, NONE)

    def _numbers(self, known: dict[Any, int], rows: pa.RecordBatch, names: Sequence[str]) -> Numbers:
        """The number of each row's text or texts; -1 for one text that is null."""
        keys = np.zeros(rows.num_rows, np.int64)
        words: list[list[str | None]] = []
        for name in names:
            words.append([*words_of(rows[name].dictionary), None])
            keys = keys << 32 | (whole_numbers(rows[name].indices, null=-1).astype(np.int64) + 1)
        own, ranks = rank_values(keys)
        found = []
        for key in own.tolist():
            parts = tuple(
                words[place][((key >> 32 * (len(names) - 1 - place)) & _PARTITION) - 1]
                for place in range(len(names))
            )
            label = parts if len(names) > 1 else parts[0]
            found.append(NONE if label is None else self._number(known, label))
        numbered: Numbers = np.array(found or [NONE], np.int64)[ranks]
        return numbered

    def _number(self, known: dict[Any, int], label: Any) -> int:
        number = known.get(label)
        if number is None:
            if not self._budget.admits(RECORD, full=len(known) >= MOST_NAMES):
                return NONE
            number = known[label] = len(known)
        return number


_SEVERAL: Final = -2


def _only(keys: Numbers, values: Numbers, number: int) -> Numbers:
    """For each key its only value; NONE without one, _SEVERAL if there are more."""
    found = np.full(number, NONE)
    found[keys] = values
    others = found[keys] != values
    found[keys[others]] = _SEVERAL
    return found


def _encode_words(words: Sequence[str | None], codes: Numbers) -> pa.DictionaryArray:
    """Texts of rows; null where the code is -1, or the word is None. Each word is there once: of other
    dictionaries parquet makes plain texts."""
    distinct_words = dict.fromkeys(word for word in words if word is not None)
    numbered = {word: number for number, word in enumerate(distinct_words)}
    own = np.array([NONE, *(NONE if word is None else numbered[word] for word in words)], np.int64)
    used = np.zeros(len(numbered) + 1, np.bool_)
    used[own[np.flatnonzero(np.bincount(codes + 1, minlength=1))] + 1] = True
    used[0] = False
    places = (np.cumsum(used) - 1).astype(np.int32)
    places[0] = NONE
    found = places[own + 1][codes + 1]
    valid = found >= 0
    chosen = [word for word, number in numbered.items() if used[number + 1]]
    return pa.DictionaryArray.from_arrays(
        numbers(pa.int32(), np.maximum(found, 0), valid), texts(chosen), safe=False
    )
