"""Growth of committed lag: a bound that decides whether the rule `lag_grows` is evaluated."""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa

from kwsniff.findings.prefilter.dictionaries import Numbers, as_bytes, from_bytes, numbers_of
from kwsniff.tables.compute import filter_rows
from kwsniff.tables.grouping import Groups

MOST_ROWS: Final = 1 << 19
"""Rows of commits that are kept, of 20 bytes; beyond it only the rule can tell."""
MOST_PLACES: Final = 20_000
"""Groups and partitions, likewise."""
_PLACE: Final = ("group_id", "topic", "topic_id", "partition")
_FAR: Final = 1 << 62
_LEAST_COMMITS: Final = 3
_LEAST_US: Final = 3_000_000
_LEAST_TIMES: Final = 2


class Lags:
    """Lags of rows of commits, by group and partition."""

    OF_COMMITS = ("lag", "time", *_PLACE)

    def __init__(self) -> None:
        self._known: dict[tuple[object, ...], tuple[int, tuple[object, ...]]] = {}
        """Group, name or id of the topic, partition -> their number, and how they were named first."""
        self._rows: list[tuple[Numbers, Numbers, Numbers]] = []
        self._number = 0
        self._range = (_FAR, -_FAR)
        self._crowded = False

    def add(self, batch: pa.RecordBatch) -> None:
        """Takes rows of commits."""
        lags = numbers_of(batch, "lag", null=_FAR)
        rows = np.flatnonzero(lags != _FAR)
        if not len(rows):
            return
        lags = lags[rows]
        self._range = (min(self._range[0], int(lags.min())), max(self._range[1], int(lags.max())))
        times = numbers_of(batch, "time", null=_FAR)[rows]
        self._number += len(rows)
        self._crowded |= self._number > MOST_ROWS or bool((times == _FAR).any())
        self._crowded |= not {*_PLACE} <= {*batch.schema.names}
        if not self._crowded:
            places = batch.select(list(_PLACE))
            groups = Groups(places if len(rows) == batch.num_rows else _rows_of(places, rows), _PLACE)
            numbers = np.array([self._number_of(label) for label in groups.labels()], np.int32)
            self._rows.append((numbers[groups.numbers], times, lags.astype(np.int64)))
        self._forget_where_crowded()

    def _forget_where_crowded(self) -> None:
        self._crowded |= len(self._known) > MOST_PLACES
        if self._crowded:
            self._rows.clear()
            self._known.clear()

    def name_topics(self, names: Mapping[str, str]) -> None:
        """Topics of these ids have got names since."""
        labels = [label for _, label in self._known.values()]
        self._known = {}
        numbers = np.array([self._number_of(_name_topic(label, names)) for label in labels], np.int32)
        self._rows = [(numbers[where], times, lags) for where, times, lags in self._rows]

    def state(self) -> tuple[Any, ...]:
        """What was taken, for `add_up`."""
        rows = (
            []
            if self._crowded
            else [as_bytes(np.concatenate(each)) for each in zip(*self._rows, strict=True)]
        )
        return self._range, self._number, self._crowded, [label for _, label in self._known.values()], rows

    def merge(self, state: tuple[Any, ...]) -> None:
        """Takes what another one has."""
        (least, most), number, crowded, labels, rows = state
        self._range = min(self._range[0], least), max(self._range[1], most)
        self._number += number
        self._crowded |= crowded or self._number > MOST_ROWS
        if not self._crowded and rows:
            where, times, lags = (from_bytes(each)[0] for each in rows)
            numbers = np.array([self._number_of(label) for label in labels], np.int32)
            self._rows.append((numbers[where], times, lags))
        self._forget_where_crowded()

    @property
    def most(self) -> int:
        """The greatest lag; 0 where there is none."""
        return max(self._range[1], 0)

    def growth(self, *, sure: bool) -> int:
        """The most that a lag can have grown as `lag_grows` has it; 0 where none did.

        `sure`: the rule looks at all rows of one place, and at no others; else the bound is of any of them.
        """
        least, most = self._range
        if most < least:
            return 0
        if self._crowded or not sure:
            return most - least
        return self._sum_growth()

    def _number_of(self, label: tuple[object, ...]) -> int:
        group, topic, topic_id, partition = label
        # The rule goes by name, or else by id, but takes thirds of one name and id: two are not followed.
        place = group, topic_id if topic is None else topic, partition
        number, first = self._known.setdefault(place, (len(self._known), label))
        self._crowded |= first != label
        return number

    def _sum_growth(self) -> int:
        where, times, lags = (np.concatenate(each) for each in zip(*self._rows, strict=True))
        # Of equal times any may come first: it is the one that lets the lag grow.
        order = np.lexsort((lags, times, where))
        where, times, lags = where[order], times[order], lags[order]
        begins = np.flatnonzero(np.diff(where, prepend=-1))
        sizes = np.diff(begins, append=len(where))
        chosen = sizes >= _LEAST_COMMITS
        begins, sizes = begins[chosen], sizes[chosen]
        if not len(begins):
            return 0
        lasts = begins + sizes - 1
        # As ntile has it: what is left over goes to the first ones.
        first_ends, last_begins = begins + (sizes + 2) // 3, lasts + 1 - sizes // 3
        highest = np.maximum.reduceat(lags, _between(begins, first_ends))[::2]
        lowest = np.minimum.reduceat(np.append(lags, _FAR), _between(last_begins, lasts + 1))[::2]
        before, after = lags[begins], lags[lasts]
        grown: Numbers = after - before
        grown = grown[
            (lowest > highest)
            & (times[lasts] - times[begins] >= _LEAST_US)
            & (after >= _LEAST_TIMES * before)
        ]
        return int(grown.max(initial=0))


def _name_topic(label: tuple[object, ...], names: Mapping[str, str]) -> tuple[object, ...]:
    group, topic, topic_id, partition = label
    return group, names.get(str(topic_id)) if topic is None else topic, topic_id, partition


def _between(begins: Numbers, ends: Numbers) -> Numbers:
    """Borders as reduceat takes them: every other span is one."""
    return np.stack([begins, ends], axis=1).ravel()


def _rows_of(batch: pa.RecordBatch, rows: Numbers) -> pa.RecordBatch:
    chosen = np.zeros(batch.num_rows, np.bool_)
    chosen[rows] = True
    return filter_rows(batch, chosen)
