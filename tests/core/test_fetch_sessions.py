"""Fetch sessions against a model of them: sets of partitions by topic (KIP-227)."""

import random
from typing import Any

import pytest

from tests.core.hand import Talk, tables_of
from tests.core.test_bounds import call_of
from tests.traffic import messages

MOST = 65_535


def _talk(version: int, steps: list[tuple[dict[str, set[int]], dict[str, set[int]]]]) -> Talk:
    """A session: what each request names, and what it forgets."""
    talk = Talk().open()
    for epoch, (named, forgotten) in enumerate(steps):
        call = messages.fetch(
            version,
            epoch + 1,
            {topic: dict.fromkeys(sorted(parts), b"") for topic, parts in named.items()},
            session=(77 if epoch else 0, epoch),
            opened=77,
            forgotten={topic: sorted(parts) for topic, parts in forgotten.items()},
            news={},
        )
        assert call.response
        for start in range(0, len(call.request), 60_000):
            talk.send(True, call.request[start : start + 60_000])
        talk.send(False, call.response)
    return talk


@pytest.mark.parametrize("version", [7, 12])
@pytest.mark.parametrize("seed", range(4))
def test_a_session_asks_for_what_was_added_and_not_forgotten(version: int, seed: int) -> None:
    dice = random.Random(seed)
    topics = [f"topic-{number}" for number in range(100)]
    asked: dict[str, set[int]] = {}
    steps: list[Any] = []
    counts, named_in_all = [], []
    for _ in range(40):
        named = {
            topic: set(dice.sample(range(30), 5)) for topic in dice.sample(topics, dice.randrange(1, 90))
        }
        forgotten = (
            {}
            if not steps
            else {
                topic: set(dice.sample(range(30), dice.randrange(1, 30)))
                for topic in dice.sample(topics, dice.randrange(95))
            }
        )
        for topic, parts in named.items():
            asked.setdefault(topic, set()).update(parts)
        for topic, parts in forgotten.items():
            if topic in asked:
                asked[topic] -= parts
        steps.append((named, forgotten))
        counts.append(sum(map(len, asked.values())))
        named_in_all.append({topic for topic, parts in asked.items() if parts})
    tables = tables_of(_talk(version, steps).packets)
    calls = [call_of(tables, number + 1) for number in range(len(steps))]
    assert [call["partition_count"] for call in calls] == counts
    assert [set(call["topics"]) for call in calls] == named_in_all


def test_sessions_of_mirror_makers_are_known_to_their_last_partition() -> None:
    """65,535 partitions of 4,096 topics, then requests that name none, one, and drop one."""
    everything = {f"t{number:04}": set(range(16)) for number in range(4095)} | {"last": set(range(15))}
    steps = [
        (everything, {}),
        ({}, {}),
        ({"new": {0}}, {}),
        ({}, {"last": {3}}),
        ({"last": {3}}, {"new": {0}}),
    ]
    tables = tables_of(_talk(12, steps).packets)
    counts = [call_of(tables, number + 1)["partition_count"] for number in range(5)]
    assert counts == [MOST, MOST, MOST + 1, MOST, MOST]


def test_names_that_come_and_go_take_no_more_room_than_those_that_stay() -> None:
    """Each request adds a topic with a long name and forgets the one before."""

    def name(number: int) -> str:
        return f"{number:05}".ljust(20_000, "x")

    steps: list[Any] = [({"stays": {0}, name(0): {0}}, {})]
    steps += [({name(number): {0}}, {name(number - 1): {0}}) for number in range(1, 600)]
    tables = tables_of(_talk(12, steps).packets, limits={"in_flight_bytes_total": 4 << 20})
    assert {call["partition_count"] for call in tables["api_calls"]} == {2}
