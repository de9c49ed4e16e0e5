"""What the recorded clients do. Each talk takes a running mock cluster and says what its client reported."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.record.mock import MockCluster

PRODUCE, REBALANCE, TOO_LARGE = 0, 27, 10
PATIENCE_S = 20.0


@dataclass(slots=True)
class Report:
    """What the client itself said it did."""

    produced: int = 0
    failed: int = 0
    consumed: int = 0
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Talk:
    """A recording to make; ``versions`` limits what the brokers accept, ``relay`` is how
    ApiVersions 3 and newer are answered (see `tests.record.relay`)."""

    run: Callable[[MockCluster, Report], None]
    client: str
    purpose: str
    shows: Sequence[str]
    brokers: int = 1
    relay: str | None = None
    topics: Mapping[str, int] = field(default_factory=lambda: {"orders": 1})
    versions: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    file: str = "capture.pcap"
    snaplen: int = 262_144


def _quiet(cluster: MockCluster, client_id: str, **more: Any) -> dict[str, Any]:
    return {
        "bootstrap.servers": cluster.bootstrap,
        "client.id": client_id,
        "enable.metrics.push": False,
        "debug": "protocol",  # to standard error: tests/broker/clientlog.py listens
        **{key.replace("_", "."): value for key, value in more.items()},
    }


def _send(
    cluster: MockCluster,
    report: Report,
    values: Sequence[bytes],
    topic: str = "orders",
    partitions: int = 1,
    **more: Any,
) -> None:
    from confluent_kafka import Producer

    def delivered(error: Any, _: object) -> None:
        if error is None:
            report.produced += 1
        else:
            report.failed += 1
            report.notes.append(f"delivery to {topic} failed: {error.name()}")

    producer = Producer(_quiet(cluster, "shop-producer", **more))
    for number, value in enumerate(values):
        producer.produce(topic, value, partition=number % partitions, callback=delivered)
    producer.flush(PATIENCE_S)


def _read(cluster: MockCluster, report: Report, wanted: int, **more: Any) -> None:
    from confluent_kafka import Consumer, KafkaException

    settings = {"group_id": "billing", "auto_offset_reset": "earliest", "enable_auto_commit": False, **more}
    consumer = Consumer(_quiet(cluster, "billing-1", **settings))
    consumer.subscribe(["orders"])
    started = time.monotonic()
    while wanted and time.monotonic() - started < PATIENCE_S:
        message = consumer.poll(1.0)
        if message is not None and not message.error():
            report.consumed += 1
            wanted -= 1
    try:
        consumer.commit(asynchronous=False)
    except KafkaException as error:
        report.notes.append(f"commit failed: {error.args[0].name()}")
    consumer.close()


def rebalance(cluster: MockCluster, report: Report) -> None:
    _send(cluster, report, [b"a", b"b"])
    cluster.next_errors(8, [REBALANCE])
    _read(cluster, report, 2, heartbeat_interval_ms=100)


def codecs(cluster: MockCluster, report: Report) -> None:
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        _send(cluster, report, [b"text that compresses " * 20] * 4, compression_type=codec, linger_ms=20)
    _read(cluster, report, 20)


def no_acks(cluster: MockCluster, report: Report) -> None:
    _send(cluster, report, [b"fire", b"and", b"forget"], acks=0)
    _send(cluster, report, [b"leader only"], acks=1)


def transaction(cluster: MockCluster, report: Report) -> None:
    from confluent_kafka import Producer

    producer = Producer(_quiet(cluster, "till-7", transactional_id="till-7"))
    producer.init_transactions(PATIENCE_S)
    for number in range(2):
        producer.begin_transaction()
        producer.produce("orders", f"sale {number}".encode())
        producer.flush(PATIENCE_S)
        report.produced += 1
        if number:
            producer.abort_transaction(PATIENCE_S)
        else:
            producer.commit_transaction(PATIENCE_S)


def three_brokers(cluster: MockCluster, report: Report) -> None:
    for broker in (1, 2, 3):
        cluster.round_trip(broker, 10 * broker)
    _send(cluster, report, [f"row {number}".encode() for number in range(30)], partitions=3, linger_ms=5)
    _read(cluster, report, 30)


def large_messages(cluster: MockCluster, report: Report) -> None:
    _send(cluster, report, [b"x" * 12_000, b"y" * 9_000], linger_ms=0)
    cluster.next_errors(PRODUCE, [TOO_LARGE])
    _send(cluster, report, [b"z"], message_timeout_ms=2_000)
    _read(cluster, report, 2)


def with_kafka_python(cluster: MockCluster, report: Report) -> None:
    from kafka import KafkaConsumer, KafkaProducer, TopicPartition

    producer = KafkaProducer(bootstrap_servers=cluster.bootstrap, client_id="py-shop", acks=1, linger_ms=5)
    for number in range(5):
        producer.send("orders", f"py {number}".encode())
    producer.flush(timeout=PATIENCE_S)
    report.produced = 5
    producer.close()
    consumer = KafkaConsumer(
        bootstrap_servers=cluster.bootstrap,
        client_id="py-reader",
        group_id=None,
        auto_offset_reset="earliest",
        consumer_timeout_ms=3_000,
    )
    consumer.assign([TopicPartition("orders", 0)])
    for _ in consumer:
        report.consumed += 1
        if report.consumed == 5:
            break
    consumer.close()


def with_aiokafka(cluster: MockCluster, report: Report) -> None:
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

    async def talk() -> None:
        producer = AIOKafkaProducer(bootstrap_servers=cluster.bootstrap, client_id="aio-shop", acks="all")
        await producer.start()
        for number in range(5):
            await producer.send_and_wait("orders", f"aio {number}".encode())
            report.produced += 1
        await producer.stop()
        consumer = AIOKafkaConsumer(
            "orders",
            bootstrap_servers=cluster.bootstrap,
            client_id="aio-billing",
            group_id="billing",
            auto_offset_reset="earliest",
        )
        await consumer.start()
        while report.consumed < 5:
            batches = await consumer.getmany(timeout_ms=500)
            report.consumed += sum(map(len, batches.values()))
        await consumer.stop()

    asyncio.run(asyncio.wait_for(talk(), PATIENCE_S))


# Versions tshark 4.0 dissects correctly (Kafka 2.5), so that it can be the witness of these recordings.
KAFKA_2_1 = {0: (0, 7), 1: (0, 10), 2: (0, 3), 3: (0, 7), 8: (0, 6), 9: (0, 5), 10: (0, 2)}

TALKS: Mapping[str, Talk] = {
    "rebalance": Talk(
        rebalance,
        "librdkafka",
        "A group that is told to rebalance.",
        ["an OffsetCommit answered with error 27 (REBALANCE_IN_PROGRESS)", "heartbeats"],
        versions=KAFKA_2_1,
        relay="refusing",
    ),
    "codecs": Talk(
        codecs,
        "librdkafka",
        "The same records with every compression codec.",
        ["record batches with codec none, gzip, snappy, lz4 and zstd, produced and fetched", "pcapng"],
        file="capture.pcapng",
    ),
    "no_acks": Talk(
        no_acks,
        "librdkafka",
        "A producer that wants no answer.",
        ["Produce requests with acks 0, which have no response", "one with acks 1, which has"],
        versions=KAFKA_2_1,
        relay="refusing",
    ),
    "transaction": Talk(
        transaction,
        "librdkafka",
        "Two transactions, one committed, one aborted.",
        ["InitProducerId, AddPartitionsToTxn, EndTxn and a transactional id"],
        relay="refusing",
    ),
    "three_brokers": Talk(
        three_brokers,
        "librdkafka",
        "Three brokers with round trips of 10, 20 and 30 ms, on three ports.",
        ["connections to three brokers", "latencies that differ by broker", "nanosecond time stamps"],
        brokers=3,
        relay="modern",
        topics={"orders": 3},
    ),
    "large_messages": Talk(
        large_messages,
        "librdkafka",
        "Messages of several segments, recorded with a snaplen of 128 bytes.",
        ["frames cut by the capture", "requests whose header is there and whose body is not"],
        snaplen=128,
    ),
    "kafka_python": Talk(
        with_kafka_python,
        "kafka-python",
        "kafka-python producing and reading without a group.",
        ["the versions kafka-python uses", "ApiVersions 4 refused with error 35 in the layout of version 0"],
        relay="refusing",
    ),
    "aiokafka": Talk(
        with_aiokafka,
        "aiokafka",
        "aiokafka producing and reading in a group.",
        ["the versions aiokafka uses"],
        versions=KAFKA_2_1,
    ),
}
