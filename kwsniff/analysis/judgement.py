"""Findings of an analysis: of the files it is about to commit, or of its tables in memory."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from kwsniff.findings.evaluate import as_json, evaluate, plain_rows
from kwsniff.findings.table import rows_of
from kwsniff.findings.tables import READ, open_files, open_tables
from kwsniff.tables.rows import batch_of
from kwsniff.tables.run import stamped
from kwsniff.tables.schema import TABLES, arrow_schema
from kwsniff.tables.write import TableWriter


def write_findings(writer: TableWriter) -> list[dict[str, Any]]:
    """Writes the table of findings, the last one; returns it as JSON has it."""
    with open_files({name: [path] for name, path in writer.complete(READ).items()}) as database:
        findings = evaluate(database)
    writer.write("findings", batch_of("findings", rows_of(findings)))
    return [as_json(each) for each in findings]


def listed(findings: pa.Table) -> list[dict[str, Any]]:
    """Rows of the table of findings as JSON has them."""
    rows = plain_rows(findings.drop_columns(["run_id"]))
    for row in rows:
        for name in ("first_time", "last_time"):
            row[name] = None if row[name] is None else row[name].isoformat()
    return rows


def find_in_memory(table: Callable[[str], pa.Table], run_id: str) -> pa.Table:
    """The table of findings of tables in memory."""
    with open_tables({name: table(name) for name in READ}) as database:
        rows = rows_of(evaluate(database))
    batch = stamped("findings", batch_of("findings", rows), run_id)
    return pa.Table.from_batches([batch]).cast(arrow_schema(TABLES["findings"]))
