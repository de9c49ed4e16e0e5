"""Findings as rows of their table."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kwsniff.findings.evaluate import Finding, evaluate
from kwsniff.tables.rows import batch_of

if TYPE_CHECKING:
    import duckdb

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def findings_batch(database: "duckdb.DuckDBPyConnection") -> pa.RecordBatch:
    """The findings of a database of tables as a batch in their table's coded schema.

    Their commands speak of CAPTURE and DIR, wherever captures and tables are by now.
    """
    return batch_of("findings", rows_of(evaluate(database)))


def rows_of(findings: Sequence[Finding]) -> list[dict[str, Any]]:
    """Rows by column name, times in nanoseconds."""
    rows = []
    for finding in findings:
        row = asdict(finding)
        del row["parties"]
        for name in ("first_time", "last_time"):
            time = row[name]
            row[name] = None if time is None else (time - _EPOCH) // timedelta(microseconds=1) * 1000
        rows.append(row)
    return rows
