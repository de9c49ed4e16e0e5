"""Findings of tables, as rows of theirs."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime, timedelta
from os import PathLike

import pyarrow as pa

from kwsniff.findings.evaluate import (
    TOTAL,
    Finding,
    columns_of,
    conclude,
    evaluate,
    lacks_memory,
    not_asked,
)
from kwsniff.findings.prefilter.figures import Figures, figures_of
from kwsniff.findings.prefilter.sqlite_rules import ask_sums, suffice
from kwsniff.findings.views import MEMORY, open_for
from kwsniff.tables.rows import batch_of

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Files = Mapping[str, Sequence[str | PathLike[str]]]


def find_in_files(files: Files, figures: Figures | None = None, memory: str = MEMORY) -> list[Finding]:
    """The findings of parquet files, by table; `figures` are theirs, where they are known already;
    `memory` is what DuckDB may take.

    Their commands speak of CAPTURE and DIR, wherever captures and tables are by now.
    """
    return find(figures or figures_of(files), lambda: nullcontext(files), memory)


def find(
    figures: Figures, files: Callable[[], AbstractContextManager[Files]], memory: str = MEMORY
) -> list[Finding]:
    """The same, with files that are only got where the figures do not tell all."""
    rules = figures.worth_asking()
    if not rules:
        return []
    total = figures.total_ns()
    sums = figures.sums()
    if total is not None and suffice(sums, rules):
        return conclude(ask_sums(sums, rules), total)
    queries = [rule.query for rule in rules] + ([TOTAL] if total is None else [])
    told = {"twins": figures.twins, "unnamed": figures.unnamed, "long_texts": figures.long_texts}
    try:
        with files() as found, open_for(queries, found, **told, sums=sums, memory=memory) as database:
            return evaluate(database, rules=rules, total=total)
    except Exception as error:
        if not lacks_memory(error):
            raise
        return conclude(not_asked([rule.name for rule in rules]), total or 0)


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
