"""The tables of a run by name, new ones in memory and stored ones in a folder alike."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kwsniff.findings.database import hush
from kwsniff.tables.aggregates import AGGREGATES
from kwsniff.tables.schema import TABLES

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_ROWS = {name: table.row for name, table in (TABLES | AGGREGATES).items()}


class Tables(ABC):
    """Tables as pyarrow Tables with plain types; `.to_pandas()` keeps whole numbers whole beside nulls."""

    @property
    @abstractmethod
    def names(self) -> Sequence[str]:
        """Names of the tables that are here."""

    @abstractmethod
    def table(self, name: str) -> pa.Table:
        """A table by name. Raises UsageError for one that is not here."""

    @abstractmethod
    def rows(self, name: str) -> int:
        """How many rows a table has, without loading it."""

    @abstractmethod
    def origin(self) -> str:
        """What the tables are of, in a few words."""

    def duckdb(self) -> "DuckDBPyConnection":
        """A new DuckDB database in memory with a view of each table, times in UTC; yours to close.

        Join tables by `run_id` and `call_id` or `connection_id`.
        """
        import duckdb

        database = duckdb.connect()
        hush(database)
        database.execute("set TimeZone = 'UTC'")
        for name in self.names:
            self._show(database, name)
        return database

    @property
    def plot(self) -> Any:
        """The charts of the HTML report: `found.plot.latency()`, `time_parts`, `errors`,
        `rebalances`, `lag`, `topology`."""
        # By its name: the report is built on tables.
        return import_module("kwsniff.report.plots").Plots(self)

    def open_views(self) -> "DuckDBPyConnection":
        """A database with the views that rules and charts read."""
        from kwsniff.findings.views import READ, open_tables

        return open_tables({name: self.table(name) for name in self.names if name in READ})

    def _show(self, database: "DuckDBPyConnection", name: str) -> None:
        database.register(name, self.table(name))

    def __getitem__(self, name: str) -> pa.Table:
        return self.table(name)

    def __repr__(self) -> str:
        kept = ", ".join(f"{name} {self.rows(name):,}" for name in self.names)
        return f"<kwsniff {type(self).__name__} of {self.origin()}: {kept}>"

    def _repr_html_(self) -> str:
        """What a notebook shows. Names come from outside: they are text, never markup."""
        import html

        lines = "".join(
            f"<tr><td><code>{name}</code></td><td style='text-align:right'>{self.rows(name):,}</td>"
            f"<td style='text-align:left'>{html.escape(_ROWS.get(name, ''))}</td></tr>"
            for name in self.names
        )
        return (
            f"<table><caption>{html.escape(self.origin())}</caption>"
            "<thead><tr><th>table</th><th>rows</th><th>one row is</th></tr></thead>"
            f"<tbody>{lines}</tbody></table>"
        )

    @property
    def api_calls(self) -> pa.Table:
        """One row per call."""
        return self.table("api_calls")

    @property
    def latencies(self) -> pa.Table:
        """One row per call that was seen whole."""
        return self.table("latencies")

    @property
    def error_codes(self) -> pa.Table:
        """One row per error code that is not 0."""
        return self.table("error_codes")

    @property
    def connections(self) -> pa.Table:
        """One row per TCP connection."""
        return self.table("connections")

    @property
    def anomalies(self) -> pa.Table:
        """One row per oddity."""
        return self.table("anomalies")

    @property
    def partitions(self) -> pa.Table:
        """One row per partition of a call."""
        return self.table("partitions")

    @property
    def record_batches(self) -> pa.Table:
        """One row per record batch."""
        return self.table("record_batches")

    @property
    def tcp_events(self) -> pa.Table:
        """One row per retransmission, closed window, reset or repeated SYN."""
        return self.table("tcp_events")

    @property
    def stalls(self) -> pa.Table:
        """Pauses inside requests and responses, and why."""
        return self.table("stalls")

    @property
    def hops(self) -> pa.Table:
        """One row per call and pair of neighbouring places."""
        return self.table("hops")

    @property
    def groups(self) -> pa.Table:
        """One row per rebalance."""
        return self.table("groups")

    @property
    def commits(self) -> pa.Table:
        """One row per offset that a group committed, and how far behind the partition's end that is."""
        return self.table("commits")

    @property
    def deliveries(self) -> pa.Table:
        """One row per record batch and reader: when it was produced, fetched, committed."""
        return self.table("deliveries")

    @property
    def transactions(self) -> pa.Table:
        """One row per transaction."""
        return self.table("transactions")

    @property
    def members(self) -> pa.Table:
        """One row per membership of a group."""
        return self.table("members")

    @property
    def brokers(self) -> pa.Table:
        """One row per broker that responses name."""
        return self.table("brokers")

    @property
    def leaders(self) -> pa.Table:
        """One row per leader of a partition that responses name."""
        return self.table("leaders")

    @property
    def api_ranges(self) -> pa.Table:
        """One row per API and broker: the versions that it offers."""
        return self.table("api_ranges")

    @property
    def clients(self) -> pa.Table:
        """One row per client id at an address: its settings, as its requests show them."""
        return self.table("clients")

    @property
    def servers(self) -> pa.Table:
        """One row per broker address: product and release, with the proof."""
        return self.table("servers")

    @property
    def captures(self) -> pa.Table:
        """One row per capture file."""
        return self.table("captures")

    @property
    def findings(self) -> pa.Table:
        """One row per finding, worst first; `kwsniff why` shows them."""
        return self.table("findings")

    @property
    def finding_calls(self) -> pa.Table:
        """One row per call or connection that a finding explains."""
        return self.table("finding_calls")
