"""Produce with acks=0: a broker that refuses the records can only close the connection."""

from __future__ import annotations

from typing import Any

import pytest

from tests.findings.opened import call, connection, judge, kafka

ASKED: dict[str, Any] = {
    "api_name": "Produce",
    "api_key": 0,
    "api_version": 9,
    "acks": 0,
    "status": "no_response_expected",
    "request_bytes": 6000,
    "reason": None,
}


def closed(
    times: int, every_s: float = 1, after_s: float = 0.01, **more: Any
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Connections that the broker closes so soon after a request with acks=0."""
    connections, calls = [], []
    for number in range(1, times + 1):
        end = number * every_s + after_s
        how = {"ending": "fin", "closed_by": "broker", "close_frame": 900 + number, **more}
        connections.append(kafka(number, number * every_s - 0.1, end, **how))
        asked = call(number, number * every_s, **ASKED)
        calls.append({**asked, "request_end_time": asked["request_time"]})
    return connections, calls


def found(
    connections: list[dict[str, Any]], calls: list[dict[str, Any]]
) -> list[tuple[str, str, float | None]]:
    said = judge("broker_hangs_up", connections, api_calls=calls)
    return [(each.subject, each.blames, each.value) for each in said]


def test_a_broker_that_closes_after_unacknowledged_records_refuses_them() -> None:
    connections, calls = closed(3)
    assert found(connections, calls) == [("shop", "client", 3)]
    (finding,) = judge("broker_hangs_up", connections, api_calls=calls)
    assert finding.confidence == "likely"
    assert "closed 3 connections of shop right after Produce version 9" in finding.text
    assert "acks=1" in finding.text
    assert "6,000 bytes" in finding.text


@pytest.mark.parametrize(
    "how",
    [
        {"times": 2},
        {"times": 9, "every_s": 0.1},  # a broker that ends
        {"times": 3, "after_s": 1.5},  # for its silence, or for another reason
        {"times": 3, "closed_by": "client"},
    ],
)
def test_other_ends_are_no_refusal(how: dict[str, Any]) -> None:
    assert found(*closed(**how)) == []


def test_nor_are_those_of_acknowledged_records_or_of_a_broker_that_goes_away() -> None:
    connections, calls = closed(3)
    assert found(connections, [{**each, "acks": 1, "status": "answered"} for each in calls]) == []
    away = [connection(each, each + 0.5, refused=True) for each in (1, 2, 3)]
    assert (
        found([*connections, *({**each, "connection_id": 50 + n} for n, each in enumerate(away))], calls)
        == []
    )
