"""What follows from something else comes after its cause, and is no worse."""

from __future__ import annotations

from typing import Any

import pytest

from kwsniff.cli.why_lines import Answer, all_lines, screen_lines
from kwsniff.findings import rule as rules
from kwsniff.findings.evaluate import conclude
from kwsniff.findings.finding import Finding
from kwsniff.findings.rule import load_rules
from tests.findings.conftest import FindingsOf
from tests.findings.measured import recordings

RULES = {each.name: each for each in load_rules()}
SAID = {
    "what": "a thing",
    "fate": "it ended",
    "brokers": "b:1",
    "api": "Fetch",
    "version": 1,
    "meaning": "why",
    "todo": "do so",
    "connections": 3,
    "calls_each": 1.0,
    "clients": "shop",
    "why": "so it is",
    "calls": 2,
    "users": "",
    "apis": "Fetch",
    "how": "instead of answering",
    "status": "unanswered",
    "kept": "",
}


def _row(name: str, subject: str, client: str, moment: int = 0, **more: Any) -> tuple[Any, dict[str, Any]]:
    times = {"first_time": moment, "last_time": moment + 10}
    return RULES[name], {**SAID, **times, "subject": subject, "client": client, "value": 1.0, **more}


def _conclude(*rows: tuple[Any, dict[str, Any]]) -> list[Finding]:
    return conclude(list(rows), 0)


def test_a_consequence_is_no_worse_than_its_cause() -> None:
    """A request that met a connection closed for its silence: the warning is the cause, not the problem."""
    found = _conclude(_row("broker_hangs_up", "cron", "cron"), _row("idle_closed", "cron", "cron"))
    assert [(each.finding, each.severity) for each in found] == [
        ("idle_closed", "warning"),
        ("broker_hangs_up", "warning"),
    ]
    assert found[1].explained_by == "idle_closed"
    assert found[1].cause is found[0]


def test_of_somebody_else_it_is_no_cause() -> None:
    found = _conclude(_row("broker_hangs_up", "cron", "cron"), _row("idle_closed", "till", "till"))
    assert [(each.finding, each.severity) for each in found] == [
        ("broker_hangs_up", "problem"),
        ("idle_closed", "warning"),
    ]


def test_what_harms_nobody_is_no_cause() -> None:
    refused = _row("connection_refused", "b:1", "shop", severity="info")
    (churn, info) = _conclude(_row("connection_churn", "shop", "shop"), refused)
    assert (churn.finding, churn.severity, churn.explained_by) == ("connection_churn", "warning", None)
    assert info.severity == "info"


def test_causes_come_first_however_many_are_behind_each_other() -> None:
    """The last is certain, and takes all the time; it stands last all the same."""
    found = _conclude(
        _row("broker_stalled", "b:1", "shop", broker="b:1", time_ns=100),
        _row("path_dead", "shop", "shop", broker="b:1"),
        _row("connect_slow", "b:1", "shop", broker="b:1", opened=4, longest=2.0),
    )
    assert [each.finding for each in found] == ["connect_slow", "path_dead", "broker_stalled"]
    assert [each.explained_by for each in found] == [None, "connect_slow", "path_dead"]


def _answer(found: list[Finding]) -> Answer:
    basis = {"seconds": 1.0, "calls": 9, "clients": 1, "brokers": 1, "payload_bytes": 10, "servers": []}
    return Answer(basis, found, {"errors_by_client": [], "errors_by_broker": []}, ["nothing"], {}, None)


def test_the_screen_has_consequences_under_their_cause() -> None:
    found = _conclude(
        _row("connection_churn", "cron", "cron"),
        _row("broker_hangs_up", "cron", "cron"),
        _row("not_authorized", "spy", "spy", things="", errors_named="NO"),
        _row("idle_closed", "cron", "cron"),
    )
    lines = screen_lines(_answer(found), 80, 28)
    cause = next(number for number, line in enumerate(lines) if line.startswith("WARNING idle_closed"))
    assert lines[0].startswith("1 problem and 3 warnings in 9 calls")
    below = " ".join(" ".join(lines[cause:]).split())
    assert "Consequences: WARNING broker_hangs_up (cron), WARNING connection_churn (cron)" in below
    assert [line for line in lines if line.startswith(("PROBLEM", "WARNING"))] == [
        next(line for line in lines if line.startswith("PROBLEM not_authorized")),
        lines[cause],
    ]
    whole = [
        line.split()[1] for line in all_lines(_answer(found), 80) if line.startswith(("PROBLEM", "WARNING"))
    ]
    assert whole == ["not_authorized", "idle_closed", "broker_hangs_up", "connection_churn"]


def test_rules_that_name_each_other_as_causes_are_refused() -> None:
    with pytest.raises(ValueError, match="rules name each other as causes: b, c"):
        rules._refuse_circles({"a": (), "b": ("a", "c"), "c": ("b",)})


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("name", "consequence"),
    [("coordinator_killed", "coordinator_missing"), ("offline_partition_java", "offline_partition")],
)
def test_a_broker_that_is_gone_explains_what_it_led(
    name: str, consequence: str, findings_of: FindingsOf
) -> None:
    """By the times: it refused connections before clients asked for a coordinator, or a leader, in vain."""
    (path,) = {each.path for each in recordings() if each.name == name}
    rows = {row["finding"]: row for row in findings_of(path)}
    cause, later = rows["connection_refused"], rows[consequence]
    assert cause["first_time"] < later["first_time"]
    assert (cause["explained_by"], later["explained_by"]) == (None, "connection_refused")
    assert cause["finding_id"] < later["finding_id"]
    assert cause["subject"] in later["text"]


def test_a_refused_creation_of_a_topic_follows_from_nothing() -> None:
    """The topic is unknown since it could not be created, and not the other way around."""
    missing = _row("unknown_topic", "orders", "shop", topic="orders", errors_named="E", seen="")
    words: dict[str, Any] = {"about": "", "asking": "", "message": "", "code": 38, "topic": "orders"}
    rule, refused = _row("persistent_error", "shop", "shop", **words)
    refused |= {"name": "INVALID_REPLICATION_FACTOR"}
    found = _conclude(missing, (rule, refused))
    assert [each.explained_by for each in found] == [None, "unknown_topic"]
    found = _conclude(missing, (rule, {**refused, "may_follow": False}))
    assert [each.explained_by for each in found] == [None, None]
