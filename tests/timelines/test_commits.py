"""What groups commit, against the end of the partition that anybody was told before."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import kwsniff
from kwsniff.layout.catalog import load_catalog
from kwsniff.sources.files import CaptureFile
from kwsniff.timelines import committed_lag, row_path
from kwsniff.timelines.offsets import OFFSETS
from tests.pipeline.compare import analyzed_packets
from tests.tables.runs import of_any_run
from tests.traffic import groups, messages
from tests.traffic.exchange import Exchange, Facts, exchange
from tests.traffic.records import batch
from tests.traffic.scenes import one_by_one
from tests.traffic.tcp import MILLISECOND, Scene
from tests.traffic.wire import Encoder

ROOT = Path(__file__).parents[2]
CAPTURES = ROOT / "captures"
OLDER = ROOT.parent / "shared" / "incidents"
RECORDED = [
    CAPTURES / "group_classic" / "capture.pcap",
    CAPTURES / "group_consumer" / "capture.pcap",
    CAPTURES / "transactions" / "capture.pcap",
    CAPTURES / "incidents" / "healthy_rolling" / "broker.pcap",
    CAPTURES / "incidents" / "poll_interval_exceeded" / "broker.pcap",
    *(OLDER / f"{name}.pcap" for name in ("lag_grows", "slow_consumer", "old_kp_2.6_on_3.9")),
]

Row = dict[str, Any]


def commits(folder: Path, *turns: tuple[int, Exchange]) -> list[Row]:
    """Rows of calls made one after the other, each on the connection of its number."""
    scene = Scene()
    scripts = {}
    for number, (who, call) in enumerate(turns):
        at = 10 * MILLISECOND * (number + 1)
        if who not in scripts:
            scripts[who] = scene.connection()
            scripts[who].open(at=at - 5 * MILLISECOND)
        scripts[who].call(call, at=at, answer_at=at + 2 * MILLISECOND)
    return analyzed_packets(folder, scene.packets())["commits"]


def told(row: Row) -> int | None:
    """How far the partition of a row of partitions reaches, as its call was told."""
    if row["error_code"] not in (0, None):
        return None
    if row["api_name"] == "Produce" and row["base_offset"] is not None and row["error_code"] == 0:
        return int(row["base_offset"]) + int(row["record_count"])
    if row["api_name"] == "ListOffsets":
        return row["requested_offset"]
    return row["high_watermark"]


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem + "." + path.parent.name)
def test_the_greatest_end_told_before_counts(path: Path) -> None:
    """Searched for again by hand, over all rows of partitions for each commit."""
    if not path.exists():
        pytest.skip("there is no ../shared beside this checkout")
    found = kwsniff.analyze(path)
    order = {row["call_id"]: place for place, row in enumerate(found.api_calls.to_pylist())}
    ends = found.api_calls.select(["call_id", "response_end_time"]).to_pylist()
    answered = {row["call_id"]: row["response_end_time"] for row in ends}
    rows = found.partitions.to_pylist()
    expected = []
    for commit in rows:
        if commit["api_name"] not in ("OffsetCommit", "TxnOffsetCommit") or commit["error_code"] != 0:
            continue
        before = [
            (end, order[row["call_id"]], row["call_id"])
            for row in rows
            if (row["topic"], row["partition"]) == (commit["topic"], commit["partition"])
            and order[row["call_id"]] < order[commit["call_id"]]
            and (end := told(row)) is not None
        ]
        end, _, call = max(before)
        assert end >= commit["requested_offset"]
        age = (answered[commit["call_id"]] - answered[call]) // timedelta(microseconds=1) * 1000
        expected.append(
            {
                **{name: commit[name] for name in ("call_id", "group_id", "topic", "partition")},
                "committed_offset": commit["requested_offset"],
                "high_watermark": end,
                "high_watermark_call_id": call,
                "high_watermark_age_ns": age,
                "lag": end - commit["requested_offset"],
            }
        )
    assert expected
    names = list(expected[0])
    assert found.commits.select(names).to_pylist() == expected
    assert None not in {row["group_id"] for row in expected}


def test_a_client_that_reads_ahead_is_behind_with_what_it_commits() -> None:
    """The README beside it: by 320 at the last commit, while the lag of fetches is 0."""
    path = OLDER / "lag_grows.pcap"
    if not path.exists():
        pytest.skip("there is no ../shared beside this checkout")
    found = kwsniff.analyze(path, tables=["commits", "partitions"])
    rows = [row for row in found.commits.to_pylist() if row["group_id"] == "prefetcher"]
    assert rows[-1]["client_id"] == "reports-1"
    assert rows[-1]["lag"] == 320
    assert [row["lag"] for row in rows] == sorted(row["lag"] for row in rows)
    fetched = [row["lag"] for row in found.partitions.to_pylist() if row["client_id"] == "reports-1"]
    assert [lag for lag in fetched if lag is not None][-1] == 0


@pytest.mark.parametrize("name", ["group_classic", "transactions"])
def test_how_rows_are_taken_changes_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = CAPTURES / name / "capture.pcap"
    whole = of_any_run(kwsniff.analyze(path).commits).to_pylist()
    monkeypatch.setattr(row_path, "ROW_GROUP_ROWS", 2)
    monkeypatch.setattr(CaptureFile, "readable", in_small_pieces(CaptureFile.readable))
    assert of_any_run(kwsniff.analyze(path).commits).to_pylist() == whole
    assert len(whole) >= 1


def in_small_pieces(readable: Any) -> Any:
    def cut(capture: Any) -> Any:
        for buffer in readable(capture):
            for start in range(0, len(buffer), 100):
                yield buffer[start : start + 100]

    return cut


def test_whoever_was_told_the_end_of_a_partition(tmp_path: Path) -> None:
    """Ends of a fetch, a produce and a list of offsets, on connections of their own."""
    two = batch([b"one", b"two"])  # answered with 42 as the first offset
    rows = commits(
        tmp_path,
        (0, messages.metadata(12, 1, ["orders"])),
        (0, messages.fetch(13, 2, {"orders": {0: two}}, high_watermark=120)),
        (1, groups.offset_commit(8, 1, "billing", {"orders": {0: 90, 1: 7}})),
        (2, messages.produce(9, 1, {"orders": {1: two}})),
        (2, messages.produce(9, 2, {"orders": {0: two}}, errors={("orders", 0): 6})),
        (3, groups.list_offsets(7, 1, {"returns": 0})),
        (1, groups.offset_commit(8, 2, "billing", {"orders": {1: 40}, "returns": {0: 70}})),
        (1, groups.offset_commit(8, 3, "billing", {"returns": {0: 78}})),
    )
    names = ("group_id", "topic", "partition", "committed_offset", "high_watermark", "lag")
    assert [tuple(row[name] for name in names) for row in rows] == [
        ("billing", "orders", 0, 90, 120, 30),
        ("billing", "orders", 1, 7, None, None),
        ("billing", "orders", 1, 40, 44, 4),
        ("billing", "returns", 0, 70, 77, 7),
        ("billing", "returns", 0, 78, 77, None),  # somebody wrote what is not in the capture
    ]


def test_what_the_coordinator_refused_is_not_committed(tmp_path: Path) -> None:
    refused = groups.offset_commit(8, 1, "billing", {"orders": {0: 1, 1: 2}}, errors={("orders", 0): 22})
    (row,) = commits(tmp_path, (0, refused))
    assert (row["partition"], row["committed_offset"]) == (1, 2)


def test_before_anybody_names_its_id_nothing_is_known_of_a_topic(tmp_path: Path) -> None:
    commit = groups.offset_commit(8, 1, "billing", {"orders": {0: 90}})
    rows = commits(
        tmp_path,
        (0, messages.fetch(13, 1, {"orders": {0: batch([b"one"])}}, high_watermark=120)),
        (1, commit),
        (0, messages.metadata(12, 2, ["orders"])),
        (1, commit),
    )
    assert [(row["topic"], row["lag"]) for row in rows] == [("orders", None), ("orders", 30)]


def test_an_offset_of_several_groups_is_its_groups(tmp_path: Path) -> None:
    """OffsetFetch 8 asks for many groups at once: what is answered names each."""
    request = Encoder(True).count(2)
    response = Encoder(True).i32(0).count(2)
    for group, offset in (("billing", 5), ("reports", 6)):
        request.string(group).count(1).string("orders").count(1).i32(0).tags().tags()
        response.string(group).count(1).string("orders").count(1).i32(0).i64(offset).i32(-1).string("")
        response.i16(0).tags().tags().i16(0).tags()
    request.i8(0).tags()
    call = exchange((9, 8, 1, "admin"), request.data, response.tags().data, Facts())
    rows = analyzed_packets(tmp_path, one_by_one([call]).packets())["partitions"]
    assert [(row["group_id"], row["requested_offset"]) for row in rows] == [("billing", 5), ("reports", 6)]


def test_beyond_the_limit_the_end_told_longest_ago_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(committed_lag, "MOST_PARTITIONS", 2)
    followed = committed_lag.Commits(load_catalog())
    for number, partition in enumerate((0, 1, 0, 2)):
        followed.add(offsets({"place": number, "partition": partition, "reached": 100}), [])
    assert followed.forgotten == 1
    for partition in (0, 1, 2):
        followed.add(offsets({"place": 9, "partition": partition, "committed": 40}), [])
    rows = [row for batch in followed.drain(1) for row in batch.to_pylist()]
    assert [row["lag"] for row in rows] == [60, None, 60]


def test_what_hostile_numbers_reach_is_a_row() -> None:
    followed = committed_lag.Commits(load_catalog())
    most = 2**63 - 1
    rows = [
        {"partition": -1, "reached": most},
        {"partition": 2**31 - 1, "reached": 5},
        {"partition": -1, "committed": 0},
        {"partition": 2**31 - 1, "committed": most},
    ]
    followed.add(offsets(*({**row, "place": number} for number, row in enumerate(rows))), [])
    (batch,) = followed.drain(1)
    assert [(row["partition"], row["high_watermark"], row["lag"]) for row in batch.to_pylist()] == [
        (-1, most, most),
        (2**31 - 1, 5, None),
    ]


def offsets(*rows: Row) -> pa.RecordBatch:
    """What `told` would give: of topic orders, group billing."""
    usual = {
        "topic": "orders",
        "group_id": "billing",
        "api_key": 8,
        "call_id": 1,
        "committed": -1,
        "reached": -1,
    }
    table = pa.Table.from_pylist([{**usual, **row} for row in rows], schema=OFFSETS)
    arrays = [column.combine_chunks() for column in table.columns]
    coded = [each.dictionary_encode() if each.type == pa.string() else each for each in arrays]
    return pa.RecordBatch.from_arrays(coded, names=table.column_names)
