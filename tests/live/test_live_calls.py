"""Parts of latency for the rows of calls, and the names under which fetches are counted."""

from __future__ import annotations

from typing import Any

import pytest

from kwsniff.core.declared import ENUMS
from kwsniff.layout.catalog import load_catalog
from kwsniff.live.calls import _CONTROLLER, _FOLLOWER, api_label, endpoint, times_of, with_labels
from kwsniff.tables.build import Builder
from tests.tables.columns import table


def batch(name: str, **given: list[Any]) -> Any:
    rows = len(next(iter(given.values())))
    return Builder(load_catalog(), ENUMS).build(name, table(name, rows, **given))


def test_parts_of_latency_find_their_calls() -> None:
    """Latencies come in another order, and of calls that are not in this step."""
    calls = batch("api_calls", call_id=[7, 3, 12, 5], latency_ns=[700, 300, None, 500])
    names = (
        "deliberate_wait_ns", "broker_ns", "queue_wait_ns", "network_ns",
        "request_transmission_ns", "response_transmission_ns",
    )  # fmt: skip
    parts = {3: (100, 20, 30, 40, 50, 60), 4: (9, 9, 9, 9, 9, 9), 7: (0, 1, 2, 3, 4, 5), 99: (9,) * 6}
    given = {name: [values[place] for values in parts.values()] for place, name in enumerate(names)}
    times = times_of({"api_calls": calls, "latencies": batch("latencies", call_id=[*parts], **given)})
    assert times.active.tolist() == [700, 200, -1, 500]
    assert times.broker.tolist() == [1, 20, -1, -1]
    assert times.queue.tolist() == [2, 30, -1, -1]
    assert times.network.tolist() == [12, 150, -1, -1]


@pytest.mark.parametrize(
    ("api", "caller", "topic", "label"),
    [
        ("Fetch", "client", "orders", "Fetch"),
        ("Fetch", "replica", "orders", _FOLLOWER.format("Fetch")),
        ("Fetch", "broker", "__cluster_metadata", _CONTROLLER.format("Fetch")),
        ("Fetch", "client", "__cluster_metadata", "Fetch"),
        ("Produce", "replica", "__cluster_metadata", "Produce"),
    ],
)
def test_fetches_go_by_who_makes_them(api: str, caller: str, topic: str, label: str) -> None:
    """One call alone, and as a row among others."""
    assert api_label(api, caller, (topic,)) == label
    keys = {"Fetch": 1, "Produce": 0}
    rows = with_labels(
        batch(
            "api_calls",
            api_key=[keys[api], 1, 0],
            caller=[caller, "replica", "client"],
            topics=[[topic.encode()], [b"orders"], [b"orders"]],
        )
    )
    assert rows["api_name"].to_pylist() == [label, _FOLLOWER.format("Fetch"), "Produce"]


def test_addresses_of_ipv6_have_brackets() -> None:
    assert endpoint("10.0.0.1", 9092) == "10.0.0.1:9092"
    assert endpoint("fd00::1", 9092) == "[fd00::1]:9092"
