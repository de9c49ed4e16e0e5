"""Packets of captures without times: what is not known to have come later proves nothing."""

from __future__ import annotations

from typing import Any

import pytest

from tests.findings.scripted import find

ENDS: dict[str, Any] = {
    "connection_id": 1, "client_id": "shop", "client_address": "10.0.0.2",
    "broker_address": "10.0.0.1", "broker_port": 9092,
}  # fmt: skip


@pytest.mark.parametrize(("worked", "number"), [(None, 1), (4_000_000, 1), (6_000_000, 0)])
def test_a_topic_with_an_invalid_name_is_known_where_it_worked_later(worked: int | None, number: int) -> None:
    refused = {**ENDS, "call_id": 1, "topic": "orders", "error_code": 17, "response_time": 5_000_000}
    fetched = {**ENDS, "call_id": 2, "topic": "orders", "partition": 0, "error_code": 0, "time": worked}
    tables = {"error_codes": [refused], "partitions": [fetched]}
    assert len(find("unknown_topic", tables)) == number
    assert len(find("unknown_topic", {**tables, "error_codes": [{**refused, "response_time": None}]})) == 1


@pytest.mark.parametrize(("asked", "number"), [(None, 1), (1_000_000, 1), (9_000_000, 0)])
def test_an_answer_that_is_sent_again_was_heard_where_the_client_asked_later(
    asked: int | None, number: int
) -> None:
    connection = {**ENDS, "protocol": "kafka", "ending": "open", "first_frame": 1}
    connection["broker_retransmitted_bytes"] = 160
    again = {"connection_id": 1, "kind": "retransmission", "sender": "broker", "stream_offset": 40}
    times = (2_000_000, 3_000_000, 5_000_000, None)
    tables = {
        "connections": [connection],
        "tcp_events": [{**again, "frame": frame, "time": time} for frame, time in enumerate(times, 5)],
        "api_calls": [{**ENDS, "call_id": 1, "status": "answered", "request_time": asked}],
    }
    found = find("path_dead", tables)
    assert len(found) == number
    assert [each.frames for each in found] == [[5, 6, 7, 8]] * number
