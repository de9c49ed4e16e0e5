"""Members of a group that has as many as the broker allows: those who join again late lose their place."""

from __future__ import annotations

from typing import Any

from tests.findings.scripted import find

SECOND = 10**6


def asked(
    number: int, api: str, code: int, client: str = "billing-1", group: str = "billing"
) -> dict[str, Any]:
    time = number * SECOND
    row = {"call_id": number, "connection_id": 1, "client_id": client, "caller": "client", "error_code": code}
    row |= {"client_address": "10.0.0.7", "broker_address": "10.0.0.1", "broker_port": 9092, "api_name": api}
    row |= {"group_id": group, "member_id": f"{client}-1", "generation": 3, "status": "answered"}
    return row | {"request_time": time, "response_time": time + 900, "response_end_time": time + 900}


def found(*more: dict[str, Any]) -> list[str]:
    calls = [asked(1, "JoinGroup", 0), asked(2, "Heartbeat", 0), asked(9, "JoinGroup", 25), *more]
    capture = {"capture": "one.pcap", "first_time": 0, "last_time": 99 * SECOND}
    tables = {"api_calls": calls, "error_codes": [each for each in calls if each["error_code"]]}
    return [each.subject for each in find("session_expired", {**tables, "captures": [capture]})]


def test_a_member_of_a_full_group_has_no_session_that_expired() -> None:
    assert found() == ["billing-1"]
    assert found(asked(5, "JoinGroup", 81, "billing-3")) == []


def test_another_group_may_be_full() -> None:
    assert found(asked(5, "JoinGroup", 81, "audit-3", "audit")) == ["billing-1"]
