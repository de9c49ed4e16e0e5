"""Record batches are followed in tasks by topic-partition; rows are those of `analyze`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kwsniff.spark import ranges
from kwsniff.spark.delivery_tasks import find_shards
from kwsniff.timelines.deliveries import deliveries as held
from kwsniff.timelines.timelines import Timelines
from tests.house.tree import ROOT
from tests.spark.compare import analyzed, parts, written
from tests.spark.test_pipeline import run

CAPTURES = ROOT / "captures"
RECORDED = (
    "deliveries/capture.pcap.gz", "deliveries_java/capture.pcap.gz", "field/eos_healthy.pcap",
    "group_consumer/capture.pcap", "incidents/healthy_long_transactions/broker.pcap",
)  # fmt: skip
_OF_A_BATCH = ("topic", "partition", "base_offset", "last_offset", "produced_call_id")


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch, in_process: None) -> None:
    """Everything goes to tasks."""
    monkeypatch.setattr(ranges, "WORTH_ROWS", 1)
    monkeypatch.setattr(ranges, "SPAN_PACKETS", 100)
    monkeypatch.setattr(ranges, "_SPANS_PER_BUCKET", 1 << 30)


def _tasks(folder: Path) -> set[str]:
    """The tasks that wrote rows of deliveries."""
    return {"-".join(path.name.split("-")[:2]) for path in parts(folder, "deliveries")}


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", RECORDED)
@pytest.mark.parametrize("shards", [1, 5])
def test_rows_are_those_of_analyze(
    shared: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, shards: int
) -> None:
    monkeypatch.setattr(ranges, "MOST_SHARDS", shards)
    run(CAPTURES / name, tmp_path / "out", num_buckets=3)
    found = written(tmp_path / "out")
    assert found == analyzed(CAPTURES / name)
    assert any(row["lag_ns"] is not None for row in found["commits"])
    assert all(task.startswith("shard-") for task in _tasks(tmp_path / "out"))


def test_each_topic_partition_is_in_one_task(
    shared: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four topics of a partition each: requests have names or ids of them."""
    monkeypatch.setattr(ranges, "MOST_SHARDS", 64)
    capture = CAPTURES / RECORDED[1]
    run(capture, tmp_path / "out", num_buckets=3)
    assert len(_tasks(tmp_path / "out")) == 4
    assert {row["topic"] for row in written(tmp_path / "out")["deliveries"]} == {
        row["topic"] for row in analyzed(capture)["deliveries"]
    }


def test_the_driver_follows_no_batches(shared: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError("the driver follows batches")

    class Driver(Timelines):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            monkeypatch.setattr(self.deliveries, "add", refuse)

    monkeypatch.setattr(ranges, "Timelines", Driver)
    assert run(CAPTURES / RECORDED[0], tmp_path / "out").rows["deliveries"]


def test_a_name_and_its_id_have_the_same_shard_and_partitions_are_spread() -> None:
    topics = ["orders", None, "orders", None]
    ids = [None, "id-1", None, "id-1"]
    rows = pa.RecordBatch.from_pydict(
        {
            "topic": pa.array(topics, pa.string()).dictionary_encode(),
            "topic_id": pa.array(ids, pa.string()).dictionary_encode(),
            "partition": pa.array([0, 0, 1, 1], pa.int32()),
        }
    )
    for number in (1, 2, 7, 64):
        found = find_shards(rows, {"id-1": "orders"}, number).tolist()
        assert found[0] == found[1]
        assert found[2] == found[3] == (found[0] + 1) % number


@pytest.mark.slow
def test_a_task_without_memory_leaves_lag_out_and_makes_none_up(
    shared: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tasks hold so few sightings that most become rows early; analyze holds all."""
    capture = CAPTURES / RECORDED[0]
    before = analyzed(capture)
    known = {(row["call_id"], row["partition"]): row["lag_ns"] for row in before["commits"]}
    monkeypatch.setattr(held, "_LEAST", 40)
    monkeypatch.setattr(held, "_SHARE", 1 << 40)
    run(capture, tmp_path / "out")
    found = written(tmp_path / "out")
    told = [(row["lag_ns"], known[row["call_id"], row["partition"]]) for row in found["commits"]]
    assert all(lag in {None, whole} for lag, whole in told)
    assert any(lag for lag, _ in told)
    produced = [
        {tuple(row[name] for name in _OF_A_BATCH) for row in rows["deliveries"] if row["produced_time"]}
        for rows in (found, before)
    ]
    assert produced[0] == produced[1]


@pytest.mark.slow
def test_tasks_of_spark_follow_batches(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers see nothing of what was changed here but how many ranges and shards there are."""
    monkeypatch.setattr(ranges, "WORTH_ROWS", 1)
    monkeypatch.setattr(ranges, "SPAN_PACKETS", 400)
    monkeypatch.setattr(ranges, "MOST_SHARDS", 4)
    capture = CAPTURES / RECORDED[1]
    run(capture, tmp_path / "out", spark, num_buckets=2)
    assert written(tmp_path / "out") == analyzed(capture)
    assert len(_tasks(tmp_path / "out")) > 1
