"""What an analysis gives back."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from kwsniff.analysis.findings import find_in_memory, judge_in_memory, rows_as_json
from kwsniff.analysis.stored_tables import Tables
from kwsniff.analysis.summary import Summary
from kwsniff.errors import UsageError
from kwsniff.findings.views import FOUND
from kwsniff.tables.harm import KEYS
from kwsniff.tables.run import add_run_id
from kwsniff.tables.schema import TABLES, arrow_schema, stored_schema
from kwsniff.timelines.metadata.late_topic_names import Change


class Analysis(Tables):
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
    def summary(self) -> dict[str, Any]:
        """What the command line shows: findings, counts, percentiles (nanoseconds), errors; JSON-ready."""
        if "findings" in self._chosen and not self.paths and self._summary.findings is None:
            self._summary.findings = rows_as_json(self.findings)
        return {**self._summary.as_dict(), "tables": {name: str(path) for name, path in self.paths.items()}}

    @property
    def names(self) -> Sequence[str]:
        """Names of the tables that were asked for."""
        return self._chosen

    def table(self, name: str) -> pa.Table:
        """A table by name. Raises UsageError for a name that is none, or that was not asked for."""
        if name not in self._chosen:
            known = "was not asked for" if name in TABLES else "does not exist"
            raise UsageError(f"table {name!r} {known}; there are {', '.join(self._chosen)}")
        return self._load_once(name)

    def rows(self, name: str) -> int:
        """How many rows a table has."""
        if name in self.paths:
            return int(pq.read_metadata(self.paths[name]).num_rows)
        return int(self.table(name).num_rows)

    def origin(self) -> str:
        """The captures, or how many."""
        names = [str(row["capture"]) for row in self._summary.captures]
        return names[0] if len(names) == 1 else f"{len(names)} captures"

    def _load_once(self, name: str) -> pa.Table:
        if name not in self._tables:
            self._tables[name] = self._load(name)
        return self._tables[name]

    def _load(self, name: str) -> pa.Table:
        if name in self.paths:
            # Not read_table: that would make columns of directory names such as day=1.
            return pq.ParquetFile(self.paths[name]).read()
        if name in FOUND:
            self._tables.update(find_in_memory(self._make_once, self.run_id))
            return self._tables[name]
        if name in KEYS and not FOUND.isdisjoint(self._chosen):
            self._tables.update(judge_in_memory(self._make_once))
            return self._tables[name]
        return self._make(name)

    def _make_once(self, name: str) -> pa.Table:
        """A table as the findings need it, which they complete."""
        if name not in self._tables:
            self._tables[name] = self._make(name)
        return self._tables[name]

    def _make(self, name: str) -> pa.Table:
        batches = [add_run_id(name, batch, self.run_id) for batch in self._batches.pop(name, [])]
        coded = pa.Table.from_batches(batches, stored_schema(TABLES[name]))
        plain = coded.cast(arrow_schema(TABLES[name]))
        return self._changes[name](plain) if name in self._changes else plain
