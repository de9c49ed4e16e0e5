"""Partitions whose leader changes again and again or is missing, and groups without a coordinator."""

from __future__ import annotations

import signal
import time

from tests.broker.brokers import Broker
from tests.broker.network.calm import calm
from tests.broker.network.clocks import OLD
from tests.broker.network.growth import ALL, SOON
from tests.broker.network.incidents import SAFE, incident
from tests.broker.network.site import Role, Site

ALONE = {"offsets.topic.replication.factor": 3, "transaction.state.log.replication.factor": 3}
"""Kafka's defaults, which one broker cannot fulfil."""
QUICK = {**SOON, "broker.session.timeout.ms": 3000}
ONE_COPY = {**QUICK, "offsets.topic.replication.factor": 1, "transaction.state.log.replication.factor": 1}


def _uncreated(site: Site, role: Role) -> None:
    site.counted(role)
    refused = site.lines("INVALID_REPLICATION_FACTOR")
    site.report["topics that the broker's log says could not be created"] = len(refused)
    if not refused:
        raise RuntimeError("the internal topic was created")


@incident(
    "configuration",
    "group",
    "billing",
    "offsets.topic.replication.factor=3 with one broker: a librdkafka consumer finds no coordinator",
    finding="coordinator_missing",
    properties=ALONE,
)
def coordinator_missing(site: Site) -> None:
    site.create(orders=1)
    with site.recording():
        _uncreated(site, site.start("near", "consume", seconds=12))


@incident(
    "configuration",
    "transactional_id",
    "till-3",
    "transaction.state.log.replication.factor=3 with one broker of 3.9.2: a Java producer "
    "cannot begin transactions",
    finding="coordinator_missing",
    version=OLD,
    properties=ALONE,
)
def coordinator_missing_transactions(site: Site) -> None:
    site.create(orders=1)
    with site.recording():
        common = {"transactional_id": "till-3", "max_block_ms": 10000, "x_count": 1}
        _uncreated(site, site.work("near", "transact", client_id="till", **common))


def _home(site: Site, topic: str) -> Broker:
    """The broker that has the only copy of a topic's partition 0."""
    (home,) = (
        broker for broker in site.brokers if any(path.is_dir() for path in broker.folder.rglob(f"{topic}-0"))
    )
    return home


@incident(
    "broker",
    "group",
    "go-billing",
    "__consumer_offsets has one copy; the broker that has it is killed while franz-go and Java groups read",
    finding="coordinator_missing",
    nodes=3,
    properties=ONE_COPY,
    also=["connection_refused", "offline_partition"],
)
def coordinator_killed(site: Site) -> None:
    site.create(orders=ALL)
    site.warm()
    home = _home(site, "__consumer_offsets")
    with site.recording():
        go = {"client_id": "go-reader", "group": "go-billing", "max_wait_ms": 2500, "seconds": 17}
        reader = site.foreign("near", "franz", "consume", **go)
        time.sleep(4)
        home.stop(signal.SIGKILL)
        site.counted(reader)


@calm(
    "the first group of a cluster of 3.9.2: __consumer_offsets, 50 partitions, is created when it joins",
    version=OLD,
    properties={"offsets.topic.num.partitions": 50},
)
def healthy_first_group(site: Site) -> None:
    site.create(orders=1)
    with site.recording():
        java = {"group_id": "billing", "fetch_max_wait_ms": 1500, "x_seconds": 9}
        reader = site.work("near", "consume", client_id="billing-1", **java)
        site.run(
            "near",
            "consume",
            client_id="audit-1",
            group="audit",
            seconds=9,
            settings={"fetch.wait.max.ms": 1500},
        )
        site.counted(reader)


def _flip(site: Site, times: int, wait_ms: int, topic: str = "orders") -> None:
    """The leader of partition 0 goes from broker to broker and back."""
    steps = []
    for number in range(times):
        steps += [f"{topic}:0:{'2,1' if number % 2 == 0 else '1,2'}", f"wait:{wait_ms}"]
    site.office("move", *steps)
    site.report["elections by the brokers' log"] = len(
        site.lines(rf"Leader {topic}-0 .*starts at leader epoch")
    )


@incident(
    "broker",
    "partition",
    "orders-0",
    "the leader of orders-0 is moved eight times between broker 1 and 2, every 1.5 s; librdkafka writes",
    finding="leader_flaps",
    nodes=3,
)
def leader_flaps(site: Site) -> None:
    site.create(orders=[[1, 2]])
    site.warm()
    with site.recording():
        shop = site.start("near", "produce", count=70, every_s=0.25, settings=SAFE)
        time.sleep(2)
        _flip(site, 8, 1500)
        site.counted(shop)


@incident(
    "broker",
    "partition",
    "orders-0",
    "the leader of orders-0 moves every 2.5 s on 3.9.2, six times, while Java writes and sarama reads",
    finding="leader_flaps",
    nodes=3,
    version=OLD,
)
def leader_flaps_java(site: Site) -> None:
    site.create(orders=[[1, 2], [3, 1]])
    site.warm()
    with site.recording():
        shop = site.work("near", "produce", client_id="shop", acks="all", x_count=60, x_every_ms=300)
        reader = site.foreign("near", "sarama", "consume", seconds=22, max_wait_ms=2000)
        time.sleep(3)
        _flip(site, 6, 2500)
        site.counted(shop)
        site.counted(reader)


@incident(
    "broker",
    "partition",
    "events-0",
    "the leader of events-0 moves every second, ten times, while kafka-python writes with acks=all",
    finding="leader_flaps",
    nodes=3,
)
def leader_flaps_python(site: Site) -> None:
    site.create(events=[[1, 2]])
    site.warm()
    with site.recording():
        settings = {"acks": "all", "retry_backoff_ms": 100}
        shop = site.start("near", "kp_produce", topic="events", count=60, every_s=0.2, settings=settings)
        time.sleep(2)
        _flip(site, 10, 1000, "events")
        site.counted(shop)


@calm(
    "the leader of orders-0 moves to another broker and, 6 s later, back; librdkafka writes, Java reads",
    nodes=3,
)
def healthy_leader_moves(site: Site) -> None:
    site.create(orders=[[1, 2]])
    site.warm()
    with site.recording():
        shop = site.start("near", "produce", count=60, every_s=0.3, settings=SAFE)
        java = {"group_id": "billing", "fetch_max_wait_ms": 2000, "x_seconds": 18}
        reader = site.work("near", "consume", client_id="billing-1", **java)
        time.sleep(3)
        _flip(site, 2, 6000)
        site.counted(shop)
        site.counted(reader)


@incident(
    "broker",
    "partition",
    "orders-1",
    "orders-1 has one copy, on broker 3, which is killed; librdkafka writes to all partitions",
    finding="offline_partition",
    nodes=3,
    properties=QUICK,
    also=["connection_refused"],
)
def offline_partition(site: Site) -> None:
    site.create(orders=[[1], [3]])
    site.warm()
    with site.recording():
        slow = {"reconnect.backoff.ms": 500, "reconnect.backoff.max.ms": 1000, "message.timeout.ms": 12000}
        shop = site.start("near", "produce", count=30, every_s=0.6, partitions=2, settings={**SAFE, **slow})
        time.sleep(3)
        site.brokers[2].stop(signal.SIGKILL)
        site.counted(shop)


@incident(
    "broker",
    "partition",
    "parcels-0",
    "parcels, one copy on broker 2 of 3.9.2, which is killed; a Java group reads it and orders",
    finding="offline_partition",
    nodes=3,
    version=OLD,
    properties=QUICK,
    also=["connection_refused"],
)
def offline_partition_java(site: Site) -> None:
    site.create(orders=[[1, 3]], parcels=[[2]])
    site.warm()
    with site.recording():
        java = {
            "group_id": "billing",
            "fetch_max_wait_ms": 2000,
            "x_topic": "orders,parcels",
            "x_seconds": 22,
        }
        reader = site.work("near", "consume", client_id="billing-1", reconnect_backoff_ms=500, **java)
        shop = site.start("near", "produce", count=40, every_s=0.4, settings=SAFE)
        time.sleep(5)
        site.brokers[1].stop(signal.SIGKILL)
        site.counted(shop)
        site.counted(reader)


@incident(
    "broker",
    "partition",
    "orders-0",
    "orders-0 has one copy, on broker 2, which is killed before sarama begins to write",
    finding="offline_partition",
    nodes=3,
    properties=QUICK,
    also=["connection_refused"],
)
def offline_partition_started(site: Site) -> None:
    site.create(orders=[[2]])
    site.warm()
    site.brokers[1].stop(signal.SIGKILL)
    time.sleep(6)
    with site.recording():
        go = site.foreign("near", "sarama", "produce", count=4, every_ms=2000, timeout_ms=3000)
        site.counted(go)


@calm(
    "broker 3, which leads one of two partitions with two copies each, is restarted in good order",
    nodes=3,
    properties=SOON,
    witnessed=False,
)
def healthy_restart_one(site: Site) -> None:
    site.create(orders=[[1, 2], [3, 1]])
    site.warm()
    with site.recording():
        shop = site.start("near", "produce", count=40, every_s=0.5, partitions=2, settings=SAFE)
        reader = site.foreign("near", "franz", "consume", max_wait_ms=2000, seconds=21)
        time.sleep(4)
        broker = site.brokers[2]
        broker.stop()
        time.sleep(1)
        broker.log.write_bytes(b"")
        broker.start()
        broker.wait()
        site.counted(shop)
        site.counted(reader)


def _restart(site: Site, number: int) -> None:
    """Stops a broker in good order, and starts it again."""
    broker = site.brokers[number - 1]
    broker.stop()
    time.sleep(1)
    broker.log.write_bytes(b"")
    broker.start()
    broker.wait()


SPREAD = [[1, 2], [2, 3], [3, 1], [1, 3], [2, 1], [3, 2], [1, 2], [2, 3], [3, 1], [1, 3], [2, 1], [3, 2]]


@incident(
    "configuration",
    "broker",
    "10.88.0.2:9093",
    "broker 2 was restarted 10 s before; the four partitions it preferably leads stay with brokers 1 and 3",
    finding="leaders_skewed",
    nodes=3,
    properties=SOON,
    sides=("broker",),
)
def leaders_skewed(site: Site) -> None:
    site.create(orders=SPREAD)
    site.warm()
    _restart(site, 2)
    time.sleep(10)
    with site.recording():
        shop = site.start("near", "produce", count=24, every_s=0.25, partitions=12, settings=SAFE)
        site.counted(shop)


@incident(
    "configuration",
    "broker",
    "10.88.0.1:9092",
    "broker 1 of 3.9.2, the preferred leader of four of eight partitions, was restarted; sarama reads",
    finding="leaders_skewed",
    nodes=3,
    version=OLD,
    properties=SOON,
    sides=("broker",),
)
def leaders_skewed_sarama(site: Site) -> None:
    site.create(orders=[[1, 2], [2, 1], [1, 3], [3, 1], [1, 2], [2, 3], [1, 3], [3, 2]])
    site.warm()
    _restart(site, 1)
    time.sleep(10)
    with site.recording():
        shop = site.start("near", "produce", count=16, every_s=0.25, partitions=8, settings=SAFE)
        go = site.foreign("near", "sarama", "consume", seconds=6, max_wait_ms=2000)
        site.counted(go)
        site.counted(shop)


@calm(
    "broker 2 was restarted, and the controller has moved its four partitions back",
    nodes=3,
    properties={**SOON, "leader.imbalance.check.interval.seconds": 3},
)
def healthy_preferred_leaders(site: Site) -> None:
    site.create(orders=SPREAD)
    site.warm()
    _restart(site, 2)
    time.sleep(12)
    with site.recording():
        shop = site.start("near", "produce", count=24, every_s=0.25, partitions=12, settings=SAFE)
        site.counted(shop)
