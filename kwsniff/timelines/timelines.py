"""What is followed over many calls while the rows pass: groups, transactions, and their cluster."""

from collections.abc import Container, Iterator
from typing import Any, NamedTuple

import pyarrow as pa

from kwsniff.layout.catalog import Catalog
from kwsniff.tables.arrays import Bits, among, valid_rows, whole_numbers
from kwsniff.tables.rows import batch_of
from kwsniff.tables.schema import DETAILS
from kwsniff.timelines import cluster, members, rebalances, transactions
from kwsniff.timelines.cluster import Cluster
from kwsniff.timelines.committed_lag import Commits
from kwsniff.timelines.details import with_details
from kwsniff.timelines.heartbeats import without_repeats
from kwsniff.timelines.held_texts import HeldTexts
from kwsniff.timelines.leaders import Leader, Leaders
from kwsniff.timelines.members import Member, Members
from kwsniff.timelines.offsets import NO_OFFSETS, told
from kwsniff.timelines.proven_waits import ProvenWaits
from kwsniff.timelines.rebalance import Rebalance
from kwsniff.timelines.rebalances import Group, Rebalances, group_roles
from kwsniff.timelines.room import Room
from kwsniff.timelines.topic_names import News, TopicNames
from kwsniff.timelines.transactions import Producer, Transaction, Transactions, transaction_roles
from kwsniff.timelines.twins import Twins

TIMELINES = ("groups", "members", "transactions", "commits", "brokers", "leaders", "api_ranges")
HELD = "latencies"
"""The table of which some rows are held back until others had their say; the rest is the core's."""
FOLLOWED = (*TIMELINES, HELD)
"""Tables for which calls are followed."""
OFFSETS_OF = "partitions"
"""The table whose rows tell of offsets: commits are made of it, and proofs of what calls waited for."""
COLUMNS = tuple(
    dict.fromkeys(
        (
            *("call_id", "connection_id", "response_end_frame"),
            *(*rebalances.COLUMNS, *members.COLUMNS, *transactions.COLUMNS, *cluster.COLUMNS),
        )
    )
)
"""Columns of api_calls that are looked at."""
STATE_CLASSES = (Group, Rebalance, Producer, Transaction, Member, Leader)
_TOGETHER = 4096
"""Rows of Python's making that become a batch at a time."""


def relevant(batch: pa.RecordBatch, catalog: Catalog) -> Bits:
    """Which calls can make a difference to a timeline, apart from those that bytes were kept of."""
    keys = whole_numbers(batch["api_key"], null=-1)
    of_groups = among(keys, group_roles(catalog)) & valid_rows(batch["group_id"])
    return of_groups | (among(keys, transaction_roles(catalog)) & valid_rows(batch["transactional_id"]))


class Noted(NamedTuple):
    """What `Timelines.add` takes."""

    calls: pa.RecordBatch
    offsets: pa.RecordBatch | None
    """As `told` gives them; their places are those of their calls."""
    timed: pa.RecordBatch | None = None
    """As `hold_back` gives them, likewise."""


def noted(
    calls: pa.RecordBatch,
    details: pa.RecordBatch | None,
    partitions: pa.RecordBatch | None,
    catalog: Catalog,
    timed: pa.RecordBatch | None = None,
) -> Noted:
    """Of a batch of api_calls, the bytes that the core gave with it, the partitions of these calls, and those
    of their rows of latencies that are held back."""
    offsets = told(calls, partitions, catalog) if partitions is not None and partitions.num_rows else None
    return Noted(with_details(calls, details, relevant(calls, catalog), COLUMNS), offsets, timed)


def without_twins(notes: Noted, twins: Twins) -> Noted:
    """Only what is not about connections that are twins of others; rows that are held are told of all."""
    if not twins:
        return notes
    offsets = None if notes.offsets is None else twins.without(notes.offsets)
    return Noted(twins.without(notes.calls), offsets, notes.timed)


def sources_of(tables: Container[str]) -> set[str]:
    """The core's tables that those of FOLLOWED among `tables` are made of."""
    wanted = [table for table in FOLLOWED if table in tables]
    offsets = (OFFSETS_OF,) if {"commits", HELD} & {*wanted} else ()
    return {*(("api_calls", DETAILS) if wanted else ()), *offsets}


class Timelines:
    """Takes batches of noted calls and gives batches of the tables in FOLLOWED. Memory is bounded."""

    def __init__(self, catalog: Catalog, memory: int | None = None) -> None:
        """`memory`: the limit on all of the analysis, where it is not the usual one."""
        error_names = {code: error.name for code, error in catalog.errors.items()}
        self._room = room = Room() if memory is None else Room(memory)
        names = TopicNames(room)
        self._catalog = catalog
        self._names = names
        self.rebalances = Rebalances(catalog, room)
        self.members = Members(names, catalog, room)
        self.transactions = Transactions(error_names, catalog, room)
        self.commits = Commits(catalog, room)
        self.leaders = Leaders(room)
        self.cluster = Cluster(names, self.leaders, catalog, room)
        self.waits = ProvenWaits(catalog, self.leaders)
        self._texts = HeldTexts()

    def add(self, noted: Noted) -> None:
        """Calls in the order in which they ended, as `noted` gives them."""
        calls, offsets, timed = noted
        news = self.add_calls(calls)
        told = NO_OFFSETS if offsets is None else offsets
        if news or told.num_rows:
            self.commits.add(told, news)
        self.waits.add(calls, told, timed, news)
        self._texts.note(told, timed)
        if self._texts.bytes > self._room.most // 2:
            self._settle_waits()

    def add_calls(self, batch: pa.RecordBatch) -> list[News]:
        """Calls alone, where others follow what they say of partitions; which topics they named."""
        if batch.num_rows:
            batch = without_repeats(batch, self._catalog)
            self.cluster.add(batch)
            self.rebalances.add(batch)
            self.members.add(batch, valid_rows(batch["group_id"]))
            self.transactions.add(batch)
        return self._names.news()

    def leave_out(self, number: int) -> None:
        """So much was forgotten, or not taken in, by others who follow a part of it."""
        self._room.left_out += number

    def _settle_waits(self) -> None:
        """What is held keeps the texts of its batch, and those that prove something do: where texts are long,
        nothing is waited for any more."""
        self._texts = HeldTexts()
        self._room.left_out += 1
        self.waits.forget()

    def state(self) -> tuple[Any, ...]:
        """What is followed, of plain values and of STATE_CLASSES; rows have to be taken before."""
        return tuple(each.state() for each in self._all())

    def resume(self, state: tuple[Any, ...]) -> None:
        """Goes on where another stood."""
        for each, saved in zip(self._all(), state, strict=True):
            each.resume(saved)

    def finish(self) -> None:
        """No more calls come."""
        for each in (
            self.rebalances,
            self.members,
            self.transactions,
            self.commits,
            self.cluster,
            self.waits,
        ):
            each.finish()

    def take(self, at_least: int) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Table name and rows, for the tables that have so many rows."""
        for table, rows in (
            ("groups", self.rebalances.rows),
            ("members", self.members.rows),
            ("transactions", self.transactions.rows),
            ("brokers", self.cluster.brokers),
            ("leaders", self.leaders.rows),
            ("api_ranges", self.cluster.ranges),
        ):
            if len(rows) >= at_least:
                for begin in range(0, max(len(rows), 1), _TOGETHER):
                    part = rows[begin : begin + _TOGETHER]
                    yield table, batch_of(table, [e.row() if isinstance(e, Leader) else e for e in part])
                rows.clear()
        if at_least == 0 and (told := self._room.anomalies()):
            yield "anomalies", batch_of("anomalies", told)
            self._room.left_out = 0
        for batch in self.commits.take(at_least):
            yield "commits", batch
        for batch in self.waits.take(at_least):
            yield HELD, batch

    def _all(self) -> tuple[Any, ...]:
        return (
            self._names,
            self.rebalances,
            self.members,
            self.transactions,
            self.commits,
            self.cluster,
            self.leaders,
            self.waits,
            self._room,  # the last: those before it may give some of it back for their state
        )
