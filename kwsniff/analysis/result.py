"""What an analysis gives back."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from kwsniff.analysis.judgement import find_in_memory, listed
from kwsniff.analysis.summary import Summary
from kwsniff.errors import UsageError
from kwsniff.tables.run import stamped
from kwsniff.tables.schema import TABLES, arrow_schema, stored_schema
from kwsniff.timelines.late_names import Change


class Analysis:
    """The tables of a run, as pyarrow Tables with plain types (`.to_pandas()`), and its summary.

    Strings are plain strings, not dictionaries: pandas, Spark and DuckDB take them as they are, tables of
    several runs can be joined and concatenated, and the types are those of the parquet files. Tables that
    were written are read back when they are first asked for.
    """

    def __init__(
        self,
        summary: Summary,
        paths: Mapping[str, Path],
        batches: Mapping[str, list[pa.RecordBatch]],
        changes: Mapping[str, Change],
        chosen: Sequence[str],
        *,
        run_id: str,
    ):
        self.run_id = run_id
        """What the column `run_id` of all tables says."""
        self.paths = dict(paths)
        """Table name -> parquet file; empty when no output was asked for."""
        self._summary = summary
        self._batches = dict(batches)
        self._changes = dict(changes)
        self._chosen = chosen
        self._tables: dict[str, pa.Table] = {}

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
    def groups(self) -> pa.Table:
        """One row per rebalance."""
        return self.table("groups")

    @property
    def commits(self) -> pa.Table:
        """One row per offset that a group committed, and how far behind the partition's end that is."""
        return self.table("commits")

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
        """One row per broker that clients were told of."""
        return self.table("brokers")

    @property
    def leaders(self) -> pa.Table:
        """One row per leader of a partition that clients were told of."""
        return self.table("leaders")

    @property
    def api_ranges(self) -> pa.Table:
        """One row per API and broker: the versions that it offers."""
        return self.table("api_ranges")

    @property
    def captures(self) -> pa.Table:
        """One row per capture file."""
        return self.table("captures")

    @property
    def findings(self) -> pa.Table:
        """One row per finding, worst first; `kwsniff why` shows them."""
        return self.table("findings")

    @property
    def summary(self) -> dict[str, Any]:
        """What the command line shows: findings, counts, percentiles (nanoseconds), errors; JSON-ready."""
        if "findings" in self._chosen and not self.paths and self._summary.findings is None:
            self._summary.findings = listed(self.findings)
        return {**self._summary.as_dict(), "tables": {name: str(path) for name, path in self.paths.items()}}

    def table(self, name: str) -> pa.Table:
        """A table by name. Raises UsageError for a name that is none, or that was not asked for."""
        if name not in self._chosen:
            known = "was not asked for" if name in TABLES else "does not exist"
            raise UsageError(f"table {name!r} {known}; there are {', '.join(self._chosen)}")
        return self._kept(name)

    def _kept(self, name: str) -> pa.Table:
        if name not in self._tables:
            self._tables[name] = self._load(name)
        return self._tables[name]

    def _load(self, name: str) -> pa.Table:
        if name in self.paths:
            # Not read_table: that would make columns of directory names such as day=1.
            return pq.ParquetFile(self.paths[name]).read()
        if name == "findings":
            return find_in_memory(self._kept, self.run_id)
        batches = [stamped(name, batch, self.run_id) for batch in self._batches.pop(name, [])]
        coded = pa.Table.from_batches(batches, stored_schema(TABLES[name]))
        plain = coded.cast(arrow_schema(TABLES[name]))
        return self._changes[name](plain) if name in self._changes else plain
