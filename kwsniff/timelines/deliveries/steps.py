"""The steps of batches, from sightings of many calls: rows of the table deliveries as numbers.

Which sightings are of one batch, and who read it, is found here; core/columns/delivery_steps.pyx makes times
and parts of them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from kwsniff.core.columns import delivery_steps, keyed_rows
from kwsniff.core.columns.delivery_steps import STABLE
from kwsniff.tables.arrays import Numbers
from kwsniff.timelines.deliveries.sightings import (
    ANSWERED,
    APPENDED,
    COMMITTED,
    FETCHED,
    REACHED,
    SENT,
)

NONE: Final = -1
_SEEN: Final = ("begin", "shown", "end", "call_id", "max_timestamp", "flags")

Columns = Mapping[str, Numbers]


@dataclass(slots=True)
class Readings:
    """Batches and who read them: for each row the places of its sightings; NONE without one."""

    batch: Numbers
    """The sighting that the row is about: the Produce, else the first Fetch."""
    produced: Numbers
    fetched: Numbers
    group: Numbers
    """Number of the reader's group."""


def join_halves(told: dict[str, Numbers]) -> None:
    """Makes responses to Produce whose requests came before them what they are together."""
    answers, requests = (np.flatnonzero(told["kind"] == kind) for kind in (ANSWERED, SENT))
    if not len(answers) or not len(requests):
        return
    both = np.concatenate([requests, answers])
    keys, firsts = number_rows(told["call_id"][both], told["slot"][both])
    request = np.full(len(firsts), NONE)
    request[keys[: len(requests)]] = requests
    found = request[keys[len(requests) :]]
    answers, found = answers[found >= 0], found[found >= 0]
    for name in ("record_count", "first_timestamp", "max_timestamp"):
        told[name][answers] = told[name][found]
    told["last"][answers] = told["base"][answers] + told["last"][found]
    told["kind"][answers] = APPENDED


@dataclass(slots=True)
class Batches:
    """Sightings that are of one batch, and which."""

    places: Numbers
    numbers: Numbers
    """The batch of each of these sightings, by its index in `first`."""
    first: Numbers
    """The first sighting of each batch, ascending."""

    def seen_before(self, place: int) -> "Batches":
        """Those whose first sighting is before this one, with all their sightings."""
        number = int(np.searchsorted(self.first, place))
        those = self.numbers < number
        return Batches(self.places[those], self.numbers[those], self.first[:number])


def find_batches(told: Columns) -> Batches:
    """The batches of all sightings, in the order in which they were seen first."""
    places = np.flatnonzero(told["kind"] <= FETCHED)
    keys, firsts = number_rows(*(told[name][places] for name in ("slot", "base", "last")))
    return Batches(places, keys, places[firsts])


def read_batches(told: Columns, seen: Batches, group_of: Numbers) -> Readings:
    """The rows of all batches, in the order in which these were seen first; `group_of`: for each sighting,
    its reader's group."""
    batches, keys, first = seen.places, seen.numbers, seen.first
    kinds = told["kind"][batches]
    appended = np.full(len(first), NONE)
    those = np.flatnonzero(kinds == APPENDED)[::-1]
    appended[keys[those]] = batches[those]
    reads = np.flatnonzero(kinds == FETCHED)
    groups = group_of[batches[reads]]
    readers = np.where(groups >= 0, groups, -2 - told["client"][batches[reads]])
    own = reads[number_rows(keys[reads], readers)[1]]
    unread = np.ones(len(first), np.bool_)
    unread[keys[own]] = False
    alone = np.flatnonzero(unread)
    fetched = np.concatenate([batches[own], np.full(len(alone), NONE)])
    which = np.concatenate([keys[own], alone])
    # Readers of a batch come in their order already, and batches are numbered in theirs.
    order = np.argsort(which, kind="stable")
    fetched, which = fetched[order], which[order]
    produced = appended[which]
    group = np.where(fetched >= 0, group_of[fetched], NONE)
    return Readings(np.where(produced >= 0, produced, fetched), produced, fetched, group)


def make_steps(told: Columns, rows: Readings) -> dict[str, Numbers]:
    """Times (UNKNOWN without one), call ids (NONE) and parts (NONE) of each row, by column."""
    steps = np.empty((len(delivery_steps.STEPS), len(rows.batch)), np.int64)
    sightings = tuple(told[name] for name in _SEEN)
    places = rows.batch, rows.produced, rows.fetched, _find_watermarks(told, rows), _find_commits(told, rows)
    delivery_steps.make_steps(sightings, places, steps)
    return dict(zip(delivery_steps.STEPS, steps, strict=True))


def _find_watermarks(told: Columns, rows: Readings) -> Numbers:
    """The first high watermark beyond a batch; for readers of stable records the first stable offset."""
    reached = np.flatnonzero(told["kind"] == REACHED)
    slots, last = told["slot"][rows.batch], told["last"][rows.batch]
    strict = (rows.fetched >= 0) & ((told["flags"][rows.fetched] & STABLE) != 0)
    place = np.full(len(slots), NONE)
    for column, those in (("base", ~strict), ("last", strict)):
        if len(reached) and those.any():
            found = find_beyond(told["slot"][reached], told[column][reached], slots[those], last[those])
            place[those] = np.where(found >= 0, reached[found], NONE)
    return place


def _find_commits(told: Columns, rows: Readings) -> Numbers:
    """The group's first commit beyond a batch."""
    commits = np.flatnonzero(told["kind"] == COMMITTED)
    place = np.full(len(rows.batch), NONE)
    asked = np.flatnonzero(rows.group >= 0)
    if len(commits) and len(asked):
        slots = np.concatenate([told["slot"][commits], told["slot"][rows.batch[asked]]])
        groups = np.concatenate([told["group"][commits], rows.group[asked]])
        keys, _ = number_rows(slots, groups)
        found = find_beyond(
            keys[: len(commits)], told["base"][commits], keys[len(commits) :], told["last"][rows.batch[asked]]
        )
        place[asked] = np.where(found >= 0, commits[found], NONE)
    return place


def find_beyond(slots: Numbers, offsets: Numbers, asked: Numbers, lasts: Numbers) -> Numbers:
    """For each asked slot the first of `offsets`, in their order, that is greater than `lasts`; NONE without
    one."""
    found = np.full(len(asked), NONE)
    spans = np.zeros((2, int(slots.max(initial=-1)) + 1), np.int64)
    keyed_rows.find_beyond(slots, offsets, asked, lasts, spans, np.empty(len(slots), np.int64), found)
    return found


def number_rows(*columns: Numbers) -> tuple[Numbers, Numbers]:
    """A number for each distinct combination of values, of each row, in the order in which they come first;
    and the row where each one does."""
    ranks, firsts = np.empty((2, len(columns[0])), np.int64)
    beside = tuple(map(np.ascontiguousarray, columns))
    return ranks, firsts[: keyed_rows.number_rows(beside, ranks, firsts)]


def rank_values(values: Numbers) -> tuple[Numbers, Numbers]:
    """The distinct values, in order, and the index of each row's value among them."""
    numbers, firsts = number_rows(values)
    own = values[firsts]
    order = np.argsort(own)
    ranks = np.empty(len(own), np.int64)
    ranks[order] = np.arange(len(own))
    return own[order], ranks[numbers]
