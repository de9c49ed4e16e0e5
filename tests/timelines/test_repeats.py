"""What comes again and again is read once and counted: answers about the cluster, heartbeats of members."""

from __future__ import annotations

import random
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import kwsniff
from kwsniff.layout.catalog import load_catalog
from kwsniff.timelines import row_path
from kwsniff.timelines.groups.heartbeats import without_repeats
from kwsniff.timelines.metadata import cluster
from kwsniff.timelines.timelines import Noted, Timelines, extract_events
from tests.pipeline.compare import analyzed_packets, capture_of
from tests.traffic import groups, messages
from tests.traffic.exchange import Exchange
from tests.traffic.scenes import one_by_one

CAPTURES = Path(__file__).parents[2] / "captures"
RECORDED = ("group_classic", "group_consumer", "killed_broker", "rebalance", "transactions", "zookeeper_0_10")

Row = dict[str, Any]


def noted_of(capture: Path, monkeypatch: pytest.MonkeyPatch) -> list[Noted]:
    found: list[Noted] = []

    def note(*values: Any, **named: Any) -> Noted:
        found.append(extract_events(*values, **named))
        return found[-1]

    monkeypatch.setattr(row_path, "extract_events", note)
    kwsniff.analyze(capture)
    return found


def followed(noted: list[Noted]) -> dict[str, list[Row]]:
    timelines = Timelines(load_catalog())
    for each in noted:
        timelines.add(each)
    timelines.finish()
    found: dict[str, list[Row]] = {}
    for table, batch in timelines.drain(0):
        found.setdefault(table, []).extend(batch.to_pylist())
    return found


def one_call_each(noted: list[Noted]) -> list[Noted]:
    return [Noted(each.calls.slice(row, 1), None) for each in noted for row in range(each.calls.num_rows)]


@pytest.mark.parametrize("name", RECORDED)
def test_timelines_are_the_same_however_calls_come_together(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = [Noted(each.calls, None) for each in noted_of(CAPTURES / name / "capture.pcap", monkeypatch)]
    together, apart = followed(calls), followed(one_call_each(calls))
    assert together == apart
    assert any(together.values())


def test_heartbeats_between_other_calls_of_groups_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dice = random.Random(5)
    calls: list[Exchange] = []
    for number in range(1, 400):
        group = f"group-{dice.randrange(2)}"
        if dice.random() < 0.01:
            calls.append(groups.join_group(5, number, group))
        elif dice.random() < 0.01:
            calls.append(groups.sync_group(3, number, group))
        else:
            client, error = f"client-{dice.randrange(2)}", dice.choice([0] * 60 + [25, 27, 82])
            calls.append(groups.heartbeat(3, number, group, client_id=client, error=error))
    found = noted_of(capture_of(tmp_path / "capture.pcap", one_by_one(calls).packets()), monkeypatch)
    (all_calls,) = (each.calls for each in found if each.calls.num_rows)
    left = without_repeats(all_calls, load_catalog()).num_rows
    assert 100 < left < 0.8 * all_calls.num_rows
    apart = followed(one_call_each(found))
    assert followed([Noted(all_calls, None)]) == apart
    assert {row["left_how"] for row in apart["members"]} >= {"session_expired", "fenced"}


@pytest.mark.parametrize("most", [10_000, 3], ids=["remembered", "mostly forgotten"])
def test_every_answer_counts_for_the_leaders_it_names(
    most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Leaders move to and fro, some answers name no epochs; what is expected is counted here."""
    monkeypatch.setattr(cluster, "MOST_ANSWERS", most)
    dice = random.Random(7)
    calls = [messages.metadata(12, 1, ["orders", "returns"])]
    leader, epoch = 1, 5
    told: list[tuple[int, int, int, int | None]] = [(1, 2, leader, epoch)]
    for number in range(2, 500):
        if dice.random() < 0.02:
            leader, epoch = dice.randrange(1, 4), epoch + 1
        late = dice.random() < 0.1 and epoch > 5  # a broker that has not heard of it yet
        version, partitions = dice.choice([5, 9, 12]), dice.choice([1, 2, 2])
        named = (leader, epoch - 1) if late else (leader, epoch)
        calls.append(
            messages.metadata(
                version, number, ["orders", "returns"], partitions=partitions, leader=named[0], epoch=named[1]
            )
        )
        told.append((number, partitions, named[0], named[1] if version >= 7 else None))
    found = analyzed_packets(tmp_path, one_by_one(calls).packets())
    numbers = {row["call_id"]: row["correlation_id"] for row in found["api_calls"]}
    assert Counter(
        (row["topic"], row["partition"], row["leader"], row["leader_epoch"], row["calls"],
         numbers[row["first_call_id"]], numbers[row["last_call_id"]])
        for row in found["leaders"]
    ) == Counter((topic, *row) for topic in ("orders", "returns") for row in expected(told))  # fmt: skip
    (broker,) = found["brokers"]
    assert (broker["calls"], numbers[broker["last_call_id"]]) == (len(calls), len(calls))


def expected(told: list[tuple[int, int, int, int | None]]) -> list[tuple[Any, ...]]:
    """Partition, leader, epoch, calls, first and last call. Without epochs, a row per stretch of time."""
    rows: list[tuple[Any, ...]] = []
    for partition in (0, 1):
        mine = [each for each in told if each[1] > partition]
        known: dict[tuple[int, int | None], list[int]] = {}
        for number, _, leader, epoch in mine:
            if epoch is not None:
                known.setdefault((leader, epoch), []).append(number)
        rows += [(partition, *key, len(calls), calls[0], calls[-1]) for key, calls in known.items()]
        bare = [(number, leader) for number, _, leader, epoch in mine if epoch is None]
        starts = [0, *(n for n, (a, b) in enumerate(pairwise(bare), 1) if a[1] != b[1]), len(bare)]
        for begin, end in pairwise(starts):
            stretch = bare[begin:end]
            rows.append((partition, stretch[0][1], None, len(stretch), stretch[0][0], stretch[-1][0]))
    return rows
