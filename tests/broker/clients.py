"""Producers and consumers: librdkafka, Java of today and of long ago, kafka-python, aiokafka."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Any

from tests.broker.stage import NEWEST, PATIENCE_S, Stage, scenario


def quiet(bootstrap: str, client_id: str, **more: Any) -> dict[str, Any]:
    """Settings of a confluent-kafka client."""
    return {
        "bootstrap.servers": bootstrap,
        "client.id": client_id,
        "enable.metrics.push": False,
        "debug": "protocol",  # to standard error: stage.py listens
        **{key.replace("_", "."): value for key, value in more.items()},
    }


def send(
    stage: Stage,
    bootstrap: str,
    values: Sequence[bytes],
    topic: str = "orders",
    between: Callable[[], None] | None = None,
    **more: Any,
) -> None:
    """librdkafka produces; `between` happens after the first value was delivered."""
    from confluent_kafka import Producer

    def delivered(error: Any, _: object) -> None:
        stage.add("failed" if error else "produced")
        if error:
            stage.notes.append(f"delivery to {topic} failed: {error.name()}")

    producer = Producer(quiet(bootstrap, "shop-producer", **more))
    for number, value in enumerate(values):
        producer.produce(topic, value, callback=delivered)
        if between and number == 0:
            producer.flush(PATIENCE_S)
            between()
    producer.flush(PATIENCE_S)


def warm(bootstrap: str, topic: str = "orders") -> None:
    """Has a group join once, so that the topic of offsets exists and has a leader."""
    from confluent_kafka import Consumer

    consumer = Consumer(quiet(bootstrap, "early", group_id="early"))
    consumer.subscribe([topic])
    end = time.monotonic() + 20
    while not consumer.assignment() and time.monotonic() < end:
        consumer.poll(0.1)
    consumer.close()


def read(stage: Stage, bootstrap: str, wanted: int, topic: str = "orders", **more: Any) -> None:
    """librdkafka reads so many records in a group, commits, leaves."""
    from confluent_kafka import Consumer, KafkaException

    settings = {"group_id": "billing", "auto_offset_reset": "earliest", "enable_auto_commit": False, **more}
    consumer = Consumer(quiet(bootstrap, "billing-1", **settings))
    consumer.subscribe([topic])
    end = time.monotonic() + 30
    while wanted and time.monotonic() < end:
        message = consumer.poll(1.0)
        if message is not None and message.error():
            stage.notes.append(f"read: {message.error().name()}")
        elif message is not None:
            stage.add("consumed")
            wanted -= 1
    try:
        consumer.commit(asynchronous=False)
    except KafkaException as error:
        stage.notes.append(f"commit failed: {error.args[0].name()}")
    consumer.close()


@scenario(
    "librdkafka (confluent-kafka)",
    "The README's example: a producer, a group that reads, and what goes wrong on the way.",
    [
        "one Produce answered with error 6 (NOT_LEADER_OR_FOLLOWER), and its retry with the new leader",
        "Metadata answers with error 3 for the misspelt topic `ordres`",
        "a group that joins, reads, commits and leaves",
    ],
)
def first_steps(stage: Stage) -> None:
    with stage.brokers(NEWEST, 2, internal=True) as cluster:
        stage.office("create", "orders:1")
        warm(cluster.backstage)

        def move() -> None:
            stage.office("move", "orders:0:2")

        with stage.recording():
            send(stage, cluster.bootstrap, [b"one", b"two", b"three"], between=move, linger_ms=50)
            send(stage, cluster.bootstrap, [b"lost"], topic="ordres", message_timeout_ms=400)
            read(stage, cluster.bootstrap, 3)


@scenario(
    "librdkafka (confluent-kafka)",
    "The same records with every compression codec, on the wire and back.",
    ["record batches with codec none, gzip, snappy, lz4 and zstd, produced and fetched", "pcapng"],
    file="capture.pcapng",
)
def compression(stage: Stage) -> None:
    with stage.brokers(NEWEST, internal=True) as cluster:
        stage.office("create", "orders:1")
        warm(cluster.backstage)
        with stage.recording():
            for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
                values = [b"text that compresses " * 20] * 4
                send(stage, cluster.bootstrap, values, compression_type=codec, linger_ms=50)
            read(stage, cluster.bootstrap, 20)


@scenario(
    "librdkafka (confluent-kafka)",
    "What a broker refuses to store.",
    [
        "Produce answered with error 10 (MESSAGE_TOO_LARGE) and 87 (INVALID_RECORD)",
        "Produce with acks 0, which nobody answers",
        "a consumer that starts beyond the end: OFFSET_OUT_OF_RANGE (1)",
    ],
)
def refusals(stage: Stage) -> None:
    from confluent_kafka import Consumer, TopicPartition

    with stage.brokers(NEWEST, internal=True, properties={"message.max.bytes": 2000}) as cluster:
        stage.office("create", "orders:1", "keyed:1")
        stage.office("compact", "keyed")
        with stage.recording():
            send(stage, cluster.bootstrap, [b"x" * 5000])
            send(stage, cluster.bootstrap, [b"no key"], topic="keyed")
            send(stage, cluster.bootstrap, [b"fire and forget"], acks=0)
            consumer = Consumer(quiet(cluster.bootstrap, "lost", group_id="none", auto_offset_reset="error"))
            consumer.assign([TopicPartition("orders", 0, 1000)])
            end = time.monotonic() + 10
            while time.monotonic() < end:
                message = consumer.poll(0.5)
                if message is not None and message.error():
                    stage.notes.append(f"read: {message.error().name()}")
                    break
            consumer.close()


@scenario(
    "Java 4.3.1",
    "Transactions committed and aborted, a producer fenced off, and what an administrator sees.",
    [
        "InitProducerId, AddOffsetsToTxn, TxnOffsetCommit, EndTxn, WriteTxnMarkers between broker and itself",
        "AllocateProducerIds from broker to controller",
        "control batches, aborted transactions, read_committed",
        "ListTransactions, DescribeTransactions, DescribeProducers",
    ],
)
def transactions(stage: Stage) -> None:
    with stage.brokers(NEWEST) as cluster, stage.recording([*cluster.ports, *cluster.controller_ports]):
        stage.java("Admin", NEWEST, cluster.bootstrap, "create", "orders:1", "receipts:1")
        stage.java("Clients", NEWEST, cluster.bootstrap, "transactions")
        stage.java("Clients", NEWEST, cluster.bootstrap, "fenced")
        stage.java("Admin", NEWEST, cluster.bootstrap, "transactions", "till-7")


@scenario(
    "Java 3.9.2",
    "Transactions before KIP-890, with the APIs that clients of 4.x no longer need.",
    ["AddPartitionsToTxn from the client", "versions as Kafka 3.9 has them"],
)
def transactions_3_9(stage: Stage) -> None:
    with stage.brokers("3.9.2") as cluster, stage.recording():
        stage.java("Admin", NEWEST, cluster.bootstrap, "create", "orders:1", "receipts:1")
        stage.java("Clients", "3.9.2", cluster.bootstrap, "transactions")


@scenario(
    "Java 4.3.1",
    "A producer whose metrics the broker wants.",
    ["GetTelemetrySubscriptions, PushTelemetry with compressed OTLP metrics, the last push of a client"],
)
def telemetry(stage: Stage) -> None:
    properties = {"metric.reporters": "Receiver"}
    with stage.brokers(NEWEST, internal=True, properties=properties, program="Receiver") as cluster:
        stage.office("create", "orders:1")
        stage.office("metrics")
        with stage.recording():
            stage.java("Clients", NEWEST, cluster.bootstrap, "telemetry")


@scenario(
    "librdkafka (confluent-kafka)",
    "A producer and a consumer that are over their quota.",
    ["throttle times that are not 0"],
)
def throttled(stage: Stage) -> None:
    with stage.brokers(NEWEST, internal=True, properties={"quota.window.num": 2}) as cluster:
        stage.office("create", "orders:1")
        warm(cluster.backstage)
        for client, quota in (("shop-producer", "producer_byte_rate"), ("billing-1", "consumer_byte_rate")):
            stage.office("quota", client, quota, "5000")
        with stage.recording():
            send(stage, cluster.bootstrap, [b"x" * 1000] * 12, linger_ms=5, batch_num_messages=2)
            read(stage, cluster.bootstrap, 12, fetch_message_max_bytes=3000)


def _old(version: str) -> None:
    @scenario(
        f"Java {version}",
        f"A Java client of release {version} with a broker of 3.9.",
        ["versions of APIs that nobody speaks since"],
        name="java_" + "_".join(version.split(".")[:2]),
    )
    def play(stage: Stage) -> None:
        with stage.brokers("3.9.2", internal=True) as cluster:
            stage.office("create", "orders:1")
            warm(cluster.backstage)
            with stage.recording():
                names = ("client.id=old-shop", "c.group.id=billing", "p.compression.type=gzip")
                stage.java("Classic", version, cluster.bootstrap, "orders", "5", *names)


for _version in ("0.10.2.2", "0.11.0.3", "1.1.1", "2.3.1"):
    _old(_version)


@scenario(
    "kafka-python",
    "kafka-python producing, reading in a group, and its administrator.",
    ["the versions that kafka-python uses with Kafka 4.3"],
)
def kafka_python_4_3(stage: Stage) -> None:
    from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
    from kafka.admin import NewTopic

    with stage.brokers(NEWEST) as cluster, stage.recording():
        admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap, client_id="py-office")
        admin.create_topics([NewTopic("orders", 2, 1)])
        admin.describe_cluster()
        producer = KafkaProducer(bootstrap_servers=cluster.bootstrap, client_id="py-shop", acks="all")
        for number in range(5):
            producer.send("orders", f"py {number}".encode()).get(PATIENCE_S)
            stage.add("produced")
        producer.close()
        consumer = KafkaConsumer(
            "orders",
            bootstrap_servers=cluster.bootstrap,
            client_id="py-reader",
            group_id="billing",
            auto_offset_reset="earliest",
            consumer_timeout_ms=10_000,
        )
        for _ in consumer:
            stage.add("consumed")
            if stage.report["consumed"] == 5:
                break
        consumer.close()
        admin.delete_topics(["orders"])
        admin.close()


async def talk(stage: Stage, bootstrap: str, **more: Any) -> None:
    """aiokafka produces five records and reads them in a group."""
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

    async with AIOKafkaProducer(bootstrap_servers=bootstrap, client_id="aio-shop", **more) as producer:
        for number in range(5):
            await producer.send_and_wait("orders", f"aio {number}".encode())
            stage.add("produced")
    settings = {"client_id": "aio-billing", "group_id": "billing", "auto_offset_reset": "earliest", **more}
    async with AIOKafkaConsumer("orders", bootstrap_servers=bootstrap, **settings) as consumer:
        while stage.report["consumed"] < 5:
            batches = await consumer.getmany(timeout_ms=500)
            stage.add("consumed", sum(map(len, batches.values())))


@scenario(
    "aiokafka",
    "aiokafka producing and reading in a group.",
    ["the versions that aiokafka uses with Kafka 4.3"],
)
def aiokafka_4_3(stage: Stage) -> None:
    with stage.brokers(NEWEST, internal=True) as cluster:
        stage.office("create", "orders:1")
        warm(cluster.backstage)
        with stage.recording():
            asyncio.run(asyncio.wait_for(talk(stage, cluster.bootstrap), PATIENCE_S))
