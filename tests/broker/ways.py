"""The way of records: clients that note when they hand a record over, and when they have it."""

from __future__ import annotations

import csv
import multiprocessing
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.broker.artifacts import compiled
from tests.broker.brokers import HEAP
from tests.broker.stage import NEWEST, PATIENCE_S, Stage, scenario

RECORDS = "records.tsv"
NUMBER = 150
_EVERY_S = 0.02
_TOGETHER = 10


@dataclass
class Noted:
    """What clients say of each record, by its offset; microseconds since the epoch."""

    sent: dict[int, int] = field(default_factory=dict)
    acknowledged: dict[int, int] = field(default_factory=dict)
    polled: dict[str, dict[int, int]] = field(default_factory=dict)
    committed: dict[str, dict[int, int]] = field(default_factory=dict)

    def write(self, stage: Stage) -> None:
        """One line per record, beside the capture."""
        groups = sorted(self.polled)
        with stage.capture.with_name(RECORDS).open("w", newline="") as file:
            table = csv.writer(file, delimiter="\t", lineterminator="\n")
            names = [f"{group}_{did}" for group in groups for did in ("polled_us", "commits_us")]
            table.writerow(["offset", "sent_us", "acknowledged_us", *names])
            for offset in sorted(self.sent):
                both = (self.polled, self.committed)
                read = [each[group].get(offset, "") for group in groups for each in both]
                table.writerow([offset, self.sent[offset], self.acknowledged[offset], *read])


def _now_us() -> int:
    return time.time_ns() // 1000


def _send(stage: Stage, bootstrap: str, noted: Noted) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": bootstrap, "client.id": "shop", "linger.ms": 5})

    def note(begin: int) -> Callable[[Any, Any], None]:
        def delivered(error: Any, message: Any) -> None:
            stage.add("failed" if error else "produced")
            noted.sent[message.offset()] = begin
            noted.acknowledged[message.offset()] = _now_us()

        return delivered

    done = threading.Event()

    def serve() -> None:
        while not done.is_set() or len(producer):
            producer.poll(0.1)

    serving = threading.Thread(target=serve)
    serving.start()
    for number in range(NUMBER):
        producer.produce("orders", b"%06d" % number * 8, callback=note(_now_us()))
        time.sleep(_EVERY_S)
    done.set()
    serving.join()


def _read(bootstrap: str, group: str, ready: Any, told: Any, more: dict[str, Any]) -> None:
    """In a process of its own: what it notes is not late because another client works."""
    from confluent_kafka import Consumer, TopicPartition

    settings = {
        "bootstrap.servers": bootstrap, "client.id": f"{group}-1", "group.id": group,
        "auto.offset.reset": "earliest", "enable.auto.commit": False, **more,
    }  # fmt: skip
    consumer = Consumer(settings)
    consumer.subscribe(["orders"])
    polled: dict[int, int] = {}
    committed: dict[int, int] = {}
    while not consumer.assignment():
        consumer.poll(0.05)
    ready.wait(PATIENCE_S)
    end = time.monotonic() + 30
    while len(polled) < NUMBER and time.monotonic() < end:
        message = consumer.poll(0.5)
        at = _now_us()
        if message is None or message.error():
            continue
        offset = message.offset() or 0
        polled[offset] = at
        if len(polled) % _TOGETHER == 0:
            begin = _now_us()
            # Asynchronous: what comes meanwhile is noted when it comes.
            consumer.commit(offsets=[TopicPartition("orders", 0, offset + 1)])
            committed.update((each, begin) for each in polled if each not in committed)
    consumer.close()
    told.put((group, polled, committed))


@scenario(
    "librdkafka (confluent-kafka)",
    "A producer and two groups that note when they hand over and get each record.",
    [
        "records.tsv: for each record when the producer called produce and had the acknowledgement, when "
        "each group got it from poll and called commit",
        "a group that waits for fetch.min.bytes",
    ],
    file="capture.pcap.gz",
)
def deliveries(stage: Stage) -> None:
    with stage.brokers(NEWEST, internal=True) as cluster:
        stage.office("create", "orders:1")
        apart = multiprocessing.get_context("spawn")
        noted, ready, told = Noted(), apart.Barrier(3), apart.Queue()
        waits = {"fetch.min.bytes": 1000, "fetch.wait.max.ms": 200}
        with stage.recording():
            readers = [
                apart.Process(target=_read, args=(cluster.bootstrap, group, ready, told, more))
                for group, more in (("billing", {}), ("audit", waits))
            ]
            for each in readers:
                each.start()
            ready.wait(PATIENCE_S)
            _send(stage, cluster.bootstrap, noted)
            for _ in readers:
                group, noted.polled[group], noted.committed[group] = told.get(timeout=PATIENCE_S)
                stage.add("consumed", len(noted.polled[group]))
            for each in readers:
                each.join()
        noted.write(stage)


JAVA_PLAYS = (
    "topic=plain count=40 every_ms=15 commit=4",
    "topic=gathered count=80 every_ms=4 commit=20 p.linger.ms=20 p.compression.type=gzip "
    "c.group.protocol=consumer",
    "topic=waiting count=40 every_ms=10 commit=1 p.acks=1 p.linger.ms=0 p.enable.idempotence=false "
    "c.fetch.min.bytes=800 c.fetch.max.wait.ms=150",
    "topic=transactions count=40 every_ms=5 commit=5 transaction=5 p.linger.ms=0 p.transactional.id=till "
    "p.compression.type=lz4 c.isolation.level=read_committed",
)
"""What java/Ways.java plays, one after another."""
JAVA_COLUMNS = (
    *("topic", "offset", "sent_us", "acknowledged_us", "polls_us", "polled_us"),
    *("commits_us", "committed_us"),
)


@scenario(
    "Java",
    "Producers and readers that note when they send, get and commit each record, in several settings.",
    [
        "records.tsv: for each record when send was called and the callback came, when poll was called and "
        "returned it, and when commitSync was called and returned",
        "linger.ms with compression, fetch.min.bytes with acks=1, transactions with read_committed",
    ],
    file="capture.pcap.gz",
)
def deliveries_java(stage: Stage) -> None:
    """All is played beside the recorder first: what Java does for the first time takes it long. On a busy
    machine record with `chrt --rr 10`: else clients note late what they do."""
    with stage.brokers(NEWEST, internal=True) as cluster:
        topics = [play.split()[0].removeprefix("topic=") for play in JAVA_PLAYS]
        stage.office("create", *(f"{topic}:1" for topic in topics))
        command = ["java", *HEAP, f"-Djava.io.tmpdir={stage.folder}", "-cp", compiled("Ways", NEWEST), "Ways"]
        command += [cluster.backstage, cluster.bootstrap, *JAVA_PLAYS]
        pipe = subprocess.PIPE
        with subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True
        ) as playing:
            try:
                if playing.stdout is None or playing.stdout.readline() != "ready\n":
                    raise RuntimeError("Ways failed")
                with stage.recording():
                    said, _ = playing.communicate("go\n", timeout=PATIENCE_S)
            finally:
                playing.kill()
        _keep(stage, said)


def _keep(stage: Stage, said: str) -> None:
    """Lines of Ways become those of the records, and of the report."""
    with stage.capture.with_name(RECORDS).open("w", newline="") as file:
        table = csv.writer(file, delimiter="\t", lineterminator="\n")
        table.writerow(JAVA_COLUMNS)
        for line in said.splitlines():
            name, mark, amount = line.partition("=")
            if mark:
                stage.add(name, int(amount))
            else:
                table.writerow(line.split()[1:])
