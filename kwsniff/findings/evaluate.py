"""Rules over tables -> findings, worst first."""

import re
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from kwsniff.findings.client_settings import name_settings, read_settings
from kwsniff.findings.command import write_command
from kwsniff.findings.database import lacks_memory
from kwsniff.findings.explained_by import count_causes, explain_consequences
from kwsniff.findings.finding import Finding
from kwsniff.findings.finding_calls import count_harmed, create_tables, explain, queries_for
from kwsniff.findings.harm import is_harmed, keep_harm
from kwsniff.findings.rule import LAST, MOST_PROOFS, SEVERITIES, Rule, load_rules
from kwsniff.findings.views import add_views, keep_small
from kwsniff.texts import fill

if TYPE_CHECKING:
    import duckdb

TOTAL = "select coalesce(sum(total_ns), 0)::bigint as total from timing"
NOT_ASKED: Final = "findings_incomplete"
MOST_OF_ONE_RULE: Final = 100
"""Rows; what comes after is left out."""
_PARTIES = ("client", "broker", "topic", "group_id")
_TIMES = ("first_time", "last_time")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_COUNTED = re.compile(r"(\{\w+(?::[^{}]*)?\})((?: [A-Za-z]+)+)\(s\)")
_CONFIDENCES = {"certain": 0, "likely": 1, "possible": 2}


_NO_COLUMNS: Final = (
    "parties",
    "may_follow",
    "cause",
    "rule",
    "harmed",
    "number",
    "all_call_ids",
    "all_frames",
)
_COLUMNS: Final = tuple(each.name for each in fields(Finding) if each.name not in _NO_COLUMNS)


def evaluate(
    database: "duckdb.DuckDBPyConnection",
    *,
    capture: str = "CAPTURE",
    tables: str = "DIR",
    rules: Sequence[Rule] | None = None,
    total: int | None = None,
) -> list[Finding]:
    """All findings of the tables that `database` shows (views.py), worst first, causes before consequences.

    `capture` and `tables` are what the commands in the findings name, as a shell takes them: a capture, a
    folder of tables. `rules`: those that are worth asking (figures.py); all of them find the same, later.
    `total`: nanoseconds that all calls took, where that is known already.
    """
    chosen = load_rules() if rules is None else rules
    rows: list[tuple[Rule, Mapping[str, Any]]] = []
    unasked = []
    harmed: Mapping[int, int] = {}
    create_tables(database)
    try:
        keep_small(database, [rule.query for rule in chosen])
    except Exception as error:
        # They stay views then, and each rule has what memory there is.
        if not lacks_memory(error):
            raise
    for rule in chosen:
        try:
            if rule.group == LAST:
                keep_harm(database)
                if not is_harmed(database):
                    continue
                explain(database, _findings(rows, 0))
                harmed = count_harmed(database)
            rows += [(rule, row) for row in _rows(database, rule)]
        except Exception as error:
            if not lacks_memory(error):
                raise
            unasked.append(rule.name)
    if total is None and any(row.get("time_ns") is not None for _, row in rows):
        total = _total_time(database)
    found = conclude([*rows, *not_asked(unasked)], total or 0, harmed, capture=capture, tables=tables)
    try:
        name_settings(found, read_settings(database, found))
    except Exception as error:
        if not lacks_memory(error):
            raise
    return found


def prepare_views(
    database: "duckdb.DuckDBPyConnection", rules: Sequence[Rule], queries: Sequence[str] = ()
) -> None:
    """Makes the shared views that findings of these rules, their account and `queries` need, where
    `open_folder` made none."""
    add_views(database, [*(rule.query for rule in rules), *queries_for(rules), TOTAL, *queries])


def not_asked(names: Sequence[str]) -> list[tuple[Rule, Mapping[str, Any]]]:
    """What there is to say, as `conclude` takes it, where rules of these names could not be asked."""
    if not names:
        return []
    rule = next(each for each in load_rules() if each.name == NOT_ASKED)
    row = {**dict.fromkeys(_TIMES), "subject": "findings", "value": len(names), "expected": 0, "calls": 0}
    return [(rule, {**row, "names": ", ".join(names)})]


def conclude(
    rows: Sequence[tuple[Rule, Mapping[str, Any]]],
    total: int,
    harmed: Mapping[int, int] | None = None,
    *,
    capture: str = "CAPTURE",
    tables: str = "DIR",
) -> list[Finding]:
    """The findings of rows that rules gave, times in microseconds since 1970; see `evaluate`. `harmed`: place
    of a row -> harmed calls and connections that it explains."""
    findings = _findings(rows, total, capture=capture, tables=tables)
    for finding in findings:
        finding.harmed = (harmed or {}).get(finding.number, 0)
    explain_consequences(findings, {rule.name: rule for rule, _ in rows})
    findings.sort(key=_weight)
    for number, finding in enumerate(findings, 1):
        finding.finding_id = number
    return findings


def _findings(rows: Sequence[tuple[Rule, Mapping[str, Any]]], total: int, **places: str) -> list[Finding]:
    known = {"capture": "CAPTURE", "tables": "DIR", **places}
    findings = [_finding(rule, {**known, **row, **_moments(row)}, total) for rule, row in rows]
    for number, finding in enumerate(findings):
        finding.number = number
    return findings


def _moments(row: Mapping[str, Any]) -> dict[str, datetime | None]:
    micros = {name: row[name] for name in _TIMES}
    return {name: None if at is None else _EPOCH + timedelta(microseconds=at) for name, at in micros.items()}


def _rows(database: "duckdb.DuckDBPyConnection", rule: Rule) -> list[dict[str, Any]]:
    wanted = {name: value for name, value in rule.floors.items() if re.search(rf"\${name}\b", rule.query)}
    times = ", ".join(f"epoch_us({name}) as {name}" for name in _TIMES)
    # Of equal ones the same are left out each time.
    order = "value desc nulls last, first_time nulls last, subject"
    asked = f"select * replace ({times}) from ({rule.query}) order by {order} limit {MOST_OF_ONE_RULE}"  # noqa: S608
    # The bare connection has fetchall alone, which would want pytz for times: these are numbers.
    found = database.execute(asked, wanted)
    names = [column[0] for column in found.description or ()]
    return [dict(zip(names, values, strict=True)) for values in found.fetchall()]


def fetch(
    database: "duckdb.DuckDBPyConnection", query: str, values: Mapping[str, float] | None = None
) -> list[dict[str, Any]]:
    """The rows of a query, column name -> value."""
    return plain_rows(database.sql(query, params=values or None).to_arrow_table())


def plain_rows(table: pa.Table) -> list[dict[str, Any]]:
    """Rows of a table as Python values, times in UTC."""
    # Neither fetchall nor to_pylist make the times: the one wants pytz, the other loads pandas.
    times = [field.name for field in table.schema if pa.types.is_timestamp(field.type)]
    for name in times:
        micros = table[name].cast(pa.timestamp("us", tz="UTC")).cast(pa.int64())
        table = table.set_column(table.schema.get_field_index(name), name, micros)
    rows: list[dict[str, Any]] = table.to_pylist()
    for row in rows:
        for name in times:
            row[name] = None if row[name] is None else _EPOCH + timedelta(microseconds=row[name])
    return rows


def _total_time(database: "duckdb.DuckDBPyConnection") -> int:
    """Nanoseconds that all calls took."""
    (total,) = database.execute(TOTAL).fetchall()[0]
    return int(total)


def _finding(rule: Rule, row: Mapping[str, Any], total: int) -> Finding:
    said = {**rule.floors, **row}
    proofs = _proofs(row.get("call_ids"))
    said["ids"] = ", ".join(map(str, proofs))
    spent = row.get("time_ns")
    return Finding(
        finding=rule.name,
        severity=row.get("severity") or rule.severity,
        confidence=row.get("confidence") or rule.confidence,
        blames=row.get("blames") or rule.blames,
        subject_kind=row.get("subject_kind") or rule.subject_kind,
        subject=str(row["subject"]),
        first_time=_utc(row["first_time"]),
        last_time=_utc(row["last_time"]),
        value=_number(row.get("value")),
        expected=_number(row.get("expected")),
        unit=rule.unit,
        calls=int(row.get("calls") or 0),
        time_share=None if spent is None or not total else min(float(spent) / total, 1.0),
        call_ids=proofs,
        frames=_proofs(row.get("frames")),
        explained_by=None,
        text=_words(rule.text, said),
        advice=_words(rule.advice, said),
        command=write_command(rule.command, said),
        parties={name: str(row[name]) for name in _PARTIES if row.get(name) is not None},
        may_follow=row.get("may_follow", True),
        rule=rule,
        all_call_ids=_numbers(row.get("call_ids")),
        all_frames=_numbers(row.get("frames")),
    )


def _numbers(numbers: Sequence[int | None] | None) -> "array[int]":
    return array("q", dict.fromkeys(each for each in numbers or () if each is not None))


def _proofs(numbers: Sequence[int | None] | None) -> list[int]:
    return [int(each) for each in dict.fromkeys(numbers or ()) if each is not None][:MOST_PROOFS]


def _number(value: Any) -> float | None:
    return None if value is None else float(value)


def _utc(time: datetime | None) -> datetime | None:
    return time if time is None or time.tzinfo else time.replace(tzinfo=UTC)


def _words(template: str, said: Mapping[str, Any]) -> str:
    """The template's own nouns agree with their numbers: {value:.0f} call(s)."""

    def agree(found: re.Match[str]) -> str:
        number = fill(found[1], said)
        return f"{number}{found[2]}{'' if number == '1' else 's'}"

    return " ".join(fill(_COUNTED.sub(agree, template), said).split())


def _weight(finding: Finding) -> tuple[Any, ...]:
    # Severity leads: a group that stalls may be few calls, and waste may be thousands.
    return (
        SEVERITIES.index(finding.severity),
        count_causes(finding),
        # Limits of the capture harm no call: they come after what does.
        finding.blames == "capture",
        -finding.harmed,
        _CONFIDENCES[finding.confidence],
        -(finding.time_share or 0.0),
        -finding.calls,
        finding.finding,
        finding.subject,
        "" if finding.first_time is None else finding.first_time.isoformat(),
        finding.text,
    )


def columns_of(finding: Finding) -> dict[str, Any]:
    """A finding by column of its table. Lists are its own, not copies."""
    return {name: getattr(finding, name) for name in _COLUMNS}


def as_json(finding: Finding) -> dict[str, Any]:
    """The columns of a finding for JSON; times as ISO 8601 in UTC."""
    columns = columns_of(finding)
    for name in _TIMES:
        time = columns[name]
        columns[name] = None if time is None else time.astimezone(UTC).isoformat()
    return columns
