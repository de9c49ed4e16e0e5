"""Symptoms in recordings of real brokers: subject and figures are those that broker and client logged."""

from __future__ import annotations

import csv
import tomllib
from typing import Any

import pytest

from tests.findings.conftest import FindingsOf
from tests.house.tree import ROOT

INCIDENTS = ROOT / "captures" / "incidents"
KINDS = (
    "commit_storm",
    "coordinator_missing",
    "fetch_sessions_lost",
    "idle_dropped",
    "leader_flaps",
    "mixed_assignors",
    "offline_partition",
    "rebalance_slow",
)
ABOUT = {path.parent.name: tomllib.loads(path.read_text("utf-8")) for path in INCIDENTS.glob("*/about.toml")}


def _names(finding: str) -> list[str]:
    return sorted(name for name, about in ABOUT.items() if about["finding"] == finding)


@pytest.fixture
def found(findings_of: FindingsOf, request: pytest.FixtureRequest) -> dict[str, Any]:
    """The finding of a recording's own kind."""
    about = ABOUT[request.param]
    (place,) = about["files"].values()
    rows = findings_of(INCIDENTS / request.param / place)
    (row,) = [row for row in rows if row["finding"] == about["finding"]]
    return {"name": request.param, **row}


def _of(*findings: str) -> pytest.MarkDecorator:
    names = [name for finding in findings for name in _names(finding)]
    return pytest.mark.parametrize("found", names, indirect=True)


def _refused(name: str, *codes: int) -> int:
    """Responses with these errors in the broker's request log."""
    with (INCIDENTS / name / "witness.tsv").open() as lines:
        return sum(int(row["error_code"]) in codes for row in csv.DictReader(lines, delimiter="\t"))


@pytest.mark.sample(4)
@_of(*KINDS)
def test_the_finding_blames_what_was_done(found: dict[str, Any]) -> None:
    about = ABOUT[found["name"]]
    assert (found["blames"], found["subject_kind"], found["subject"]) == (
        about["blames"],
        about["subject_kind"],
        about["subject"],
    )
    assert found["severity"] != "info"
    # A coordinator that was killed refuses connections, too.
    assert found["explained_by"] in (None, "connection_refused")


@pytest.mark.parametrize("finding", KINDS)
def test_each_kind_has_variations(finding: str) -> None:
    assert len(_names(finding)) >= 2


@_of("commit_storm")
def test_commits_are_those_that_the_broker_logged(found: dict[str, Any]) -> None:
    assert found["calls"] == ABOUT[found["name"]]["requests"]["OffsetCommit"]


@_of("mixed_assignors")
def test_each_refused_member_counts(found: dict[str, Any]) -> None:
    assert found["value"] == _refused(found["name"], 23)


@pytest.mark.sample(1)
@_of("fetch_sessions_lost")
def test_each_lost_session_counts(found: dict[str, Any]) -> None:
    assert found["value"] == _refused(found["name"], 70, 71) >= 5


@_of("rebalance_slow")
def test_the_rebalance_took_as_long_as_the_coordinator_logged(found: dict[str, Any]) -> None:
    logged = ABOUT[found["name"]]["report"]["ms of the longest rebalance by the broker's log"] / 1000
    assert found["value"] == pytest.approx(logged, abs=0.5)


@pytest.mark.sample(1)
@_of("leader_flaps")
def test_no_more_leaders_changed_than_the_brokers_logged(found: dict[str, Any]) -> None:
    logged = ABOUT[found["name"]]["report"]["elections by the brokers' log"]
    assert logged / 2 <= found["value"] <= logged


@_of("broker_slow")
def test_a_broker_that_takes_up_connections_late_is_not_slow_otherwise(found: dict[str, Any]) -> None:
    """The broker's own figures begin when it has taken up the connection: there these calls are fast."""
    late = found["name"] == "creation_rate"
    assert ("the first call of a connection each time" in found["text"]) == late
    assert ("max.connection.creation.rate" in found["advice"]) == late
    if late:
        with (INCIDENTS / found["name"] / "witness.tsv").open() as lines:
            times = [int(row["total_us"]) for row in csv.DictReader(lines, delimiter="\t")]
        assert max(times) < 50_000
