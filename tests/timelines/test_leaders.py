"""Leaders as clients are told of them, against the brokers that took what was written."""

from __future__ import annotations

import tomllib
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import kwsniff
from tests.pipeline.compare import analyzed_packets
from tests.traffic import messages
from tests.traffic.scenes import one_by_one

CAPTURES = Path(__file__).parents[2] / "captures"
MOVED = ("first_steps", "killed_broker", "replication")

Row = dict[str, Any]


def rows_of(path: Path, *names: str) -> list[list[Row]]:
    found = kwsniff.analyze(path)
    return [found.table(name).to_pylist() for name in names]


@pytest.mark.parametrize("name", MOVED)
def test_a_leader_that_moved_is_two_rows(name: str) -> None:
    """Kafka raises the epoch by one with each election (KIP-320)."""
    leaders, brokers = rows_of(CAPTURES / name / "capture.pcap", "leaders", "brokers")
    before, after = [row for row in leaders if (row["topic"], row["partition"]) == ("orders", 0)]
    assert before["leader"] != after["leader"]
    assert (before["leader_epoch"], after["leader_epoch"]) == (0, 1)
    assert before["first_time"] <= before["last_time"] < after["first_time"] <= after["last_time"]
    nodes = {row["node_id"] for row in brokers}
    assert {row["leader"] for row in leaders} <= nodes


@pytest.mark.parametrize("name", [*MOVED, "three_brokers", "incidents/healthy_three_brokers"])
def test_what_is_written_is_taken_by_the_leader_and_refused_by_others(name: str) -> None:
    folder = CAPTURES / name
    about = tomllib.loads((folder / "about.toml").read_text("utf-8"))
    file = about.get("file") or about["files"]["broker"]
    leaders, brokers, partitions = rows_of(folder / file, "leaders", "brokers", "partitions")
    nodes = {row["port"]: row["node_id"] for row in brokers}
    seen: Counter[int] = Counter()
    for row in partitions:
        if row["api_name"] != "Produce" or row["error_code"] not in (0, 6):
            continue
        told = [
            each["leader"]
            for each in leaders
            if (each["topic"], each["partition"]) == (row["topic"], row["partition"])
        ]
        seen[row["error_code"]] += 1
        assert nodes[row["broker_port"]] in told
        if row["error_code"] == 6:  # NOT_LEADER_OR_FOLLOWER: it was once
            assert nodes[row["broker_port"]] != told[-1]
    assert seen[0] > 0
    assert (seen[6] > 0) == (name in ("first_steps", "replication"))


@pytest.mark.parametrize("name", [*MOVED, "zookeeper_0_8", "group_classic"])
def test_every_response_that_names_a_leader_is_counted(name: str) -> None:
    leaders, calls = rows_of(CAPTURES / name / "capture.pcap", "leaders", "api_calls")
    metadata = {row["call_id"]: row for row in calls if row["api_name"] == "Metadata"}
    for topic in {row["topic"] for row in leaders}:
        counted = Counter[int]()
        for row in leaders:
            if row["topic"] == topic:
                counted[row["partition"]] += row["calls"]
                first, last = metadata[row["first_call_id"]], metadata[row["last_call_id"]]
                assert (row["first_time"], row["last_time"]) == (
                    first["response_end_time"],
                    last["response_end_time"],
                )
                assert (row["client_id"], row["broker_port"]) == (first["client_id"], first["broker_port"])
        named = [row for row in metadata.values() if topic in (row["topics"] or []) and not row["error_code"]]
        assert max(counted.values()) == len(named)


def test_clients_of_different_versions_are_told_of_one_leader(tmp_path: Path) -> None:
    """Topic ids come with version 10."""
    calls = [
        messages.metadata(version, number, ["orders"]) for number, version in enumerate((12, 9, 12, 9), 1)
    ]
    rows = analyzed_packets(tmp_path, one_by_one(calls).packets())["leaders"]
    assert [row["calls"] for row in rows] == [4] * len(rows)
    assert None not in {row["topic_id"] for row in rows}


@pytest.mark.parametrize("kept", range(3, 60, 4))
def test_a_response_that_breaks_off_behind_a_leader_tells_of_the_leader(tmp_path: Path, kept: int) -> None:
    """Frames that are shorter than what their fields ask for: copies of the partition may be missing."""
    call = messages.metadata(12, 1, ["orders"])
    whole = call.response or b""
    short = (len(whole) - 4 - kept).to_bytes(4) + whole[4:-kept]
    again = messages.metadata(12, 2, ["orders"])
    rows = analyzed_packets(tmp_path, one_by_one([replace(call, response=short), again]).packets())["leaders"]
    assert {(row["topic"], row["partition"], row["leader"]) for row in rows} == {
        ("orders", 0, 1),
        ("orders", 1, 1),
    }
    alone = analyzed_packets(tmp_path, one_by_one([replace(call, response=short)]).packets())["leaders"]
    assert all((row["replicas"] is None) == (row["in_sync"] is None) for row in alone)


@pytest.mark.parametrize(
    ("incident", "topic", "replicas", "in_sync"),
    [
        ("not_enough_replicas", "orders", 2, 1),
        ("healthy_three_brokers", "orders", 3, 3),
        ("idle_848", "orders", 1, 1),
    ],
)
def test_copies_are_those_that_the_topic_was_made_with(
    incident: str, topic: str, replicas: int, in_sync: int
) -> None:
    """As tests/broker/network made them; one of the two of the first is killed."""
    (leaders,) = rows_of(CAPTURES / "incidents" / incident / "broker.pcap", "leaders")
    found = {(row["replicas"], row["in_sync"]) for row in leaders if row["topic"] == topic}
    assert found == {(replicas, in_sync)}


def test_a_broker_that_is_killed_is_no_longer_in_sync() -> None:
    about = tomllib.loads((CAPTURES / "killed_broker" / "about.toml").read_text("utf-8"))
    (leaders,) = rows_of(CAPTURES / "killed_broker" / about["file"], "leaders")
    before, after = [row for row in leaders if (row["topic"], row["partition"]) == ("orders", 0)]
    assert before["in_sync"] == before["replicas"] == after["replicas"]
    assert after["in_sync"] == after["replicas"] - 1


def test_brokers_that_have_copies_are_named_and_those_in_sync() -> None:
    """about.toml: two copies, on brokers 1 and 3; broker 3 is killed."""
    (leaders,) = rows_of(CAPTURES / "incidents" / "not_enough_replicas" / "broker.pcap", "leaders")
    told = {
        (tuple(row["replica_nodes"]), tuple(row["isr_nodes"])) for row in leaders if row["topic"] == "orders"
    }
    assert told == {((1, 3), (1,))}
    (leaders,) = rows_of(CAPTURES / "incidents" / "healthy_three_brokers" / "broker.pcap", "leaders")
    found = {
        row["partition"]: (row["replica_nodes"], sorted(row["isr_nodes"]))
        for row in leaders
        if row["topic"] == "orders"
    }
    assert found == {0: ([1, 2, 3], [1, 2, 3]), 1: ([2, 3, 1], [1, 2, 3])}
