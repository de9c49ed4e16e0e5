"""The order of findings, and what becomes of a row: rules made up here, values by hand."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from kwsniff.findings.evaluate import conclude
from kwsniff.findings.finding import Finding
from kwsniff.findings.rule import MOST_PROOFS, Rule

PLAIN = Rule(
    name="plain",
    severity="warning",
    confidence="certain",
    blames="client",
    subject_kind="client",
    unit="calls",
    when=(),
    does="",
    matters="",
    silent="",
    mistaken_for={},
    timeline="",
    settings=(),
    query="",
    text="{subject} made {calls} call(s)",
    advice="none",
    command="kwsniff show {capture}",
)


def found(*rows: tuple[Rule, dict[str, Any]], total: int = 0) -> list[Finding]:
    empty = {"first_time": None, "last_time": None, "value": 1, "expected": None, "calls": 0}
    return conclude([(rule, {**empty, "subject": "s", **row}) for rule, row in rows], total)


def harmed(rows: list[tuple[Rule, dict[str, Any]]], explained: dict[int, int]) -> list[str]:
    """Subjects, in the order that these numbers of harmed calls, by place, give them."""
    empty = {"first_time": None, "last_time": None, "value": 1, "expected": None, "calls": 0}
    given = [(rule, {**empty, "subject": "s", **row}) for rule, row in rows]
    return [each.subject for each in conclude(given, 0, explained)]


def subjects(*rows: tuple[Rule, dict[str, Any]], total: int = 0) -> list[str]:
    return [each.subject for each in found(*rows, total=total)]


@pytest.mark.parametrize(
    "column",
    [
        {"severity": ["problem", "warning", "info"]},
        {"confidence": ["certain", "likely", "possible"]},
        {"time_ns": [900, 500, 10, None]},
        {"calls": [90, 9, 8, 0]},
        {"subject": ["a", "b", "c"]},
        {"first_time": [None, 5, 6, 70]},
    ],
    ids=lambda column: next(iter(column)),
)
def test_each_column_decides_where_those_before_it_are_equal(column: dict[str, list[Any]]) -> None:
    """Worst, surest, most time, most calls first; in whatever order rules gave them."""
    ((name, values),) = column.items()
    rows = [(PLAIN, {"subject": "s", "value": place, name: value}) for place, value in enumerate(values)]
    for order in (rows, rows[::-1]):
        assert [each.value for each in found(*order, total=1000)] == [*range(len(values))]


def test_columns_decide_one_after_the_other() -> None:
    """Each row is better in what comes later, and worse in what comes first."""
    rows = [
        {"severity": "problem", "confidence": "possible", "time_ns": 0, "calls": 0},
        {"severity": "warning", "confidence": "certain", "time_ns": 1, "calls": 0},
        {"severity": "warning", "confidence": "likely", "time_ns": 900, "calls": 1},
        {"severity": "warning", "confidence": "likely", "time_ns": 800, "calls": 99},
        {"severity": "info", "confidence": "certain", "time_ns": 1000, "calls": 99},
    ]
    given = [(PLAIN, {**row, "subject": str(place)}) for place, row in enumerate(rows)]
    assert subjects(*given[::-1], total=1000) == ["0", "1", "2", "3", "4"]


def test_severity_leads_then_harm_then_confidence() -> None:
    rows: list[tuple[Rule, dict[str, Any]]] = [
        (PLAIN, {"subject": "waste of many", "calls": 900}),
        (PLAIN, {"subject": "little harm", "confidence": "certain"}),
        (PLAIN, {"subject": "more harm", "confidence": "possible"}),
        (PLAIN, {"subject": "a problem", "severity": "problem", "confidence": "possible"}),
    ]
    order = ["a problem", "more harm", "little harm", "waste of many"]
    assert harmed(rows, {1: 3, 2: 40, 3: 1}) == order
    assert harmed(rows, {}) == ["a problem", "waste of many", "little harm", "more harm"]


def test_limits_of_the_capture_come_after_what_harms_somebody() -> None:
    rows: list[tuple[Rule, dict[str, Any]]] = [
        (PLAIN, {"subject": "the capture", "blames": "capture", "calls": 900}),
        (PLAIN, {"subject": "slow calls", "confidence": "possible"}),
        (PLAIN, {"subject": "a note", "severity": "info"}),
    ]
    for order in (rows, rows[::-1]):
        assert harmed(order, {order.index(rows[0]): 40}) == ["slow calls", "the capture", "a note"]


CAUSE = replace(PLAIN, name="the_cause")
CONSEQUENCE = replace(PLAIN, name="a_consequence", severity="problem", explained_by=("the_cause",))


@pytest.mark.parametrize(
    ("cause", "consequence", "is_explained"),
    [
        ({"client": "a"}, {"client": "a"}, True),
        ({"client": "a"}, {"client": "b"}, False),
        ({"client": "a"}, {"broker": "x"}, True),
        ({"client": "a", "broker": "x"}, {"client": "b", "broker": "x"}, True),
        ({"client": "a", "broker": "x"}, {"client": "b", "broker": "y"}, False),
        ({"severity": "info"}, {}, False),
        ({"first_time": 10}, {"first_time": 1, "last_time": 10}, True),
        ({"first_time": 11}, {"first_time": 1, "last_time": 10}, False),
    ],
)
def test_a_cause_concerns_the_same_and_did_not_begin_after_its_consequence(
    cause: dict[str, Any], consequence: dict[str, Any], is_explained: bool
) -> None:
    given = found((CONSEQUENCE, {"subject": "later", **consequence}), (CAUSE, {"subject": "first", **cause}))
    by_name = {each.finding: each for each in given}
    assert (by_name["a_consequence"].explained_by == "the_cause") == is_explained
    if is_explained:
        assert [each.finding for each in given] == ["the_cause", "a_consequence"]
        assert by_name["a_consequence"].severity == "warning"
        assert by_name["a_consequence"].cause is by_name["the_cause"]
    else:
        assert by_name["a_consequence"].severity == "problem"


def test_a_consequence_that_is_less_bad_stays_so_and_of_several_causes_the_worst_counts() -> None:
    mild = replace(CONSEQUENCE, severity="info")
    given = found((mild, {}), (CAUSE, {"severity": "problem", "subject": "a"}), (CAUSE, {"subject": "b"}))
    assert [(each.finding, each.severity) for each in given] == [
        ("the_cause", "problem"),
        ("the_cause", "warning"),
        ("a_consequence", "info"),
    ]
    assert given[2].cause is given[0]
    bad = found(
        (CONSEQUENCE, {}), (CAUSE, {"severity": "problem", "subject": "a"}), (CAUSE, {"subject": "b"})
    )
    assert [each.severity for each in bad if each.finding == "a_consequence"] == ["problem"]


def test_a_cause_weighs_as_much_as_what_follows_from_it() -> None:
    """The harm of a consequence is that of its cause, which may list nothing itself."""
    rows: list[tuple[Rule, dict[str, Any]]] = [
        (PLAIN, {"subject": "another", "client": "b", "severity": "problem"}),
        (CONSEQUENCE, {"subject": "later", "client": "a"}),
        (CAUSE, {"subject": "first", "client": "a", "severity": "problem"}),
    ]
    assert harmed(rows, {0: 10, 1: 30}) == ["first", "another", "later"]
    assert harmed(rows, {0: 40, 1: 30}) == ["another", "first", "later"]


def test_a_row_overrules_its_rule() -> None:
    own = {"severity": "info", "confidence": "likely", "blames": "network", "subject_kind": "broker"}
    (plain,), (changed,) = found((PLAIN, {})), found((PLAIN, own))
    for name, value in own.items():
        assert getattr(changed, name) == value
        assert getattr(plain, name) == getattr(PLAIN, name)


def test_times_are_microseconds_since_1970() -> None:
    (each,) = found((PLAIN, {"first_time": 1_700_000_000_000_001, "last_time": None}))
    assert each.first_time == datetime(2023, 11, 14, 22, 13, 20, 1, UTC)
    assert each.last_time is None


@pytest.mark.parametrize(
    ("spent", "total", "share"), [(250, 1000, 0.25), (1200, 1000, 1.0), (None, 1000, None), (5, 0, None)]
)
def test_the_share_of_time_is_of_all_calls_and_one_at_most(
    spent: int | None, total: int, share: float | None
) -> None:
    (each,) = found((PLAIN, {"time_ns": spent}), total=total)
    assert each.time_share == share


@pytest.mark.parametrize(
    ("calls", "text"),
    [(0, "s made 0 calls"), (1, "s made 1 call"), (2, "s made 2 calls"), (11, "s made 11 calls")],
)
def test_one_call_is_singular(calls: int, text: str) -> None:
    (each,) = found((PLAIN, {"calls": calls}))
    assert each.text == text


def test_proofs_are_named_once_in_their_order_up_to_the_bound() -> None:
    (each,) = found((PLAIN, {"call_ids": [7, 0, 7, None, 3], "frames": [*range(MOST_PROOFS + 5)]}))
    assert each.call_ids == [7, 0, 3]
    assert each.frames == [*range(20)]
