"""Recordings of incidents with a known cause: they show what about.toml says was done."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.broker import index
from tests.broker.requestlog import Logged, read
from tests.pipeline.clocks import identity
from tests.pipeline.compare import Tables, analyzed

INCIDENTS = Path(__file__).parents[2] / "captures" / "incidents"
NAMES = sorted(path.parent.name for path in INCIDENTS.glob("*/about.toml"))
BLAMED = {"client", "broker", "network", "follower", "configuration", "capture"}
SUBJECTS = {
    "client", "group", "broker", "topic", "partition", "transactional_id", "connection", "capture"
}  # fmt: skip
# Errors that must be in the answers: one of each set.
ERRORS: dict[str, set[int]] = {
    "not_enough_replicas": {19, 20},
    "request_timed_out": {7},
    "stale_leader": {6},
    "message_too_large": {10},
    "not_authorized": {29},
    "authentication_failed": {58},
    "sasl_mechanism_refused": {33},
    "producer_fenced": {47, 90},
    "offset_out_of_range": {1},
    "unknown_topic": {3},
    "session_expired": {25},
}
ROUTINE = {0, 27, 51, 79}  # REBALANCE_IN_PROGRESS, CONCURRENT_TRANSACTIONS, MEMBER_ID_REQUIRED
FIRST_MOMENTS = {3, 15, 16}  # UNKNOWN_TOPIC_OR_PARTITION, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR


@cache
def about(name: str) -> dict[str, Any]:
    return tomllib.loads((INCIDENTS / name / "about.toml").read_text("utf-8"))


SIDES = [(name, side) for name in NAMES for side in about(name)["files"]]


@cache
def tables(name: str, side: str) -> Tables:
    return analyzed(INCIDENTS / name / about(name)["files"][side])


@cache
def logged(name: str) -> list[Logged]:
    return read(INCIDENTS / name / about(name)["witness"])


def one_of(name: str) -> Tables:
    """The tables of the side that was recorded, beside the brokers if both were."""
    files = about(name)["files"]
    return tables(name, "broker" if "broker" in files else "client")


@pytest.mark.parametrize("name", NAMES)
def test_the_expected_finding_is_one_of_the_contract(name: str, shared: Path) -> None:
    text = (shared / "DESIGN.md").read_text("utf-8")
    section = text[text.index("### 8.2") : text.index("### 8.3")]
    facts = about(name)
    assert not facts["finding"] or facts["finding"] in re.findall(r"`([a-z_]+)`", section)
    assert {facts["blames"]} <= BLAMED | {""}
    assert {facts["subject_kind"]} <= SUBJECTS | {""}
    assert bool(facts["finding"]) == bool(facts["blames"]) == bool(facts["subject"])
    assert facts["did"]


@pytest.mark.parametrize(("name", "side"), SIDES)
def test_frames_are_decoded_but_for_what_is_named(name: str, side: str) -> None:
    found = tables(name, side)
    assert {row["name"] for row in found["anomalies"]} <= set(about(name)["anomalies"])
    reasons = {row["reason"] for row in found["api_calls"]}
    assert reasons.isdisjoint({"unknown_api", "unknown_version"})
    assert found["connections"]


@pytest.mark.parametrize("name", NAMES)
def test_what_the_brokers_logged_was_seen(name: str) -> None:
    seen = Counter(identity(row) for row in one_of(name)["api_calls"])
    theirs = Counter(identity(line) for line in logged(name) if not line.forwarded)
    assert theirs - seen == Counter()


@pytest.mark.parametrize("name", ERRORS)
def test_the_error_of_the_incident_is_there(name: str) -> None:
    found = Counter(row["error_code"] for row in one_of(name)["error_codes"])
    assert any(found[code] for code in ERRORS[name]), found


@pytest.mark.parametrize("name", [name for name in NAMES if not about(name)["finding"]])
def test_healthy_recordings_have_no_errors_but_routine_ones(name: str) -> None:
    codes = {row["error_code"] for row in one_of(name)["error_codes"]}
    assert codes <= ROUTINE | FIRST_MOMENTS
    assert {row["status"] for row in one_of(name)["api_calls"]} <= {"answered", "unanswered"}
    assert any(line.api in {"PRODUCE", "FETCH"} for line in logged(name))


def test_the_list_of_recordings_is_up_to_date() -> None:
    assert index.page() == index.PAGE.read_text("utf-8"), "run python -m tests.broker.index"
