"""Partitions that a capture can show: those whose leader is connected."""

from __future__ import annotations

import pyarrow as pa
import pytest

from kwsniff.findings.prefilter import topic_names as shown_room
from kwsniff.findings.prefilter.topic_names import Shown


def filled(*connected: str) -> Shown:
    """Partition n of orders is led by broker n % 3, of addresses broker-0:9092 to broker-2:9092."""
    found = Shown()
    found.add_leaders(
        pa.record_batch(
            {"topic": ["orders"] * 6, "partition": [*range(6)], "leader": [each % 3 for each in range(6)]}
        )
    )
    found.add_brokers(
        pa.record_batch({"node_id": [0, 1, 2], "host": [f"broker-{n}" for n in range(3)], "port": [9092] * 3})
    )
    hosts = [each.split(":")[0] for each in connected]
    ports = [int(each.split(":")[1]) for each in connected]
    found.add_connections(
        pa.record_batch(
            {
                "protocol": pa.array(["kafka"] * len(connected), pa.string()),
                "broker_address": pa.array(hosts, pa.string()),
                "broker_port": pa.array(ports, pa.int32()),
            }
        )
    )
    return found


def test_partitions_of_brokers_that_are_connected_are_shown() -> None:
    found = filled("broker-1:9092", "broker-2:9093")
    assert sorted(found.partitions("orders", 6)) == [1, 4]
    assert sorted(found.partitions("orders", 4)) == [1]
    assert sorted(found.partitions("carts", 6)) == []


def test_where_as_many_are_connected_as_there_are_all_are_shown() -> None:
    """Metadata may have names that nothing else tells the addresses of."""
    found = filled("10.0.0.1:9092", "10.0.0.2:9092", "10.0.0.3:9092")
    assert sorted(found.partitions("orders", 6)) == [*range(6)]
    assert sorted(filled("10.0.0.1:9092", "10.0.0.2:9092").partitions("orders", 6)) == []


@pytest.mark.parametrize(("most", "is_crowded"), [(10, False), (9, True)])
def test_rows_beyond_the_bound_are_not_counted(
    monkeypatch: pytest.MonkeyPatch, most: int, is_crowded: bool
) -> None:
    """Six leaders, three brokers, one connection."""
    monkeypatch.setattr(shown_room, "MOST_LEADERS", most)
    found = filled("broker-1:9092")
    assert found.is_crowded == is_crowded
    assert bool([*found.partitions("orders", 6)]) != is_crowded


def test_what_others_have_is_added() -> None:
    one, other = filled("broker-1:9092"), filled("broker-2:9092")
    one.merge(other.state())
    assert sorted(one.partitions("orders", 6)) == [1, 2, 4, 5]
