"""Partitions without a leader although their brokers respond: a log directory failed."""

from __future__ import annotations

from typing import Any

from tests.findings.scripted import Rows, find

SECOND = 10**6


def asked(number: int, second: float, code: int, **more: Any) -> dict[str, Any]:
    time = round(second * SECOND)
    row = {"call_id": number, "connection_id": 1, "client_id": "shop", "caller": "client", "error_code": code}
    row |= {"client_address": "10.0.0.7", "broker_address": "10.0.0.1", "broker_port": 9092}
    row |= {"topic": "orders", "partition": 1, "api_name": "Metadata", "status": "answered"}
    return row | {"request_time": time, "response_time": time + 900, "response_end_time": time + 900, **more}


def found(*more: dict[str, Any], copies: tuple[int, ...] = (1,)) -> tuple[str, str]:
    """What is said of orders-1 that has no leader, and whose first copy is on the broker that says so."""
    rows: Rows = [*(asked(number, number, 5) for number in range(9)), *more]
    where = {"first_time": 0, "last_time": 9 * SECOND, "port": 9092}
    tables = {
        "api_calls": rows,
        "error_codes": rows,
        "captures": [{"capture": "one.pcap", "first_time": 0, "last_time": 99 * SECOND}],
        "brokers": [{**where, "node_id": each, "host": f"10.0.0.{each}"} for each in (1, 2)],
        "leaders": [
            {"topic": "orders", "partition": 1, "leader": -1, "replica_nodes": list(copies), **where}
        ],
    }
    (finding,) = find("offline_partition", tables)
    return finding.text, finding.advice


def test_all_brokers_with_a_copy_respond() -> None:
    text, advice = found()
    assert "All of them respond meanwhile: a log directory is offline" in text
    assert "the failed log directory" in advice


def test_a_broker_that_does_not_respond_may_have_ended() -> None:
    text, advice = found(copies=(1, 2))
    assert "log directory" not in text
    assert advice.startswith("Start the brokers that have the replicas")


def test_a_broker_that_names_its_storage_is_believed() -> None:
    text, advice = found(asked(20, 0.5, 56, api_name="Produce"), copies=(1, 2))
    assert "KAFKA_STORAGE_ERROR came from 10.0.0.1:9092: a log directory failed" in text
    assert "the failed log directory" in advice
