"""Tables of rows as tests write them down, and what a rule finds in them."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from kwsniff.findings.client_settings import queries_of_settings
from kwsniff.findings.evaluate import evaluate
from kwsniff.findings.finding import Finding
from kwsniff.findings.prefilter.figures import Figures
from kwsniff.findings.rule import load_rules
from kwsniff.findings.views import open_tables
from kwsniff.tables.schema import TABLES, arrow_schema

Rows = Sequence[Mapping[str, Any]]


def table_of(name: str, rows: Rows) -> pa.Table:
    """Columns that a row does not say are null."""
    schema = arrow_schema(TABLES[name])
    columns = [pa.array([row.get(field.name) for row in rows]).cast(field.type) for field in schema]
    return pa.Table.from_arrays(columns, schema=schema)


def find(name: str, rows: Mapping[str, Rows]) -> list[Finding]:
    """What the rule of that name finds in these tables of one run. The figures ask for it where it does."""
    (rule,) = (rule for rule in load_rules() if rule.name == name)
    tables = {
        table: table_of(table, [{"run_id": "run", **row} for row in some]) for table, some in rows.items()
    }
    with open_tables(tables, [rule.query, *queries_of_settings([rule])]) as database:
        found = evaluate(database, rules=[rule], total=0)
    assert not found or name in find_worth_asking(rows)
    return found


def find_worth_asking(rows: Mapping[str, Rows]) -> set[str]:
    """The rules that the figures of these tables ask for."""
    figures = Figures()
    for table, some in rows.items():
        for batch in table_of(table, some).to_batches():
            figures.add(table, batch)
    return {rule.name for rule in figures.worth_asking()}


def lags(groups: int) -> list[dict[str, Any]]:
    """Commits of two partitions of each group, with times that may be equal, in no order."""
    rng, rows = random.Random(1), []
    for group in range(groups):
        for partition in range(2):
            lag, moment = rng.randint(0, 80), 0
            for _ in range(rng.randint(1, 12)):
                moment += rng.choice((0, 100, 400, 1000))
                lag = max(lag + rng.choice((-40, 0, 5, 30, 60)), 0)
                rows.append(
                    {"group_id": f"group {group}", "partition": partition, "lag": lag, "time": moment * 1000}
                )
    rng.shuffle(rows)
    for number, row in enumerate(rows):
        row |= {"run_id": "run", "call_id": number, "topic": "orders"}
        row["lag"] = row["lag"] if rng.random() < 0.9 else None
    return rows
