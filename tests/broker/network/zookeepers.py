"""Brokers of the time of ZooKeeper (2.8.2, 3.9.2): the same causes, where a controller is a broker."""

from __future__ import annotations

import signal
import time

from tests.broker.brokers import paused
from tests.broker.network.calm import calm
from tests.broker.network.clocks import OLD
from tests.broker.network.incidents import incident
from tests.broker.network.site import PLAIN, Site

OLDER = "2.8.2"
ZOOKEEPER = {"zookeeper": True}
FALLBACK = ("api_versions_fallback",)  # of clients that ask 2.8 for a version it does not have
# A session that outlives what is done to a broker, and followers that stay in the ISR meanwhile.
PATIENT = {**PLAIN, "zookeeper.session.timeout.ms": 30_000, "zookeeper.connection.timeout.ms": 30_000}


@incident(
    "broker",
    "broker",
    "10.88.0.2:9093",
    "broker 2 of two (2.8.2, ZooKeeper), the leader of parcels, is stopped (SIGSTOP) for 3 s",
    finding="broker_stalled",
    version=OLDER,
    anomalies=FALLBACK,
    nodes=2,
    properties={**PATIENT, "replica.lag.time.max.ms": 60_000},
    options=ZOOKEEPER,
)
def stalled_zookeeper(site: Site) -> None:
    site.create(orders=[[1]], parcels=[[2]])
    site.warm()
    with site.recording():
        roles = [
            site.start("near", "kp_produce", client_id="py-parcels", topic="parcels", count=25, every_s=0.4),
            site.work(
                "near", "produce", client_id="till", acks=1, x_topic="parcels", x_count=25, x_every_ms=400
            ),
            site.foreign("near", "sarama", "consume", topic="orders,parcels", seconds=12),
        ]
        time.sleep(8)
        with paused(site.brokers[1]):
            time.sleep(3)
        for role in roles:
            site.counted(role)


@incident(
    "broker",
    "topic",
    "orders",
    "min.insync.replicas=2, two copies; broker 2 of two (3.9.2, ZooKeeper), which has the second, is killed",
    finding="not_enough_replicas",
    version=OLD,
    nodes=2,
    properties={
        **PLAIN,
        "min.insync.replicas": 2,
        "zookeeper.session.timeout.ms": 4000,
        "replica.lag.time.max.ms": 4000,
    },
    options=ZOOKEEPER,
)
def not_enough_zookeeper(site: Site) -> None:
    site.create(orders=[[1, 2]])
    with site.recording():
        shop = site.foreign("near", "sarama", "produce", count=35, every_ms=300, timeout_ms=4000)
        time.sleep(5)
        site.brokers[1].stop(signal.SIGKILL)
        site.counted(shop)


@incident(
    "follower",
    "broker",
    "10.88.0.2:9093",
    "broker 2, a follower of orders-0 in the ISR, stands still for 0.8 of every 1.1 s (SIGSTOP), on 2.8.2 "
    "with ZooKeeper",
    finding="replication_slow",
    version=OLDER,
    anomalies=FALLBACK,
    nodes=2,
    properties={**PATIENT, "replica.lag.time.max.ms": 60_000},
    options=ZOOKEEPER,
)
def follower_slow_zookeeper(site: Site) -> None:
    site.create(orders=[[1, 2]])
    with site.recording():
        shop = site.foreign("near", "sarama", "produce", count=30, every_ms=200)
        till = site.foreign("near", "franz", "produce", client_id="till", acks=1, count=60, every_ms=200)
        end = time.monotonic() + 12
        while time.monotonic() < end:
            with paused(site.brokers[1]):
                time.sleep(0.8)
            time.sleep(0.3)
        site.counted(shop)
        site.counted(till)


@incident(
    "broker",
    "broker",
    "10.88.0.1:9092",
    "the only broker (2.8.2, ZooKeeper) is killed while a producer of KafkaJS and a group of sarama work",
    finding="connection_refused",
    version=OLDER,
    anomalies=FALLBACK,
    properties=PLAIN,
    options=ZOOKEEPER,
)
def refused_zookeeper(site: Site) -> None:
    site.create(orders=1)
    site.warm()
    with site.recording():
        shop = site.foreign("near", "kafkajs", "produce", count=30, every_ms=200, retries=2)
        reader = site.foreign("near", "sarama", "consume", seconds=12)
        time.sleep(6)
        site.brokers[0].stop(signal.SIGKILL)
        site.counted(shop)
        site.counted(reader)


@incident(
    "client",
    "group",
    "sarama-billing",
    "members of sarama come and go every second or two, on 2.8.2 with ZooKeeper",
    finding="rebalance_storm",
    version=OLDER,
    anomalies=FALLBACK,
    properties=PLAIN,
    options=ZOOKEEPER,
)
def rebalances_zookeeper(site: Site) -> None:
    site.create(orders=3)
    site.warm()
    with site.recording():
        shop = site.foreign("near", "sarama", "produce", count=12, every_ms=1200)
        stays = site.foreign("near", "sarama", "consume", seconds=20, client_id="sarama-billing-1")
        time.sleep(3)
        for number in range(6):
            work = {"seconds": 2, "client_id": f"sarama-billing-{number % 2 + 2}"}
            site.counted(site.foreign("near", "sarama", "consume", **work))
        for role in (shop, stays):
            site.counted(role)


@calm(
    "two brokers of 2.8.2 with ZooKeeper, two copies, acks=all: sarama and KafkaJS",
    version=OLDER,
    anomalies=FALLBACK,
    nodes=2,
    properties=PATIENT,
    options=ZOOKEEPER,
)
def healthy_zookeeper(site: Site) -> None:
    site.create(orders=[[1, 2], [2, 1]])
    site.warm()
    with site.recording():
        roles = [
            site.foreign("near", "sarama", "consume", seconds=7),
            site.foreign("near", "kafkajs", "produce", count=12, every_ms=400),
            site.foreign("near", "sarama", "produce", count=12, every_ms=400),
        ]
        for role in roles:
            site.counted(role)
