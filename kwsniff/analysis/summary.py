"""What a run found, kept in bounded memory while the rows pass: the screen's summary and its JSON form."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from kwsniff.analysis.rollups.delivery_times import Ways
from kwsniff.analysis.rollups.errors import Failures
from kwsniff.analysis.rollups.events import Trouble
from kwsniff.analysis.rollups.latency import Shares
from kwsniff.analysis.rollups.percentiles import LatencySketch
from kwsniff.analysis.rollups.tls import ClosedFigures
from kwsniff.sources.files import Unread
from kwsniff.sources.ports import AskedPorts
from kwsniff.sources.times import TimeRange
from kwsniff.tables.arrays import Bits, valid_rows, whole_numbers
from kwsniff.tables.captures import printable
from kwsniff.tables.compute import cast, filter_rows
from kwsniff.tables.connection_ports import ports_of
from kwsniff.tables.grouping import Groups
from kwsniff.timelines.duplicates.duplicate_connections import Twins

MOST_DISTINCT = 10_000
"""Distinct values counted one by one (topics with errors, clients); what comes after is counted together."""

MORE = "(others)"

_SERVER = ("product", "version_min", "version_max")
_TLS = ("protocol", "tls_version", "tls_cipher", "broker_port", "tls_server_name")

Tally = Counter[tuple[Any, ...]]
PERCENTILES = (50, 95, 99)


@dataclass(slots=True)
class ApiFigures:
    """The calls of one API in one version."""

    api_name: str | None
    calls: int = 0
    errors: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    latency: LatencySketch = field(default_factory=LatencySketch)

    def as_dict(self) -> dict[str, Any]:
        """Counts and latencies (nanoseconds)."""
        sketch = self.latency
        return {
            "api_name": self.api_name,
            "calls": self.calls,
            "calls_with_errors": self.errors,
            "statuses": dict(self.statuses),
            **{f"p{percent}_ns": sketch.percentile(percent) for percent in PERCENTILES},
            "max_ns": sketch.greatest if sketch.count else None,
        }


class Summary:
    """Counts what `add` is shown. Rows are batches in the coded schema; see kwsniff/tables/build.py."""

    def __init__(self, ports: Sequence[int] = (), twins: Twins | None = None) -> None:
        self.rows: Counter[str] = Counter()
        """All of them; everything else leaves twins out."""
        self.twins = twins or Twins()
        self.late_twins = 0
        """Connections that were counted before they were found to be twins."""
        self.ports = AskedPorts(ports)
        """Those that are Kafka's by the user's word."""
        self.apis: dict[tuple[int | None, int | None, str | None], ApiFigures] = {}
        """By key, version and name: at servers of several products a key may be several APIs."""
        self.reasons: Tally = Counter()
        self.shares = Shares()
        self.ways = Ways()
        self.trouble = Trouble()
        self.failures = Failures()
        self.errors: Tally = Counter()
        self.clients: Tally = Counter()
        self.protocols: Tally = Counter()
        self.servers: Tally = Counter()
        self.tls: Tally = Counter()
        self.closed = ClosedFigures()
        self.hellos: Tally = Counter()
        self.anomalies: Tally = Counter()
        self.captures: list[dict[str, Any]] = []
        self.unread: list[Unread] = []
        """Inputs that could not be read; their rows are the last of `captures`."""
        self.places: list[dict[str, Any]] = []
        """Where captures were taken, and how far clocks are ahead, if they were taken at several places."""
        self.times = TimeRange()
        self.findings: list[dict[str, Any]] | None = None
        """Worst first; None where they were not asked for."""
        self.late_topics: dict[str, str] = {}
        """Topic id -> name, at least for ids that were counted before any message named them."""

    def add(self, table: str, batch: pa.RecordBatch, calls: pa.RecordBatch | None = None) -> None:
        """Counts the rows of a batch. `calls`: the rows with the topics of latencies, by `call_id`."""
        self.rows[table] += batch.num_rows
        batch = self.twins.without(batch)
        if batch.num_rows == 0:
            return
        self.trouble.add(table, batch)
        if table == "latencies":
            self.shares.add(batch, calls)
        if table == "api_calls":
            self._add_calls(batch)
            self.failures.add_calls(batch)
        elif table == "error_codes":
            named = ("error_code", "error_name", "api_name", "topic", "topic_id", "partition")
            tally = (
                ((*error, topic_id if topic is None else topic, partition), number)
                for (*error, topic, topic_id, partition), number in _tally(batch, named)
            )
            _count(self.errors, tally, keep=3)
            self.failures.add_errors(batch)
        elif table == "connections":
            _count(self.protocols, _tally(batch, ("protocol",)))
            tls = (*_TLS, "broker_address")
            found = (
                ((protocol, version, cipher, address if name is None else name, port), number)
                for (protocol, version, cipher, port, name, address), number in _tally(batch, tls)
                if protocol == "tls" or version is not None
            )
            _count(self.tls, found, keep=3)
            self.closed.add(batch)
            with_calls = whole_numbers(batch["calls"], null=0) > 0
            hellos = filter_rows(batch, _unanswered_hellos(batch))
            to = (
                ((address if name is None else name, port), number)
                for (port, name, address), number in _tally(hellos, (*_TLS[3:], "broker_address"))
            )
            _count(self.hellos, to)
            client = ("client_id", "client_software_name", "client_software_version")
            _count(self.clients, _tally(filter_rows(batch, with_calls), client))
        elif table == "deliveries":
            self.ways.add(batch)
        elif table == "servers":
            _count(self.servers, _tally(batch, _SERVER))
        elif table == "anomalies":
            _count(self.anomalies, _tally(batch, ("name",)))

    def note_ports(self, connections: pa.RecordBatch) -> None:
        """Which ports there are, also of connections that are not counted."""
        if self.ports.absent:
            self.ports.add(ports_of(connections))

    def _add_calls(self, batch: pa.RecordBatch) -> None:
        groups = Groups(batch, ("api_key", "api_version", "api_name", "status", "reason"))
        failed = groups.counts(whole_numbers(batch["error_code"], null=0) != 0)
        told = zip(
            groups.labels(),
            groups.counts().tolist(),
            failed.tolist(),
            groups.split(batch["latency_ns"]),
            strict=True,
        )
        reasons: Tally = Counter()
        for (key, version, name, status, reason), calls, errors, latencies in told:
            figure = self.apis.setdefault((key, version, name), ApiFigures(name))
            figure.calls += calls
            figure.errors += errors
            figure.statuses[status] += calls
            figure.latency.add(latencies)
            reasons[status, reason, name] += calls
        _count(self.reasons, iter(reasons.items()))

    def _errors(self) -> list[dict[str, Any]]:
        """By error, API and topic, with the partitions of each."""
        named: dict[tuple[Any, ...], Tally] = {}
        for (*error, topic, partition), number in self.errors.items():
            key = (*error, self.late_topics.get(topic, topic))
            named.setdefault(key, Counter())[partition,] += number
        ranked = Counter({key: partitions.total() for key, partitions in named.items()})
        items = _rank(ranked, ("error_code", "error_name", "api_name", "topic"))
        for item, (key, _) in zip(items, ranked.most_common(), strict=True):
            known = Counter({key: number for key, number in named[key].items() if key != (None,)})
            item["partitions"] = _rank(known, ("partition",))
        return items

    def _statuses(self) -> list[dict[str, Any]]:
        """By status and reason, with the APIs of each."""
        found: dict[tuple[Any, ...], Tally] = {}
        for (status, reason, api), number in self.reasons.items():
            found.setdefault((status, reason), Counter())[api,] += number
        ranked = Counter({key: apis.total() for key, apis in found.items()})
        items = _rank(ranked, ("status", "reason"))
        for item, (key, _) in zip(items, ranked.most_common(), strict=True):
            item["apis"] = _rank(found[key], ("api_name",))
        return items

    def as_dict(self) -> dict[str, Any]:
        """Everything, for JSON: numbers, texts, nulls; nanoseconds where the name says so."""
        calls = [
            {"api_key": key, "api_version": version, **figures.as_dict()}
            for (key, version, _), figures in sorted(self.apis.items(), key=_nulls_last)
        ]
        return {
            "ports": list(self.ports.asked),
            "absent_ports": sorted(self.ports.absent),
            "since": self.times.since and iso_time(self.times.since),
            "until": self.times.until and iso_time(self.times.until),
            "no_packets": self.times.missed,
            "places": self.places,
            "captures": [_with_iso_times(row) for row in self.captures],
            "findings": self.findings or [],
            "judged": self.findings is not None,
            "unread": [{"capture": printable(each.name), "reason": each.why} for each in self.unread],
            "rows": {**self.rows, "captures": len(self.captures), "findings": len(self.findings or [])},
            "calls": calls,
            "latency": self.shares.as_dict(self.late_topics),
            "deliveries": self.ways.as_dicts(self.late_topics),
            "statuses": self._statuses(),
            "errors": self._errors(),
            **self.failures.as_dict(),
            **self.trouble.as_dict(),
            "clients": _rank(
                self.clients, ("client_id", "client_software_name", "client_software_version"), "connections"
            ),
            "connections": _rank(self.protocols, ("protocol",)),
            "servers": _rank(self.servers, _SERVER),
            "tls": _rank(
                self.tls, ("protocol", "tls_version", "tls_cipher", "broker", "broker_port"), "connections"
            ),
            "tls_not_opened": self.closed.as_dicts(),
            "unanswered_hellos": _rank(self.hellos, ("broker", "broker_port"), "connections"),
            "anomalies": _rank(self.anomalies, ("name",)),
            "twins": {"left_out": len(self.twins.found), "counted": self.late_twins},
        }


def _rank(counter: Tally, names: Sequence[str], count: str = "count") -> list[dict[str, Any]]:
    return [{**dict(zip(names, key, strict=True)), count: number} for key, number in counter.most_common()]


def _count(counter: Tally, tally: Iterator[tuple[tuple[Any, ...], int]], keep: int = 0) -> None:
    """Adds a tally; beyond MOST_DISTINCT keys only the first `keep` values of a key stay apart."""
    for key, number in tally:
        if key in counter or len(counter) < MOST_DISTINCT:
            counter[key] += number
        else:
            counter[*key[:keep], *(MORE for _ in key[keep:])] += number


def _tally(batch: pa.RecordBatch, columns: Sequence[str]) -> Iterator[tuple[tuple[Any, ...], int]]:
    """Distinct values of some columns together, and in how many rows they occur."""
    groups = Groups(batch, columns)
    return zip(groups.labels(), map(int, groups.counts()), strict=True)


def _unanswered_hellos(connections: pa.RecordBatch) -> Bits:
    """ClientHellos that got no ServerHello, where the broker was heard and nothing of it is missing."""
    hello: Bits = whole_numbers(cast(connections["tls_hello"], pa.int8()), null=0) == 1
    heard: Bits = whole_numbers(connections["broker_packets"], null=0) > 0
    whole: Bits = whole_numbers(connections["broker_missing_bytes"], null=0) == 0
    return hello & heard & whole & ~valid_rows(connections["tls_cipher"])


def _nulls_last(item: tuple[tuple[int | None, int | None, str | None], ApiFigures]) -> tuple[Any, ...]:
    *numbers, name = item[0]
    return (*((number is None, number or 0) for number in numbers), name or "")


def _with_iso_times(row: Mapping[str, Any]) -> dict[str, Any]:
    times = {name: row[name] and iso_time(row[name]) for name in ("first_time", "last_time")}
    return {**row, **times}


def iso_time(nanoseconds: int) -> str:
    """ISO 8601 in UTC with all nine digits; datetime has only six."""
    seconds, fraction = divmod(nanoseconds, 1_000_000_000)
    moment = np.datetime_as_string(np.datetime64(seconds, "s"))
    return f"{moment}.{fraction:09}Z"
