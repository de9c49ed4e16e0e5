"""Lag in time: how old the first record is that a group has not read, when it commits."""

from collections.abc import Mapping
from typing import Final

import numpy as np
import pyarrow as pa

from kwsniff.core.columns.delivery_steps import UNKNOWN
from kwsniff.tables.arrays import Numbers, whole_numbers
from kwsniff.timelines.deliveries.sightings import FETCHED
from kwsniff.timelines.deliveries.steps import number_rows, rank_values

NONE: Final = -1
_MOST: Final = np.iinfo(np.int64).max
_COLUMNS: Final = ("slot", "base", "last", "first_timestamp", "end")


class Ages:
    """Batches by their offsets, for commits between them."""

    def __init__(self, told: Mapping[str, Numbers], merged: Numbers) -> None:
        """`told`: sightings, as Deliveries have them; `merged`: for each of their slots the one it is now."""
        self._told = {name: told[name] for name in ("kind", *_COLUMNS)}
        self._merged = merged
        self._seen: dict[str, Numbers] = {}

    def find_ages(self, commits: pa.RecordBatch, slots: Numbers) -> Numbers:
        """Microseconds for each row of commits behind the log end; NONE without a witness."""
        times = whole_numbers(commits["time"], null=UNKNOWN)
        first = self._first_times(slots, whole_numbers(commits["committed_offset"], null=NONE), times)
        age = np.where((first == UNKNOWN) | (times == UNKNOWN), NONE, times - first)
        return np.where((age >= 0) & (age < 1 << 53), age, NONE)

    def _batches(self) -> dict[str, Numbers]:
        """Sightings of batches."""
        if not self._seen:
            chosen = np.flatnonzero(self._told["kind"] <= FETCHED)
            self._seen = {name: self._told[name][chosen] for name in _COLUMNS}
            self._seen["slot"] = self._merged[self._seen["slot"]]
            self._told.clear()
        return self._seen

    def _first_times(self, slots: Numbers, offsets: Numbers, times: Numbers) -> Numbers:
        """Time of the first record of the batch that has each offset and was seen by then."""
        found = np.full(len(slots), UNKNOWN)
        known = slots >= 0
        slot, base, last, first, seen = self._find_around(slots[known], offsets[known])
        if not len(slot):
            return found
        values, ranks = rank_values(np.concatenate([base, offsets]))
        wide = len(values) + 1
        keys = slot * wide + ranks[: len(base)]
        wanted = slots * wide + ranks[len(base) :]
        at = np.searchsorted(keys, wanted, side="right") - 1
        fits = (at >= 0) & known
        at = np.maximum(at, 0)
        fits &= (slot[at] == slots) & (last[at] >= offsets) & (seen[at] != UNKNOWN) & (seen[at] <= times)
        found[fits] = first[at[fits]]
        return found

    def _find_around(self, slots: Numbers, offsets: Numbers) -> list[Numbers]:
        """Slot, base, last, first time and end of the batches that may have one of these offsets, each once,
        in the order of slots and bases."""
        seen = self._batches()
        slot, base = seen["slot"], seen["base"]
        number = int(max(slot.max(initial=-1), slots.max(initial=-1))) + 1
        lowest, highest = np.full(number, _MOST), np.full(number, NONE)
        np.minimum.at(lowest, slots, offsets)
        np.maximum.at(highest, slots, offsets)
        # Of the batches that begin before all these offsets only the last one may have any of them.
        before = base <= lowest[slot]
        begin = np.full(number, -_MOST)
        np.maximum.at(begin, slot[before], base[before])
        chosen = np.flatnonzero((base >= begin[slot]) & (base <= highest[slot]))
        columns = {name: column[chosen] for name, column in seen.items()}
        # Of the same batch the sighting that was first stays.
        keys, batches = number_rows(columns["slot"], columns["base"])
        ends = np.full(len(batches), _MOST)
        np.minimum.at(ends, keys, columns["end"])
        those = np.flatnonzero(columns["end"] == ends[keys])[::-1]
        batches[keys[those]] = those
        order = batches[np.lexsort((columns["base"][batches], columns["slot"][batches]))]
        return [column[order] for column in columns.values()]
