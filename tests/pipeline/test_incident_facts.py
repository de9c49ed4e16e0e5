"""What recorded incidents carry on the wire is told: who was in a group, why it left, what timed out."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

import kwsniff

ROOT = Path(__file__).parents[2]
INCIDENTS = ROOT / "captures" / "incidents"

Rows = list[dict[str, Any]]


def tables(path: Path, *names: str) -> list[Rows]:
    """Rows of some tables of a recording."""
    found = kwsniff.analyze(path, tables=names)
    return [found.table(name).to_pylist() for name in names]


def incident(name: str, *names: str) -> tuple[dict[str, Any], list[Rows]]:
    about = tomllib.loads((INCIDENTS / name / "about.toml").read_text("utf-8"))
    return about, tables(INCIDENTS / name / about["files"]["broker"], *names)


def test_a_member_whose_process_was_stopped_is_told_to_have_expired() -> None:
    about, (groups, members, calls) = incident("session_expired", "groups", "members", "api_calls")
    stopped = about["subject"]
    (expired,) = [row for row in groups if row["reason"] == "session_expired"]
    assert expired["reason_member"].startswith(stopped)
    assert expired["session_timeout_ms"] == 3000  # about.toml: session.timeout.ms=3000
    (gone,) = [row for row in members if row["left_how"] == "session_expired"]
    assert (gone["client_id"], gone["member_id"]) == (stopped, expired["reason_member"])
    others = [row["left_how"] for row in members if row is not gone]
    assert others == ["left"] * about["requests"]["LeaveGroup"]
    apis = {row["call_id"]: row["api_name"] for row in calls}
    for row in (*groups, *members):
        assert {apis[call] for call in row["call_ids"]} <= {"JoinGroup", "SyncGroup", "LeaveGroup"}
    joins = [call for row in groups for call in row["call_ids"] if apis[call] == "JoinGroup"]
    assert len(joins) == about["requests"]["JoinGroup"]


def test_members_without_partitions_are_seen() -> None:
    """about.toml: three members, one partition."""
    _, (members,) = incident("idle_members", "members")
    assert sorted(row["partition_count"] for row in members) == [0, 0, 1]
    assert [row["partitions"] for row in members if row["partition_count"]] == [["orders-0"]]
    assert {tuple(row["topics"]) for row in members} == {("orders",)}


def test_how_long_polls_may_take_is_told() -> None:
    """about.toml: max.poll.interval.ms=3000."""
    about, (groups, members) = incident("poll_interval_exceeded", "groups", "members")
    assert {row["rebalance_timeout_ms"] for row in groups} == {3000}
    assert [row["left_how"] for row in members] == ["left"] * about["requests"]["LeaveGroup"]


@pytest.mark.parametrize("name", ["group_classic", "group_consumer"])
def test_what_members_say_in_words_is_told(name: str) -> None:
    """The talk removes static members as an administrator; Kafka's admin client says so."""
    members, groups = tables(ROOT / "captures" / name / "capture.pcap", "members", "groups")
    assert {row["group_instance_id"] for row in members} == {"one", "two"}
    assert sorted(partition for row in members for partition in row["partitions"]) == ["orders-0", "orders-1"]
    assert len(members) == 2
    if name == "group_classic":
        assert {row["left_how"] for row in members} == {"removed"}
        assert {row["reason_text"] for row in members} == {"member was removed by an admin"}
        assert {row["session_timeout_ms"] for row in groups} == {45_000}


def test_a_transaction_that_timed_out_was_fenced_by_nobody(shared: Path) -> None:
    """The README beside it: transaction.timeout.ms=2000, 15 s inside the transaction."""
    (rows,) = tables(shared / "incidents" / "txn_timeout.pcap", "transactions")
    (row,) = [row for row in rows if row["error_code"]]
    assert (row["outcome"], row["timeout_ms"]) == ("timed_out", 2000)
    assert row["duration_ns"] >= 15 * 10**9
    assert len(row["call_ids"]) == row["calls"]


def test_one_that_another_producer_took_over_was_fenced() -> None:
    about, (rows,) = incident("producer_fenced", "transactions")
    assert about["finding"] == "producer_fenced"
    assert "fenced" in {row["outcome"] for row in rows}
    assert "timed_out" not in {row["outcome"] for row in rows}


def test_brokers_are_those_that_the_cluster_advertises() -> None:
    about = tomllib.loads((ROOT / "captures" / "three_brokers" / "about.toml").read_text("utf-8"))
    (rows,) = tables(ROOT / "captures" / "three_brokers" / about["file"], "brokers")
    assert [row["port"] for row in rows] == about["broker"]["ports"]
    assert {row["calls"] for row in rows} == {about["requests"]["Metadata"]}
    assert all(row["first_time"] < row["last_time"] for row in rows)


def test_versions_offered_are_those_of_the_release() -> None:
    """Kafka's own schemas say which versions 4.3.1 has. Brokers offer Produce from 0 on, for old librdkafka
    (KAFKA-18659)."""
    _, (rows,) = incident("session_expired", "api_ranges")
    text = (ROOT / "dissectors" / "kafka" / "releases.tsv").read_text("utf-8")
    releases, *lines = (line.split("\t") for line in text.splitlines() if not line.startswith("#"))
    known: dict[int, tuple[int, int]] = {}
    for key, *changes in lines:
        for release, versions in (change.split(":") for change in changes):
            if releases.index(release) <= releases.index("4.3.1"):
                first, _, last = versions.partition("/")[0].partition("-")
                known[int(key)] = (-1, -1) if first == "none" else (int(first), int(last or first))
    known[0] = (0, known[0][1])
    known[22] = (known[22][0], 5)  # version 6 is not offered: two-phase commit is not ready (KIP-939)
    assert len({row["api_key"] for row in rows}) == len(rows) > 60
    assert {(row["broker_address"], row["broker_port"]) for row in rows} == {("10.88.0.1", 9092)}
    offered = {row["api_key"]: (row["min_version"], row["max_version"]) for row in rows}
    assert offered == {key: known[key] for key in offered}


def test_the_timeout_that_a_call_asks_for_is_told() -> None:
    """about.toml: request.timeout.ms=1000, which a producer sends along; session.timeout.ms=3000."""
    _, (calls,) = incident("request_timed_out", "api_calls")
    assert {row["timeout_ms"] for row in calls if row["api_name"] == "Produce"} == {1000}
    assert {
        row["timeout_ms"] for row in calls if row["api_name"] in ("Fetch", "Metadata", "ApiVersions")
    } == {None}
    _, (calls,) = incident("session_expired", "api_calls")
    assert {row["timeout_ms"] for row in calls if row["api_name"] == "JoinGroup"} == {3000}
    _, (calls, transactions) = incident("transaction_timeout_java", "api_calls", "transactions")
    asked = {row["timeout_ms"] for row in calls if row["api_name"] == "InitProducerId"}
    assert asked == {row["timeout_ms"] for row in transactions} == {2500}  # transaction.timeout.ms


def test_how_often_the_coordinator_wants_to_hear_of_a_member_is_told() -> None:
    """group.consumer.heartbeat.interval.ms is 5000 where nothing else is said; classic members choose it."""
    _, (members,) = incident("idle_848", "members")
    assert {row["heartbeat_interval_ms"] for row in members} == {5000}
    _, (members,) = incident("idle_members", "members")
    assert {row["heartbeat_interval_ms"] for row in members} == {None}
