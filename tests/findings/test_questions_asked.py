"""Monitors in a loop, clients that ask a controller, sessions that expire, and processes that end."""

from __future__ import annotations

from typing import Any

import pytest

from kwsniff.findings.finding import Finding
from tests.findings.opened import OTHER, call, judge, kafka

BROKER = {"broker_address": "10.0.0.2", "broker_port": 9092}


def _asked(times: int, every_s: float, groups: int = 1, rest_s: float = 0, **more: Any) -> list[Finding]:
    """A monitor asks for the offsets of groups in turn; between rounds it rests."""
    calls, moment = [], 1.0
    for number in range(times):
        name = f"group-{number % groups}"
        asked = {"api_name": "OffsetFetch", "api_key": 9, "group_id": name, "latency_ns": 10**6}
        calls.append(call(number, moment, moment + 0.001, connection_id=1, **asked, **more))
        moment += every_s + (rest_s if number % groups == groups - 1 else 0)
    return judge("monitor_storm", [kafka(1, 0, 60)], api_calls=calls)


def test_a_monitor_that_asks_the_same_in_a_loop_is_a_storm() -> None:
    (found,) = _asked(120, 0.05)
    assert (found.subject, found.calls) == ("shop", 120)
    assert "asks the same thing 20 times per second" in found.text
    assert "OffsetFetch of group group-0 120 times" in found.text


def test_each_question_of_a_round_counts_by_itself() -> None:
    (found,) = _asked(400, 0.02, groups=3)
    assert found.calls == 400


@pytest.mark.parametrize(
    "asked",
    [
        {"times": 49, "every_s": 0.06},
        {"times": 120, "every_s": 0.016},
        {"times": 120, "every_s": 0.11},
        {"times": 1000, "every_s": 0.005, "groups": 200},
        {"times": 400, "every_s": 0.001, "groups": 40, "rest_s": 4},
        {"times": 120, "every_s": 0.05, "error_code": 30},
        {"times": 120, "every_s": 0.05, "caller": "replica"},
    ],
    ids=["too few", "too short", "too seldom", "other groups", "bursts", "refused", "a broker"],
)
def test_other_monitors_are_none(asked: dict[str, Any]) -> None:
    assert _asked(**asked) == []


def _offered(*apis: str) -> list[dict[str, Any]]:
    return [{**BROKER, "api_key": number, "api_name": api} for number, api in enumerate(apis)]


def _introduced(
    *more: dict[str, Any], apis: tuple[str, ...] = ("Vote", "Fetch"), **how: Any
) -> list[Finding]:
    """A client asks which versions a server offers."""
    told = call(1, 1, 1.1, api_name="ApiVersions", api_key=18)
    ended = kafka(1, 1, 6, **{"ending": "fin", "closed_by": "client", **how})
    return judge("controller_listener", [ended], api_calls=[told, *more], api_ranges=_offered(*apis))


def test_a_client_that_finds_no_metadata_asked_a_controller() -> None:
    (found,) = _introduced()
    assert (found.subject, found.value) == ("shop", 1)
    assert "10.0.0.2:9092" in found.text
    assert _introduced(ending="open", closed_by=None, close_time=None) != []


def test_a_client_that_asks_a_controller_for_metadata_gets_no_response() -> None:
    asked = call(2, 2, None, connection_id=1, api_name="Metadata", api_key=3)
    assert len(_introduced(asked, closed_by="broker")) == 1


def test_brokers_and_tools_that_use_a_controller_did_not_mistake_it() -> None:
    asked = {"connection_id": 1, "api_key": 60, "api_name": "DescribeCluster"}
    assert _introduced(call(2, 2, 2.1, **asked)) == []
    assert _introduced(apis=("Vote", "Metadata")) == _introduced(apis=("Produce", "Fetch")) == []


def _hung_up(heard_s: float, *, connections: int = 3, version: int = 7) -> list[Finding]:
    """Connections that authenticate; the broker answers Produce for 3 s, and closes at the next one. Another
    client's Produce has a response so long after its authentication."""
    calls, rows = [], []
    for number in range(1, connections + 1):
        at = 5 * number
        one = {"connection_id": number, "api_name": "SaslAuthenticate", "api_key": 36, "error_code": 0}
        put = {"connection_id": number, "api_name": "Produce", "api_key": 0, "api_version": 7}
        calls.append(call(10 * number, at, at + 0.01, **one))
        calls.append(call(10 * number + 1, at + 1, at + 1.01, **put))
        late = {**put, "api_version": version, "reason": "connection_closed"}
        calls.append(call(10 * number + 2, at + 3.1, None, request_end_time=int((at + 3.1) * 1e6), **late))
        rows.append(kafka(number, at, at + 3.11, ending="fin", closed_by="broker", close_frame=900 + number))
    other = {"connection_id": 9, "client_id": "pay", "client_address": OTHER}
    calls.append(call(90, 1, 1.01, **other, api_name="SaslAuthenticate", api_key=36, error_code=0))
    calls.append(call(91, 1.01 + heard_s, 1.1 + heard_s, **other, api_name="Fetch"))
    rows.append(kafka(9, 1, 50, client_id="pay", client_address=OTHER))
    return judge("broker_hangs_up", rows, api_calls=calls)


def test_a_broker_that_closes_expired_sessions_has_a_client_that_does_not_authenticate_again() -> None:
    (found,) = _hung_up(2.9)
    assert (found.blames, found.value) == ("client", 3)
    assert "SASL session had expired" in found.text


@pytest.mark.parametrize(
    "told", [{"heard_s": 20}, {"heard_s": 2.9, "connections": 2}, {"heard_s": 2.9, "version": 8}]
)
def test_otherwise_the_broker_has_the_reason(told: dict[str, Any]) -> None:
    assert "session" not in _hung_up(**told)[0].text


def _given_up(idle_closes_s: float) -> list[Finding]:
    """Three processes, each with a JoinGroup that waits, and a second connection that waits for nothing."""
    calls, rows = [], []
    for number in range(1, 4):
        at = 4 * number
        join = {"connection_id": number, "api_name": "JoinGroup", "api_key": 11}
        calls.append(call(number, at, None, request_end_time=int(at * 1e6), **join))
        calls.append(call(number + 10, at, at + 0.01, connection_id=number + 10, api_name="Metadata"))
        ended = {"ending": "fin", "closed_by": "client"}
        rows.append(kafka(number, at, at + 1.8, **ended, close_frame=100 + number))
        rows.append(kafka(number + 10, at, at + 1.8 + idle_closes_s, **ended, close_frame=200 + number))
    return judge("timeout_too_short", rows, api_calls=calls)


def test_a_client_that_closes_the_connection_on_which_it_waits_gave_up() -> None:
    (found,) = _given_up(1)
    assert (found.subject, found.calls) == ("shop", 3)


def test_a_process_that_ends_closes_idle_connections_as_well() -> None:
    assert _given_up(0.01) == []
