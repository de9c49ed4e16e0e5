"""Packets that several queues of a network card hand on in another order, each with its own time."""

from __future__ import annotations

import random
from datetime import timedelta
from typing import Any

import pytest

from tests.core.hand import START_NS, Talk, request, response, tables_of

MICROSECOND = timedelta(microseconds=1)


def _cut(rng: random.Random, message: bytes, places: tuple[int, ...]) -> list[bytes]:
    place = rng.choice(places)
    return [message[:place], message[place:]] if place else [message]


def _swapped(seed: int, calls: int) -> tuple[list[tuple[int, bytes]], dict[int, tuple[int, int]]]:
    """Packets with their times, 5 % of them swapped with one of the next three; and of each call the times of
    the first and the last packet of its response."""
    rng, talk, times, answered, at = random.Random(seed), Talk().open(), [0, 10_000, 20_000], {}, 1_000_000
    for number in range(calls):
        asked = [(True, part) for part in _cut(rng, request(number), (0, 0, 5, 11))]
        parts = [(False, part) for part in _cut(rng, response(number), (0, 0, 4, 9))]
        for side, part in asked + parts:
            talk.send(side, part)
            at += rng.randrange(50_000, 900_000, 1_000)
            times.append(at)
        answered[number] = times[-len(parts)], times[-1]
    packets = list(zip(times, talk.packets, strict=True))
    for one in range(3, len(packets) - 4):
        if rng.random() < 0.05:
            other = one + rng.randint(1, 3)
            packets[one], packets[other] = packets[other], packets[one]
    return packets, answered


def _tables(packets: list[tuple[int, bytes]]) -> dict[str, list[dict[str, Any]]]:
    times = [START_NS + at for at, _ in packets]
    return tables_of([packet for _, packet in packets], times_ns=times)


@pytest.mark.parametrize("seed", range(12))
def test_latencies_and_calls_have_the_same_times(seed: int) -> None:
    packets, answered = _swapped(seed, 100)
    tables = _tables(packets)
    latencies = {row["call_id"]: row for row in tables["latencies"]}
    first_time = min(row["first_time"] for row in tables["connections"])
    calls = [row for row in tables["api_calls"] if row["status"] == "answered"]
    assert len(calls) == len(latencies) == 100
    for row in calls:
        latency = latencies[row["call_id"]]
        first, last = answered[row["correlation_id"]]
        assert (row["response_time"] - first_time) // MICROSECOND * 1000 == first
        assert (row["response_end_time"] - first_time) // MICROSECOND * 1000 == last
        waited = latency["total_ns"] - latency["response_transmission_ns"]
        assert waited == (row["response_time"] - row["request_time"]) // MICROSECOND * 1000
        parts = [value for name, value in latency.items() if name in PARTS]
        assert min(parts) >= 0
        assert sum(parts) == latency["total_ns"]


PARTS = (
    "request_transmission_ns", "network_ns", "queue_wait_ns", "broker_ns", "deliberate_wait_ns",
    "response_transmission_ns",
)  # fmt: skip


def test_what_fills_a_hole_brings_no_time_before_what_waited_for_it() -> None:
    """The first half of a response is recorded behind the second one, with the time that it had."""
    talk = Talk().open()
    talk.send(True, request(1))
    talk.send(False, response(1)[:9])
    talk.send(False, response(1)[9:])
    times = [0, 1_000, 2_000, 10_000, 50_000, 60_000]
    order = [0, 1, 2, 3, 5, 4]
    tables = _tables([(times[number], talk.packets[number]) for number in order])
    (call,), (latency,) = tables["api_calls"], tables["latencies"]
    assert (call["response_time"] - call["request_time"]) // MICROSECOND == 40
    assert latency["total_ns"] == 50_000
    assert latency["total_ns"] - latency["response_transmission_ns"] == 40_000
