"""Errors that pass while something is found or made: only those that stay are somebody's business."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from .scripted import find
from .test_stretches import AT, SECOND, _call


def _told(
    times: Sequence[float], code: int, name: str, api: str, *, retriable: bool = True
) -> list[dict[str, Any]]:
    rows = {"error_code": code, "error_name": name, "api_name": api, "retriable": retriable}
    return [
        {**AT, **rows, "call_id": number, "connection_id": 1, "response_time": int(at * SECOND)}
        for number, at in enumerate(times)
    ]


def _said(
    told: Sequence[dict[str, Any]], later: Sequence[dict[str, Any]] = (), rule: str = "persistent_error"
) -> list[tuple[str, str, float | None]]:
    asked = []
    for row in told:
        at = row["response_time"] / SECOND
        asked.append({**_call(row["call_id"], at, at, 1, row["api_name"]), "error_code": row["error_code"]})
    found = find(rule, {"error_codes": told, "api_calls": [*asked, *later]})
    return [(each.finding, each.blames, each.value) for each in found]


def _waits(seconds: int) -> list[dict[str, Any]]:
    times = [100 + number for number in range(seconds + 1)]
    return _told(times, 15, "COORDINATOR_NOT_AVAILABLE", "FindCoordinator")


def test_a_coordinator_that_never_comes_is_named_and_one_that_comes_is_not() -> None:
    assert _said(_waits(5)) == [("persistent_error", "broker", 6.0)]
    come = {**_call(50, 106, 106.001, 1, "FindCoordinator"), "error_code": 0}
    assert _said(_waits(5), [come]) == []
    other = {**come, "api_name": "Metadata"}
    assert _said(_waits(5), [other]) == [("persistent_error", "broker", 6.0)]


def test_a_coordinator_that_comes_late_was_missed() -> None:
    come = {**_call(50, 113, 113.001, 1, "FindCoordinator"), "error_code": 0}
    assert _said(_waits(12), [come]) == [("persistent_error", "broker", 13.0)]


def test_a_codec_that_the_broker_does_not_take_says_nothing_of_leaders() -> None:
    times = [100, 101, 102, 103, 104, 105]
    told = _told(times, 76, "UNSUPPORTED_COMPRESSION_TYPE", "Produce", retriable=False)
    assert _said(told) == [("persistent_error", "client", 6.0)]
    assert _said(told, rule="stale_leader") == []


def test_whoever_describes_a_classic_group_asks_in_the_new_way_first() -> None:
    told = _told([100, 101, 102], 69, "GROUP_ID_NOT_FOUND", "ConsumerGroupDescribe", retriable=False)
    then = {**_call(50, 103, 103.001, 1, "DescribeGroups"), "error_code": 0}
    assert _said(told, [then]) == []
    assert _said(told) == [("persistent_error", "client", 3.0)]


def test_who_joins_a_classic_group_in_the_new_way_is_told_of_the_migration() -> None:
    told = _told([100], 69, "GROUP_ID_NOT_FOUND", "ConsumerGroupHeartbeat", retriable=False)
    (found,) = find("persistent_error", {"error_codes": told, "api_calls": [_call(0, 100, 100, 1)]})
    assert "the group works with the classic protocol" in found.text
    assert found.advice.startswith("Set group.consumer.migration.policy")


@pytest.mark.parametrize(("seconds", "severity"), [(6, "warning"), (14, "problem")])
def test_a_transaction_that_never_ends_names_the_broker_that_is_gone(seconds: int, severity: str) -> None:
    """What passes within seconds needs nothing; what lasts does. The markers wait for a dead broker."""
    told = _told([100 + n for n in range(seconds)], 51, "CONCURRENT_TRANSACTIONS", "EndTxn")
    calls = [_call(n, 100 + n, 100 + n, 1, "EndTxn") for n in range(seconds)]
    gone = {**AT, "broker_address": "10.0.0.9", "connection_id": 9, "refused": True}
    gone["first_time"] = 103 * SECOND
    tables = {"error_codes": told, "api_calls": calls, "connections": [gone]}
    (found,) = find("persistent_error", tables)
    assert found.severity == severity
    assert "10.0.0.9:9092 refuses connections" in found.text
    assert found.advice.startswith("Look at" if severity == "problem" else "Nothing")
