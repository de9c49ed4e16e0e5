"""Errors that pass while something is found or made: only those that stay are somebody's business."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

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
