"""Tables of rows as tests write them down, and what a rule finds in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from kwsniff.findings.evaluate import Finding, evaluate
from kwsniff.findings.rule import load_rules
from kwsniff.findings.tables import open_tables
from kwsniff.tables.schema import TABLES, arrow_schema

Rows = Sequence[Mapping[str, Any]]


def table_of(name: str, rows: Rows) -> pa.Table:
    """Columns that a row does not say are null."""
    schema = arrow_schema(TABLES[name])
    columns = [pa.array([row.get(field.name) for row in rows]).cast(field.type) for field in schema]
    return pa.Table.from_arrays(columns, schema=schema)


def find(name: str, rows: Mapping[str, Rows]) -> list[Finding]:
    """What the rule of that name finds in these tables of one run."""
    (rule,) = (rule for rule in load_rules() if rule.name == name)
    tables = {
        table: table_of(table, [{"run_id": "run", **row} for row in some]) for table, some in rows.items()
    }
    with open_tables(tables, [rule.query]) as database:
        return evaluate(database, rules=[rule], total=0)
