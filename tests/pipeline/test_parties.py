"""Who asks, with which isolation, in which fetch session: columns of api_calls against the script."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import kwsniff
from tests.pipeline.compare import analyzed_packets, capture_of, decoded, in_order
from tests.traffic import groups, messages
from tests.traffic.exchange import Exchange
from tests.traffic.membership import join
from tests.traffic.records import batch
from tests.traffic.scenes import ORDERS, one_by_one
from tests.traffic.tcp import MILLISECOND, Scene
from tests.traffic.topics import (
    allocate_producer_ids,
    create_topics,
    describe_consumer_group,
    describe_topic_partitions,
)

FETCHES = (4, 7, 11, 12, 14, 15, 16)
_BEAT = groups.heartbeat(4, 2, "g")
VENDORS = replace(_BEAT, request=_BEAT.request[:4] + b"\x01\xf5" + _BEAT.request[6:])  # API 501


def column(folder: Path, name: str, *calls: Exchange) -> list[Any]:
    """The values of a column of api_calls, in the order of the calls on one connection."""
    return [row[name] for row in in_order(analyzed_packets(folder, one_by_one(calls).packets())["api_calls"])]


@pytest.mark.parametrize("version", FETCHES)
def test_a_client_is_told_by_what_only_clients_ask(version: int, tmp_path: Path) -> None:
    calls = [
        messages.api_versions(3, 1),  # everybody asks this
        messages.fetch(version, 2, ORDERS),
        messages.api_versions(3, 3),
        groups.list_offsets(7, 4, {"orders": 0}),
    ]
    assert column(tmp_path, "caller", *calls) == [None, "client", "client", "client"]


@pytest.mark.parametrize("version", FETCHES)
def test_a_follower_is_told_by_its_replica_id(version: int, tmp_path: Path) -> None:
    calls = [
        messages.api_versions(3, 1),
        messages.fetch(version, 2, ORDERS, replica=0),
        messages.fetch(version, 3, ORDERS, replica=7),
        messages.api_versions(3, 4),
    ]
    assert column(tmp_path, "caller", *calls) == [None, "replica", "replica", "replica"]
    assert column(tmp_path, "caller", groups.list_offsets(7, 1, {"orders": 0}, replica=7)) == ["replica"]


@pytest.mark.parametrize("version", FETCHES)
def test_rack_and_maximum_of_a_fetch(version: int, tmp_path: Path) -> None:
    calls = [
        messages.fetch(version, 1, ORDERS, rack="zone-a"),
        messages.fetch(version, 2, ORDERS),
        messages.api_versions(3, 3),
    ]
    assert column(tmp_path, "rack_id", *calls) == ["zone-a" if version >= 11 else None, None, None]
    assert column(tmp_path, "max_bytes", *calls) == [52_428_800, 52_428_800, None]


def test_requests_in_flight_together_are_counted(tmp_path: Path) -> None:
    scene = Scene()
    script = scene.connection()
    script.open()
    for number, (at, answer_at) in enumerate(((10, 30), (11, 31), (12, 32), (31, 40), (50, 60)), 1):
        call = messages.metadata(9, number, ["orders"])
        script.call(call, at=at * MILLISECOND, answer_at=answer_at * MILLISECOND)
    # Between 12 and 30 ms there are three: 1, 2 and 3.
    (row,) = analyzed_packets(tmp_path, scene.packets())["connections"]
    assert row["max_in_flight"] == 3


def test_a_broker_is_told_by_what_only_brokers_ask(tmp_path: Path) -> None:
    calls = [messages.api_versions(3, 1), allocate_producer_ids(2, 5), messages.api_versions(3, 3)]
    assert column(tmp_path, "caller", *calls) == [None, "broker", "broker"]
    tables = decoded(tmp_path / "capture.pcap")
    assert [row["caller"] for row in tables["connections"]] == ["broker"]


def test_a_connection_says_who_calls_once_somebody_told(tmp_path: Path) -> None:
    scene = one_by_one([messages.api_versions(3, 1), messages.metadata(12, 2, ["orders"])])
    (connection,) = analyzed_packets(tmp_path, scene.packets())["connections"]
    assert connection["caller"] == "client"
    scene = one_by_one([messages.api_versions(3, 1)])
    (connection,) = analyzed_packets(tmp_path, scene.packets())["connections"]
    assert connection["caller"] is None


@pytest.mark.parametrize(
    ("calls", "caller"),
    [
        ([messages.metadata(12, 1, ["orders"]), allocate_producer_ids(2, 5)], "broker"),
        ([allocate_producer_ids(1, 5), messages.metadata(12, 2, ["orders"])], "broker"),
        ([messages.metadata(12, 1, ["orders"]), VENDORS], "client"),  # nothing is known of a vendor's API
        ([allocate_producer_ids(1, 5), messages.fetch(11, 2, ORDERS)], "broker"),
        ([messages.fetch(11, 1, ORDERS), messages.fetch(11, 2, ORDERS, replica=3)], "replica"),
        ([messages.fetch(11, 1, ORDERS, replica=3), messages.metadata(12, 2, ["orders"])], "replica"),
    ],
)
def test_what_only_brokers_say_tells_more_of_a_connection_than_what_all_say(
    calls: list[Exchange], caller: str, tmp_path: Path
) -> None:
    (connection,) = analyzed_packets(tmp_path, one_by_one(calls).packets())["connections"]
    assert connection["caller"] == caller


@pytest.mark.parametrize("version", FETCHES)
def test_isolation_level_of_a_reader(version: int, tmp_path: Path) -> None:
    calls = [
        messages.fetch(version, 1, ORDERS, isolation=0),
        messages.fetch(version, 2, ORDERS, isolation=1),
        groups.list_offsets(5, 3, {"orders": 0}, isolation=1),
        groups.list_offsets(7, 4, {"orders": 0}),
        messages.produce(9, 5, ORDERS),
    ]
    assert column(tmp_path, "isolation_level", *calls) == [0, 1, 1, 0, None]


@pytest.mark.parametrize("version", FETCHES[1:])
def test_session_id_is_the_one_asked_for_or_else_the_one_given(version: int, tmp_path: Path) -> None:
    calls = [
        messages.fetch(version, 1, ORDERS, session=(0, -1)),  # wants none
        messages.fetch(version, 2, ORDERS, session=(0, 0), opened=1_234_567_890),
        messages.fetch(version, 3, {}, session=(1_234_567_890, 1), opened=1_234_567_890),
        messages.fetch(version, 4, {}, session=(1_234_567_890, 5), error=71, opened=0),
        messages.metadata(12, 5, ["orders"]),
    ]
    assert column(tmp_path, "session_id", *calls) == [0, *[1_234_567_890] * 3, None]


def test_there_were_no_sessions_before_version_7(tmp_path: Path) -> None:
    assert column(tmp_path, "session_id", messages.fetch(4, 1, ORDERS)) == [None]


NAMING = {
    "CreateTopics": create_topics(3, ["orders", "refused"], errors={"refused": 36}),
    "DescribeTopicPartitions": describe_topic_partitions(3, ["orders"]),
    "ConsumerGroupDescribe": describe_consumer_group(3, "readers", ["orders"]),
}


@pytest.mark.parametrize("naming", NAMING.values(), ids=NAMING.keys())
def test_topic_ids_get_names_from_any_answer_that_has_both(naming: Exchange, tmp_path: Path) -> None:
    calls = [
        messages.produce(13, 1, {"orders": {0: batch([b"x"])}}, errors={("orders", 0): 7}),
        messages.fetch(16, 2, {"orders": {0: batch([b"x"])}, "refused": {0: None}}),
        naming,
        messages.produce(13, 4, {"orders": {0: batch([b"y"])}}),
    ]
    tables = analyzed_packets(tmp_path, one_by_one(calls).packets())
    rows = in_order(tables["api_calls"])
    assert [row["topics"] for row in (rows[0], rows[3])] == [["orders"]] * 2
    assert "orders" in rows[1]["topics"]
    assert "refused" not in rows[1]["topics"]  # nobody gave it an id
    moved = [row for row in tables["partitions"] if row["api_name"] in ("Produce", "Fetch")]
    assert [row["topic"] for row in moved] == ["orders", "orders", None, "orders"]
    assert [row["topic"] for row in tables["record_batches"]] == ["orders"] * 3
    codes = [(row["topic"], row["error_code"]) for row in tables["error_codes"]]
    assert ("orders", 7) in codes
    assert rows[2]["reason"] is None
    assert rows[2]["error_count"] == len(naming.facts.errors)
    assert decoded(tmp_path / "capture.pcap", output=tmp_path / "tables") == tables


def test_a_member_is_the_one_that_the_answer_names_first(tmp_path: Path) -> None:
    """The leader's answer lists all the others behind it."""
    call = join(1, "g", member="m-2", generation=1, members=["m-1", "m-2", "m-3"], client_id="shop")
    assert column(tmp_path, "member_id", call) == ["m-2"]


def test_topics_of_calls_get_their_names_where_no_other_table_asks_for_them(tmp_path: Path) -> None:
    calls = [messages.produce(13, 1, ORDERS, acks=0), messages.metadata(12, 2, ["orders"])]
    path = capture_of(tmp_path / "capture.pcap", one_by_one(calls).packets())
    kwsniff.analyze(path, output=tmp_path / "out", tables=["api_calls"])
    rows = pq.read_table(tmp_path / "out" / "api_calls.parquet").to_pylist()
    assert [row["topics"] for row in rows] == [["orders"]] * 2
