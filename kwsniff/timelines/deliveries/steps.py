"""The steps of batches, from sightings of many calls: rows of the table deliveries as numbers.

    record ── before wire ── produced ── produce ── acknowledged ── replication ── visible
                                                  ── wait ── fetch ── fetched ── processing ── committed

A step ends at the latest when a later one is reached: the acknowledgement may arrive after the reader has the
batch. Parts are therefore never negative, and add up.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from kwsniff.core.columns import keyed_rows
from kwsniff.tables.arrays import Numbers
from kwsniff.timelines.deliveries.sightings import (
    ANSWERED,
    APPENDED,
    COMMITTED,
    FETCHED,
    IN_SYNC,
    REACHED,
    SENT,
    STABLE,
    UNKNOWN,
)

NONE: Final = -1
_LONGEST: Final = 1 << 53
"""Microseconds; more of them would not fit as nanoseconds, and no record takes 285 years."""

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
    """The first sighting of each batch."""


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
    visible, seen_by = _visible(told, rows)
    committed, commit = _find_commits(told, rows)
    times = {
        "record_time": told["max_timestamp"][rows.batch],
        "produced_time": _pick(told["begin"], rows.produced),
        "acknowledged_time": _pick(told["end"], rows.produced),
        "visible_time": visible,
        "fetched_time": _pick(told["end"], rows.fetched),
        "committed_time": committed,
    }
    calls = {
        "produced_call_id": _pick(told["call_id"], rows.produced, NONE),
        "visible_call_id": seen_by,
        "fetched_call_id": _pick(told["call_id"], rows.fetched, NONE),
        "committed_call_id": _pick(told["call_id"], commit, NONE),
    }
    shown = _pick(told["shown"], rows.fetched)
    by_others = np.where(seen_by == calls["fetched_call_id"], UNKNOWN, visible)
    return times | calls | _parts(times, shown, by_others)


def _parts(times: Columns, shown: Numbers, visible: Numbers) -> dict[str, Numbers]:
    """`shown`: the first byte of the Fetch response; `visible`: where another call shows it."""
    record, produced, acknowledged, _, fetched, committed = times.values()
    consistent = (produced == UNKNOWN) | (shown == UNKNOWN) | (shown >= produced)
    sent = np.where(consistent, produced, UNKNOWN)
    last = np.where(committed == UNKNOWN, fetched, committed)
    wire = np.where((record == UNKNOWN) | (produced == UNKNOWN), NONE, produced - record)
    begin = np.where((wire >= 0) | (sent == UNKNOWN), record, sent)
    seen = np.where(visible == UNKNOWN, UNKNOWN, _sooner(visible, shown))
    told = np.where(acknowledged == UNKNOWN, UNKNOWN, _sooner(_sooner(acknowledged, visible), shown))
    after = np.where(told == UNKNOWN, sent, told)
    ready = np.where(seen == UNKNOWN, after, seen)
    return {
        "total_ns": np.where(consistent, _between(begin, last), NONE),
        "before_wire_ns": _to_ns(wire),
        "produce_ns": _between(sent, told),
        "replication_ns": np.where(sent == UNKNOWN, NONE, _between(after, seen)),
        "fetch_wait_ns": np.where(sent == UNKNOWN, NONE, _between(ready, shown)),
        "fetch_ns": _between(shown, fetched),
        "processing_ns": _between(fetched, committed),
    }


def _sooner(one: Numbers, other: Numbers) -> Numbers:
    """The first of two times, or the one that is known."""
    sooner: Numbers = np.where(one == UNKNOWN, other, np.where(other == UNKNOWN, one, np.minimum(one, other)))
    return sooner


def _between(begin: Numbers, end: Numbers) -> Numbers:
    return np.where((begin == UNKNOWN) | (end == UNKNOWN), NONE, _to_ns(end - begin))


def _to_ns(took: Numbers) -> Numbers:
    """Microseconds as nanoseconds; NONE for those of clocks that differ."""
    fits = (took >= 0) & (took < _LONGEST)
    return np.where(fits, np.where(fits, took, 0) * 1000, NONE)


def _visible(told: Columns, rows: Readings) -> tuple[Numbers, Numbers]:
    """When a batch could be read, and the call that shows it."""
    reached = np.flatnonzero(told["kind"] == REACHED)
    slots, last = told["slot"][rows.batch], told["last"][rows.batch]
    strict = (rows.fetched >= 0) & ((told["flags"][rows.fetched] & STABLE) != 0)
    place = np.full(len(slots), NONE)
    for column, those in (("base", ~strict), ("last", strict)):
        if those.any():
            found = find_beyond(told["slot"][reached], told[column][reached], slots[those], last[those])
            place[those] = np.where(found >= 0, reached[found], NONE) if len(reached) else NONE
    time, call = _pick(told["shown"], place), _pick(told["call_id"], place, NONE)
    own = _pick(told["shown"], rows.produced)
    in_sync = (rows.produced >= 0) & ((told["flags"][rows.produced] & IN_SYNC) != 0) & ~strict
    better = in_sync & (own != UNKNOWN) & ((time == UNKNOWN) | (own < time))
    time = np.where(better, own, time)
    call = np.where(better, _pick(told["call_id"], rows.produced, NONE), call)
    sent = _pick(told["begin"], rows.produced)
    fits = (sent != UNKNOWN) & (time >= sent)
    return np.where(fits, time, UNKNOWN), np.where(fits, call, NONE)


def _find_commits(told: Columns, rows: Readings) -> tuple[Numbers, Numbers]:
    """The group's first commit beyond a batch, and its sighting."""
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
    time = _pick(told["begin"], place)
    place = np.where(time >= np.maximum(_pick(told["end"], rows.fetched), UNKNOWN + 1), place, NONE)
    return _pick(told["begin"], place), place


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


def _pick(column: Numbers, places: Numbers, none: int = UNKNOWN) -> Numbers:
    """The values at these places; `none` where there is no place."""
    if not len(column):
        return np.full(len(places), none)
    return np.where(places >= 0, column[places], none)
