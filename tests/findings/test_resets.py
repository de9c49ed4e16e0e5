"""Connections that end early: by another machine, for their silence, by a client that wants no more."""

from __future__ import annotations

from typing import Any

import pytest

from tests.findings.opened import OTHER, SECOND, call, judge, kafka
from tests.findings.scripted import Rows

RESET: dict[str, Any] = {
    "ending": "reset",
    "closed_by": "broker",
    "close_frame": 5,
    "reset_by": "broker",
    "reset_frame": 5,
    "reset_acknowledges": True,
    "reset_ttl_step": 0,
    "reset_ident_step": 1,
    "reset_stamped": True,
}
BARE: dict[str, Any] = {
    "reset_acknowledges": False,
    "reset_ident_step": 64_000,
    "reset_stamped": False,
    "reset_window": 0,
}
ASKED = [
    call(1, 1, 1.01),
    call(2, 2, 2.01, connection_id=1),
    call(3, 3, connection_id=1, request_end_frame=3),
]
"""Twice answered within ten milliseconds, then reset."""
GOES_ON = call(9, 5, 5.01, client_id="till", client_address=OTHER)


def struck(**more: Any) -> dict[str, Any]:
    return kafka(1, 0, 3.001, **{**RESET, "calls": 3, **more})


SIGNS: dict[str, tuple[dict[str, Any], str | None, str]] = {
    "its own": ({}, None, "The broker's log of that time"),
    "another time to live": (
        {"reset_ttl_step": 3},
        "certain",
        "a time to live of 3 more or less than the broker's",
    ),
    "a lower one": ({"reset_ttl_step": -61}, "certain", "a time to live of 61 more or less"),
    "it does not know the connection": (
        BARE,
        "likely",
        "from a machine that does not know the connection, and the",
    ),
    "its number is not the broker's": (
        {"reset_ident_step": 900},
        "likely",
        "The IP identification of the resets",
    ),
    "the broker's number": ({"reset_ident_step": 3}, None, "The broker's log of that time"),
    "not numbered": (
        {"reset_ident_step": None, "reset_stamped": None},
        None,
        "The broker's log of that time",
    ),
}


@pytest.mark.sample(3)
@pytest.mark.parametrize("case", SIGNS)
def test_who_sent_a_reset_is_told_by_what_it_has_in_common_with_the_broker(case: str) -> None:
    more, confidence, said = SIGNS[case]
    till = kafka(9, 0, 9, client_id="till", client_address=OTHER)
    rows = [struck(**more), till]
    boxed = judge("middlebox_reset", rows, api_calls=[*ASKED, GOES_ON])
    hung_up = judge("broker_hangs_up", rows, api_calls=[*ASKED, GOES_ON])
    assert (len(boxed), len(hung_up)) == ((1, 0) if confidence else (0, 1))
    (finding,) = [*boxed, *hung_up]
    assert said in finding.text
    if confidence:
        assert (finding.subject, finding.blames, finding.confidence) == ("shop", "network", confidence)
        assert "It had answered Fetch version 12 of this client 2 times." in finding.text
        assert finding.frames == [5]


def test_without_a_sign_of_life_it_may_be_the_brokers_machine_that_began_again() -> None:
    (finding,) = judge("middlebox_reset", [struck(**BARE)], api_calls=ASKED)
    assert finding.confidence == "possible"
    assert "or the broker's own after a restart" in finding.text


NOT_STRUCK: dict[str, dict[str, Any]] = {
    "it had closed": {"close_frame": 4},
    "the client's machine does not know it": {"closed_by": "client", "reset_by": "client"},
    "nothing waits": {"calls": 2},
    "nothing is known of it": {"handshake": False, "broker_bytes": 0},
}


@pytest.mark.parametrize("case", NOT_STRUCK)
def test_a_reset_that_is_in_order_is_nobodys(case: str) -> None:
    calls = ASKED[:2] if case == "nothing waits" else ASKED
    rows = [struck(**{**BARE, **NOT_STRUCK[case]}), kafka(9, 0, 9, client_id="till", client_address=OTHER)]
    assert judge("middlebox_reset", rows, api_calls=[*calls, GOES_ON]) == []


def test_a_broker_that_refuses_soon_after_is_gone() -> None:
    refused = {"refused": True, "ending": "reset", "closed_by": "broker", "broker_bytes": 0}
    rows = [struck(**BARE), kafka(2, 4, 4, **refused)]
    for rule in ("middlebox_reset", "broker_hangs_up"):
        assert judge(rule, rows, api_calls=ASKED) == []


# -- silence ---------------------------------


def pauses(*lengths: float) -> list[dict[str, Any]]:
    """Calls of one connection, each so long after the one before; the last gets no answer."""
    moment, calls = 1.0, [call(1, 1, 1.01)]
    for number, length in enumerate(lengths, 2):
        moment += length
        answered = None if number == len(lengths) + 1 else moment + 0.01
        calls.append(call(number, moment, answered, connection_id=1))
    return calls


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("lengths", "idle"),
    [((0.2, 4), True), ((3, 3.5), True), ((4, 4), False), ((5, 4), False), ((0.2, 0.5), False)],
)
def test_only_a_silence_longer_than_all_before_ended_it(lengths: tuple[float, ...], idle: bool) -> None:
    calls = pauses(*lengths)
    end = calls[-1]["request_time"] / SECOND + 0.001
    rows = [
        kafka(1, 0, end, **{**RESET, **BARE, "calls": len(calls)}),
        kafka(9, 0, end + 9, client_id="till"),
    ]
    alive = call(9, end + 1, end + 1.01, client_id="till")
    found = {
        rule: judge(rule, rows, api_calls=[*calls, alive]) for rule in ("idle_closed", "middlebox_reset")
    }
    assert [len(each) for each in found.values()] == ([1, 0] if idle else [0, 1])
    if idle:
        (finding,) = found["idle_closed"]
        assert finding.value == pytest.approx(lengths[-1] - 0.01, abs=0.001)
        assert (
            "failed on a connection that a machine between it and 10.0.0.2:9092 had forgotten after"
            in finding.text
        )


def test_the_silence_is_that_before_the_end_not_before_the_next_request() -> None:
    """connections.max.idle.ms=2000, and a request after four seconds."""
    ended = {"ending": "fin", "closed_by": "broker", "close_frame": 1, "close_time": 3_010_000}
    (finding,) = judge("idle_closed", [kafka(1, 0, 5, **ended, calls=2)], api_calls=pauses(4))
    assert finding.value == pytest.approx(2, abs=0.001)
    assert "failed on a connection that had been closed after 2.0 s of silence" in finding.text
    soon = {**ended, "close_time": 1_500_000}
    assert judge("idle_closed", [kafka(1, 0, 5, **soon, calls=2)], api_calls=pauses(4)) == []


# -- what a broker takes ---------------------------------

RANGE = {"broker_address": "10.0.0.2", "broker_port": 9092, "min_version": 0, "max_version": 11}
OLD = [{**RANGE, "api_key": 0}, {**RANGE, "api_key": 1}]
NEW = [{**RANGE, "api_key": 0}, {**RANGE, "api_key": 1, "min_version": 4}]
"""A broker of 4.0 or later says that it takes Produce 0 (KIP-896), and Fetch from 4 on."""


@pytest.mark.parametrize(
    ("ranges", "answered", "blames", "confidence", "said"),
    [
        ([], 0, "client", "likely", "Brokers since 4.0.0 take Produce from version 3 on"),
        ([], 1, "broker", "certain", "The broker's log"),
        (OLD, 0, "broker", "certain", "The broker's log"),
        (NEW, 0, "client", "certain", "It offers the APIs of release 4.0.0 or later"),
        (NEW, 1, "broker", "certain", "The broker's log"),
    ],
)
def test_what_a_broker_says_and_does_beats_a_table_of_releases(
    ranges: Rows, answered: int, blames: str, confidence: str, said: str
) -> None:
    produce: dict[str, Any] = {"api_name": "Produce", "api_key": 0, "api_version": 2, "connection_id": 1}
    calls = [call(2, 2, 2.01 if answered else None, **produce), call(3, 3, **produce, request_end_frame=3)]
    (finding,) = judge("broker_hangs_up", [struck()], api_calls=calls[1 - answered :], api_ranges=ranges)
    assert (finding.blames, finding.confidence) == (blames, confidence)
    assert said in finding.text


# -- responses that a client does not want ---------------------------------

CUT = {"reason": "cut_off_by_client", "response_bytes": 100_152, "response_end_time": None}
GONE = {
    "ending": "reset",
    "closed_by": "client",
    "close_frame": 7,
    "reset_by": "client",
    "reset_frame": 7,
    "reset_acknowledges": True,
}


def refusals(number: int, **more: Any) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """So many connections, each with a response that was taken and one that was not."""
    connections = [kafka(each, each, each + 0.1, **GONE, calls=2) for each in range(1, number + 1)]
    taken = [
        call(each, each, each + 0.01, response_bytes=724, api_name="ApiVersions")
        for each in range(1, number + 1)
    ]
    cut = [
        call(100 + each, each + 0.02, each + 0.05, connection_id=each, **{**CUT, **more})
        for each in range(1, number + 1)
    ]
    return connections, [*taken, *cut]


def test_responses_that_are_cut_off_name_the_limit() -> None:
    connections, calls = refusals(3)
    (finding,) = judge("response_refused", connections, api_calls=calls)
    assert (finding.blames, finding.subject, finding.value, finding.expected) == (
        "client",
        "shop",
        100_148,
        720,
    )
    assert "closed 3 connections to 10.0.0.2:9092 in the middle of a response to Fetch" in finding.text
    assert "100,148 bytes" in finding.text
    for setting in ("receive.message.max.bytes", "fetch.max.bytes", "max.partition.fetch.bytes"):
        assert setting in finding.advice


def test_a_response_may_be_whole_before_the_client_resets() -> None:
    connections, calls = refusals(2, reason=None, response_end_time=None)
    whole = [{**each, "response_end_time": each["response_time"]} for each in calls]
    assert len(judge("response_refused", connections, api_calls=whole)) == 1
    later = [{**each, "close_time": each["close_time"] + SECOND} for each in connections]
    assert judge("response_refused", later, api_calls=whole) == []
    closed = [{**each, "ending": "fin"} for each in connections]
    assert judge("response_refused", closed, api_calls=whole) == []


def test_one_end_inside_a_response_or_a_size_that_it_took_proves_no_limit() -> None:
    connections, calls = refusals(1)
    assert judge("response_refused", connections, api_calls=calls) == []
    connections, calls = refusals(3)
    large = call(50, 0.5, 0.6, response_bytes=200_000)
    assert judge("response_refused", [*connections, kafka(50, 0, 9)], api_calls=[*calls, large]) == []


def test_who_refuses_responses_does_not_churn() -> None:
    connections, calls = refusals(12)
    assert judge("connection_churn", connections, api_calls=calls) == []
    took = [
        {**each, "reason": None, "response_end_time": each["response_time"], "response_bytes": 10}
        for each in calls
    ]
    assert len(judge("connection_churn", connections, api_calls=took)) == 1


def test_a_broker_that_closes_without_a_byte_makes_no_client_churn() -> None:
    ended = {"ending": "fin", "closed_by": "broker"}
    rows = [kafka(number, number * 0.5, number * 0.5 + 0.1, **ended) for number in range(12)]
    assert len(judge("connection_churn", rows)) == 1
    assert judge("connection_churn", [{**row, "broker_bytes": 0} for row in rows]) == []


# -- a dead path ---------------------------------


@pytest.mark.parametrize(
    ("answered", "said"),
    [
        ([], "The path or the machine on the other side is down."),
        (
            [call(2, 4, 4.1)],
            "The broker answered this client on another connection: the path of this one is dead.",
        ),
        ([call(2, 4, 4.1, client_id="till")], "The broker answered others: the path to this client is dead."),
        ([call(2, 1, 1.1)], "The path or the machine on the other side is down."),
    ],
)
def test_a_broker_that_answers_elsewhere_is_no_dead_machine(answered: Rows, said: str) -> None:
    lost = kafka(1, 0, 9, client_retransmitted_bytes=900)
    again = {
        "kind": "retransmission",
        "sender": "client",
        "connection_id": 1,
        "bytes": 900,
        "time": 5 * SECOND,
    }
    waiting = call(1, 3, reason="open_at_end", request_bytes=100)
    others = [kafka(2, 0, 9)] if answered else []
    (finding,) = judge("path_dead", [lost, *others], api_calls=[waiting, *answered], tcp_events=[again])
    assert finding.text.endswith(said)
