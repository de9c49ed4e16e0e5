"""Findings of an analysis: of the files it is about to commit, or of its tables in memory."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kwsniff.findings.prefilter.figures import BATCH_ROWS, Figures
from kwsniff.findings.views import READ, open_tables
from kwsniff.tables.harm import KEYS, fill
from kwsniff.tables.rows import batch_of
from kwsniff.tables.run import add_run_id
from kwsniff.tables.schema import TABLES, arrow_schema, stored_schema
from kwsniff.tables.write import TableWriter

if TYPE_CHECKING:
    from kwsniff.findings.harm import FoundHarm
    from kwsniff.findings.rule import Rule


def write_findings(
    writer: TableWriter, figures: Figures, rows: Counter[str], *, late: bool, memory: int
) -> list[dict[str, Any]]:
    """Writes the tables of findings, the last ones; returns findings as JSON has them.

    `figures`: those of all rows that were written. `rows`: counts those of `finding_calls`. `late`: topics
    have got their names since. `memory`: bytes that asking for them may take.
    """
    if late:
        figures.distrust()
    rules = figures.worth_asking()
    if not rules:
        writer.write("findings", batch_of("findings", []))
        return []
    from kwsniff.findings.evaluate import as_json
    from kwsniff.findings.finding_calls import TABLE
    from kwsniff.findings.finding_rows import find_in_files, rows_of

    files = {name: [path] for name, path in writer.complete(READ).items()}

    def keep(batch: pa.RecordBatch) -> None:
        rows[TABLE] += batch.num_rows
        writer.write(TABLE, batch)

    def judge(harm: "FoundHarm") -> None:
        for table in harm.tables:
            writer.rewrite(table, fill(table, harm), coded=True)

    wanted = keep if TABLE in writer.paths else None
    may = f"{memory // 1_000_000}MB"
    findings = find_in_files(files, figures, may, wanted, judge, rules=rules, one_run=True)
    writer.write("findings", batch_of("findings", rows_of(findings)))
    return [as_json(each) for each in findings]


def rows_as_json(findings: pa.Table) -> list[dict[str, Any]]:
    """Rows of the table of findings as JSON has them."""
    from kwsniff.findings.evaluate import plain_rows

    rows = plain_rows(findings.drop_columns(["run_id"]))
    for row in rows:
        for name in ("first_time", "last_time"):
            row[name] = None if row[name] is None else row[name].isoformat()
    return rows


def find_in_memory(table: Callable[[str], pa.Table], run_id: str) -> dict[str, pa.Table]:
    """The tables `findings` and `finding_calls` of tables in memory, and those that have `harm`, with it."""
    from kwsniff.findings.client_settings import queries_of_settings
    from kwsniff.findings.evaluate import TOTAL, evaluate
    from kwsniff.findings.finding_calls import TABLE, list_calls, queries_for
    from kwsniff.findings.finding_rows import rows_of
    from kwsniff.findings.harm import FoundHarm

    kept = {name: table(name) for name in READ}
    findings, calls, judged = [], [], {name: kept[name] for name in KEYS}
    if rules := _rules_for(kept):
        queries = [TOTAL, *(rule.query for rule in rules), *queries_for(rules), *queries_of_settings(rules)]
        with open_tables(kept, queries) as database:
            findings = evaluate(database, rules=rules)
            calls = [*list_calls(database, findings)]
            judged |= _judge(kept, FoundHarm(database, findings))
    made = {"findings": [batch_of("findings", rows_of(findings))], TABLE: calls}
    return judged | {name: _table(name, batches, run_id) for name, batches in made.items()}


def judge_in_memory(table: Callable[[str], pa.Table]) -> dict[str, pa.Table]:
    """The tables in memory that have `harm`, with it, without the findings: planning all rules takes longer
    than all else of a small capture."""
    from kwsniff.findings.harm import FoundHarm, keep_harm
    from kwsniff.findings.rule import LAST
    from kwsniff.findings.views import ENTRIES, keep_small

    kept = {name: table(name) for name in READ}
    judged = {name: kept[name] for name in KEYS}
    rules = _rules_for(kept)
    # The last rules are asked wherever there may be harm.
    if any(rule.group == LAST for rule in rules):
        readers = [rule.query for rule in rules if "standing_read" in rule.query]
        with open_tables(kept, [f"from {ENTRIES}", *readers]) as database:
            keep_small(database, readers)
            keep_harm(database)
            judged |= _judge(kept, FoundHarm(database, []))
    return judged


def _rules_for(tables: Mapping[str, pa.Table]) -> "Sequence[Rule]":
    figures = Figures()
    for name, rows in tables.items():
        for batch in rows.to_batches(BATCH_ROWS):
            figures.add(name, batch)
    return figures.worth_asking()


def _judge(tables: Mapping[str, pa.Table], harm: "FoundHarm") -> dict[str, pa.Table]:
    return {name: _plain(name, fill(name, harm)(tables[name])) for name in harm.tables}


def _table(name: str, batches: Sequence[pa.RecordBatch], run_id: str) -> pa.Table:
    with_run = [add_run_id(name, batch, run_id) for batch in batches]
    return _plain(name, pa.Table.from_batches(with_run, stored_schema(TABLES[name])))


def _plain(name: str, rows: pa.Table) -> pa.Table:
    """Rows of a table with texts instead of codes."""
    return rows.cast(arrow_schema(TABLES[name]))
