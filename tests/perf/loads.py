"""The two loads of the benchmark, as scenes for `tests.perf.repeat`."""

from __future__ import annotations

import random
from collections.abc import Sequence

from tests.traffic import groups, messages
from tests.traffic.exchange import Exchange
from tests.traffic.records import batch
from tests.traffic.tcp import MICROSECOND, MILLISECOND, Endpoint, Scene

OFFLOADED = 45 * 1448  # what a network card is handed at once
ON_THE_WIRE = 1448
LARGE_PERIOD = 40 * MILLISECOND
SMALL_PERIOD = 20 * MILLISECOND
SMALL_CONNECTIONS = 36


def record_set(size: int, record_size: int = 10_000) -> bytes:
    """Batches of about 100 kB of incompressible records."""
    dice = random.Random(size)
    out = b""
    while len(out) < size:
        count = max(min(size - len(out), 100_000) // record_size, 1)
        out += batch([dice.randbytes(record_size) for _ in range(count)], base_offset=len(out) // record_size)
    return out


def large(sizes: Sequence[int] = (100_000, 300_000, 1_000_000)) -> Scene:
    """Six connections: fetches and produces of 100 kB to 1 MB, half as seen beside an offloading card."""
    scene = Scene()
    for number, size in enumerate(sizes):
        records = record_set(size)
        for offset, mss in enumerate((OFFLOADED, ON_THE_WIRE)):
            script = scene.connection(
                Endpoint(f"10.2.0.{number * 2 + offset + 1}", 40_000 + number),
                Endpoint("10.2.1.1", 9092),
                mss=mss,
            )
            script.gap_ns = 200
            script.open()
            at = MILLISECOND * (2 + number * 4 + offset * 2)
            if offset:
                exchange = messages.produce(7, 1, {"bulk": {0: records}}, client_id=f"bulk-{number}")
            else:
                exchange = messages.fetch(11, 1, {"bulk": {0: records}}, client_id=f"reader-{number}")
            script.call(exchange, at=at, answer_at=at + MILLISECOND)
    return scene


def small(connections: int = SMALL_CONNECTIONS) -> Scene:
    """Dozens of connections with small calls: half of them produce, the others fetch, beat and ask."""
    scene = Scene()
    record = batch([b"v" * 120])
    for number in range(connections):
        script = scene.connection(
            Endpoint(f"10.3.0.{number + 1}", 42_000 + number), Endpoint(f"10.3.1.{number % 3 + 1}", 9092)
        )
        script.open()
        client_id = f"client-{number}"
        topic = f"topic-{number % 7}"
        calls: list[Exchange]
        if number % 2:
            calls = [
                messages.produce(7, index, {topic: {number % 12: record}}, client_id=client_id)
                for index in range(1, 9)
            ]
        else:
            error = 6 if number % 6 == 0 else 0
            calls = [
                messages.fetch(11, 1, {topic: {0: record, 1: b""}}, client_id=client_id),
                groups.heartbeat(3, 2, f"group-{number % 5}", client_id=client_id),
                messages.fetch(11, 3, {topic: {0: b""}}, client_id=client_id),
                messages.fetch(11, 4, {topic: {0: record}}, client_id=client_id, errors={(topic, 0): error}),
                messages.metadata(9, 5, [topic], client_id=client_id),
                messages.fetch(11, 6, {topic: {0: record}}, client_id=client_id),
                groups.offset_commit(7, 7, f"group-{number % 5}", {topic: {0: 9}}, client_id=client_id),
                messages.fetch(11, 8, {topic: {0: record}}, client_id=client_id),
            ]
        for index, exchange in enumerate(calls):
            at = MILLISECOND * (2 + 2 * index) + number * 20 * MICROSECOND
            script.call(exchange, at=at, answer_at=at + MILLISECOND)
    return scene


def mixed(connections: int = 200, topics: int = 50, errors: float = 0.01) -> Scene:
    """Calls of 100 bytes or so, up to five under way at a time.

    Of 20 calls 8 are Produce, 8 Fetch, 2 Heartbeat, one Metadata and one OffsetCommit. Four clients are a
    group. `errors`: the share of produced, fetched and committed partitions, and of heartbeats, that fail.
    """
    scene = Scene()
    dice = random.Random(topics)
    for number in range(connections):
        script = scene.connection(
            Endpoint(f"10.4.{number // 250}.{number % 250 + 1}", 30_000 + number),
            Endpoint(f"10.5.0.{number % 3 + 1}", 9092),
        )
        script.open()
        kinds = [*"PPPPPPPPFFFFFFFFHHMO"]
        dice.shuffle(kinds)
        for index, kind in enumerate(kinds):
            topic = f"topic-{dice.randrange(topics)}"
            code = _ERRORS[kind] if dice.random() < errors else 0
            exchange = _of_kind(kind, index + 1, topic, number, code)
            at = MILLISECOND + index * 200 * MICROSECOND + number * MICROSECOND
            script.call(exchange, at=at, answer_at=at + MILLISECOND)
    return scene


_ERRORS = {"P": 6, "F": 6, "H": 27, "M": 0, "O": 22}
"""NOT_LEADER_OR_FOLLOWER; REBALANCE_IN_PROGRESS and ILLEGAL_GENERATION while a group rebalances."""


def _of_kind(kind: str, correlation_id: int, topic: str, client: int, error: int) -> Exchange:
    client_id, group = f"client-{client}", f"group-{client // 4}"
    errors = {(topic, 0): error} if error else {}
    record = batch([b"v" * 40])
    match kind:
        case "P":
            return messages.produce(
                9, correlation_id, {topic: {0: record}}, client_id=client_id, errors=errors
            )
        case "F":
            found = {topic: {0: b"" if errors else record}}
            return messages.fetch(12, correlation_id, found, client_id=client_id, errors=errors)
        case "H":
            return groups.heartbeat(4, correlation_id, group, error=error, client_id=client_id)
        case "M":
            return messages.metadata(9, correlation_id, [topic], client_id=client_id)
        case _:
            return groups.offset_commit(
                8, correlation_id, group, {topic: {0: 9}}, client_id=client_id, errors=errors
            )
