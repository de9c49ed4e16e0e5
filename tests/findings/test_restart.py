"""Brokers of a cluster restart one after the other: a connection refused meanwhile is no problem."""

from __future__ import annotations

from typing import Any

import pytest

from tests.findings.scripted import find

SECOND = 10**6
AT = {"client_address": "10.0.0.9", "broker_port": 9092}


def _connection(
    number: int, broker: int, first: float, last: float, *, refused: bool = False
) -> dict[str, Any]:
    row = {
        **AT,
        "connection_id": number,
        "broker_address": f"10.0.0.{broker}",
        "first_time": int(first * SECOND),
    }
    shape = {
        "last_time": int(last * SECOND),
        "refused": refused,
        "handshake": not refused,
        "first_frame": number,
    }
    if refused:
        return {**row, **shape, "broker_bytes": 0}
    return {**row, **shape, "broker_bytes": 100, "client_id": "shop", "protocol": "kafka"}


def _call(broker: int, at: float) -> dict[str, Any]:
    moment = int(at * SECOND)
    asked = {"request_time": moment, "status": "answered", "client_id": "shop"}
    return {**AT, **asked, "call_id": moment, "broker_address": f"10.0.0.{broker}"}


def _severities(connections: list[dict[str, Any]], calls: list[dict[str, Any]]) -> list[str]:
    told = {"connections": connections, "api_calls": calls}
    return [each.severity for each in find("connection_refused", told)]


OTHER = _connection(1, 2, 0, 300)
BEFORE = _connection(2, 1, 0, 10)
REFUSED = [_connection(number, 1, 10 + number, 10 + number, refused=True) for number in range(3, 12)]


def test_one_that_took_connections_again_was_restarted() -> None:
    back = _connection(20, 1, 40, 300)
    assert _severities([OTHER, BEFORE, *REFUSED, back], []) == ["info"]


@pytest.mark.parametrize(
    ("others", "back"),
    [
        ([OTHER], []),  # it did not come back
        ([], [_connection(20, 1, 40, 300)]),  # the only broker was away
        ([OTHER], [_connection(20, 1, 200, 300)]),  # away for three minutes
        ([OTHER], [_connection(20, 1, 40, 50), _connection(21, 1, 60, 60, refused=True)]),  # and away again
    ],
)
def test_one_that_was_not_is_a_problem(others: list[dict[str, Any]], back: list[dict[str, Any]]) -> None:
    assert _severities([*others, BEFORE, *REFUSED, *back], []) == ["problem"]


def test_a_connection_or_two_that_were_refused_harm_no_client_that_goes_on() -> None:
    assert _severities([OTHER, BEFORE, *REFUSED[:2]], [_call(2, 20)]) == ["info"]
    assert _severities([OTHER, BEFORE, *REFUSED[:2]], [_call(2, 9)]) == ["problem"]  # it did not go on
    assert _severities([OTHER, BEFORE, *REFUSED], [_call(2, 100)]) == ["problem"]  # it tried again and again
