"""Trackers of state over many calls: groups, transactions, and the cluster."""

from collections.abc import Container, Iterator
from typing import Any, NamedTuple

import pyarrow as pa

from kwsniff.layout.catalog import Catalog
from kwsniff.tables.arrays import Bits, among, valid_rows, whole_numbers
from kwsniff.tables.rows import batch_of
from kwsniff.tables.schema import DETAILS
from kwsniff.timelines import transactions
from kwsniff.timelines.clients import clients
from kwsniff.timelines.clients.clients import Client, Clients
from kwsniff.timelines.clients.produced_batches import Produced
from kwsniff.timelines.committed_lag import Commits
from kwsniff.timelines.decoded_messages import with_details
from kwsniff.timelines.deliveries.deliveries import Deliveries
from kwsniff.timelines.deliveries.sightings import extract_sightings
from kwsniff.timelines.duplicates.duplicate_connections import Twins
from kwsniff.timelines.groups import members, rebalances
from kwsniff.timelines.groups.heartbeats import without_repeats
from kwsniff.timelines.groups.members import Member, Members
from kwsniff.timelines.groups.rebalance import Rebalance
from kwsniff.timelines.groups.rebalances import Group, Rebalances, group_roles
from kwsniff.timelines.memory_budget import MemoryBudget
from kwsniff.timelines.metadata import cluster, servers
from kwsniff.timelines.metadata.cluster import Cluster
from kwsniff.timelines.metadata.leaders import Leader, Leaders
from kwsniff.timelines.metadata.servers import Server, Servers
from kwsniff.timelines.metadata.topic_names import News, TopicNames
from kwsniff.timelines.offsets import NO_OFFSETS, extract_offsets
from kwsniff.timelines.transactions import Producer, Transaction, Transactions, transaction_roles
from kwsniff.timelines.waits.attribution import ProvenWaits
from kwsniff.timelines.waits.pending_texts import HeldTexts

TIMELINES = (
    *("groups", "members", "transactions", "commits", "deliveries", "brokers", "leaders"),
    *("api_ranges", "clients", "servers"),
)
HELD = "latencies"
"""The table with some rows held for proof by later calls; the other columns come from the core."""
FOLLOWED = (*TIMELINES, HELD)
"""Tables made by tracking calls."""
OFFSETS_OF = "partitions"
"""The table with offsets: the input of commits, and of proofs for waits."""
BATCHES_OF = "record_batches"
"""The table with batches: with offsets the input of deliveries, and of the lag of commits in time."""
COLUMNS = tuple(
    dict.fromkeys(
        (
            *("call_id", "connection_id", "response_end_frame"),
            *(*rebalances.COLUMNS, *members.COLUMNS, *transactions.COLUMNS, *cluster.COLUMNS),
            "protocol_type",
        )
    )
)
"""Columns of api_calls that are read."""
READ = {
    table: tuple(dict.fromkeys((*clients.READ[table], *servers.READ.get(table, ()))))
    for table in clients.SOURCES
}
"""The columns of the core's tables that `Timelines.add_rows` reads."""
STATE_CLASSES = (Group, Rebalance, Producer, Transaction, Member, Leader, Client, Produced, Server)
_TOGETHER = 4096
"""Number of rows from Python per batch."""


def relevant(batch: pa.RecordBatch, catalog: Catalog) -> Bits:
    """Calls that can matter for a timeline, in addition to those with kept bytes."""
    keys = whole_numbers(batch["api_key"], null=-1)
    of_groups = among(keys, group_roles(catalog)) & valid_rows(batch["group_id"])
    return of_groups | (among(keys, transaction_roles(catalog)) & valid_rows(batch["transactional_id"]))


class Noted(NamedTuple):
    """The input of `Timelines.add`."""

    calls: pa.RecordBatch
    offsets: pa.RecordBatch | None
    """From offsets.py; with the positions of their calls."""
    timed: pa.RecordBatch | None = None
    """From `hold_back`, likewise."""
    sightings: pa.RecordBatch | None = None
    """From deliveries, likewise."""


def extract_events(
    calls: pa.RecordBatch,
    details: pa.RecordBatch | None,
    partitions: pa.RecordBatch | None,
    catalog: Catalog,
    timed: pa.RecordBatch | None = None,
    *,
    batches: pa.RecordBatch | None = None,
    tables: Container[str] = TIMELINES,
) -> Noted:
    """Prepares a batch of api_calls: the bytes from the core, the partitions of these calls, their held rows
    of latencies, and their record batches. `tables`: those that are made of them."""
    offsets = (
        extract_offsets(calls, partitions, catalog)
        if partitions is not None and partitions.num_rows
        else None
    )
    sightings = (
        extract_sightings(calls, partitions, batches, catalog)
        if offsets is not None and needs_deliveries(tables)
        else None
    )
    noted = with_details(calls, details, relevant(calls, catalog), COLUMNS)
    return Noted(noted, offsets, timed, sightings)


def without_twins(notes: Noted, twins: Twins) -> Noted:
    """Without calls of duplicate connections; held rows get proofs from all."""
    if not twins:
        return notes
    offsets, sightings = (
        None if rows is None else twins.without(rows) for rows in (notes.offsets, notes.sightings)
    )
    return Noted(twins.without(notes.calls), offsets, notes.timed, sightings)


def needs_deliveries(tables: Container[str]) -> bool:
    """Whether record batches are followed for one of these tables: commits have their lag in time."""
    return "commits" in tables or "deliveries" in tables


def sources_of(tables: Container[str]) -> set[str]:
    """Tables of the core that are the input of those in FOLLOWED among `tables`."""
    wanted = [table for table in FOLLOWED if table in tables]
    offsets = (OFFSETS_OF,) if {"commits", "deliveries", HELD} & {*wanted} else ()
    batches = (BATCHES_OF,) if needs_deliveries(wanted) else ()
    of_clients = clients.SOURCES if "clients" in wanted else ()
    of_servers = servers.SOURCES if "servers" in wanted else ()
    of_calls = ("api_calls", DETAILS) if wanted else ()
    return {*of_calls, *offsets, *batches, *of_clients, *of_servers}


class Timelines:
    """Takes batches of noted calls and returns batches of the tables in FOLLOWED. Memory is bounded."""

    def __init__(
        self, catalog: Catalog, memory: int | None = None, tables: Container[str] = TIMELINES
    ) -> None:
        """`memory`: limit of the whole analysis, if not the default. `tables`: those that are wanted; of
        others, those that cost much stay empty."""
        error_names = {code: error.name for code, error in catalog.errors.items()}
        self._budget = budget = MemoryBudget() if memory is None else MemoryBudget(memory)
        names = TopicNames(budget)
        self._catalog = catalog
        self._tables = tables
        self._names = names
        self.rebalances = Rebalances(catalog, budget)
        self.members = Members(names, catalog, budget)
        self.transactions = Transactions(error_names, catalog, budget)
        self.commits = Commits(catalog, budget)
        self.deliveries = Deliveries(budget)
        self.leaders = Leaders(budget)
        self.servers = Servers(catalog, budget)
        self.cluster = Cluster(names, self.leaders, self.servers, catalog, budget)
        self.waits = ProvenWaits(catalog, self.leaders)
        self.clients = Clients(catalog, budget)
        self._texts = HeldTexts()

    def add_rows(self, table: str, batch: pa.RecordBatch) -> None:
        """Takes rows from the core, in addition to the noted calls, but those of duplicate connections."""
        if table in clients.SOURCES and "clients" in self._tables:
            self.clients.add(table, batch)
        if table in servers.SOURCES and "servers" in self._tables:
            self.servers.add(table, batch)

    def add(self, noted: Noted) -> None:
        """Takes calls in the order in which they ended, from `noted`."""
        calls, offsets, timed, sightings = noted
        news = self.add_calls(calls)
        told = NO_OFFSETS if offsets is None else offsets
        if "commits" in self._tables and (news or told.num_rows):
            self.commits.add(told, news)
        self.deliveries.add(sightings, news)
        self.waits.add(calls, told, timed, news)
        self._texts.add(told, timed)
        if self._texts.bytes > self._budget.most // 2:
            self._settle_waits()

    def add_calls(self, batch: pa.RecordBatch) -> list[News]:
        """Takes only calls, if other trackers take their partitions; returns the newly named topics."""
        if batch.num_rows:
            if "clients" in self._tables:
                self.clients.add_joins(batch)
            batch = without_repeats(batch, self._catalog)
            self.cluster.add(batch)
            self.rebalances.add(batch)
            self.members.add(batch, valid_rows(batch["group_id"]))
            self.transactions.add(batch)
        return self._names.news()

    def leave_out(self, number: int) -> None:
        """Adds entries that other trackers of a part left out."""
        self._budget.left_out += number

    def _settle_waits(self) -> None:
        """Held rows and proofs keep the texts of their batches: if texts are long, stops holding
        rows."""
        self._texts = HeldTexts()
        self._budget.left_out += 1
        self.waits.forget()

    def state(self) -> tuple[Any, ...]:
        """The state, of plain values and STATE_CLASSES; take rows first."""
        return tuple(each.state() for each in self._all())

    def resume(self, state: tuple[Any, ...]) -> None:
        """Continues from a saved state."""
        for each, saved in zip(self._all(), state, strict=True):
            each.resume(saved)

    def finish(self) -> None:
        """Ends the input."""
        for each in (
            self.rebalances,
            self.members,
            self.transactions,
            self.commits,
            self.deliveries,
            self.cluster,
            self.waits,
            self.clients,
            self.servers,
        ):
            each.finish()

    def drain(self, at_least: int) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Table name and rows, for tables with enough rows."""
        for table, rows in (
            ("groups", self.rebalances.rows),
            ("members", self.members.rows),
            ("transactions", self.transactions.rows),
            ("brokers", self.cluster.brokers),
            ("leaders", self.leaders.rows),
            ("api_ranges", self.cluster.ranges),
            ("clients", self.clients.rows),
            ("servers", self.servers.rows),
        ):
            if len(rows) >= at_least:
                for begin in range(0, max(len(rows), 1), _TOGETHER):
                    part = rows[begin : begin + _TOGETHER]
                    yield table, batch_of(table, [e.row() if isinstance(e, Leader) else e for e in part])
                rows.clear()
        if at_least == 0 and (told := self._budget.anomalies()):
            yield "anomalies", batch_of("anomalies", told)
            self._budget.left_out = 0
        for batch in self.commits.drain(at_least):
            yield "commits", self.deliveries.age_commits(batch)
        for batch in self.deliveries.drain(at_least):
            yield "deliveries", batch
        for batch in self.waits.drain(at_least):
            yield HELD, batch

    def _all(self) -> tuple[Any, ...]:
        return (
            self._names,
            self.rebalances,
            self.members,
            self.transactions,
            self.commits,
            self.deliveries,
            self.cluster,
            self.leaders,
            self.waits,
            self.clients,
            self.servers,
            self._budget,  # last, because the ones before may release memory for their state
        )
