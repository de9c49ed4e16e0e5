"""``kwsniff explain NAME`` for kwsniff's own names: findings, tables, columns, words, limits."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kwsniff.cli import main
from kwsniff.cli.explain_lines import WIDTH
from kwsniff.cli.explain_names import KINDS, LISTS, names_of_kind
from kwsniff.core.declared import ENUMS
from kwsniff.findings.rule import load_rules
from kwsniff.layout.catalog import load_catalog
from kwsniff.limits import Limits
from kwsniff.tables.schema import TABLES


def _said(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main.run(["explain", *words]) == 0
    return capsys.readouterr().out


def _matches(capsys: pytest.CaptureFixture[str], *words: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(_said(capsys, *words, "--json"))["matches"]
    return found


def test_a_finding_is_explained_in_fixed_parts(capsys: pytest.CaptureFixture[str]) -> None:
    text = _said(capsys, "broker_stalled")
    assert text.startswith("finding broker_stalled: problem, certain, owner: broker\n")
    labels = (
        "Fires when", "Why it matters:", "Exceptions:", "May be mistaken for:", "Timeline:",
        "Settings:", "What to do:", "May follow from:",
    )  # fmt: skip
    places = [text.index(label) for label in labels]
    assert places == sorted(places)
    (match,) = _matches(capsys, "broker-stalled")
    assert match["kind"] == "finding"
    assert "path_dead" in match["mistaken_for"]
    assert "request.timeout.ms" in match["settings"]
    assert "{" not in match["does"]


def test_a_name_of_several_kinds_shows_each(capsys: pytest.CaptureFixture[str]) -> None:
    assert {each["kind"] for each in _matches(capsys, "connections")} >= {"table", "limit"}
    kinds = [each["kind"] for each in _matches(capsys, "segment_lost")]
    assert kinds == ["anomaly", "reason"]
    text = _said(capsys, "connections")
    assert text.index("table connections") < text.index("limit connections")
    assert [each["kind"] for each in _matches(capsys, "6")] == ["api", "error"]


def test_a_kind_before_a_name_chooses_among_them(capsys: pytest.CaptureFixture[str]) -> None:
    (match,) = _matches(capsys, "limit", "connections")
    assert (match["default"], match["least"]) == (50_000, 1)
    (match,) = _matches(capsys, "anomaly", "segment_lost")
    assert match["list"] == "anomaly"


def test_a_column_says_where_it_is_and_what_its_words_mean(capsys: pytest.CaptureFixture[str]) -> None:
    (match,) = _matches(capsys, "column", "status")
    assert (match["tables"], match["type"]) == (["api_calls"], "string")
    text = _said(capsys, "status")
    assert all(word in text for word in ENUMS["status"] if word)
    topics = _matches(capsys, "column", "topic")
    assert {table for each in topics for table in each["tables"]} >= {"partitions", "commits", "leaders"}


def test_an_error_is_found_without_its_kind(capsys: pytest.CaptureFixture[str]) -> None:
    assert _said(capsys, "unknown_member_id").startswith("error 25 UNKNOWN_MEMBER_ID\n")


NAMES = [
    *(rule.name for rule in load_rules()), *TABLES, *Limits.ranges(), *filter(None, ENUMS["status"]),
    *filter(None, ENUMS["anomaly"]), *(column.name for table in TABLES.values() for column in table.columns),
]  # fmt: skip


@pytest.mark.slow
def test_every_declared_name_is_explained_within_the_screen(capsys: pytest.CaptureFixture[str]) -> None:
    catalog = load_catalog()
    protocol = [
        *(api.name for api in catalog.apis.values()),
        *(each.name for each in catalog.errors.values()),
    ]
    for name in dict.fromkeys([*NAMES, *protocol, *catalog.schemas, *LISTS, "apis", "errors", "schemas"]):
        lines = _said(capsys, name).splitlines()
        assert lines
        assert [line for line in lines if len(line) > WIDTH] == [], name


def test_layouts_fit_the_screen(capsys: pytest.CaptureFixture[str]) -> None:
    for api in load_catalog().apis.values():
        lines = _said(capsys, api.name, str(api.max_version)).splitlines()
        assert [line for line in lines if len(line) > WIDTH] == [], api.name


@pytest.mark.parametrize("listed", LISTS)
def test_lists_have_every_name_of_a_kind(capsys: pytest.CaptureFixture[str], listed: str) -> None:
    lines = _said(capsys, listed).splitlines()
    first = {line.split()[0] for line in lines if line.strip()}
    assert set(names_of_kind(LISTS[listed])) <= first


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("broker_staled",), "did you mean broker_stalled"),
        (("finding", "connections"), "unknown finding 'connections'"),
        (("limit", "memry"), "did you mean memory?"),
        (("latency",), "latency_ns"),
        (("zzzzqqqq",), "unknown name 'zzzzqqqq'"),
        (("broker_stalled", "3"), "is not an API, a schema or a kind of name"),
    ],
)
def test_an_unknown_name_gets_one_line_with_the_nearest(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], hint: str
) -> None:
    assert main.run(["explain", *words]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert hint in error


def test_kinds_have_names() -> None:
    assert all(names_of_kind(kind) for kind in KINDS)
