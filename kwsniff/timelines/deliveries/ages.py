"""Lag in time: how old the first record is that a group has not read, when it commits."""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from kwsniff.core.columns.delivery_steps import UNKNOWN
from kwsniff.tables.arrays import Numbers, numbers, whole_numbers
from kwsniff.timelines.deliveries.sightings import FETCHED
from kwsniff.timelines.deliveries.steps import number_rows, rank_values

NONE = -1


class Ages:
    """Batches by their offsets, for commits between them."""

    def __init__(self, told: Mapping[str, Numbers]) -> None:
        """`told`: sightings, as Deliveries have them."""
        chosen = np.flatnonzero(told["kind"] <= FETCHED)
        names = ("slot", "base", "last", "first_timestamp", "end")
        columns = {name: told[name][chosen] for name in names}
        # Of the same batch the sighting that was first stays.
        keys, batches = number_rows(columns["slot"], columns["base"])
        ends = np.full(len(batches), np.iinfo(np.int64).max)
        np.minimum.at(ends, keys, columns["end"])
        those = np.flatnonzero(columns["end"] == ends[keys])[::-1]
        batches[keys[those]] = those
        order = batches[np.lexsort((columns["base"][batches], columns["slot"][batches]))]
        self._columns = {name: column[order] for name, column in columns.items()}

    def lag_of(self, commits: pa.RecordBatch, slots: Numbers) -> pa.Array:
        """Nanoseconds for each row of commits; 0 if the group has read all; null without a witness."""
        times = whole_numbers(commits["time"], null=UNKNOWN)
        lag = whole_numbers(commits["lag"], null=NONE)
        first = self._first_times(slots, whole_numbers(commits["committed_offset"], null=NONE), times)
        age = np.where((first == UNKNOWN) | (times == UNKNOWN), NONE, times - first)
        age = np.where((age >= 0) & (age < 1 << 53), age, NONE)
        age = np.where(lag == 0, 0, np.where(lag < 0, NONE, age))
        return numbers(pa.int64(), np.where(age >= 0, age, 0) * 1000, age >= 0)

    def _first_times(self, slots: Numbers, offsets: Numbers, times: Numbers) -> Numbers:
        """Time of the first record of the batch that has each offset and was seen by then."""
        found = np.full(len(slots), UNKNOWN)
        slot, base, last, first, seen = self._columns.values()
        if not len(slot):
            return found
        values, ranks = rank_values(np.concatenate([base, offsets]))
        wide = len(values) + 1
        keys = slot * wide + ranks[: len(base)]
        wanted = slots * wide + ranks[len(base) :]
        at = np.searchsorted(keys, wanted, side="right") - 1
        fits = (at >= 0) & (slots >= 0)
        at = np.maximum(at, 0)
        fits &= (slot[at] == slots) & (last[at] >= offsets) & (seen[at] != UNKNOWN) & (seen[at] <= times)
        found[fits] = first[at[fits]]
        return found
