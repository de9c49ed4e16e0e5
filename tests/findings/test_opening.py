"""Connections that do not come about: who is named, and where nothing is said. Times are microseconds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tests.findings.opened import OTHER, SECOND, call, connection, judge, kafka, silent, unheard
from tests.findings.scripted import Rows

pytestmark = pytest.mark.sample_tests(9)

# -- SYNs without an answer ---------------------------------

SPEAKING = kafka(90, 0, 50)
AT = {"broker_port": 5555}
PROOFS: dict[str, tuple[dict[str, Any], list[dict[str, Any]], str | None]] = {
    "the client speaks Kafka elsewhere": (AT, [SPEAKING], "certain"),
    "its port speaks Kafka": (
        AT,
        [kafka(90, 0, 50, client_address=OTHER, **AT, broker_address="10.0.0.8")],
        "certain",
    ),
    "--port names it": ({**AT, "port_named": True}, [connection(90, 0, client_address=OTHER)], "certain"),
    "brokers listen there": ({}, [connection(90, 0, client_address=OTHER, broker_port=80)], "likely"),
    "nothing else is there": (AT, [], "possible"),
    "somebody else's port": (AT, [connection(90, 0, client_address=OTHER, broker_port=80)], None),
    "a monitor's port": (
        {"broker_port": 9090},
        [connection(90, 0, client_address=OTHER, broker_port=80)],
        None,
    ),
}


@pytest.mark.parametrize("proof", PROOFS)
def test_who_does_not_answer_is_named_where_kafka_was_asked_for(proof: str) -> None:
    where, others, confidence = PROOFS[proof]
    found = judge("unreachable", [silent(1, 1, **where), silent(2, 6, **where), *others])
    if confidence is None:
        assert found == []
        return
    (finding,) = found
    assert (finding.severity, finding.confidence, finding.blames) == ("problem", confidence, "network")
    assert finding.subject == f"10.0.0.2:{where.get('broker_port', 9092)}"
    assert "answered none of 6 SYNs of " in finding.text
    assert finding.frames == [1, 2]


@pytest.mark.parametrize(
    ("connections", "seconds"),
    [
        ([silent(1, 1, 0), SPEAKING], 60),
        ([silent(1, 1, 1), SPEAKING], 60),
        ([silent(1, 58, 2), SPEAKING], 60),
        ([silent(1, 1), silent(2, 5), kafka(3, 3, 9)], 60),
    ],
    ids=["one SYN", "two SYNs", "the capture ends", "others of its are answered in between"],
)
def test_what_may_still_be_answered_or_is_at_times_is_not_unreachable(
    connections: Sequence[dict[str, Any]], seconds: float
) -> None:
    at = [{**row, "broker_address": "10.0.0.3"} if row is SPEAKING else row for row in connections]
    assert judge("unreachable", at, seconds) == []


def test_who_is_reached_by_others_is_behind_a_firewall_or_has_gone() -> None:
    other = kafka(3, 0, 50, client_address=OTHER, client_id="till")
    (finding,) = judge("unreachable", [silent(1, 1), silent(2, 9), other])
    assert "SYNs of 10.0.0.1. " in finding.text
    assert "Other clients reach it, or did" in finding.text


def test_a_connection_without_an_answer_names_no_client_where_there_are_several() -> None:
    elsewhere = {"broker_address": "10.0.0.3"}
    both = [kafka(3, 0, 50, **elsewhere), kafka(4, 0, 50, client_id="till", **elsewhere)]
    (finding,) = judge("unreachable", [silent(1, 1), *both])
    assert "SYNs of 10.0.0.1. " in finding.text
    (finding,) = judge("unreachable", [silent(1, 1), both[0]])
    assert "SYNs of shop (10.0.0.1). " in finding.text


@pytest.mark.parametrize(
    ("word", "blames", "said"),
    [
        ("prohibited", "configuration", "10.0.0.254 reported prohibited (ICMP): a firewall forbids"),
        (
            "port_unreachable",
            "configuration",
            "10.0.0.254 reported port unreachable (ICMP): a firewall refuses the port",
        ),
        (
            "host_unreachable",
            "network",
            "10.0.0.254 reported host unreachable (ICMP): the machine does not answer",
        ),
        ("net_unreachable", "network", "10.0.0.254 reported net unreachable (ICMP): a router has no route"),
        ("time_exceeded", "network", "10.0.0.254 reported time exceeded (ICMP): the packets do not arrive"),
    ],
)
def test_icmp_says_why_and_one_syn_is_enough(word: str, blames: str, said: str) -> None:
    told = {"icmp_error": word, "icmp_from": "10.0.0.254"}
    (finding,) = judge("unreachable", [silent(1, 59, 0, **told)])
    assert finding.blames == blames
    assert said in finding.text


def test_a_size_that_does_not_fit_is_no_refusal() -> None:
    assert judge("unreachable", [silent(1, 1, 0, icmp_error="too_big", icmp_from="10.0.0.254")]) == []


def test_an_answer_from_another_address_is_named() -> None:
    asked = silent(1, 1, 1, client_port=50_001)
    answer = connection(
        2,
        1.001,
        1.001,
        client_port=50_001,
        broker_address="10.0.0.77",
        syn_retries=None,
        ending="reset",
        closed_by="client",
    )
    (finding,) = judge("unreachable", [asked, answer])
    assert "The answers come from 10.0.0.77, and the client resets them" in finding.text
    assert judge("unreachable", [asked, {**answer, "client_port": 50_002}]) == []


TOLD = call(90, 1, 1.1, api_name="Metadata", broker_address="10.0.0.8")
NAMED = {
    "cluster_id": "c",
    "node_id": 1,
    "host": "10.0.0.2",
    "port": 9092,
    "first_call_id": 90,
    "run_id": "run",
}
TELLER = kafka(90, 0, 50, broker_address="10.0.0.8")


@pytest.mark.parametrize(
    ("brokers", "begin_s", "name"),
    [
        ([NAMED], 2, "advertised_unreachable"),
        ([{**NAMED, "host": "10.0.0.8"}], 2, "unreachable"),
        (
            [{**NAMED, "host": "kafka-1.internal"}, {**NAMED, "host": "kafka-2.internal"}],
            2,
            "advertised_unreachable",
        ),
        ([{**NAMED, "host": "kafka-1.internal"}, {**NAMED, "host": "kafka-2.internal"}], 0.5, "unreachable"),
        ([{**NAMED, "host": "kafka-1.internal"}], 2, "unreachable"),
    ],
    ids=[
        "brokers give it",
        "they give another",
        "they give more names",
        "it was tried before",
        "they give as many",
    ],
)
def test_an_address_that_no_broker_gives_comes_from_bootstrap_servers(
    brokers: Rows, begin_s: float, name: str
) -> None:
    for rule in ("advertised_unreachable", "unreachable"):
        found = judge(rule, [silent(1, begin_s), TELLER], api_calls=[TOLD], brokers=brokers)
        assert [each.finding for each in found] == ([name] if rule == name else [])
        for each in found:
            assert "shop (10.0.0.1)" in each.text
            assert ("advertised.listeners" in each.advice) == (name == "advertised_unreachable")


# -- SYNs answered late ---------------------------------


def slow(number: int, begin_s: float, retries: int, **more: Any) -> dict[str, Any]:
    late = {"syn_retries": retries, "connect_ns": retries * 10**9}
    return kafka(number, begin_s, begin_s + 5, **{**late, **more})


QUICK = [kafka(number, number, number + 5, connect_ns=10**6) for number in range(10, 30)]


@pytest.mark.parametrize(
    ("late", "found"),
    [
        ([slow(1, 1, 1), slow(2, 5, 1), slow(3, 9, 2)], "3 of 23 connections"),
        ([slow(1, 1, 3)], "1 of 21 connections"),
        ([slow(1, 1, 1), slow(2, 5, 1)], None),
        ([slow(1, 1, 1, protocol="http"), slow(2, 5, 1), slow(3, 9, 1)], "3 of 23 connections"),
        (
            [slow(number, 1, 1, broker_port=443, protocol="http", client_id=None) for number in (1, 2, 3)],
            None,
        ),
    ],
    ids=["three", "one that took three seconds", "two", "with another protocol", "no Kafka"],
)
def test_connections_that_open_late_are_named(late: list[dict[str, Any]], found: str | None) -> None:
    judged = judge("connect_slow", [*QUICK, *late])
    assert [found in each.text for each in judged if found] == [True] * (found is not None)
    assert len(judged) == (found is not None)


@pytest.mark.parametrize(
    ("place", "blames"), [("broker", "broker"), ("client", "network"), (None, "network")]
)
def test_beside_the_broker_it_is_the_brokers_queue(place: str | None, blames: str) -> None:
    (finding,) = judge("connect_slow", [slow(number, number, 1, capture_point=place) for number in (1, 2, 3)])
    assert finding.blames == blames


# -- refused ---------------------------------

REFUSED = {"refused": True, "ending": "reset", "closed_by": "broker", "handshake": True}


@pytest.mark.parametrize("proof", [*PROOFS])
def test_a_refusal_harms_nobody_where_only_a_port_says_that_it_is_kafka(proof: str) -> None:
    where, others, confidence = PROOFS[proof]
    refused = [connection(number, number, number, **{**REFUSED, **where}) for number in (1, 2)]
    (finding,) = judge("connection_refused", [*refused, *others])
    assert finding.severity == ("problem" if confidence == "certain" else "info")


@pytest.mark.parametrize(
    ("begin_s", "answered_s", "blames"),
    [(0, 9, "configuration"), (0, 6, "broker"), (0, 4, "broker"), (3, 9, "broker")],
    ids=["before and after", "as it stops", "before the last one", "it began between"],
)
def test_who_answers_before_and_after_has_listened_all_the_time(
    begin_s: float, answered_s: float, blames: str
) -> None:
    refused = [connection(number, number, number, **REFUSED) for number in (1, 2, 5)]
    other = kafka(3, begin_s, 20, client_address=OTHER)
    asked = call(3, begin_s + 0.5, answered_s, client_address=OTHER)
    (finding,) = judge("connection_refused", [*refused, other], api_calls=[asked])
    assert finding.blames == blames
    assert ("it answered 1 connection before and after" in finding.text) == (blames == "configuration")
    assert ("nothing listens there" in finding.text) == (blames == "broker")


# -- accepted and closed ---------------------------------

CLOSED = [unheard(number, number * 0.3) for number in range(10, 20)]
HELD = connection(1, 0)
SERVED = kafka(2, 0, 50, client_address=OTHER, client_id="till")
LATER = call(2, 7, 8, client_address=OTHER, client_id="till")
BEFORE = call(2, 1, 2, client_address=OTHER, client_id="till")
AMONG: dict[str, tuple[list[dict[str, Any]], list[dict[str, Any]], str]] = {
    "another is answered afterwards": ([SERVED], [LATER], "connection_limit"),
    "another is answered meanwhile": ([SERVED], [call(2, 4, 4.5, client_address=OTHER)], "connection_limit"),
    "one is held open": ([HELD], [], "connection_limit"),
    "its own goes on": ([kafka(2, 0, 50)], [call(2, 1, 2)], "connection_limit"),
    "its own ends afterwards": (
        [kafka(2, 0, 50, ending="fin", closed_by="client")],
        [call(2, 1, 2)],
        "connection_limit",
    ),
    "the broker ends its own afterwards": (
        [kafka(2, 0, 50, ending="fin", closed_by="broker")],
        [call(2, 1, 2)],
        "backend_down",
    ),
    "TLS goes on": ([kafka(2, 0, 50, protocol="tls", client_address=OTHER)], [], "connection_limit"),
    "nothing else": ([], [], "backend_down"),
    "what worked has ended before": (
        [{**SERVED, "ending": "fin", "last_time": 2 * SECOND}],
        [BEFORE],
        "backend_down",
    ),
    "another waits in vain": (
        [kafka(2, 0, 50, broker_bytes=0, client_address=OTHER)],
        [call(2, 1)],
        "backend_down",
    ),
    "one comes later": (
        [kafka(2, 7, 50, client_address=OTHER)],
        [call(2, 7, 8, client_address=OTHER)],
        "backend_down",
    ),
}


@pytest.mark.sample(3)
@pytest.mark.parametrize("case", AMONG)
def test_what_works_meanwhile_tells_a_limit_from_a_broker_that_is_gone(case: str) -> None:
    others, calls, name = AMONG[case]
    for rule in ("connection_limit", "backend_down"):
        found = judge(rule, [*CLOSED, *others], api_calls=calls)
        assert [each.finding for each in found] == ([name] if rule == name else []), case


@pytest.mark.parametrize(
    ("calls", "blames", "said"),
    [
        ([], "configuration", "It never answered in this capture"),
        ([BEFORE], "broker", "It had answered before"),
    ],
)
def test_who_never_answered_is_not_told_from_who_does_not_any_more(
    calls: Rows, blames: str, said: str
) -> None:
    ended = {**SERVED, "ending": "fin", "last_time": 2 * SECOND}
    (finding,) = judge("backend_down", [*CLOSED, *([ended] if calls else [])], api_calls=calls)
    assert (finding.blames, finding.subject, finding.value) == (blames, "10.0.0.2:9092", 10)
    assert said in finding.text


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    "rows",
    [
        CLOSED[:2],
        [unheard(number, 1 + number / 1000) for number in range(9)],
        [unheard(number, number, 20_000) for number in range(9)],
        [unheard(number, number, closed_by="client") for number in range(9)],
        [unheard(number, number, broker_bytes=7, protocol="kafka") for number in range(9)],
        [unheard(number, number, protocol="tls", client_bytes=99) for number in range(9)],
        [
            unheard(number, number, ending="reset", reset_frame=number, reset_acknowledges=False)
            for number in range(9)
        ],
        [unheard(number, number, protocol="http", client_bytes=9) for number in range(9)],
    ],
    ids=[
        "two",
        "within a moment",
        "after long",
        "by the client",
        "an alert",
        "TLS",
        "by another machine",
        "HTTP",
    ],
)
def test_what_else_ends_early_is_neither(rows: Rows) -> None:
    assert judge("backend_down", rows) == []
    assert judge("connection_limit", [*rows, HELD, SERVED], api_calls=[LATER]) == []


def test_a_proxy_that_tries_for_seconds_is_no_limit() -> None:
    """HAProxy tries a server three times before it closes."""
    rows = [
        unheard(number, number * 3, 3_000, protocol="kafka", client_id="shop", client_bytes=65, calls=1)
        for number in range(5)
    ]
    asked = [call(row["connection_id"], row["connection_id"] * 3, api_name="ApiVersions") for row in rows]
    assert len(judge("backend_down", rows, api_calls=asked)) == 1
    kept = kafka(90, 0, 50, ending="fin", closed_by="client")
    assert len(judge("backend_down", [*rows, kept], api_calls=asked)) == 1
    assert judge("connection_limit", [*rows, HELD], api_calls=asked) == []


def test_a_request_that_is_too_old_is_another_finding() -> None:
    rows = [
        unheard(number, number, protocol="kafka", client_id="shop", client_bytes=65, calls=1)
        for number in range(5)
    ]
    asked = [
        call(row["connection_id"], row["connection_id"], api_name="Produce", api_key=0, api_version=1)
        for row in rows
    ]
    assert judge("backend_down", rows, api_calls=asked) == []
    newer = [{**each, "api_version": 9} for each in asked]
    assert len(judge("backend_down", rows, api_calls=newer)) == 1


def test_what_is_not_known_to_be_asked_for_kafka_is_nobodys() -> None:
    rows = [{**row, "broker_port": 5555} for row in CLOSED]
    held = {**HELD, "broker_port": 5555}
    assert judge("backend_down", rows) == []
    assert judge("connection_limit", [*rows, held]) == []
    named = [{**row, "port_named": True} for row in (*rows, held)]
    assert len(judge("backend_down", named[:-1])) == 1
    assert len(judge("connection_limit", named)) == 1
