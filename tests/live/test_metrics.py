"""What metrics count of rows, against adding up by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kwsniff.core.declared import ENUMS
from kwsniff.layout.catalog import load_catalog
from kwsniff.live.metrics import Metrics
from kwsniff.live.overdue_responses import Overdue, OverdueResponses
from kwsniff.live.rebalances import UnderWay
from kwsniff.live.session import Progress
from kwsniff.tables.build import Builder
from tests.tables.columns import table

NOTHING = Progress(0, 0, 0, None, None, None)
S = 1_000_000_000


def rows(name: str, **given: list[Any]) -> Any:
    count = len(next(iter(given.values())))
    return Builder(load_catalog(), ENUMS).build(name, table(name, count, **given))


def read(metrics: Metrics, *names: str) -> dict[str, float]:
    """Series -> value."""
    pairs = [line.rsplit(" ", 1) for line in metrics.text().splitlines() if not line.startswith("#")]
    wanted = tuple(f"kwsniff_{name}" for name in names)
    return {key.removeprefix("kwsniff_"): float(value) for key, value in pairs if key.startswith(wanted)}


def test_throttle_times_are_seconds_of_calls_that_have_one() -> None:
    metrics = Metrics()
    calls = rows("api_calls", client_id=[b"a"] * 4 + [b"b"], throttle_time_ms=[250, 0, None, 1250, 0])
    metrics.add({"api_calls": calls}, NOTHING)
    assert read(metrics, "throttle") == {
        'throttled_calls_total{client="a"}': 2,
        'throttle_seconds_total{client="a"}': 1.5,
    } | {
        key: 0
        for key in read(metrics, "throttle")
        if 'client="b"' in key  # none was throttled
    }


def test_the_lag_of_a_client_is_the_sum_of_what_partitions_had_last() -> None:
    metrics = Metrics()
    for partition, lag in (([0, 1, 0, 2], [50, 7, 40, None]), ([0, 0], [45, 30])):
        metrics.add(
            {"partitions": rows("partitions", client_id=[b"shop"] * len(lag), partition=partition, lag=lag)},
            NOTHING,
        )
    assert [*read(metrics, "fetched_lag").values()] == [37]


def test_topics_have_the_latencies_of_their_own_calls() -> None:
    metrics = Metrics()
    topics = [[b"a"], [b"b"], [b"a", b"b"], [b"a"]]
    calls = rows("api_calls", latency_ns=[S, 10 * S, 100 * S, None], topics=topics, api_key=[3] * 4)
    metrics.add({"api_calls": calls}, NOTHING)
    assert read(metrics, "topic_latency_seconds_sum", "topic_latency_seconds_count") == {
        'topic_latency_seconds_sum{topic="a"}': 101,
        'topic_latency_seconds_count{topic="a"}': 2,
        'topic_latency_seconds_sum{topic="b"}': 110,
        'topic_latency_seconds_count{topic="b"}': 2,
    }
    assert read(metrics, "topic_calls") == {
        'topic_calls_total{topic="a"}': 3,
        'topic_calls_total{topic="b"}': 2,
    }


def test_what_is_owed_has_its_age_in_seconds() -> None:
    metrics = Metrics()
    overdue = OverdueResponses(now=100 * S, total=Overdue(3, 2 * S))
    overdue.by_dimension["brokers"] = {"a:9092": Overdue(3, 2 * S + S // 2)}
    metrics.show_overdue(
        overdue, [UnderWay("g", 88 * S, "join", (), ()), UnderWay("h", 101 * S, "join", (), ())], 5
    )
    assert read(metrics, "broker_late") == {
        'broker_late_answers{broker="a:9092"}': 3,
        'broker_late_seconds{broker="a:9092"}': 2.5,
    }
    assert read(metrics, "group_reb") == {
        'group_rebalancing_seconds{group="g"}': 12,
        'group_rebalancing_seconds{group="h"}': 0,  # by clocks that differ
    }
    assert read(metrics, "rebalances") == {"rebalances_total": 5}


def test_connections_are_open_closed_or_refused() -> None:
    metrics = Metrics()
    name = "ending"
    given: dict[str, Any] = {
        name: ["open", "reset", "open", "reset"],
        "protocol": ["kafka", "kafka", "tls", "kafka"],
        "refused": [False, True, None, False],
        "broker_address": [b"10.0.0.1"] * 4,
        "broker_port": [9092] * 4,
        "client_retransmitted_bytes": [5, 6, None, 0],
        "broker_retransmitted_bytes": [1, 0, 2, 0],
    }
    batch = rows("connections", **given)
    metrics.connect(batch)
    assert read(metrics, "open_conn") == {
        'open_connections{protocol="kafka"}': 1,
        'open_connections{protocol="tls"}': 1,
    }
    metrics.add({"connections": batch}, NOTHING)
    assert read(metrics, "refused") == {'refused_connections_total{broker="10.0.0.1:9092"}': 1}
    assert [*read(metrics, "connection_retransmitted").values()] == [11, 3]


@pytest.mark.parametrize(("dropped", "known"), [(None, 0), (0, 1), (7, 1)])
def test_no_drops_are_known_drops(dropped: int | None, known: int) -> None:
    metrics = Metrics()
    metrics.add({}, Progress(10, 20, 3, 1_500_000_000, dropped, None))
    assert read(metrics, "kernel_drops_known") == {"kernel_drops_known": known}
    assert read(metrics, "oldest_wait") == {"oldest_wait_seconds": 1.5}


def test_latencies_that_are_not_known_are_not_counted() -> None:
    metrics = Metrics()
    metrics.add({"api_calls": rows("api_calls", latency_ns=[None, None], topics=[[b"t"], [b"t"]])}, NOTHING)
    assert read(metrics, "topic_latency", "api_latency") == {}
    assert np.isclose(read(metrics, "topic_calls")['topic_calls_total{topic="t"}'], 2)
