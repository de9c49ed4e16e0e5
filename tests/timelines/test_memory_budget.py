"""What is followed over many calls stays within its memory, and what is left out is counted."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from kwsniff.layout.catalog import load_catalog
from kwsniff.timelines.decoded_messages import Fields, read_response
from kwsniff.timelines.groups.members import Call, Members
from kwsniff.timelines.groups.rebalance import Call as GroupCall
from kwsniff.timelines.groups.rebalances import Rebalances
from kwsniff.timelines.memory_budget import MemoryBudget
from kwsniff.timelines.metadata import cluster
from kwsniff.timelines.metadata.cluster import Cluster
from kwsniff.timelines.metadata.leaders import Leaders, Teller
from kwsniff.timelines.metadata.servers import Servers
from kwsniff.timelines.metadata.topic_names import TopicNames
from kwsniff.timelines.timelines import Timelines

HEARTBEAT = 12


def _budget(num: int) -> MemoryBudget:
    budget = MemoryBudget()
    budget.most = num
    return budget


def _beat(number: int) -> Call:
    group, member = f"g{number}", f"m{number}"
    return Call(
        number, HEARTBEAT, 4, group, member, None, "c", "10.0.0.1", 1, number, number, 0, "x.pcap", None, None
    )


def test_groups_beyond_the_room_are_closed_and_counted() -> None:
    budget = _budget(50_000)
    followed = Rebalances(load_catalog(), budget)
    for number in range(1000):
        followed.add_call(
            GroupCall("join", f"g{number}", "m", 1, "consumer", number, number, 0, "x.pcap", number)
        )
        assert budget.used <= budget.most
    assert budget.left_out == followed.forgotten == len(followed.rows) > 900
    followed.finish()
    assert [row["group_id"] for row in followed.rows] == [f"g{number}" for number in range(1000)]
    assert budget.used == 0


def test_members_beyond_the_room_end_early_and_give_it_back() -> None:
    budget = _budget(50_000)
    followed = Members(TopicNames(budget), load_catalog(), budget)
    for number in range(1000):
        followed.add_call(_beat(number))
        assert budget.used <= budget.most
    followed.finish()
    assert [row["member_id"] for row in followed.rows] == [f"m{number}" for number in range(1000)]
    assert {row["left_how"] for row in followed.rows} == {"unknown", "open_at_end"}
    assert budget.used == 0


def test_groups_without_members_are_not_remembered() -> None:
    budget = _budget(50_000)
    followed = Members(TopicNames(budget), load_catalog(), budget)
    for number in range(1000):
        call = _beat(number)
        call.member_id = None
        followed.add_call(call)
    assert not followed._groups
    assert not followed._latest


def test_leaders_beyond_the_room_are_left_out() -> None:
    budget = _budget(50_000)
    leaders = Leaders(budget)
    teller = Teller(1, "x.pcap", "c", "10.0.0.1", 9092, 5)
    for number in range(1000):
        part = {
            "partition_index": 0,
            "leader_id": 1,
            "leader_epoch": 3,
            "replica_nodes": [1],
            "isr_nodes": [1],
        }
        leaders.add_response({"topics": [{"name": f"t{number}", "partitions": [part]}]}, teller)
    assert budget.used <= budget.most
    assert 0 < len(leaders._known) < 1000
    assert budget.left_out >= 1000 - len(leaders._known)


def test_what_was_left_out_is_an_anomaly() -> None:
    timelines = Timelines(load_catalog())
    timelines._budget.left_out = 7
    told = {table: batch for table, batch in timelines.drain(0) if table == "anomalies"}
    (row,) = told["anomalies"].select(["value"]).to_pylist()
    assert row == {"value": 7}
    assert not [table for table, _ in timelines.drain(0) if table == "anomalies"]


def test_versions_are_not_read_where_there_is_no_room_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever offers other versions in each answer costs a second in all, not one for each megabyte."""
    catalog, budget = load_catalog(), _budget(1_000_000)
    followed = Cluster(TopicNames(budget), Leaders(budget), Servers(catalog, budget), catalog, budget)
    read = []

    def reading(*given: Any) -> Fields:
        read.append(given)
        return read_response(*given)

    monkeypatch.setattr(cluster, "read_response", reading)
    monkeypatch.setattr(cluster, "MOST_RANGES", 30)
    for number in range(100):
        ranges = b"".join(struct.pack(">hhh", key, 0, number) for key in range(10))
        answer = struct.pack(">hi", 0, 10) + ranges
        followed._take((number,), (number, 18, 0, "10.0.0.9", 9092, number, "x.pcap", "c", number, answer))
    assert (len(read), len(followed.ranges)) == (3, 30)
    assert budget.left_out == 97
