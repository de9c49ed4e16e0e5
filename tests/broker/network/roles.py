"""What clients do inside their network namespace: `python -m tests.broker.network.roles ROLE JSON`.

A role ends by itself, or leaves in good order when asked to (SIGTERM). Its last line is JSON: what it did.
"""

from __future__ import annotations

import json
import signal
import socket
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from tests.broker.network import pythonic
from tests.traffic import messages
from tests.traffic.records import batch

Settings = Mapping[str, Any]
PATIENCE_S = 30
LIFETIME_S = 200  # no role outlives this, whatever becomes of who started it
STOP = {"asked": False}


def quiet(bootstrap: str, client_id: str, settings: Settings | None = None) -> dict[str, Any]:
    """Settings of a confluent-kafka client that says nothing and finds IPv4 only."""
    fixed = {"enable.metrics.push": False, "log_level": 0, "broker.address.family": "v4"}
    return {"bootstrap.servers": bootstrap, "client.id": client_id, **fixed, **(settings or {})}


def create(bootstrap: str, topics: Mapping[str, Any]) -> Counter[str]:
    """Topics: a number of partitions, or the brokers of each partition, or {"brokers":…, "config":…}."""
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient(quiet(bootstrap, "office"))
    wanted = []
    for name, what in topics.items():
        how = what if isinstance(what, dict) else {"brokers": what}
        brokers = how["brokers"] if isinstance(how["brokers"], list) else [[1]] * int(how["brokers"])
        config = how.get("config", {})
        wanted.append(NewTopic(name, len(brokers), replica_assignment=brokers, config=config))
    for future in admin.create_topics(wanted).values():
        future.result(PATIENCE_S)
    return Counter()


def produce(
    *,
    bootstrap: str,
    client_id: str = "shop",
    topic: str = "orders",
    count: int = 20,
    every_s: float = 0.1,
    size: int = 100,
    partitions: int = 0,
    flush: bool = False,
    key: str = "",
    settings: Settings | None = None,
) -> Counter[str]:
    """`count` records, one every so often; one at a time with `flush`."""
    from confluent_kafka import KafkaException, Producer

    did: Counter[str] = Counter()

    def delivered(error: Any, _: object) -> None:
        did["failed" if error else "produced"] += 1
        if error:
            did[f"failed {error.name()}"] += 1

    producer = Producer(quiet(bootstrap, client_id, settings))
    for number in range(count):
        where = number % partitions if partitions else -1
        try:
            producer.produce(topic, b"x" * size, key=key or None, callback=delivered, partition=where)
        except KafkaException as error:
            did[f"failed {error.args[0].name()}"] += 1
        producer.poll(0)
        if flush:
            producer.flush(PATIENCE_S)
        _rest(every_s, lambda: producer.poll(0.02))
        if STOP["asked"]:
            break
    left = producer.flush(PATIENCE_S)
    return did + Counter(unfinished=left)


def _rest(seconds: float, meanwhile: Callable[[], object]) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end and not STOP["asked"]:
        meanwhile()


def consume(
    *,
    bootstrap: str,
    client_id: str = "billing-1",
    group: str = "billing",
    topic: str = "orders",
    wanted: int = 0,
    seconds: float = 10,
    work_s: float = 0,
    ask_ends_every_s: float = 0,
    commit_each: bool = False,
    settings: Settings | None = None,
) -> Counter[str]:
    """Reads in a group for so long or so many; works so long on each record; may ask for ends of logs."""
    from confluent_kafka import Consumer, KafkaException

    did: Counter[str] = Counter()
    fixed = {"group.id": group, "auto.offset.reset": "earliest", "auto.commit.interval.ms": 1000}
    consumer = Consumer(quiet(bootstrap, client_id, {**fixed, **(settings or {})}))
    consumer.subscribe([topic])
    end = time.monotonic() + seconds
    asked = time.monotonic()
    while time.monotonic() < end and not STOP["asked"] and not (wanted and did["consumed"] >= wanted):
        message = consumer.poll(0.1)
        if message is not None:
            error = message.error()
            did[f"error {error.name()}" if error else "consumed"] += 1
            if work_s and not error:
                time.sleep(work_s)
            if commit_each and not error:
                consumer.commit(message, asynchronous=False)
                did["committed"] += 1
        if ask_ends_every_s and consumer.assignment() and time.monotonic() - asked > ask_ends_every_s:
            asked = time.monotonic()
            consumer.get_watermark_offsets(consumer.assignment()[0], timeout=PATIENCE_S, cached=False)
            did["asked"] += 1
    try:
        consumer.close()
    except KafkaException:
        did["left badly"] += 1
    return did


def assign(
    *,
    bootstrap: str,
    client_id: str = "reader",
    topic: str = "orders",
    offset: int = -2,
    seconds: float = 5,
    settings: Settings | None = None,
) -> Counter[str]:
    """Reads a partition without a group."""
    from confluent_kafka import Consumer, TopicPartition

    did: Counter[str] = Counter()
    fixed = {"group.id": "none", "enable.auto.commit": False}
    consumer = Consumer(quiet(bootstrap, client_id, {**fixed, **(settings or {})}))
    consumer.assign([TopicPartition(topic, 0, offset)])
    end = time.monotonic() + seconds
    while time.monotonic() < end and not STOP["asked"]:
        message = consumer.poll(0.1)
        if message is not None:
            error = message.error()
            did[f"error {error.name()}" if error else "consumed"] += 1
    consumer.close()
    return did


def transact(
    *,
    bootstrap: str,
    client_id: str = "till",
    transactional_id: str = "till-7",
    topic: str = "orders",
    transactions: int = 1,
    work_s: float = 0,
    size: int = 100,
    settings: Settings | None = None,
) -> Counter[str]:
    """Transactions of one record, in each of which the application works so long."""
    from confluent_kafka import KafkaException, Producer

    did: Counter[str] = Counter()
    fixed = {"transactional.id": transactional_id}
    producer = Producer(quiet(bootstrap, client_id, {**fixed, **(settings or {})}))
    producer.init_transactions(PATIENCE_S)
    try:
        for _ in range(transactions):
            producer.begin_transaction()
            producer.produce(topic, b"x" * size)
            producer.flush(PATIENCE_S)
            _rest(work_s, lambda: producer.poll(0.05))
            producer.commit_transaction(PATIENCE_S)
            did["committed"] += 1
    except KafkaException as error:
        did[f"failed {error.args[0].name()}"] += 1
    return did


def connect(
    bootstrap: str, times: int = 5, every_s: float = 0.3, hold: int = 0, seconds: float = 3
) -> Counter[str]:
    """Opens TCP connections and says nothing; keeps `hold` of them open for a while."""
    did: Counter[str] = Counter()
    kept = []
    for number in range(times):
        try:
            made = socket.create_connection(_host(bootstrap), timeout=seconds)
            did["connected"] += 1
            if number < hold:
                kept.append(made)
            else:
                made.close()
        except OSError:
            did["refused"] += 1
        time.sleep(every_s)
    time.sleep(seconds if hold else 0)
    for made in kept:
        made.close()
    return did


def _host(bootstrap: str) -> tuple[str, int]:
    host, port = bootstrap.split(",", maxsplit=1)[0].rsplit(":", 1)
    return host, int(port)


def ask(bootstrap: str, client_id: str = "cron", times: int = 4, every_s: float = 4) -> Counter[str]:
    """Sends ApiVersions every so often on a connection that it never looks at between."""
    did: Counter[str] = Counter()
    made = None
    for number in range(times):
        made = made or socket.create_connection(_host(bootstrap), timeout=5)
        try:
            made.sendall(messages.api_versions(0, number, client_id=client_id).request)
            did["answered" if made.recv(65_536) else "closed"] += 1
        except OSError:
            did["broken"] += 1
        if did["answered"] < number + 1 - did["lost"]:
            made.close()
            made = None
            did["lost"] += 1
        time.sleep(every_s)
    return did


def insist(
    bootstrap: str, client_id: str = "stubborn", times: int = 20, every_s: float = 0.25
) -> Counter[str]:
    """Produces to whoever it was told to, whatever the answers say."""
    did: Counter[str] = Counter()
    with socket.create_connection(_host(bootstrap), timeout=5) as made:
        for number in range(times):
            records = {"orders": {0: batch([b"an order"])}}
            made.sendall(messages.produce(9, number, records, client_id=client_id).request)
            did["answered"] += bool(made.recv(65_536))
            time.sleep(every_s)
    return did


def share(
    bootstrap: str,
    client_id: str = "packer-1",
    group: str = "packers",
    seconds: float = 5,
    sleep_after: int = 0,
) -> Counter[str]:
    """Reads in a share group; its process stops for good when it has got so many records."""
    from confluent_kafka import ShareConsumer

    did: Counter[str] = Counter()
    consumer = ShareConsumer({**quiet(bootstrap, client_id), "group.id": group})
    consumer.subscribe(["orders"])
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for message in consumer.poll(0.3):
            did["error" if message.error() else "consumed"] += 1
        if sleep_after and did["consumed"] >= sleep_after:
            signal.raise_signal(signal.SIGSTOP)
    consumer.close()
    return did


def commit(
    *,
    bootstrap: str,
    client_id: str = "recalc",
    group: str = "billing",
    topic: str = "orders",
    count: int = 10,
    every_s: float = 0.3,
    settings: Settings | None = None,
) -> Counter[str]:
    """Assigns itself a partition and commits into a group that others are members of."""
    from confluent_kafka import Consumer, KafkaException, TopicPartition

    did: Counter[str] = Counter()
    fixed = {"group.id": group, "enable.auto.commit": False, "auto.offset.reset": "earliest"}
    consumer = Consumer(quiet(bootstrap, client_id, {**fixed, **(settings or {})}))
    consumer.assign([TopicPartition(topic, 0)])
    for number in range(count):
        consumer.poll(0.05)
        try:
            consumer.commit(offsets=[TopicPartition(topic, 0, number)], asynchronous=False)
            did["committed"] += 1
        except KafkaException as error:
            did[f"failed {error.args[0].name()}"] += 1
        time.sleep(every_s)
    consumer.close()
    return did


def ensure(
    *,
    bootstrap: str,
    client_id: str = "deploy",
    topics: str = "orders",
    copies: int = 1,
    times: int = 1,
    every_s: float = 0,
    seconds: float = PATIENCE_S,
    settings: Settings | None = None,
) -> Counter[str]:
    """Creates topics that may be there already, as applications do when they begin."""
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient, NewTopic

    did: Counter[str] = Counter()
    admin = AdminClient(quiet(bootstrap, client_id, settings))
    for _ in range(times):
        for topic in topics.split(","):
            begin = time.monotonic()
            wanted = [NewTopic(topic, 1, copies)]
            made = admin.create_topics(wanted, operation_timeout=seconds, request_timeout=seconds)
            try:
                made[topic].result(seconds + 5)
                did["created"] += 1
            except KafkaException as error:
                did[f"failed {error.args[0].name()}"] += 1
            did["ms"] += round(1000 * (time.monotonic() - begin))
        time.sleep(every_s)
    return did


def monitor(
    *, bootstrap: str, client_id: str = "lagmon", groups: int = 1, rounds: int = 10, every_s: float = 1
) -> Counter[str]:
    """Asks for the committed offsets of each group, so many times."""
    from confluent_kafka import ConsumerGroupTopicPartitions
    from confluent_kafka.admin import AdminClient

    admin = AdminClient(quiet(bootstrap, client_id))
    names = ["early", *(f"batch-{number}" for number in range(1, groups))]
    for _ in range(rounds):
        for name in names:
            asked = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(name)])
            asked[name].result(PATIENCE_S)
        time.sleep(every_s)
    return Counter(asked=groups * rounds)


def remake(
    *,
    bootstrap: str,
    client_id: str = "office",
    topic: str = "orders",
    partitions: int = 1,
    after_s: float = 2,
) -> Counter[str]:
    """Deletes a topic and creates it again after so long."""
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient(quiet(bootstrap, client_id))
    admin.delete_topics([topic])[topic].result(PATIENCE_S)
    time.sleep(after_s)
    wanted = [NewTopic(topic, partitions, replica_assignment=[[1]] * partitions)]
    admin.create_topics(wanted)[topic].result(PATIENCE_S)
    return Counter(remade=1)


ROLES: dict[str, Callable[..., Counter[str]]] = {
    role.__name__: role for role in (create, produce, consume, assign, transact, connect, ask, insist, share)
}
ROLES |= {role.__name__: role for role in (commit, ensure, monitor, remake)}
ROLES |= pythonic.ROLES


if __name__ == "__main__":
    signal.alarm(LIFETIME_S)
    signal.signal(signal.SIGTERM, lambda *_: STOP.update(asked=True))
    result = ROLES[sys.argv[1]](**json.loads(sys.argv[2]))
    sys.stdout.write(json.dumps(result) + "\n")
