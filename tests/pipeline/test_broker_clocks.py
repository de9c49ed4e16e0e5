"""Where the time of a call went, held against the brokers' own clocks and the relay's distance: clocks.py.

The target is 97 % of the broker's own time and of waits, on both sides, and the rest looked at and explained.
`FLOORS` are what holds today; who makes kwsniff tell more raises them. The table of shares is printed.
"""

from __future__ import annotations

import statistics
from collections import Counter
from datetime import timedelta
from functools import cache
from pathlib import Path

import pytest

from tests.pipeline.clocks import (
    NAMES,
    SIDES,
    Compared,
    about,
    calls,
    compared,
    identity,
    logged,
    shares,
    table,
    tables,
    witness,
)
from tests.pipeline.explained import kinds, page

pytestmark = pytest.mark.sample_tests(4)

# Share of calls that agree, of all recordings together, by side and part.
FLOORS = {
    ("client", "wait"): 0.99,
    ("client", "waited"): 0.99,
    ("client", "word"): 1.0,
    ("client", "broker"): 0.98,
    ("client", "both"): 0.97,
    ("client", "network"): 0.99,
    ("client", "lost"): 0.95,
    ("client", "line"): 0.99,
    ("client", "behind"): 1.0,
    ("broker", "wait"): 0.99,
    ("broker", "waited"): 0.98,
    ("broker", "word"): 1.0,
    ("broker", "broker"): 0.98,
    ("broker", "network"): 0.99,
    ("broker", "behind"): 0.98,
}
TARGET = 0.97
EDGE = timedelta(milliseconds=50)
ROUNDING_US = 5  # each part of the log is rounded by itself
LOGGED_NOT = {17, 36}  # SASL: answered before it is known who asks
API_VERSIONS = 18


@cache
def every(side: str) -> list[Compared]:
    return [one for name in NAMES for one in compared(name, side)]


@pytest.mark.slow
def test_shares_of_calls_that_agree_with_their_witness(capsys: pytest.CaptureFixture[str]) -> None:
    with capsys.disabled():
        print("\n" + table())  # noqa: T201
    for side in SIDES:
        found = shares(every(side))
        for (where, part), floor in FLOORS.items():
            if where == side:
                agree, total = found[part]
                assert agree >= floor * total, (side, part, agree, total)


@pytest.mark.slow
def test_the_target_is_within_reach() -> None:
    """Beside the brokers, if waits were told as the log has them, what is left would be the brokers' time.

    The rest is the witness': a broker without a processor before it reads, or after the answer has left.
    """
    agree = Counter[bool]()
    for name in NAMES:
        found = list(compared(name, "broker"))
        waits = {one.row["call_id"]: one.theirs for one in found if one.part == "wait"}
        for one in (one for one in found if one.part == "broker"):
            both_us = (one.row["broker_ns"] + one.row["deliberate_wait_ns"]) / 1000
            left = Compared("broker", "broker", one.row, both_us - waits[one.row["call_id"]], one.theirs)
            agree[left.agrees] += 1
    assert agree[True] >= TARGET * agree.total()


def test_what_does_not_agree_is_explained() -> None:
    found = kinds()
    parts = {"wait", "broker", "line"}
    assert {key: count for key, count in found.items() if key[1] in parts and key[2] == "other"} == {}


def test_the_page_says_what_holds() -> None:
    found = (Path(__file__).parents[2] / "docs" / "latency_breakdown.md").read_text("utf-8")
    assert found == page(), "python -m tests.pipeline.explained > docs/latency_breakdown.md"


@pytest.mark.parametrize("side", SIDES)
def test_few_calls_lie_unread(side: str) -> None:
    """What the brokers' log cannot explain must stay the exception, or it is no witness."""
    found = shares(every(side))
    assert found["unread"][1] < 0.1 * (found["unread"][1] + found["broker"][1])


@pytest.mark.parametrize("name", NAMES)
def test_calls_beside_the_brokers_are_those_they_logged(name: str) -> None:
    """Same port, correlation id, API, version: each once, none missing, none more."""
    begin, end = about(name)["witnessed"]
    rows = tables(name, "broker")["api_calls"]
    authenticated = any(row["api_key"] in LOGGED_NOT for row in rows)
    unlogged = LOGGED_NOT | ({API_VERSIONS} if authenticated else set())
    seen = Counter(identity(row) for row in rows)
    answered = Counter(
        identity(row)
        for row in rows
        if row["status"] == "answered" and row["api_key"] not in unlogged
        if begin + EDGE < row["request_time"] and row["response_end_time"] < end - EDGE
    )
    theirs = Counter(identity(line) for line in logged(name) if not line.forwarded)
    assert theirs - seen == Counter()
    assert answered - theirs == Counter()
    assert len(theirs) > 5


@pytest.mark.parametrize("name", NAMES)
def test_parts_of_the_log_add_up_to_its_total(name: str) -> None:
    for line in logged(name):
        parts = (line.request_queue_us, line.local_us, line.remote_us, line.response_queue_us, line.send_us)
        known = [part for part in parts if part is not None]
        assert len(known) == len(parts)
        assert line.total_us is not None
        assert abs(sum(known) - line.total_us) <= ROUNDING_US, line


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("name", NAMES)
def test_every_frame_is_decoded_to_its_last_byte(name: str, side: str) -> None:
    found = tables(name, side)
    assert {row["name"] for row in found["anomalies"]} <= set(about(name)["anomalies"])
    assert {row["protocol"] for row in found["connections"] if row["client_bytes"]} == {"kafka"}
    assert {row["reason"] for row in found["api_calls"]}.isdisjoint({"undecodable", "unknown_version"})


@pytest.mark.parametrize("name", NAMES)
def test_a_call_at_the_client_is_never_shorter_than_beside_the_broker(name: str) -> None:
    """The client is farther away: by the relay's round trip, if nothing was lost."""
    there = calls(name, "broker")
    ways = {way["address"]: way for way in about(name)["clients"]}
    pairs = [(row, there[key]) for key, row in calls(name, "client").items() if key in there]
    assert len(pairs) > 5
    for here, beside in pairs:
        way = ways[here["client_address"]]
        farther_ms = (here["total_ns"] - beside["total_ns"]) / 1e6
        if not way["loss"]:
            assert farther_ms > way["round_trip_ms"] - 0.1 or here["queue_wait_ns"], here
    if len({way["round_trip_ms"] for way in ways.values()}) == 1:
        middle = statistics.median((here["total_ns"] - beside["total_ns"]) / 1e6 for here, beside in pairs)
        assert middle >= next(iter(ways.values()))["round_trip_ms"]


def test_a_throttled_connection_is_witnessed_as_muted() -> None:
    """KIP-219: the answer comes first, with the time for which the next request will lie there."""
    for name in ("quota", "quota_3_9"):
        over = [line for line in witness(name).values() if line.throttle_us]
        assert len(over) >= 5
        waited = [one for one in compared(name, "broker") if one.part == "waited"]
        assert len(waited) >= 4
        assert all(one.row["wait"] == "throttle" for one in waited if one.agrees)
