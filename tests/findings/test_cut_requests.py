"""Requests that a broker does not read to their end: it closes once it knows how large they are."""

from __future__ import annotations

from typing import Any

from tests.findings.opened import OTHER, SECOND, call, judge, kafka

GONE: dict[str, Any] = {
    "ending": "reset",
    "closed_by": "broker",
    "close_frame": 9,
    "reset_by": "broker",
    "reset_frame": 9,
    "reset_acknowledges": True,
    "client_missing_bytes": 0,
}
ASKED = 200
GOES_ON = call(90, 2.5, 2.51, connection_id=90, client_id="till", client_address=OTHER)


def cut(number: int, **more: Any) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """So many connections: a request that is answered, and 50,004 bytes of the next one."""
    connections = [
        kafka(each, each, each + 0.2, **{**GONE, "calls": 1, "client_bytes": ASKED + 50_004, **more})
        for each in range(1, number + 1)
    ]
    calls = [call(each, each, each + 0.01, request_bytes=ASKED) for each in range(1, number + 1)]
    return connections, [*calls, GOES_ON]


def found(
    connections: list[dict[str, Any]], calls: list[dict[str, Any]]
) -> list[tuple[str, float | None, float | None]]:
    said = judge("message_too_large", connections, api_calls=calls)
    return [(each.subject, each.value, each.expected) for each in said]


def test_a_broker_that_closes_inside_larger_requests_has_a_limit() -> None:
    connections, calls = cut(2)
    (finding,) = judge("message_too_large", connections, api_calls=calls)
    assert (finding.subject, finding.blames, finding.value, finding.expected) == ("shop", "client", 2, 196)
    assert "50,000 bytes or more, the largest one that it answered has 196" in finding.text
    assert "socket.request.max.bytes" in finding.advice


def test_a_short_snaplen_leaves_the_size_of_a_request() -> None:
    connections, calls = cut(2, client_bytes=ASKED + 4, client_missing_bytes=50_000)
    whole = {
        "first_time": 0,
        "last_time": 60 * SECOND,
        "capture": "a.pcap",
        "truncated": False,
        "damaged": False,
    }
    lost = ("dropped_by_kernel", "response_not_captured_bytes", "response_only_bytes", "torn_frames_bytes")
    captures = {**whole, **dict.fromkeys((*lost, "lost_framing_bytes"), 0), "tcp_payload_bytes": 100_000}
    for snaplen, times in ((96, [2]), (262_144, [])):
        shown = [{**captures, "snaplen": snaplen}]
        said = judge("message_too_large", connections, captures=shown, api_calls=calls)
        assert [each.value for each in said] == times, snaplen


def test_one_end_inside_a_request_proves_no_limit() -> None:
    assert found(*cut(1)) == []


def test_nor_does_an_end_where_the_broker_took_as_much_or_the_client_closed() -> None:
    connections, calls = cut(3)
    large = call(50, 0.5, 0.6, request_bytes=60_000)
    assert found([*connections, kafka(50, 0, 9)], [*calls, large]) == []
    assert found(*cut(3, closed_by="client")) == []
    assert found(*cut(3, client_missing_bytes=50_000)) == []
    assert found(*cut(3, tls_hello=True)) == []
    assert found(*cut(3, client_bytes=ASKED + 4000)) == []


def test_a_broker_that_ends_closes_inside_requests_as_well() -> None:
    connections, calls = cut(2)
    assert found(connections, calls[:-1]) == []
    assert len(found(connections, calls)) == 1


def test_of_a_fast_client_the_request_is_whole_before_the_broker_resets() -> None:
    connections, calls = cut(2)
    whole = [
        call(100 + each, each + 0.1, connection_id=each, request_bytes=50_004, reason="connection_reset")
        for each in (1, 2)
    ]
    assert found(connections, [*calls, *whole]) == [("shop", 2, 196)]
    closed = [{**each, "ending": "fin", "reset_by": None} for each in connections]
    assert found(closed, [*calls, *whole]) == []
