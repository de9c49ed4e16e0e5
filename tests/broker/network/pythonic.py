"""Roles of clients written in Python: kafka-python and aiokafka; see roles.py."""

from __future__ import annotations

import asyncio
import socket
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

Settings = Mapping[str, Any]


def kp_produce(
    *,
    bootstrap: str,
    client_id: str = "py-shop",
    topic: str = "orders",
    count: int = 20,
    every_s: float = 0.1,
    size: int = 100,
    key: str = "",
    partitions: int = 0,
    settings: Settings | None = None,
) -> Counter[str]:
    """kafka-python: `count` records, each awaited; several topics (`topic`) or partitions take turns."""
    from kafka import KafkaProducer
    from kafka.errors import KafkaError

    did: Counter[str] = Counter()
    try:
        producer = KafkaProducer(bootstrap_servers=bootstrap, client_id=client_id, **(settings or {}))
    except KafkaError as error:
        return Counter({f"failed {type(error).__name__}": 1})
    topics = topic.split(",")
    for number in range(count):
        try:
            where = number % partitions if partitions else None
            value, topic = b"x" * size, topics[number % len(topics)]
            sent = producer.send(topic, value, key=key.encode() or None, partition=where)
            sent.get(10)
            did["produced"] += 1
        except KafkaError as error:
            did[f"failed {type(error).__name__}"] += 1
        time.sleep(every_s)
    producer.close(timeout=2)
    return did


def kp_hoard(
    *,
    bootstrap: str,
    client_id: str = "py-jobs",
    topic: str = "orders",
    count: int = 20,
    every_s: float = 0.4,
    stays_s: float = 4,
) -> Counter[str]:
    """kafka-python: a new producer for each record; all of them stay open to the end."""
    from kafka import KafkaProducer

    kept = []
    for _ in range(count):
        kept.append(KafkaProducer(bootstrap_servers=bootstrap, client_id=client_id))
        kept[-1].send(topic, b"x" * 100).get(10)
        time.sleep(every_s)
    time.sleep(stays_s)
    return Counter(produced=len(kept))


def two_writes(
    *,
    bootstrap: str,
    client_id: str = "bare-shop",
    count: int = 40,
    every_s: float = 0.05,
    size: int = 300,
) -> Counter[str]:
    """A sender by hand without TCP_NODELAY: the size of each Produce in one write, the rest in another."""
    from tests.traffic import messages
    from tests.traffic.records import batch

    host, _, port = bootstrap.split(",", maxsplit=1)[0].rpartition(":")
    with socket.create_connection((host, int(port)), 10) as line, line.makefile("rb") as answers:
        for number in range(count):
            records = {"orders": {0: batch([b"x" * size])}}
            asked = messages.produce(9, number, records, acks=1, client_id=client_id).request
            line.sendall(asked[:4])
            line.sendall(asked[4:])
            answers.read(int.from_bytes(answers.read(4)))
            time.sleep(every_s)
    return Counter(produced=count)


def kp_consume(
    *,
    bootstrap: str,
    client_id: str = "py-billing-1",
    group: str | None = "py-billing",
    topics: str = "orders",
    seconds: float = 10,
    work_s: float = 0,
    offset: int = -1,
    settings: Settings | None = None,
) -> Counter[str]:
    """kafka-python: reads for so long, works so long on each record."""
    from kafka import KafkaConsumer, TopicPartition
    from kafka.errors import KafkaError

    did: Counter[str] = Counter()
    fixed = {"auto_offset_reset": "earliest", "auto_commit_interval_ms": 1000}
    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap, client_id=client_id, group_id=group, **{**fixed, **(settings or {})}
    )
    if offset >= 0:
        place = TopicPartition(topics, 0)
        consumer.assign([place])
        consumer.seek(place, offset)
    else:
        consumer.subscribe(topics.split(","))
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            for records in consumer.poll(100, max_records=5).values():
                for _ in records:
                    did["consumed"] += 1
                    time.sleep(work_s)
        except KafkaError as error:
            did[f"failed {type(error).__name__}"] += 1
            time.sleep(0.5)
    consumer.close()
    return did


def kp_look(
    *, bootstrap: str, client_id: str = "py-monitor", count: int = 40, every_s: float = 0.1
) -> Counter[str]:
    """kafka-python: lists all topics again and again, with one administrator."""
    from kafka import KafkaAdminClient

    admin = KafkaAdminClient(bootstrap_servers=bootstrap, client_id=client_id)
    for _ in range(count):
        admin.list_topics()
        time.sleep(every_s)
    admin.close()
    return Counter(looked=count)


def kp_commit(
    *,
    bootstrap: str,
    client_id: str = "py-recalc",
    group: str = "billing",
    topic: str = "orders",
    count: int = 10,
    every_s: float = 0.3,
) -> Counter[str]:
    """kafka-python: assigns itself a partition and commits into a group that others are members of."""
    from kafka import KafkaConsumer, TopicPartition
    from kafka.errors import KafkaError
    from kafka.structs import OffsetAndMetadata

    did: Counter[str] = Counter()
    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap, client_id=client_id, group_id=group, enable_auto_commit=False
    )
    place = TopicPartition(topic, 0)
    consumer.assign([place])
    for number in range(count):
        consumer.poll(50)
        try:
            consumer.commit({place: OffsetAndMetadata(number, "", -1)}, timeout_ms=3000)
            did["committed"] += 1
        except KafkaError as error:
            did[f"failed {type(error).__name__}"] += 1
        time.sleep(every_s)
    consumer.close()
    return did


def kp_ensure(
    *,
    bootstrap: str,
    client_id: str = "py-deploy",
    topics: str = "orders",
    times: int = 1,
    every_s: float = 0,
) -> Counter[str]:
    """kafka-python: creates topics that may be there already."""
    from kafka import KafkaAdminClient
    from kafka.admin import NewTopic
    from kafka.errors import KafkaError

    did: Counter[str] = Counter()
    admin = KafkaAdminClient(bootstrap_servers=bootstrap, client_id=client_id)
    for _ in range(times):
        for topic in topics.split(","):
            try:
                admin.create_topics([NewTopic(topic, 1, 1)])
                did["created"] += 1
            except KafkaError as error:
                did[f"failed {type(error).__name__}"] += 1
        time.sleep(every_s)
    admin.close()
    return did


def aio_produce(
    *,
    bootstrap: str,
    client_id: str = "aio-shop",
    topic: str = "orders",
    count: int = 20,
    every_s: float = 0,
    size: int = 100,
    settings: Settings | None = None,
) -> Counter[str]:
    """aiokafka: `count` records, each awaited."""
    did: Counter[str] = Counter()

    async def play() -> None:
        from aiokafka import AIOKafkaProducer
        from aiokafka.errors import KafkaError

        fixed = {"bootstrap_servers": bootstrap, "client_id": client_id}
        producer = AIOKafkaProducer(**{**fixed, **(settings or {})})
        try:
            await producer.start()
            for _ in range(count):
                await producer.send_and_wait(topic, b"x" * size)
                did["produced"] += 1
                await asyncio.sleep(every_s)
        except KafkaError as error:
            did[f"failed {type(error).__name__}"] += 1
        await producer.stop()

    asyncio.run(play())
    return did


def aio_consume(
    *,
    bootstrap: str,
    client_id: str = "aio-billing-1",
    group: str = "aio-billing",
    topic: str = "orders",
    seconds: float = 10,
    work_s: float = 0,
    settings: Settings | None = None,
) -> Counter[str]:
    """aiokafka: reads in a group for so long."""
    did: Counter[str] = Counter()

    async def play() -> None:
        from aiokafka import AIOKafkaConsumer

        fixed: dict[str, Any] = {"bootstrap_servers": bootstrap, "client_id": client_id, "group_id": group}
        fixed |= {"auto_offset_reset": "earliest", "auto_commit_interval_ms": 1000}
        consumer = AIOKafkaConsumer(topic, **{**fixed, **(settings or {})})
        await consumer.start()
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for records in (await consumer.getmany(timeout_ms=200, max_records=5)).values():
                did["consumed"] += len(records)
                await asyncio.sleep(work_s * len(records))
        await consumer.stop()

    asyncio.run(play())
    return did


ROLES: Mapping[str, Callable[..., Counter[str]]] = {
    role.__name__: role
    for role in (
        kp_produce,
        kp_hoard,
        two_writes,
        kp_consume,
        kp_look,
        kp_commit,
        kp_ensure,
        aio_produce,
        aio_consume,
    )
}
