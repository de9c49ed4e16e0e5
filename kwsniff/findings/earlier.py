"""What the rules before found, as tables for the last one."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from kwsniff.findings.rule import Rule

if TYPE_CHECKING:
    import duckdb

_TEXTS: Final = ("subject", "client", "broker")
_TIMES: Final = ("first_time", "last_time")


def show_earlier(
    database: "duckdb.DuckDBPyConnection", rows: Sequence[tuple[Rule, Mapping[str, Any]]]
) -> None:
    """Makes the tables `earlier_finding` and `earlier_call` of rows that rules gave, times in microseconds.

    A finding of severity info explains no harm: it is left out.
    """
    harms = [row for rule, row in rows if (row.get("severity") or rule.severity) != "info"]
    texts = {name: [_text(row.get(name)) for row in harms] for name in _TEXTS}
    times = {name: [row[name] for row in harms] for name in _TIMES}
    columns = [f"unnest(${name}::varchar[]) as {name}" for name in _TEXTS]
    columns += [f"make_timestamptz(unnest(${name}::bigint[])) as {name}" for name in _TIMES]
    made = f"create or replace temp table earlier_finding as select {', '.join(columns)}"
    database.execute(made, {**texts, **times})
    calls = [each for row in harms for each in row.get("call_ids") or () if each is not None]
    made = "create or replace temp table earlier_call as select unnest($calls::bigint[]) as call_id"
    database.execute(made, {"calls": calls})


def _text(value: Any) -> str | None:
    return None if value is None else str(value)
