"""Partitions that change hands: members that note their callbacks, and each record they get."""

from __future__ import annotations

import csv
import multiprocessing
import threading
import time
from functools import partial
from typing import Any

from tests.broker.stage import NEWEST, PATIENCE_S, Stage, scenario

HANDOVERS = "handovers.tsv"
PARTITIONS = 2
NUMBER = 38
_EVERY_S = 0.3
_TOGETHER = 5
_BEFORE_S = 1.7
_WITH_S = 2.6
PROTOCOLS = {
    "billing": {"partition.assignment.strategy": "range"},
    "audit": {"partition.assignment.strategy": "cooperative-sticky"},
}

Line = tuple[int, str, str, str, int, int]
"""When (microseconds), group, member, what it did, partition, offset."""


def _now_us() -> int:
    return time.time_ns() // 1000


def _member(bootstrap: str, group: str, name: str, signs: Any, told: Any) -> None:
    """Commits after every few records of a partition, and not when it gives the partition up."""
    from confluent_kafka import Consumer, TopicPartition

    lines: list[Line] = []
    started, stop = signs

    def note(did: str, consumer: Any, partitions: Any) -> None:
        at = _now_us()
        lines.extend((at, group, name, did, each.partition, -1) for each in partitions)
        if did == "assigned":
            started.set()

    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap, "client.id": name, "group.id": group,
            "auto.offset.reset": "earliest", "enable.auto.commit": False, "fetch.wait.max.ms": 800,
            "heartbeat.interval.ms": 1000, **PROTOCOLS[group],
        }
    )  # fmt: skip
    consumer.subscribe(
        ["orders"], on_assign=partial(note, "assigned"), on_revoke=partial(note, "revoked"),
        on_lost=partial(note, "lost"),
    )  # fmt: skip
    had = [0] * PARTITIONS
    while not stop.is_set():
        message = consumer.poll(0.05)
        if message is None or message.error():
            continue
        partition, offset = message.partition() or 0, message.offset() or 0
        lines.append((_now_us(), group, name, "polled", partition, offset))
        had[partition] += 1
        if had[partition] % _TOGETHER == 0:
            consumer.commit(offsets=[TopicPartition("orders", partition, offset + 1)])
            lines.append((_now_us(), group, name, "committed", partition, offset + 1))
    consumer.close()
    told.put(lines)


def _send(stage: Stage, bootstrap: str, lines: list[Line]) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": bootstrap, "client.id": "shop", "linger.ms": 5})

    def note(error: Any, message: Any) -> None:
        stage.add("failed" if error else "produced")
        lines.append((_now_us(), "", "shop", "acknowledged", message.partition(), message.offset()))

    for number in range(NUMBER // PARTITIONS):
        for partition in range(PARTITIONS):
            producer.produce("orders", b"%04d" % number, partition=partition, callback=note)
        producer.flush()
        time.sleep(_EVERY_S)


@scenario(
    "librdkafka (confluent-kafka)",
    "Two groups, eager and cooperative, whose members note when they get and let go of partitions.",
    [
        "handovers.tsv: when members got and gave up partitions, and what they polled and committed",
        "records that are read again, because the member before had not committed them",
    ],
)
def handovers(stage: Stage) -> None:
    with stage.brokers(NEWEST, internal=True) as cluster:
        stage.office("create", f"orders{':1' * PARTITIONS}")
        apart = multiprocessing.get_context("spawn")
        told = apart.Queue()
        lines: list[Line] = []

        def start(group: str, number: int) -> Any:
            started, stop = apart.Event(), apart.Event()
            said = (cluster.bootstrap, group, f"{group}-{number}", (started, stop), told)
            member = apart.Process(target=_member, args=said)
            member.start()
            return member, started, stop

        with stage.recording():
            firsts = [start(group, 1) for group in PROTOCOLS]
            for _, started, _ in firsts:
                started.wait(PATIENCE_S)
            writer = threading.Thread(target=_send, args=(stage, cluster.bootstrap, lines))
            writer.start()
            time.sleep(_BEFORE_S)
            seconds = [start(group, 2) for group in PROTOCOLS]
            time.sleep(_WITH_S)
            for _, _, stop in seconds:
                stop.set()
            writer.join()
            time.sleep(1)
            for _, _, stop in firsts:
                stop.set()
            everyone = [*firsts, *seconds]
            for _ in everyone:
                lines += told.get(timeout=PATIENCE_S)
            for member, _, _ in everyone:
                member.join()
        stage.add("consumed", sum(did == "polled" for _, _, _, did, _, _ in lines))
        with stage.capture.with_name(HANDOVERS).open("w", newline="") as file:
            table = csv.writer(file, delimiter="\t", lineterminator="\n")
            table.writerow(["us", "group", "member", "did", "partition", "offset"])
            table.writerows(sorted(lines))
