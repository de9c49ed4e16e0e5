"""A partition is hot among those that the capture can show: of others it cannot tell what they get."""

from __future__ import annotations

from typing import Any

import pytest

from kwsniff.findings.evaluate import conclude
from kwsniff.findings.finding import Finding
from kwsniff.findings.prefilter.figures import Figures
from kwsniff.findings.prefilter.sqlite_rules import ask_sums, suffice
from kwsniff.findings.rule import load_rules
from tests.findings.scripted import find, table_of

BROKERS = {1: "10.0.0.1", 2: "10.0.0.2", 3: "10.0.0.3"}


def _brokers(*, hosts: dict[int, str] = BROKERS) -> list[dict[str, Any]]:
    return [{"node_id": node, "host": host, "port": 9092} for node, host in hosts.items()]


def _leaders(partitions: int) -> list[dict[str, Any]]:
    """Partition 0 is on broker 1, 1 on broker 2, and so on around."""
    return [{"topic": "orders", "partition": each, "leader": each % 3 + 1} for each in range(partitions)]


def _connections(*nodes: int) -> list[dict[str, Any]]:
    at = {"client_id": "shop", "broker_port": 9092, "protocol": "kafka"}
    return [{**at, "connection_id": node, "broker_address": BROKERS[node]} for node in nodes]


def _written(bytes_by_partition: dict[int, int], calls: int = 20) -> list[dict[str, Any]]:
    at: dict[str, Any] = {"api_name": "Produce", "client_id": "shop", "topic": "orders", "error_code": 0}
    rows = []
    for partition, total in bytes_by_partition.items():
        for number in range(calls):
            call = {"call_id": partition * 1000 + number, "connection_id": partition % 3 + 1, "time": number}
            rows.append({**at, **call, "partition": partition, "record_bytes": total // calls})
    return rows


def _hot(**tables: list[dict[str, Any]]) -> list[Finding]:
    """What is found, with sums made in passing and without."""
    figures = Figures()
    for name, rows in tables.items():
        for batch in table_of(name, [{"run_id": "run", **row} for row in rows]).to_batches():
            figures.add(name, batch)
    found = find("hot_partition", tables)
    (rule,) = (rule for rule in load_rules() if rule.name == "hot_partition")
    assert rule in figures.worth_asking() or not found
    sums = figures.sums()
    assert suffice(sums, [rule])
    assert conclude(ask_sums(sums, [rule]), 0) == found
    return found


def test_two_partitions_of_one_broker_say_nothing_of_the_topic() -> None:
    """Six partitions, captured beside broker 1, which leads 0 and 3: of the rest nothing is known."""
    told = {"brokers": _brokers(), "leaders": _leaders(6), "connections": _connections(1)}
    assert _hot(**told, partitions=_written({0: 9000, 3: 30_000})) == []


def test_one_of_many_partitions_of_a_broker_is_hot_among_these() -> None:
    told = {"brokers": _brokers(), "leaders": _leaders(18), "connections": _connections(1)}
    rows = _written({0: 1000, 3: 1000, 6: 90_000, 9: 1000, 12: 1000, 15: 1000})
    (found,) = _hot(**told, partitions=rows)
    assert found.subject == "orders-6"
    assert found.expected == pytest.approx(1 / 6)
    assert "the capture shows 6 partitions" in found.text


def test_where_all_brokers_are_there_lower_partitions_count_that_nothing_was_written_to() -> None:
    told = {"brokers": _brokers(), "leaders": _leaders(6), "connections": _connections(1, 2, 3)}
    (found,) = _hot(**told, partitions=_written({1: 5000, 5: 30_000}))
    assert found.subject == "orders-5"
    assert found.expected == pytest.approx(1 / 6)


def test_hosts_that_are_names_count_where_as_many_brokers_are_there() -> None:
    names = {1: "kafka-1.example", 2: "kafka-2.example", 3: "kafka-3.example"}
    told = {"brokers": _brokers(hosts=names), "leaders": _leaders(6)}
    rows = _written({1: 5000, 5: 30_000})
    assert _hot(**told, connections=_connections(1, 2), partitions=rows) == []
    assert [each.subject for each in _hot(**told, connections=_connections(1, 2, 3), partitions=rows)] == [
        "orders-5"
    ]


def test_without_metadata_only_partitions_that_are_there_count() -> None:
    assert _hot(connections=_connections(1), partitions=_written({3: 9000, 9: 30_000})) == []
    rows = _written({0: 1000, 1: 1000, 2: 90_000, 3: 1000})
    assert [each.subject for each in _hot(connections=_connections(1), partitions=rows)] == ["orders-2"]
