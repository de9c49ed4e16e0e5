"""A member that ends at a record, begins again, and reads that record first."""

from __future__ import annotations

from typing import Any

import pytest

from tests.findings.scripted import find

SECOND = 10**6


def asked(number: int, second: float, api: str, connection: int, **more: Any) -> dict[str, Any]:
    time = round(second * SECOND)
    row = {"call_id": number, "connection_id": connection, "client_id": "payer", "caller": "client"}
    row |= {"client_address": "10.0.0.7", "broker_address": "10.0.0.1", "broker_port": 9092}
    row |= {"api_name": api, "status": "answered", "error_code": 0, "group_id": None}
    row |= {"request_time": time, "response_time": time + 900, "response_end_time": time + 900, "time": time}
    return row | more


def lives(positions: list[int]) -> dict[str, list[dict[str, Any]]]:
    """A member that joins every two seconds, and reads from these offsets on, and then from 99."""
    calls, reads, groups = [], [], []
    for number, position in enumerate(positions):
        begin, place = number * 2.0, {"topic": "orders", "partition": 2, "record_count": 1}
        group = {"group_id": "pay", "generation": 0, "member_id": ""}
        calls.append(asked(10 * number, begin, "JoinGroup", number, **{**group, "error_code": 79}))
        for step, offset in enumerate((position, 99)):
            at = asked(10 * number + 1 + step, begin + 0.5 + step / 10, "Fetch", number)
            calls.append(at)
            reads.append({**at, **place, "requested_offset": offset})
        moment = round(begin * SECOND)
        groups.append(
            {"group_id": "pay", "begin_time": moment, "end_time": moment + 1000, "duration_ns": 10**6,
             "generation_before": number, "generation": number + 1, "reason": "member_joined"}
        )  # fmt: skip
    capture = {"capture": "one.pcap", "first_time": 0, "last_time": 99 * SECOND}
    return {"api_calls": calls, "partitions": reads, "groups": groups, "captures": [capture]}


@pytest.mark.parametrize(
    ("positions", "place"),
    [
        ([7] * 6, "orders-2 from offset 7 again (6 times)"),
        ([0, 7, 7, 7, 7, 7], "orders-2 from offset 7 again (5 times)"),
        ([0, 10, 20, 30, 40, 50], None),
        ([7, 7, 7, 20, 30, 40], None),
    ],
)
def test_the_record_at_which_a_member_begins_again_is_named(positions: list[int], place: str | None) -> None:
    (finding,) = find("rebalance_storm", lives(positions))
    assert (finding.subject, finding.blames) == ("pay", "client")
    assert "payer (10.0.0.7) joined 6 times" in finding.text
    assert ("Each time payer reads" in finding.text) == (place is not None)
    assert (place or "") in finding.text
    assert ("for the record at offset 7" in finding.advice) == (place is not None)
