"""What partitions of calls say is followed in tasks by ranges of positions; rows are those of `analyze`."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kwsniff.spark import range_tasks, ranges
from kwsniff.spark.range_tasks import Range
from kwsniff.timelines import committed_lag
from kwsniff.timelines.memory_budget import MemoryBudget
from kwsniff.timelines.waits import evidence
from tests.perf.loads import SMALL_PERIOD, mixed, rounds
from tests.perf.repeat import write
from tests.pipeline.clocks import CLOCKS
from tests.pipeline.compare import capture_of
from tests.pipeline.test_latency import DATA
from tests.spark.compare import analyzed, parts, rotated, written
from tests.spark.test_pipeline import recorded, run
from tests.traffic import messages
from tests.traffic.nat import with_nat_twin
from tests.traffic.records import batch
from tests.traffic.tcp import MICROSECOND, MILLISECOND, Scene

RECORDED = (
    "begun_late", "group_consumer", "handovers", "killed_broker", "rebalance", "three_brokers",
    "transactions", "versions_4_4",
)  # fmt: skip
WAITS = (
    "follower_stopped/broker.pcap", "members_slow/broker.pcap", "members_slow/client.pcap",
    "loss_2/broker.pcap",
)  # fmt: skip


@pytest.fixture
def followed(monkeypatch: pytest.MonkeyPatch, in_process: None) -> list[Range]:
    """The ranges that were followed; all that there is, is cut into as many as there can be."""
    found: list[Range] = []

    def remember(number: int, **about: Any) -> Any:
        found.append(about["ranges"].load(number))
        return range_tasks.follow_range(number, **about)

    monkeypatch.setattr(ranges, "follow_range", remember)
    monkeypatch.setattr(ranges, "WORTH_ROWS", 1)
    monkeypatch.setattr(ranges, "SPAN_PACKETS", 10)
    monkeypatch.setattr(ranges, "_SPANS_OF_A_RANGE", 0)
    monkeypatch.setattr(ranges, "_SPANS_PER_BUCKET", 1 << 30)
    return found


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", RECORDED)
def test_a_recording_gives_the_tables_of_analyze(followed: list[Range], tmp_path: Path, name: str) -> None:
    run(recorded(name), tmp_path / "out")
    assert written(tmp_path / "out") == analyzed(recorded(name))
    assert len(followed) > 3


@pytest.mark.slow
@pytest.mark.sample(1)
@pytest.mark.parametrize("name", WAITS)
@pytest.mark.parametrize("most", [20, 1 << 16])
def test_what_is_proven_is_the_same(
    followed: list[Range], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, most: int
) -> None:
    monkeypatch.setattr(evidence, "MOST_EVENTS", most)
    run(CLOCKS / name, tmp_path / "out", num_buckets=5)
    found = written(tmp_path / "out")
    assert found == analyzed(CLOCKS / name)
    assert {"replicas", "group", "data"} & {row["wait"] for row in found["latencies"]}
    assert sum(each.waits for each in followed) > 5
    assert sum(0 < each.front < each.first for each in followed) > (5 if most == 20 else -1)


@pytest.mark.slow
def test_commits_of_several_files_and_buckets_are_the_same(
    followed: list[Range], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "whole.pcap", rounds(mixed), megabytes=3, period_ns=SMALL_PERIOD)
    (tmp_path / "parts").mkdir()
    paths = rotated((tmp_path / "whole.pcap").read_bytes(), 5, tmp_path / "parts")
    monkeypatch.setattr(ranges, "SPAN_PACKETS", 400)
    run(paths, tmp_path / "out", num_buckets=7)
    assert written(tmp_path / "out") == analyzed(*paths)
    assert sum(bool(each.ends) for each in followed) > 5


@pytest.mark.slow
@pytest.mark.sample(1)
@pytest.mark.parametrize("capture", [recorded("three_brokers"), CLOCKS / WAITS[0]], ids=["calls", "waits"])
def test_twins_say_nothing_twice(followed: list[Range], tmp_path: Path, capture: Path) -> None:
    (tmp_path / "twice.pcap").write_bytes(with_nat_twin(capture))
    run(tmp_path / "twice.pcap", tmp_path / "out")
    found = written(tmp_path / "out")
    assert found == analyzed(tmp_path / "twice.pcap")
    assert any(row["twin_of"] for row in found["connections"])


def test_where_little_is_said_the_driver_follows_it(
    in_process: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("there was a task for it")

    for name in ("survey_range", "follow_range"):
        monkeypatch.setattr(ranges, name, refuse)
    assert run(recorded("three_brokers"), tmp_path / "out").rows["commits"]


def _limits(folder: Path) -> int:
    told = Counter[str]()
    for row in written(folder)["anomalies"]:
        told[row["name"]] += row["value"] or 0
    return told["timelines_limit"]


@pytest.mark.slow
def test_ends_that_nobody_remembers_are_told_of(
    followed: list[Range], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(recorded("three_brokers"), tmp_path / "all")
    assert not _limits(tmp_path / "all")
    monkeypatch.setattr(committed_lag, "MOST_PARTITIONS", 1)
    made = run(recorded("three_brokers"), tmp_path / "out")
    assert _limits(tmp_path / "out")
    assert made.rows["commits"] == len(written(tmp_path / "all")["commits"])


@pytest.mark.slow
def test_texts_that_tasks_have_no_room_for_settle_what_is_held(
    followed: list[Range], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def small() -> MemoryBudget:
        budget = MemoryBudget()
        budget.most = 1
        return budget

    monkeypatch.setattr(range_tasks, "MemoryBudget", small)
    made = run(CLOCKS / WAITS[0], tmp_path / "out")
    assert _limits(tmp_path / "out")
    assert made.rows["latencies"] == len(analyzed(CLOCKS / WAITS[0])["latencies"])


@pytest.mark.parametrize(
    ("packets", "buckets", "spans"),
    [(0, 4, (1, 1)), (999, 4, (99, 11)), (10**6, 4, (8 << 10, 123)), (1 << 62, 1 << 30, (1 << 31, 1 << 31))],
)
def test_spans_are_as_many_as_packets_and_buckets_let_them(
    monkeypatch: pytest.MonkeyPatch, packets: int, buckets: int, spans: tuple[int, int]
) -> None:
    monkeypatch.setattr(ranges, "SPAN_PACKETS", 10)
    monkeypatch.setattr(ranges, "_SPANS_PER_BUCKET", 2 << 10 if buckets == 4 else 2)
    assert ranges.spans_for(packets, buckets) == spans
    assert spans[0] * spans[1] >= packets


MS = MILLISECOND
NOTHING = {"orders": {0: b""}}
ELSEWHERE = {"orders": {1: batch([b"one"], base_offset=3)}}


def _waits(before: int, between: int) -> Scene:
    """A client that waits for a follower, and again in line behind that. So many others write before the
    follower is answered (these come first in the scene), and between it and either answer of the client."""
    scene = Scene()
    others = [scene.connection() for _ in range(before + 2 * between)]
    client, follower = scene.connection(), scene.connection()
    for script in (*others, client, follower):
        script.open(round_trip_ns=20 * MICROSECOND)
    client.call(messages.produce(9, 1, DATA), at=10 * MS, answer_at=300 * MS)
    client.call(messages.produce(9, 2, DATA), at=20 * MS, answer_at=302 * MS)
    follower.call(messages.fetch(11, 3, NOTHING, replica=2), at=295 * MS, answer_at=299 * MS)
    for number, script in enumerate(others):
        place = 0 if number < before else 1 + (number - before) // between
        at = (200, 299, 301)[place] * MS + (10 + number) * MICROSECOND
        script.call(messages.produce(9, 4 + number, ELSEWHERE, acks=1), at=at - MS, answer_at=at)
    return scene


@pytest.mark.sample(1)
@pytest.mark.parametrize(("between", "waits"), [(6, ["replicas"]), (7, ["none"])])
def test_what_proves_a_wait_may_lie_twice_as_far_in_front_of_who_stood_behind_it(
    followed: list[Range], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, between: int, waits: list[str]
) -> None:
    monkeypatch.setattr(evidence, "MOST_EVENTS", 8)
    monkeypatch.setattr(ranges, "SPAN_PACKETS", 1)
    capture = capture_of(tmp_path / "waits.pcap", _waits(9, between).packets())
    run(capture, tmp_path / "out")
    found = written(tmp_path / "out")
    assert found == analyzed(capture)
    assert [row["queued_behind_wait"] for row in found["latencies"] if row["queued_behind"]] == waits
    assert max(each.front for each in followed if each.waits) > 1


@pytest.mark.sample(1)
@pytest.mark.parametrize(("ahead_s", "wait"), [(0, "replicas"), (1000, "replicas_possible")])
def test_a_clock_that_was_ahead_is_so_for_every_range(
    followed: list[Range], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ahead_s: int, wait: str
) -> None:
    """What is told a second late proves nothing, however far in front somebody said what time it is."""
    monkeypatch.setattr(evidence, "MOST_EVENTS", 2)
    monkeypatch.setattr(ranges, "SPAN_PACKETS", 1)
    first, *rest = _waits(4, 0).scripts
    ahead = [replace(each, time_ns=each.time_ns + ahead_s * 1000 * MS) for each in first.packets()]
    others = sorted((each for script in rest for each in script.packets()), key=lambda each: each.time_ns)
    capture = capture_of(tmp_path / "waits.pcap", [*ahead, *others])
    run(capture, tmp_path / "out")
    found = written(tmp_path / "out")
    assert found == analyzed(capture)
    assert [row["wait"] for row in found["latencies"] if row["total_ns"] > 280 * MS][:1] == [wait]
    assert any(each.clock > 0 for each in followed if each.waits)


@pytest.mark.slow
def test_tasks_of_spark_follow_ranges(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers see nothing of what was changed here but how many ranges there are."""
    monkeypatch.setattr(ranges, "WORTH_ROWS", 1)
    monkeypatch.setattr(ranges, "SPAN_PACKETS", 40)
    capture = CLOCKS / WAITS[0]
    run(capture, tmp_path / "out", spark, num_buckets=2)
    found = written(tmp_path / "out")
    assert found == analyzed(capture)
    assert any("range-" in path.name for path in parts(tmp_path / "out", "latencies"))
