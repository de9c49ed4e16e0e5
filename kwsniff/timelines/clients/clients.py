"""Clients as their requests show them configured: a row for each client id at an address.

    api_calls        what requests say; times of what is repeated
    joins            what JoinGroup and group heartbeats carry inside
    record_batches   what a producer's batches show, by connection
    connections      requests in flight; whether packets have the client's clock

What is counted does not depend on the order of batches, nor on how rows are cut into them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa

from kwsniff.layout.catalog import Catalog
from kwsniff.layout.traits import PRODUCED
from kwsniff.tables.arrays import among, valid_rows, whole_numbers
from kwsniff.tables.compute import filter_rows
from kwsniff.tables.grouping import Counted, Groups, count_rows
from kwsniff.tables.rows import pick
from kwsniff.timelines.clients.client_rows import Values, row_of, words_of_role
from kwsniff.timelines.clients.intervals import MOST_TIMES, intervals_of, merge_times, pauses_of
from kwsniff.timelines.clients.produced_batches import Produced, add_batches, make_room
from kwsniff.timelines.clients.requests import (
    METADATA,
    METADATA_RESPONSES,
    PERIODIC,
    SETTINGS,
    count_values,
    keys_of,
)
from kwsniff.timelines.clients.roles import Worker, find_worker_clients, is_worker
from kwsniff.timelines.decoded_messages import list_elements, read_request
from kwsniff.timelines.memory_budget import RECORD, SHORT, MemoryBudget

MOST_CLIENTS: Final = 10_000
MOST_PRODUCERS: Final = 2_000
"""Maximum connections whose batches count: the first ones."""
_MOST_TIMED: Final = 16
"""Maximum connections of a client whose times count: the first ones."""
_MOST_CLOCKS: Final = 100_000
_BYTES_OF_TIMES: Final = 48 * MOST_TIMES
MOST_VALUES: Final = 32
"""Maximum values of a setting that are counted."""
SOURCES: Final = ("api_calls", "connections", "record_batches")
"""Tables of the core that clients are made of."""
_KEY: Final = ("client_id", "client_address")
_COUNTED: Final = (*_KEY, "connection_id", "api_key", *dict.fromkeys(each.column for each in SETTINGS))
_CLOCK: Final = (*_KEY, "connection_id", "capture_point", "max_in_flight")
_MISSING: Final = ("client_missing_bytes", "broker_missing_bytes")
READ: Final[Mapping[str, tuple[str, ...]]] = {
    "api_calls": (
        *(*_KEY, "connection_id", "api_key", "request_time", "response_time", "request_bytes"),
        "error_count",
        *dict.fromkeys(each.column for each in SETTINGS),
    ),
    "connections": (*_CLOCK, "calls", *_MISSING),
    "record_batches": (
        *("connection_id", "api_key", "time", "codec", "bytes", "uncompressed_bytes", "producer_id"),
        *("timestamp_type", "first_timestamp"),
    ),
}
"""The columns that are read of each table."""
_CLIENTS_CLOCK: Final = ("client", "same_machine")
_JOINS: Final = (*_KEY, "api_key", "api_version", "protocol_type", "request")

Key = tuple[str | None, str]
Row = dict[str, Any]


@dataclass(slots=True)
class Client:
    """What is known of one client so far; times in microseconds."""

    calls: int = 0
    first: int | None = None
    last: int | None = None
    values: Values = field(default_factory=dict)
    """Setting -> value -> number of requests."""
    keys: dict[int, int] = field(default_factory=dict)
    """API key -> number of requests."""
    times: dict[str, dict[int, list[int]]] = field(default_factory=dict)
    """Interval -> connection -> times of the requests that come at it; those of Metadata responses."""
    in_flight: int = 0
    """Most requests in flight on a connection."""
    batch_bytes: int = 0
    delays: list[int] = field(default_factory=list)
    """From the first record of a batch to its request, on the client's clock."""


class Clients:
    """Takes rows of the tables in SOURCES; `rows`: those of clients, at the end."""

    def __init__(self, catalog: Catalog, budget: MemoryBudget) -> None:
        self.rows: list[Row] = []
        self._budget = budget
        self._catalog = catalog
        self._clients: dict[Key, Client] = {}
        self._produced: dict[int, Produced] = {}
        self._connections: dict[int, Key] = {}
        """Those of producers."""
        self._clocks: dict[int, None] = {}
        """Connections whose packets have the client's clock."""
        self._settings = [
            (each, keys_of(catalog, each.purpose) if each.purpose else None) for each in SETTINGS
        ]
        self._periodic = {name: keys_of(catalog, purpose) for name, purpose in PERIODIC.items()}
        self._joins = keys_of(catalog, lambda traits: traits.group in ("join", "epoch"))
        self._produce = keys_of(catalog, lambda traits: traits.records == PRODUCED)

    def add(self, table: str, batch: pa.RecordBatch) -> None:
        """Takes rows of a table in SOURCES."""
        if not batch.num_rows:
            return
        if table == "api_calls":
            self._add_calls(batch)
        elif table == "connections":
            self._add_connections(batch)
        else:
            self._add_batches(batch)

    def add_joins(self, batch: pa.RecordBatch) -> None:
        """Takes noted calls, with the bytes of their requests."""
        chosen = among(whole_numbers(batch["api_key"], null=-1), self._joins) & valid_rows(batch["request"])
        for client_id, address, key, version, type_, data in pick(batch, chosen, _JOINS):
            if (client := self._client((client_id, address))) is None:
                continue
            said = read_request(self._catalog, key, version, data)
            self._note(client, "rebalance_timeout_ms", _positive(said.get("rebalance_timeout_ms")))
            names = [each.get("name") or "" for each in list_elements(said, "protocols")]
            if names and type_ == "consumer":
                self._note(client, "assignors", ", ".join(names))
            self._note(client, "assignors", said.get("server_assignor"))
            inside: Mapping[str, Any] = said.get("inside") or {}
            for each in (said, *inside.values()):
                self._note(client, "rack_id", each.get("rack_id") or None)

    def finish(self) -> None:
        """Ends: the clients become rows."""
        for connection, produced in self._produced.items():
            client = self._clients.get(self._connections.get(connection, (None, "")))
            if client is not None:
                for name, values in (("compression", produced.codecs), ("idempotent", produced.idempotent)):
                    for value, number in values.items():
                        self._note(client, name, value, number)
                client.batch_bytes = max(client.batch_bytes, produced.bytes)
                if connection in self._clocks:
                    client.delays += [delay for _, delay in produced.delays]
        workers = []
        for key in sorted(self._clients, key=lambda each: (each[0] or "", each[1])):
            client = self._clients[key]
            row = row_of(self._catalog, key, client, _intervals_of(client))
            self.rows.append(row)
            if is_worker(self._catalog, words_of_role(client)):
                workers.append(Worker(key[1], client.values.get("group_id", {}), row["role"]))
        roles = find_worker_clients(self._catalog, workers, self._clients)
        for row in self.rows if roles else ():
            row["role"] = roles.get((row["client_id"], row["address"]), row["role"])
        self._clients.clear()

    def state(self) -> tuple[Any, ...]:
        """The state for `resume`, without `rows`."""
        return self._clients, self._produced, self._connections, self._clocks

    def resume(self, state: tuple[Any, ...]) -> None:
        """Continues from a saved state."""
        self._clients, self._produced, self._connections, self._clocks = state

    def _client(self, key: Key) -> Client | None:
        client = self._clients.get(key)
        if client is None and self._budget.admits(2 * RECORD, full=len(self._clients) >= MOST_CLIENTS):
            client = self._clients[key] = Client()
        return client

    def _note(self, client: Client, setting: str, value: Any, number: int = 1) -> None:
        if value is None:
            return
        known = client.values.setdefault(setting, {})
        if value not in known:
            size = SHORT + (len(value) if isinstance(value, str) else 0)
            if len(known) >= MOST_VALUES or not self._budget.admits(size):
                return
        known[value] = known.get(value, 0) + number

    def _add_calls(self, batch: pa.RecordBatch) -> None:
        asked = (whole_numbers(batch["api_key"], null=-1) >= 0) & valid_rows(batch["request_bytes"])
        if not asked.all():
            batch = filter_rows(batch, asked)
        if not batch.num_rows:
            return
        # Of one client most requests say the same: what follows takes a look at each kind once.
        told = count_rows(batch, _COUNTED, "request_time")
        rows, keys = told.rows, whole_numbers(told.rows["api_key"], null=-1)
        groups = Groups(rows, _KEY)
        clients = [self._client(key) for key in groups.labels()]
        every = np.ones(rows.num_rows, np.bool_)
        self._add_spans(groups, told, clients)
        for group, key, number in count_values(groups.numbers, rows["api_key"], every, told.counts):
            if client := clients[group]:
                client.calls += number
                if key in self._catalog.apis:
                    client.keys[key] = client.keys.get(key, 0) + number
        of_keys = {chosen: among(keys, chosen) for _, chosen in self._settings if chosen}
        for setting, chosen in self._settings:
            those = of_keys[chosen] if chosen else every
            if setting.beside:
                those = those & valid_rows(rows[setting.beside])
            for group, value, number in count_values(
                groups.numbers, rows[setting.column], those, told.counts
            ):
                if client := clients[group]:
                    self._note(client, setting.setting, value, number)
        self._add_times(batch)
        self._add_producers(rows, among(keys, self._produce))

    def _add_spans(self, groups: Groups, told: Counted, clients: Sequence[Client | None]) -> None:
        for group, first, last in zip(
            groups.numbers.tolist(), told.least.tolist(), told.most.tolist(), strict=True
        ):
            if (client := clients[group]) and first <= last:
                client.first = first if client.first is None else min(client.first, first)
                client.last = last if client.last is None else max(client.last, last)

    def _add_times(self, batch: pa.RecordBatch) -> None:
        keys, timed = whole_numbers(batch["api_key"], null=-1), valid_rows(batch["request_time"])
        for name, chosen in self._periodic.items():
            rows = timed & among(keys, chosen)
            if name == METADATA:  # after an error it asks again soon
                rows &= whole_numbers(batch["error_count"], null=-1) == 0
            if not rows.any():
                continue
            part = filter_rows(batch.select([*_KEY, "connection_id", "request_time", "response_time"]), rows)
            if name != METADATA:
                self._keep_times(name, part, "request_time", (*_KEY, "connection_id"))
                continue
            # any connection will do for it
            self._keep_times(name, part, "request_time", _KEY)
            answered = valid_rows(part["response_time"])
            if answered.any():
                self._keep_times(METADATA_RESPONSES, filter_rows(part, answered), "response_time", _KEY)

    def _keep_times(self, name: str, part: pa.RecordBatch, column: str, by: Sequence[str]) -> None:
        groups = Groups(part, by)
        for label, times in zip(groups.labels(), groups.sort(part[column]), strict=True):
            if client := self._client((label[0], label[1])):
                known = client.times.setdefault(name, {})
                connection = label[2] if len(label) > len(_KEY) else 0
                if connection not in known and (
                    not make_room(known, connection, _MOST_TIMED) or not self._budget.admits(_BYTES_OF_TIMES)
                ):
                    continue
                known[connection] = merge_times(known.get(connection, ()), times)

    def _add_producers(self, batch: pa.RecordBatch, rows: Any) -> None:
        if rows.any():
            part = filter_rows(batch.select([*_KEY, "connection_id"]), rows)
            labels = Groups(part, ("connection_id", *_KEY)).labels()
            for connection, client_id, address in sorted(labels, key=lambda label: label[0]):
                if not make_room(self._connections, connection, MOST_PRODUCERS):
                    break
                self._connections[connection] = client_id, address

    def _add_connections(self, batch: pa.RecordBatch) -> None:
        spoke = whole_numbers(batch["calls"], null=0) > 0
        for client_id, address, connection, point, in_flight, *missing in pick(
            batch, spoke, (*_CLOCK, *_MISSING)
        ):
            if point in _CLIENTS_CLOCK and len(self._clocks) < _MOST_CLOCKS:
                self._clocks[connection] = None
            if in_flight and not any(missing) and (client := self._client((client_id, address))):
                client.in_flight = max(client.in_flight, in_flight)

    def _add_batches(self, batch: pa.RecordBatch) -> None:
        rows = among(whole_numbers(batch["api_key"], null=-1), self._produce)
        if rows.any():
            part = batch.select([*READ["record_batches"]])
            add_batches(self._produced, part if rows.all() else filter_rows(part, rows), MOST_PRODUCERS)


def _intervals_of(client: Client) -> dict[str, list[list[int]]]:
    """The intervals of what a client repeats; of Metadata requests also the pauses since a response."""
    found = {name: [intervals_of(told)] for name, told in client.times.items() if name in PERIODIC}
    if METADATA in found and METADATA_RESPONSES in client.times:
        found[METADATA].append(pauses_of(client.times[METADATA][0], client.times[METADATA_RESPONSES][0]))
    return found


def _positive(value: Any) -> int | None:
    return value if isinstance(value, int) and value > 0 else None
