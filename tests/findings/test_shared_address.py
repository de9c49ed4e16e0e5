"""Brokers that are advertised at one address: whoever looks for a leader reaches any of them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.findings.scripted import Rows, find, find_worth_asking

SECOND = 10**6
PLACE: dict[str, Any] = {"broker_address": "10.0.0.1", "broker_port": 9092}


def refused(count: int, every_s: float) -> dict[str, Rows]:
    """Writes that the broker at the address does not take, with Metadata after each."""
    rows = []
    for number in range(count):
        for part, api in enumerate(("Produce", "Metadata")):
            time = round((number + part / 2) * every_s * SECOND)
            row = {"call_id": 2 * number + part, "connection_id": 1, "client_id": "shop", "caller": "client"}
            row |= {"client_address": "10.0.0.7", "api_name": api, "status": "answered", "error_code": 0}
            row |= {
                "request_time": time,
                "response_time": time + 900,
                "response_end_time": time + 900,
                **PLACE,
            }
            rows.append(row if part else {**row, "error_code": 6, "topic": "orders", "partition": 3})
    return {"api_calls": rows, "error_codes": [row for row in rows if row["error_code"]]}


def told(node_id: int, begin: int, end: int, **more: Any) -> dict[str, Any]:
    where = {"cluster_id": "c", "node_id": node_id, "host": "10.0.0.1", "port": 9092}
    return {**where, "first_time": begin * SECOND, "last_time": end * SECOND, **more}


def found(brokers: Rows, count: int = 6, every_s: float = 1) -> list[tuple[str, str, int, str]]:
    capture = {"capture": "one.pcap", "first_time": 0, "last_time": 99 * SECOND}
    tables = {**refused(count, every_s), "brokers": brokers, "captures": [capture]}
    said = find("stale_leader", tables)
    assert not said or "stale_leader" in find_worth_asking(tables)
    return [(each.subject, each.blames, each.calls, each.text) for each in said]


def test_two_brokers_at_one_address_are_a_matter_of_configuration() -> None:
    ((subject, blames, calls, text),) = found([told(1, 0, 9), told(2, 1, 9), told(4, 0, 9, port=9093)])
    assert (subject, blames, calls) == ("shop", "configuration", 6)
    assert text.startswith("Metadata gives brokers 1, 2 the same address 10.0.0.1:9092: 6 calls of shop")
    assert "orders-3" in text


@pytest.mark.parametrize(
    "brokers",
    [
        [told(1, 0, 9), told(2, 0, 9, port=9093)],
        [told(1, 0, 4), told(2, 5, 9)],  # a broker that was replaced
        [told(1, 0, 9), told(2, 0, 9, cluster_id="d")],
        [told(1, 0, 9, host="10.0.0.5"), told(2, 0, 9, host="10.0.0.5")],
    ],
)
def test_other_brokers_are_none(brokers: Rows) -> None:
    assert found(brokers) == []


@pytest.mark.parametrize(("count", "every_s", "told_of"), [(3, 1, 0), (3, 6, 1), (5, 0.1, 0), (5, 1, 1)])
def test_a_few_refusals_are_a_leader_that_moved(count: int, every_s: float, told_of: int) -> None:
    assert len(found([told(1, 0, 9), told(2, 0, 9)], count, every_s)) == told_of
