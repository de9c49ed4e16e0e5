"""What a capture lost is no trouble of the network, of a broker or of a client."""

from __future__ import annotations

from typing import Any

from .scripted import find
from .test_stretches import AT, SECOND, _call, _capture

CONNECTION = {
    **AT, "protocol": "kafka", "caller": "client", "client_bytes": 50_000, "broker_bytes": 50_000,
    "client_missing_bytes": 0, "broker_missing_bytes": 0, "capture_point": "broker",
}  # fmt: skip


def _connection(number: int, **columns: Any) -> dict[str, Any]:
    times = {"first_time": 0, "last_time": 9 * SECOND, "first_frame": number}
    return {**CONNECTION, **times, "connection_id": number, **columns}


def _stalls(calls: list[dict[str, Any]], connections: list[dict[str, Any]]) -> list[int]:
    latencies = [call for call in calls if "total_ns" in call]
    tables = {
        "api_calls": calls, "latencies": latencies, "captures": [_capture(0, 10)], "connections": connections,
    }  # fmt: skip
    return [finding.calls for finding in find("broker_stalled", tables)]


def _quick(first: int, since: float, until: float) -> list[dict[str, Any]]:
    """A call on connection 9 every 100 ms, answered at once."""
    number = round((until - since) * 10)
    return [_call(first + i, since + i / 10, since + i / 10 + 0.001, 9, "Metadata") for i in range(number)]


def test_calls_that_waited_while_others_were_answered_do_not_wait_for_who_stands_still() -> None:
    # The broker is quiet from 8 s on, as one is that nobody asks.
    waiting = [_call(1, 2, None, 1), _call(2, 2.1, None, 2)]
    connections = [_connection(1), _connection(2), _connection(9)]
    assert _stalls([*waiting, *_quick(10, 0, 8)], connections) == []
    # Those that were sent when it fell silent do.
    late = [_call(1, 7.8, None, 1), _call(2, 8.5, None, 2)]
    assert _stalls([*late, *_quick(10, 0, 8)], connections) == [2]


def test_in_a_capture_with_holes_a_call_without_an_answer_proves_nothing() -> None:
    calls = [_call(1, 7.8, None, 1), _call(2, 8.5, None, 2), *_quick(10, 0, 8)]
    whole = [_connection(1), _connection(2), _connection(9)]
    assert _stalls(calls, whole) == [2]
    assert _stalls(calls, [*whole, _connection(3, broker_missing_bytes=10_000)]) == []
    # A segment or two of many are no reason to be silent.
    assert _stalls(calls, [*whole, _connection(3, broker_missing_bytes=1_000)]) == [2]


def test_a_request_that_nothing_follows_proves_nothing() -> None:
    # A broker's kernel acknowledges what it does not read, and a client sends again what is not.
    calls = [_call(1, 7.8, None, 1), _call(2, 8.5, None, 2)]
    sent = [{**call, "request_end_time": call["request_time"]} for call in calls]
    rest = [_connection(2), _connection(9)]
    assert _stalls([*sent, *_quick(10, 0, 8)], [_connection(1), *rest]) == [2]
    last = _connection(1, last_time=sent[0]["request_end_time"])
    assert _stalls([*sent, *_quick(10, 0, 8)], [last, *rest]) == []


def test_a_broker_that_hangs_up_on_others_does_not_stand_still() -> None:
    calls = [_call(1, 7.8, None, 1), _call(2, 8.5, None, 2), *_quick(10, 0, 8)]
    whole = [_connection(1), _connection(2), _connection(9)]
    closed = [
        _connection(number, closed_by="broker", ending="fin", last_time=round(at * SECOND))
        for number, at in ((3, 8.7), (4, 9.4))
    ]
    assert _stalls(calls, whole) == [2]
    assert _stalls(calls, [*whole, *closed]) == []


def test_a_broker_that_refuses_connections_is_gone_and_does_not_stand_still() -> None:
    calls = [_call(1, 7.8, None, 1), _call(2, 8.5, None, 2), *_quick(10, 0, 8)]
    refused = _connection(3, refused=True, first_time=9 * SECOND)
    assert _stalls(calls, [_connection(1), _connection(2), _connection(9), refused]) == []


def test_what_may_have_waited_behind_a_lost_fetch_does_not_make_a_broker_slow() -> None:
    slow = [_call(i, i / 10, i / 10 + 0.08, 1, "ListOffsets") for i in range(40)]
    poll = _call(100, 0, 0.001, 1)
    tables = {"api_calls": [*slow, poll], "latencies": slow, "captures": [_capture(0, 10)]}

    def found(**columns: int) -> list[str]:
        rows = {**tables, "connections": [_connection(1, **columns)]}
        return [each.finding for each in find("broker_slow", rows)]

    assert found() == ["broker_slow"]
    assert found(client_missing_bytes=1) == []
    assert found(broker_missing_bytes=1) == []
    tables["api_calls"] = slow  # nothing on it waits long
    assert found(broker_missing_bytes=1) == ["broker_slow"]


def test_packets_sent_again_may_be_among_those_that_a_capture_lost_much_of() -> None:
    slow = [_call(i, i / 10, i / 10 + 0.08, 1, "ListOffsets") for i in range(40)]
    tables = {"api_calls": slow, "latencies": slow, "captures": [_capture(0, 10)]}

    def found(missing: int) -> list[str]:
        row = _connection(1, client_bytes=10_000, broker_bytes=10_000, client_missing_bytes=missing)
        return [each.finding for each in find("broker_slow", {**tables, "connections": [row]})]

    assert found(199) == ["broker_slow"]
    assert found(200) == []


def test_a_quota_may_be_named_in_an_answer_that_the_capture_lost() -> None:
    calls = [_call(1, 2, 3.5, 1, "Metadata"), _call(2, 2.1, 3.5, 2, "Metadata")]
    told = {**_call(9, 8, 8.1, 1, "Produce"), "client_id": "shop"}

    def found(throttled: int, missing: int) -> list[str]:
        rows = {
            "api_calls": [*calls, {**told, "throttle_time_ms": throttled}],
            "latencies": calls,
            "connections": [_connection(number, broker_missing_bytes=missing) for number in (1, 2)],
            "captures": [_capture(0, 10)],
        }
        return [each.finding for each in find("broker_stalled", rows)]

    assert found(0, 0) == found(0, 40) == found(500, 0) == ["broker_stalled"]
    assert found(500, 40) == []


def test_an_answer_that_the_capture_lost_is_not_one_that_the_broker_did_not_give() -> None:
    asked = {"request_frame": 5, "api_key": 3, "api_version": 12}
    call = {**_call(1, 1, None, 1, "Metadata"), "reason": "connection_closed", **asked}

    def found(missing: int) -> list[str]:
        closed = _connection(1, closed_by="broker", close_frame=9, broker_missing_bytes=missing)
        return [
            each.finding for each in find("broker_hangs_up", {"api_calls": [call], "connections": [closed]})
        ]

    assert found(0) == ["broker_hangs_up"]
    assert found(40) == []


def test_a_member_that_may_have_left_where_the_capture_lost_it_has_not_expired() -> None:
    member = {"group_id": "billing", "error_code": 0, "client_id": "shop"}
    joined = {**_call(1, 1, 1.1, 1, "JoinGroup"), **member}
    told = {**_call(2, 6, 6.1, 1, "Heartbeat"), **member, "error_code": 25}

    def found(**columns: int) -> list[str]:
        rows = {
            "api_calls": [joined, told],
            "error_codes": [told],
            "connections": [_connection(1), _connection(2, **columns)],
        }
        return [each.finding for each in find("session_expired", rows)]

    assert found() == ["session_expired"]
    assert found(broker_missing_bytes=40) == ["session_expired"]
    assert found(client_missing_bytes=40) == []


def test_a_silent_member_whose_heartbeats_the_capture_may_have_lost_has_not_expired() -> None:
    member = {
        "group_id": "billing", "kind": "classic", "member_id": "shop-1", "client_id": "shop",
        "left_how": "session_expired", "joined_time": 0, "last_time": 2 * SECOND, "session_timeout_ms": 3_000,
        "call_ids": [1],
    }  # fmt: skip

    def found(**columns: int) -> list[str]:
        rows = {"members": [{**AT, **member}], "connections": [_connection(1), _connection(2, **columns)]}
        return [each.finding for each in find("session_expired", rows)]

    assert found() == ["session_expired"]
    assert found(broker_missing_bytes=40) == ["session_expired"]
    assert found(client_missing_bytes=40) == []


def test_where_much_is_missing_nobody_is_said_to_be_idle_or_to_be_turned_away() -> None:
    joined = {
        "kind": "consumer",
        "group_id": "audit",
        "joined_time": 0,
        "last_time": 9 * SECOND,
        "call_ids": [1],
    }
    members = [
        {**AT, **joined, "member_id": name, "client_id": name, "partition_count": count}
        for name, count in (("one", 3), ("two", 0))
    ]
    at_once = {
        "handshake": True, "closed_by": "broker", "broker_bytes": 0, "refused": False, "ending": "fin",
        "calls": 0, "client_address": "10.0.0.9", "last_time": SECOND // 10,
    }  # fmt: skip

    works_on = {"handshake": True, "broker_packets": 1, "client_bytes": 0, "ending": "open"}

    def found(missing: int) -> list[str]:
        works = _connection(1, client_address="10.0.0.9", **works_on, client_missing_bytes=missing)
        closed = [_connection(n, **at_once, client_missing_bytes=missing) for n in (2, 3, 4)]
        rows = {"members": members, "connections": [works, *closed]}
        return [each.finding for name in ("idle_members", "connection_limit") for each in find(name, rows)]

    assert found(0) == ["idle_members", "connection_limit"]
    assert found(5_000) == []


def test_a_side_that_sends_everything_again_is_not_one_of_which_the_capture_has_half() -> None:
    alone = {"client_packets": 20, "broker_packets": 0, "broker_bytes": 0, "client_retransmitted_bytes": 0,
             "broker_retransmitted_bytes": 0}  # fmt: skip

    def found(again: int) -> list[str]:
        connection = _connection(1, capture="a", **{**alone, "client_retransmitted_bytes": again})
        return [each.finding for each in find("one_sided", {"connections": [connection]})]

    assert found(0) == ["one_sided"]
    assert found(400_000) == []
