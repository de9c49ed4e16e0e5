"""A client's values of the settings that a finding's advice names, with the library's defaults.

The table `clients` has them. A value that differs between connections or addresses is left out.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from kwsniff.findings.finding import Finding
from kwsniff.findings.rule import Rule

if TYPE_CHECKING:
    import duckdb

COLUMNS: Final = {
    "auto.commit.interval.ms": "commit_interval_ms",
    "client.rack": "rack_id",
    "compression.type": "compression",
    "fetch.max.bytes": "fetch_max_bytes",
    "fetch.max.wait.ms": "fetch_max_wait_ms",
    "fetch.min.bytes": "fetch_min_bytes",
    "heartbeat.interval.ms": "heartbeat_interval_ms",
    "linger.ms": "linger_ms",
    "max.poll.interval.ms": "rebalance_timeout_ms",
    "metadata.max.age.ms": "metadata_max_age_ms",
    "partition.assignment.strategy": "assignors",
    "request.timeout.ms": "request_timeout_ms",
    "session.timeout.ms": "session_timeout_ms",
    "transaction.timeout.ms": "transaction_timeout_ms",
}
"""Kafka's name of a setting -> the column of `clients` with its value."""
TABLE: Final = "clients"
_NAMED: Final = re.compile(r"(?<![\w.])(" + "|".join(map(re.escape, sorted(COLUMNS))) + r")(?![\w.]*\w)")
_WHO: Final = ("client_id", "address", "software", "software_version", "several", "defaults")
READ: Final = (*_WHO, *dict.fromkeys(COLUMNS.values()))
QUERY: Final = f"select {', '.join(READ)} from {TABLE}"  # noqa: S608 - names of columns
_MOST_TEXT: Final = 60
"""Characters of what a client says of itself, and of what it has set."""
Row = Mapping[str, Any]


def queries_of_settings(rules: Iterable[Rule]) -> list[str]:
    """The query that `read_settings` asks for findings of these rules, if it asks one."""
    return [QUERY] if any(map(_may_name, rules)) else []


def want_settings(findings: Iterable[Finding]) -> bool:
    """Whether a finding names a setting, and a client that may have set it."""
    return any(_client_of(each) and _NAMED.search(each.advice) for each in findings)


def read_settings(database: "duckdb.DuckDBPyConnection", findings: Iterable[Finding]) -> list[Row]:
    """The rows of clients that `name_settings` looks at."""
    if not want_settings(findings):
        return []
    return [dict(zip(READ, row, strict=True)) for row in database.execute(QUERY).fetchall()]


def name_settings(findings: Iterable[Finding], clients: Sequence[Row]) -> None:
    """Adds to the advice of each finding what its client has set now, as far as `clients` say."""
    for finding in findings:
        name = _client_of(finding)
        rows = [row for row in clients if name and name in (row["client_id"], row["address"])]
        settings = [
            said
            for setting in dict.fromkeys(_NAMED.findall(finding.advice))
            if (said := _tell(setting, rows)) is not None
        ]
        if settings:
            finding.advice += f" {name}{_library(rows)} has {', '.join(settings)}."


def _may_name(rule: Rule) -> bool:
    """Whether advice of the rule may name a setting, its own or that of an error's cause."""
    return "error_cause" in rule.query or _NAMED.search(rule.advice + rule.query) is not None


def _client_of(finding: Finding) -> str | None:
    if finding.rule is None or not _may_name(finding.rule):
        return None
    return finding.parties.get("client") or (finding.subject if finding.subject_kind == "client" else None)


def _library(rows: Sequence[Row]) -> str:
    names = {" ".join(filter(None, (row["software"], row["software_version"]))) for row in rows}
    (name, *others) = names
    return f" ({name[:_MOST_TEXT]})" if name and not others else ""


def _tell(setting: str, rows: Sequence[Row]) -> str | None:
    """`linger.ms 0 (default 5)`; None where it is not known, or there are several values."""
    column = COLUMNS[setting]
    if any(each.partition(":")[0] == column for row in rows for each in row["several"] or ()):
        return None
    values = {_text(row[column]) for row in rows if row[column] is not None}
    if len(values) != 1:
        return None
    defaults = {
        default
        for row in rows
        for name, _, default in (each.partition("=") for each in row["defaults"] or ())
        if name == column
    }
    text = f"{setting} {values.pop()[:_MOST_TEXT]}"
    return f"{text} (default {defaults.pop()})" if len(defaults) == 1 else text


def _text(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
