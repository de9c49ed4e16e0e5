"""Incidents of what brokers refuse or delay: commits, topics created again, settings, one controller."""

from __future__ import annotations

import time

from tests.broker.brokers import paused
from tests.broker.network.clocks import OLD, SLOW_QUORUM
from tests.broker.network.incidents import EACH, SAFE, incident
from tests.broker.network.site import Role, Site

ELSEWHERE = {name: value for name, value in SLOW_QUORUM.items() if name != "inter.broker.listener.name"}
"""Followers fetch where they are not recorded."""


@incident(
    "client",
    "client",
    "recalc",
    "recalc, Java 4.3.1, assigns itself partition 0 and commits into the group of KIP-848 of others",
)
def commit_refused(site: Site) -> None:
    site.create(orders=2)
    site.warm()
    with site.recording():
        common = {"group_id": "billing", "group_protocol": "consumer"}
        shop = site.start("near", "produce", count=20, every_s=0.6)
        member = site.work("near", "consume", client_id="billing-1", x_seconds=12, **common)
        time.sleep(5)
        site.counted(
            site.work("near", "commit", client_id="recalc", group_id="billing", x_count=8, x_every_ms=500)
        )
        for role in (shop, member):
            site.counted(role)


@incident(
    "client",
    "client",
    "py-recalc",
    "kafka-python assigns itself a partition and commits into a classic group of others, on 3.9.2",
    finding="commit_refused",
    version=OLD,
)
def commit_refused_python(site: Site) -> None:
    site.create(orders=2)
    site.warm()
    with site.recording():
        shop = site.start("near", "produce", count=20, every_s=0.6)
        member = site.start("near", "consume", seconds=14)
        time.sleep(4)
        site.run("near", "kp_commit", count=10, every_s=0.5)
        for role in (shop, member):
            site.counted(role)


def _recreated(site: Site, *roles: Role, after_s: float) -> None:
    time.sleep(8)
    site.run("near", "remake", after_s=after_s)
    for role in roles:
        site.counted(role)


@incident(
    "configuration",
    "topic",
    "orders",
    "an administrator deletes the topic orders and creates it again 3 s later; a producer and a group of "
    "Java 4.3.1 are at work",
    also=["unknown_topic"],
)
def topic_recreated(site: Site) -> None:
    site.create(orders=1)
    site.warm()
    with site.recording():
        shop = site.work(
            "near", "produce", client_id="shop", x_count=40, x_every_ms=350, retry_backoff_ms=500
        )
        audit = site.work(
            "near", "consume", client_id="audit-1", group_id="audit", x_seconds=17, retry_backoff_ms=500
        )
        _recreated(site, shop, audit, after_s=3)


@incident(
    "configuration",
    "topic",
    "orders",
    "an administrator deletes the topic orders and creates it again 4 s later; KafkaJS, whose Metadata has "
    "no topic ids, is at work on 3.9.2",
    finding="topic_recreated",
    version=OLD,
    also=["unknown_topic", "offset_out_of_range"],
)
def topic_recreated_kafkajs(site: Site) -> None:
    site.create(orders=1)
    site.warm()
    with site.recording():
        shop = site.foreign("near", "kafkajs", "produce", count=40, every_ms=350)
        reader = site.foreign("near", "kafkajs", "consume", seconds=17)
        _recreated(site, shop, reader, after_s=4)


def _slow_follower(site: Site, roles: list[Role], *, asleep_s: float, awake_s: float) -> None:
    """Broker 2 sleeps again and again; it follows orders, and broker 3 follows clicks."""
    time.sleep(3)
    end = time.monotonic() + 8
    while time.monotonic() < end:
        with paused(site.brokers[1]):
            time.sleep(asleep_s)
        time.sleep(awake_s)
    for role in roles:
        site.counted(role)


@incident(
    "follower",
    "broker",
    "10.88.0.1:9092",
    "broker 2, a follower of orders in the ISR, stands still for 0.25 of every 0.5 seconds (SIGSTOP); clicks "
    "has broker 3 for a follower; only the clients' calls are recorded",
    finding="replication_slow",
    nodes=3,
    properties=ELSEWHERE,
)
def follower_slow_clients(site: Site) -> None:
    site.create(orders=[[1, 2]], clicks=[[1, 3]])
    site.warm()
    with site.recording():
        roles = [
            site.start(
                "near", "produce", client_id=f"{name}-shop", topic=name, count=40, every_s=0.25, settings=SAFE
            )
            for name in ("orders", "clicks")
        ]
        _slow_follower(site, roles, asleep_s=0.25, awake_s=0.25)


@incident(
    "follower",
    "broker",
    "10.88.0.1:9092",
    "broker 2, a follower of orders in the ISR, stands still for 0.45 of every 2.5 seconds (SIGSTOP), on "
    "3.9.2; clicks has broker 3 for a follower; only the calls of franz-go and sarama are recorded",
    finding="replication_slow",
    version=OLD,
    nodes=3,
    properties=ELSEWHERE,
)
def follower_slow_seldom(site: Site) -> None:
    site.create(orders=[[1, 2]], clicks=[[1, 3]])
    site.warm()
    with site.recording():
        roles = [
            site.foreign("near", "franz", "produce", count=60, every_ms=150),
            site.foreign(
                "near", "sarama", "produce", client_id="go-clicks", topic="clicks", count=60, every_ms=150
            ),
        ]
        _slow_follower(site, roles, asleep_s=0.45, awake_s=2.05)


ONE_CONTROLLER = {"controllers": (2,)}
PATIENT = {"broker.session.timeout.ms": 60_000}


@incident(
    "broker",
    "broker",
    "10.88.0.1:9092",
    "the only controller is stopped (SIGSTOP) for 7 s while deploy creates a topic; a producer and a reader "
    "go on",
    finding="broker_slow",
    nodes=2,
    options=ONE_CONTROLLER,
    properties=PATIENT,
)
def controller_stopped(site: Site) -> None:
    site.create(orders=1)
    with site.recording():
        shop = site.start("near", "produce", count=40, every_s=0.3, settings=EACH)
        reader = site.start("near", "assign", seconds=12)
        time.sleep(3)
        with paused(site.brokers[1]):
            deploy = site.start("near", "ensure", topics="parcels")
            time.sleep(7)
        for role in (deploy, shop, reader):
            site.counted(role)


@incident(
    "broker",
    "broker",
    "10.88.0.1:9092",
    "the only controller, 3.9.2, is stopped (SIGSTOP) for 9 s while Java creates a topic, which gives up "
    "after 5 s (default.api.timeout.ms)",
    finding="broker_slow",
    version=OLD,
    nodes=2,
    options=ONE_CONTROLLER,
    properties=PATIENT,
)
def controller_stopped_java(site: Site) -> None:
    site.create(orders=1)
    with site.recording():
        shop = site.start("near", "produce", count=40, every_s=0.35, settings=EACH)
        time.sleep(3)
        with paused(site.brokers[1]):
            limits = {"default_api_timeout_ms": 5000, "request_timeout_ms": 4500}
            deploy = site.work("near", "ensure", client_id="deploy", x_topic="parcels", **limits)
            time.sleep(9)
        for role in (deploy, shop):
            site.counted(role)


@incident(
    "client",
    "client",
    "billing-1",
    "group.max.session.timeout.ms=20000 of the broker, 3.9.2; librdkafka asks for session.timeout.ms=45000",
    finding="persistent_error",
    version=OLD,
    properties={"group.max.session.timeout.ms": 20_000},
)
def session_timeout_refused(site: Site) -> None:
    site.create(orders=1)
    site.warm()
    with site.recording():
        site.run("near", "consume", seconds=8)


@incident(
    "client",
    "client",
    "go-shop",
    "transaction.max.timeout.ms=10000 of the broker; franz-go asks for a transaction timeout of 40 s",
    finding="persistent_error",
    properties={"transaction.max.timeout.ms": 10_000},
)
def transaction_timeout_refused(site: Site) -> None:
    site.create(orders=1)
    site.warm()
    with site.recording():
        site.foreign("near", "franz", "transact", count=1).done()
