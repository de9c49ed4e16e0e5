"""Captures that are not whole, and clients from elsewhere."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

from tests.broker import clientlog
from tests.broker.clients import quiet, read, send, warm
from tests.broker.foreign import gone, noded
from tests.broker.stage import NEWEST, PATIENCE_S, Stage, scenario


def _cut(name: str, snaplen: int) -> None:
    @scenario(
        "librdkafka (confluent-kafka)",
        f"Packets cut to {snaplen} bytes.",
        ["requests whose header is there and whose body is not"],
        name=name,
        snaplen=snaplen,
        anomalies=["packet_cut"],
    )
    def play(stage: Stage) -> None:
        with stage.brokers(NEWEST, internal=True) as cluster:
            stage.office("create", "orders:1")
            warm(cluster.backstage)
            with stage.recording():
                send(stage, cluster.bootstrap, [b"x" * 500, b"y" * 20_000, b"z" * 10], linger_ms=0)
                read(stage, cluster.bootstrap, 3)


_cut("snaplen_96", 96)
_cut("snaplen_128", 128)


@scenario(
    "librdkafka (confluent-kafka)",
    "A capture that begins after the clients have connected and ends before they leave.",
    ["connections without a handshake, roles told by what is said", "a long poll under way at the end"],
    partial=True,
    anomalies=["framing_resumed"],
)
def begun_late(stage: Stage) -> None:
    from confluent_kafka import Consumer, Producer

    with stage.brokers(NEWEST, internal=True) as cluster:
        stage.office("create", "orders:1")
        warm(cluster.backstage)
        producer = Producer(quiet(cluster.bootstrap, "shop-producer"))
        settings = {"group_id": "billing", "auto_offset_reset": "earliest", "fetch_wait_max_ms": 5000}
        consumer = Consumer(quiet(cluster.bootstrap, "billing-1", **settings))
        consumer.subscribe(["orders"])
        producer.produce("orders", b"before")
        producer.flush(PATIENCE_S)
        while not (consumer.poll(0.5) or consumer.assignment()):
            pass
        with stage.recording():
            for number in range(5):
                producer.produce("orders", f"order {number}".encode())
                producer.flush(PATIENCE_S)
                stage.add("produced")
                message = consumer.poll(2.0)
                if message is not None and not message.error():
                    stage.add("consumed")
                time.sleep(0.2)
        consumer.close()


@scenario(
    "librdkafka (confluent-kafka)",
    "Recorded with `-i any`.",
    ["link type LINUX_SLL2", "loopback packets seen as outgoing and as incoming, or once"],
    interface="any",
)
def any_interface(stage: Stage) -> None:
    with stage.brokers(NEWEST, internal=True) as cluster:
        stage.office("create", "orders:1")
        warm(cluster.backstage)
        with stage.recording():
            send(stage, cluster.bootstrap, [b"one", b"two", b"three"])
            read(stage, cluster.bootstrap, 3)


@scenario(
    "librdkafka (confluent-kafka)",
    "A broker that closes connections which say nothing for two seconds.",
    ["connections closed by the broker without an error"],
)
def idle(stage: Stage) -> None:
    from confluent_kafka import Producer

    with stage.brokers(NEWEST, internal=True, properties={"connections.max.idle.ms": 2000}) as cluster:
        stage.office("create", "orders:1")
        with stage.recording():
            producer = Producer(
                quiet(cluster.bootstrap, "shop-producer", topic_metadata_refresh_interval_ms=-1)
            )
            for number in range(2):
                producer.produce("orders", f"order {number}".encode())
                stage.add("failed" if producer.flush(PATIENCE_S) else "produced")
                time.sleep(5)


def _run(stage: Stage, command: list[str], cwd: Path) -> None:
    done = subprocess.run(
        ["timeout", "--kill-after=5", str(PATIENCE_S), *command],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{command[0]} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    for line in done.stdout.splitlines():
        key, mark, amount = line.partition("=")
        if measured := clientlog.told(line):
            stage.measured.append(measured)
        elif mark and amount.isdigit():
            stage.add(key, int(amount))


@scenario(
    "franz-go",
    "A Go client: franz-go produces and reads in a group.",
    ["the versions that franz-go uses with Kafka 4.3"],
)
def franz_go(stage: Stage) -> None:
    program = gone("franz")
    with stage.brokers(NEWEST, internal=True) as cluster:
        stage.office("create", "orders:1")
        warm(cluster.backstage)
        with stage.recording():
            _run(stage, [str(program), cluster.bootstrap], program.parent)


@scenario(
    "KafkaJS",
    "A client in JavaScript: KafkaJS produces and reads in a group.",
    ["the versions that KafkaJS, unmaintained since 2023, uses with Kafka 3.9"],
)
def kafkajs(stage: Stage) -> None:
    program = noded("client")
    with stage.brokers("3.9.2", internal=True) as cluster:
        stage.office("create", "orders:1")
        warm(cluster.backstage)
        with stage.recording():
            _run(stage, ["node", str(program), cluster.bootstrap], program.parent)
