"""Rows of clients: the settings that recorded clients had, intervals by hand, and bounds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from kwsniff.layout.catalog import load_catalog
from kwsniff.tables.rows import batch_of
from kwsniff.tables.schema import TABLES
from kwsniff.timelines.clients import clients as room_of_clients
from kwsniff.timelines.clients.clients import Clients
from kwsniff.timelines.clients.defaults import find_defaults
from kwsniff.timelines.clients.intervals import find_mode, find_tighter, pauses_of
from kwsniff.timelines.clients.roles import find_role
from kwsniff.timelines.memory_budget import MemoryBudget

CAPTURES = Path(__file__).parents[2] / "captures"
CATALOG = load_catalog()
MS = 1000
FETCH, JOIN, HEARTBEAT, LEAVE, PRODUCE, CREATE_TOPICS, METADATA = 1, 11, 12, 13, 0, 19, 3
NO_WORDS: dict[str, list[str]] = {
    "caller": ["client"],
    "protocol_type": [],
    "assignors": [],
    "group_id": [],
}


def rows_of(path: str) -> dict[str | None, dict[str, Any]]:
    kwsniff = pytest.importorskip("kwsniff")
    pytest.importorskip("kwsniff.core.analyzer", reason="the analyzer is not built")
    made = kwsniff.analyze(CAPTURES / path, tables="clients")
    return {row["client_id"]: row for row in made.clients.to_pylist()}


# What the scenes in tests/broker/network set.
@pytest.mark.parametrize(
    ("capture", "client", "settings"),
    [
        (
            "incidents/session_aiokafka/broker.pcap",
            "aio-billing-1",
            {"session_timeout_ms": 4000, "heartbeat_interval_ms": 800, "commit_interval_ms": 1000},
        ),
        ("incidents/transaction_timeout_java/broker.pcap", "till", {"transaction_timeout_ms": 2500}),
        ("incidents/transaction_timeout_franz/broker.pcap", "go-shop", {"transaction_timeout_ms": 3000}),
        ("incidents/healthy_transactions/broker.pcap", "reader", {"isolation_level": 1}),
        ("incidents/commit_storm_idle/broker.pcap", "idler", {"commit_interval_ms": 40}),
        ("clocks/near/client.pcap", "billing-1", {"fetch_max_wait_ms": 700, "role": "consumer"}),
        ("clocks/near/client.pcap", "shop", {"acks": -1, "role": "producer"}),
        ("clocks/quota/client.pcap", "shop", {"linger_ms": 0}),
    ],
)
def test_settings_are_those_of_the_recorded_client(
    capture: str, client: str, settings: dict[str, Any]
) -> None:
    row = rows_of(capture)[client]
    for name, value in settings.items():
        near = name.endswith("_interval_ms") and abs(row[name] - value) <= value / 10
        assert near or row[name] == value


def test_the_interval_is_what_most_of_them_have() -> None:
    # By hand: 3000 to 3010 are alike, 700 and 9000 are not.
    mode = find_mode([3000 * MS, 3005 * MS, 700 * MS, 3010 * MS, 9000 * MS])
    assert mode is not None
    assert (mode.value, mode.lowest, mode.highest, mode.alike, mode.values) == (3005, 3000, 3010, 3, 5)


@pytest.mark.parametrize("values", [[3000, 3000], [100, 200, 400, 800, 1600, 3200], []])
def test_no_interval_is_told_without_three_alike(values: list[int]) -> None:
    assert find_mode([value * MS for value in values]) is None


def test_the_age_of_metadata_counts_from_a_response_that_waited_behind_a_fetch() -> None:
    # metadata.max.age.ms=2000; a response comes as soon as the Fetch before it, up to 720 ms later.
    requests = [0, 2010, 4730, 7449, 10170, 12180]
    waits = [8, 718, 717, 720, 9, 5]
    rows = [
        call(n, api_key=METADATA, error_count=0, request_time=at * 10**6, response_time=(at + wait) * 10**6)
        for n, (at, wait) in enumerate(zip(requests, waits, strict=True))
    ]
    for batches in ([rows], [rows[3:], rows[:3]]):
        (row,) = finished(*(calls(*part) for part in batches))
        assert row["metadata_max_age_ms"] == 2002  # the middle one of 2001, 2002, 2002, 2002, 2001
    assert pauses_of([5, 30, 70], [10, 60, 80]) == [20, 10]


def test_no_age_is_told_where_two_are_as_likely() -> None:
    alike = [[2000 * MS, 2010 * MS, 2020 * MS], [2700 * MS, 2710 * MS, 2720 * MS]]
    assert find_tighter(alike) is None
    assert find_tighter([alike[0], [2050 * MS] * 3]) == find_mode([2050 * MS] * 3)  # both are within 10 %


def test_who_may_flush_each_record_has_no_known_linger() -> None:
    # shop had linger.ms=0, and sent a record every 150 ms: with flush() it would send as soon.
    assert rows_of("clocks/near/client.pcap")["shop"]["linger_ms"] is None


@pytest.mark.parametrize(
    ("software", "version", "setting", "default"),
    [
        # Kafka's release notes: KIP-735 and KIP-679 in 3.0, KIP-1030 in 4.0.
        ("apache-kafka-java", "2.8.1", "session_timeout_ms", "10000"),
        ("apache-kafka-java", "3.0.0", "session_timeout_ms", "45000"),
        ("apache-kafka-java", "3.9.2", "linger_ms", "0"),
        ("apache-kafka-java", "4.0.0", "linger_ms", "5"),
        ("confluent-kafka-python", "2.16.1-rdkafka-2.16.0", "linger_ms", "5"),
        ("kgo", "v1.17.1", "compression", "snappy"),
        ("something", "1", "acks", None),
        (None, None, "acks", None),
    ],
)
def test_defaults_are_those_of_the_version(
    software: str | None, version: str | None, setting: str, default: str | None
) -> None:
    assert find_defaults(CATALOG, software, version).get(setting) == default


@pytest.mark.parametrize(
    ("client_id", "keys", "words", "role"),
    [
        ("a", (METADATA, PRODUCE), {}, "producer"),
        ("a", (METADATA, FETCH), {}, "consumer"),
        ("a", (METADATA, PRODUCE, FETCH), {}, None),
        ("a", (METADATA,), {}, None),
        ("a", (CREATE_TOPICS, LEAVE), {}, "admin"),
        ("broker-1-fetcher-0", (FETCH,), {"caller": ["replica"]}, "follower"),
        ("connect-1", (JOIN, HEARTBEAT), {"protocol_type": ["connect"]}, "connect"),
        ("connector-producer-sink-0", (PRODUCE,), {}, "connect"),
        ("app-4f2a-StreamThread-1-consumer", (FETCH, JOIN), {}, "streams"),
        ("_confluent-ksql-default_query_CSAS_PAGES_1-d3bf-StreamThread-8-consumer", (FETCH,), {}, "ksqldb"),
        ("app", (FETCH, JOIN), {"assignors": ["stream"]}, "streams"),
        ("a->b|MirrorSourceConnector-0|replication-consumer", (FETCH,), {}, "mirrormaker"),
        ("connector-producer-MirrorHeartbeatConnector-0", (PRODUCE,), {}, "mirrormaker"),
        (
            "us-east->eu-1",
            (JOIN,),
            {"protocol_type": ["connect"], "group_id": ["us-east-mm2"]},
            "mirrormaker",
        ),
        ("w", (JOIN,), {"protocol_type": ["connect"], "group_id": ["us-east-mm2"]}, "mirrormaker"),
        ("w", (JOIN,), {"protocol_type": ["consumer"], "group_id": ["us-east-mm2"]}, "consumer"),
        ("w", (JOIN,), {"protocol_type": ["consumer", "connect"], "group_id": ["a-mm2"]}, "connect"),
        ("connector-dlq-adminclient-sink-0", (CREATE_TOPICS,), {}, "connect"),
        ("connector-offset-producer-source", (PRODUCE,), {}, "connect"),
        ("connector-worker-adminclient-source", (CREATE_TOPICS,), {}, "connect"),
        ("shop", (JOIN,), {"protocol_type": ["consumer"], "group_id": ["connect-audit"]}, "consumer"),
        ("app-4f2a-StreamThread-1-0_1-producer", (PRODUCE,), {}, "streams"),
        ("app-0b1c2d3e-4f5a-6b7c-8d9e-0f1a2b3c4d5e-global-consumer", (FETCH,), {}, "streams"),
        ("app-0b1c2d3e-4f5a-6b7c-8d9e-0f1a2b3c4d5e-admin", (CREATE_TOPICS,), {}, "streams"),
        ("orders-admin", (CREATE_TOPICS,), {}, "admin"),
        ("q", (JOIN,), {"group_id": ["_confluent-ksql-default_query_CTAS_A_1"]}, "ksqldb"),
    ],
)
def test_the_role_follows_from_what_is_asked(
    client_id: str, keys: tuple[int, ...], words: dict[str, list[str]], role: str | None
) -> None:
    assert find_role(CATALOG, client_id, keys, {**NO_WORDS, **words}) == role


def call(number: int, **changed: Any) -> dict[str, Any]:
    row = dict.fromkeys(column.name for column in TABLES["api_calls"].own)
    given = {"call_id": number, "capture": "x", "connection_id": 1, "client_address": "10.0.0.1",
             "client_port": 1, "broker_address": "b", "broker_port": 2, "api_key": FETCH, "api_version": 12,
             "correlation_id": number, "client_id": "app", "request_time": number * 10**9,
             "request_bytes": 1, "status": "answered", "caller": "client"}  # fmt: skip
    return {**row, **given, **changed}


def finished(*batches: pa.RecordBatch, budget: MemoryBudget | None = None) -> list[dict[str, Any]]:
    followed = Clients(CATALOG, budget or MemoryBudget())
    for batch in batches:
        followed.add("api_calls", batch)
    followed.finish()
    return followed.rows


def calls(*rows: dict[str, Any]) -> pa.RecordBatch:
    return batch_of("api_calls", rows)


def test_two_values_are_null_and_listed() -> None:
    (row,) = finished(calls(*(call(n, min_bytes=1 if n else 7, max_wait_ms=500) for n in range(3))))
    assert row["fetch_min_bytes"] is None
    assert row["several"] == ["fetch_min_bytes: 1 in 2, 7 in 1"]
    assert row["fetch_max_wait_ms"] == 500
    assert row["known_by"] == ["fetch_max_wait_ms: 3 requests"]


def test_rows_do_not_depend_on_how_calls_are_cut_into_batches() -> None:
    rows = [
        call(n, api_key=HEARTBEAT, connection_id=1 + n % 2, max_wait_ms=None, request_time=n * 1_500_000_000)
        for n in range(200)
    ]
    whole = finished(calls(*rows))
    order = np.random.default_rng(1).permutation(len(rows)).tolist()
    parts = [calls(*(rows[place] for place in order[begin : begin + 7])) for begin in range(0, 200, 7)]
    assert finished(*parts) == whole
    assert whole[0]["heartbeat_interval_ms"] == 3000  # each connection has every second one


def test_clients_beyond_the_bounds_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room_of_clients, "MOST_CLIENTS", 3)
    budget = MemoryBudget()
    rows = finished(calls(*(call(n, client_id=f"app-{n}") for n in range(9))), budget=budget)
    assert [row["client_id"] for row in rows] == ["app-0", "app-1", "app-2"]
    assert budget.left_out >= 6


def test_values_are_bounded_by_the_room() -> None:
    budget = MemoryBudget()
    budget.most = 50_000
    finished(calls(*(call(n, client_id=f"app-{n}", rack_id="r" * 200) for n in range(900))), budget=budget)
    assert budget.used <= budget.most
    assert budget.left_out


@pytest.mark.parametrize(
    ("path", "role", "others", "number"),
    [
        ("field/h_mm2.pcap", "mirrormaker", {"shop": "producer"}, 21),
        ("group_streams/capture.pcap", "streams", {"shop": "producer", "office": "admin"}, 4),
    ],
)
def test_every_client_of_a_recorded_program_is_its_own(
    path: str, role: str, others: dict[str, str], number: int
) -> None:
    """MirrorMaker 2 between two clusters, and an application of Kafka Streams."""
    roles = {str(client_id): row["role"] for client_id, row in rows_of(path).items()}
    assert {name: each for name, each in roles.items() if each != role} == others
    assert len(roles) == number + len(others)


def joined(number: int, **changed: Any) -> dict[str, Any]:
    given = {
        "api_key": JOIN,
        "protocol_type": "connect",
        "group_id": "etl",
        "client_id": "connect-10.0.0.1:8083",
    }
    return call(number, **{**given, **changed})


def test_the_other_clients_of_a_connect_worker_are_known_by_its_group() -> None:
    """ConnectUtils.clientIdBase: the group id, the client.id of the worker if it has one, a purpose."""
    worker = {
        "etl-configs": "connect", "etl-w1-offsets": "connect", "etl-statuses": "connect",
        "etl-configs-leader": "connect", "etl-shared-admin": "connect", "connect-10.0.0.1:8083": "connect",
        "etl-audit": "consumer", "etl2-offsets": "consumer", "offsets": "consumer",
    }  # fmt: skip
    others = [call(n, client_id=name) for n, name in enumerate(worker) if ":" not in name]
    rows = finished(calls(joined(50), *others, call(60, client_id="etl-offsets", client_address="10.0.0.9")))
    assert {row["client_id"]: row["role"] for row in rows if row["address"] == "10.0.0.1"} == worker
    assert [row["role"] for row in rows if row["address"] == "10.0.0.9"] == ["consumer"]


def test_those_of_a_mirrormaker_are_its_own() -> None:
    rows = finished(
        calls(joined(1, group_id="a-mm2", client_id="a->b"), call(2, client_id="a-mm2-a->b-offsets"))
    )
    assert {row["role"] for row in rows} == {"mirrormaker"}


def test_who_removes_members_of_a_group_is_not_one_of_them() -> None:
    (row,) = finished(calls(call(1, api_key=LEAVE, group_id="_confluent-ksql-default_query_CTAS_A_1")))
    assert row["role"] is None


@pytest.mark.parametrize(
    ("client_id", "features"),
    [
        ("shop,ws_az=us-east-1a,ws_si=false", ["ws_az=us-east-1a", "ws_si=false"]),
        ("warpstream_az=us-east-1a", ["warpstream_az=us-east-1a"]),
        ("shop", None),
        ("shop,az=us-east-1a", None),
    ],
)
def test_settings_that_a_client_id_carries(client_id: str, features: list[str] | None) -> None:
    (row,) = finished(calls(call(1, client_id=client_id)))
    assert row["features"] == features
