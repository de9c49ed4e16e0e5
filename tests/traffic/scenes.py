"""Ready-made scenes. Times are in nanoseconds after the scene's epoch."""

from __future__ import annotations

from collections.abc import Sequence

from tests.traffic import groups, messages
from tests.traffic.exchange import Exchange
from tests.traffic.records import batch
from tests.traffic.tcp import MILLISECOND, Endpoint, Scene

ORDERS = {"orders": {0: batch([b"one", b"two"]), 1: batch([b"three"])}}
BROKER = Endpoint("10.1.0.92", 9092)


def vocabulary() -> list[Exchange]:
    """Every message this library can encode, with and without errors, with distinct correlation ids."""
    two = {"orders": {0: 17, 1: 4}, "returns": {3: 9}}
    record = batch([b"x" * 100] * 5, gzipped=True)
    calls = [
        messages.api_versions(0, 1),
        messages.api_versions_fallback(2),
        messages.api_versions(3, 3),
        messages.api_versions(4, 4, software=("apache-kafka-java", "4.0.0")),
        messages.metadata(1, 5, ["orders", "nowhere"], errors={"nowhere": 3}),
        messages.metadata(9, 6, ["orders"]),
        messages.metadata(12, 7, ["orders", "returns"]),
        messages.produce(3, 8, ORDERS, acks=1),
        messages.produce(7, 9, ORDERS, acks=-1, errors={("orders", 1): 6}),
        messages.produce(7, 10, ORDERS, acks=0),
        messages.produce(9, 11, {"orders": {0: record}}, acks=1),
        messages.produce(
            9, 12, ORDERS, transactional_id="tx-7", errors={("orders", 0): 47, ("orders", 1): 47}
        ),
        messages.produce(9, 13, ORDERS, acks=0, client_id=None),
        messages.produce(13, 14, ORDERS, throttle_ms=125),
        messages.fetch(4, 15, ORDERS),
        messages.fetch(11, 16, {"orders": {0: record, 1: b""}}, errors={("orders", 1): 1}),
        messages.fetch(12, 17, ORDERS, error=70),
        messages.fetch(16, 18, ORDERS, client_id=""),
    ]
    calls += [
        groups.find_coordinator(version, 20 + version, "g", error=15 if version == 3 else 0)
        for version in (1, 3, 4)
    ]
    calls += [
        groups.join_group(version, 30 + version, "g", error=79 if version == 7 else 0)
        for version in (5, 7, 9)
    ]
    calls += [
        groups.sync_group(version, 40 + version, "g", error=27 if version == 3 else 0) for version in (3, 5)
    ]
    calls += [
        groups.heartbeat(version, 50 + version, "g", error=27 if version == 4 else 0) for version in (3, 4)
    ]
    calls += [
        groups.offset_commit(version, 60 + version, "g", two, errors={("returns", 3): 22})
        for version in (7, 8)
    ]
    calls += [
        groups.offset_fetch(version, 70 + version, "g", two, error=14 if version == 7 else 0)
        for version in (5, 7, 8)
    ]
    calls += [
        groups.init_producer_id(version, 80 + version, "tx-7", error=48 if version == 4 else 0)
        for version in (1, 4)
    ]
    calls += [
        groups.list_offsets(version, 90 + version, {"orders": 0}, errors={("orders", 0): 5})
        for version in (4, 7)
    ]
    return calls


def one_by_one(
    calls: Sequence[Exchange],
    *,
    client: Endpoint | None = None,
    broker: Endpoint | None = None,
    mss: int = 1448,
    client_isn: int = 1_000,
    broker_isn: int = 4_000_000_000,
    handshake: bool = True,
) -> Scene:
    """One connection: a call every 10 ms, answered after 2 ms, then closed."""
    scene = Scene()
    script = scene.connection(client, broker, mss=mss, client_isn=client_isn, broker_isn=broker_isn)
    if handshake:
        script.open()
    for number, exchange in enumerate(calls, start=1):
        script.call(exchange, at=number * 10 * MILLISECOND, answer_at=(number * 10 + 2) * MILLISECOND)
    if handshake:
        script.close(at=(len(calls) + 1) * 10 * MILLISECOND)
    return scene


def two_clients(address: str = "10.1.0.") -> Scene:
    """A producer and a group member talking to one broker at the same time."""
    broker = Endpoint(address + "92", 9092)
    scene = Scene()
    producer = scene.connection(Endpoint(address + "7", 50_000), broker)
    member = scene.connection(Endpoint(address + "8", 50_001), broker)
    producer.open()
    member.open(at=MILLISECOND)
    first: list[Exchange] = [
        messages.api_versions(3, 1),
        messages.metadata(9, 2, ["orders"]),
        messages.produce(9, 3, ORDERS),
        messages.produce(9, 4, ORDERS, errors={("orders", 0): 7}),
        messages.produce(9, 5, ORDERS, acks=0),
    ]
    second: list[Exchange] = [
        groups.find_coordinator(3, 1, "g", client_id="shop-2"),
        groups.join_group(7, 2, "g", client_id="shop-2"),
        groups.sync_group(5, 3, "g", client_id="shop-2"),
        messages.fetch(11, 4, {"orders": {0: batch([b"v" * 900] * 9)}}, client_id="shop-2"),
        groups.heartbeat(4, 5, "g", error=27, client_id="shop-2"),
    ]
    for number, (left, right) in enumerate(zip(first, second, strict=True), start=1):
        producer.call(left, at=number * 10 * MILLISECOND, answer_at=(number * 10 + 3) * MILLISECOND)
        member.call(right, at=(number * 10 + 1) * MILLISECOND, answer_at=(number * 10 + 2) * MILLISECOND)
    producer.close(at=100 * MILLISECOND)
    member.reset(at=101 * MILLISECOND)
    return scene


def pipelined(depth: int = 5, calls: int = 20, mss: int = 1448) -> Scene:
    """``depth`` requests written in one go, answered in one go: frames share segments both ways."""
    scene = Scene()
    script = scene.connection(mss=mss)
    script.open()
    for number in range(calls):
        round_at = (1 + number // depth) * 10 * MILLISECOND
        exchange = messages.produce(7, 100 + number, {"orders": {0: batch([b"p" * (7 * number)])}})
        script.call(exchange, at=round_at, answer_at=round_at + 4 * MILLISECOND)
    script.close(at=1_000 * MILLISECOND)
    return scene
