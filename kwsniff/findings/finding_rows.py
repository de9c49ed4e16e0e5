"""Findings of tables, as rows of theirs."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime, timedelta
from os import PathLike
from typing import TYPE_CHECKING

import pyarrow as pa

from kwsniff.findings.client_settings import (
    READ,
    name_settings,
    queries_of_settings,
    read_settings,
    want_settings,
)
from kwsniff.findings.client_settings import TABLE as CLIENTS
from kwsniff.findings.database import lacks_memory
from kwsniff.findings.evaluate import TOTAL, columns_of, conclude, evaluate, not_asked
from kwsniff.findings.finding import Finding
from kwsniff.findings.finding_calls import TABLE, create_tables, list_calls, queries_for
from kwsniff.findings.harm import FoundHarm, note_signs
from kwsniff.findings.prefilter.figures import Figures, figures_of
from kwsniff.findings.prefilter.sqlite_rules import ask_sums, suffice
from kwsniff.findings.rule import LAST, Rule
from kwsniff.findings.views import MEMORY, open_for
from kwsniff.tables.harm import COLUMN
from kwsniff.tables.rows import batch_of

if TYPE_CHECKING:
    import duckdb

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_TOLD = ("twins", "unnamed", "servers", "long_texts")
"""What figures tell of all rows, as `open_for` takes it."""
Keep = Callable[[pa.RecordBatch], None]
Judge = Callable[[FoundHarm], None]
Files = Mapping[str, Sequence[str | PathLike[str]]]


def find_in_files(
    files: Files,
    figures: Figures | None = None,
    memory: str = MEMORY,
    keep: Keep | None = None,
    judge: Judge | None = None,
    *,
    rules: Sequence[Rule] | None = None,
    one_run: bool = False,
) -> list[Finding]:
    """The findings of parquet files, by table; `figures` are theirs, where they are known already;
    `memory` is what DuckDB may take; `keep` takes batches of `finding_calls`; `judge` takes what calls and
    connections suffered, where some did: it comes last, and may replace the files. `rules`: those that
    are worth asking, where that is known; `one_run`: all rows are of one run.

    Their commands speak of CAPTURE and DIR, wherever captures and tables are by now.
    """
    told = figures or figures_of(files)
    return find(told, lambda: nullcontext(files), memory, keep, judge, rules=rules, one_run=one_run)


def find(
    figures: Figures,
    files: Callable[[], AbstractContextManager[Files]],
    memory: str = MEMORY,
    keep: Keep | None = None,
    judge: Judge | None = None,
    *,
    rules: Sequence[Rule] | None = None,
    one_run: bool = False,
) -> list[Finding]:
    """The same, with files that are only got where the figures do not tell all."""
    rules = figures.worth_asking() if rules is None else rules
    if not rules:
        return []
    total = figures.total_ns()
    sums = figures.sums()
    findings = None
    # the last rules ask which calls the others explain; without them none was harmed
    explains = keep is not None or any(rule.group == LAST for rule in rules)
    if total is not None and suffice(sums, rules):
        findings = conclude(ask_sums(sums, rules), total)
        if not findings or keep is None:
            return _with_settings(findings, files)
        queries = [*queries_for(rules), *queries_of_settings(rules)]
    else:
        queries = _queries_of(rules, timed=total is not None, explains=explains)
    missing = [TABLE, COLUMN]
    told = {name: bool(getattr(figures, name)) for name in _TOLD} | {"one_run": one_run}
    try:
        with files() as found, open_for(queries, found, **told, sums=sums, memory=memory) as database:
            note_signs(database, **figures.signs())
            if findings is None:
                findings = evaluate(database, rules=rules, total=total)
            else:
                create_tables(database)
                name_settings(findings, read_settings(database, findings))
            if keep is not None:
                _list(database, findings, keep)
            missing.remove(TABLE)
            if judge is not None and explains and (harm := FoundHarm(database, findings)).tables:
                judge(harm)
    except Exception as error:
        if not lacks_memory(error):
            raise
        if findings is None:
            return conclude(not_asked([rule.name for rule in rules]), total or 0)
        (lack,) = conclude(not_asked(missing), 0)
        lack.finding_id = len(findings) + 1
        findings.append(lack)
    return findings


def _queries_of(rules: Sequence[Rule], *, timed: bool, explains: bool) -> list[str]:
    """`timed`: it is known what all calls took; `explains`: calls that rules explain are asked for."""
    asked = [rule.query for rule in rules] + ([] if timed else [TOTAL]) + queries_of_settings(rules)
    return asked + (queries_for(rules) if explains else [])


def _with_settings(
    findings: list[Finding], files: Callable[[], AbstractContextManager[Files]]
) -> list[Finding]:
    """These findings, which no database was asked for."""
    if want_settings(findings):
        with files() as found:
            name_settings(findings, _settings_in(found.get(CLIENTS, ())))
    return findings


def _settings_in(files: Sequence[str | PathLike[str]]) -> list[Mapping[str, object]]:
    """The rows that `read_settings` gives, of parquet files."""
    import pyarrow.parquet as pq

    rows = []
    for file in files:
        told = pq.ParquetFile(file)
        there = [name for name in READ if name in told.schema_arrow.names]
        rows += [dict.fromkeys(READ) | row for row in told.read(columns=there).to_pylist()]
    return rows


def _list(database: "duckdb.DuckDBPyConnection", findings: Sequence[Finding], keep: Keep) -> None:
    for batch in list_calls(database, findings):
        keep(batch)


def findings_batch(findings: Sequence[Finding]) -> pa.RecordBatch:
    """Findings as a batch in their table's coded schema."""
    return batch_of("findings", rows_of(findings))


def rows_of(findings: Sequence[Finding]) -> list[dict[str, object]]:
    """Rows by column name, times in nanoseconds."""
    rows = []
    for finding in findings:
        row = columns_of(finding)
        for name in ("first_time", "last_time"):
            time = row[name]
            row[name] = None if time is None else (time - _EPOCH) // timedelta(microseconds=1) * 1000
        rows.append(row)
    return rows
