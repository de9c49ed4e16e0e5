"""Incidents whose cause is known: clients, groups, transactions, and what rules refuse."""

from __future__ import annotations

import time

from tests.broker.network.clocks import SASL, login
from tests.broker.network.incidents import EACH, incident
from tests.broker.network.site import PLAIN, Site
from tests.broker.security import AUTHORIZER, certificate

SLOW = {"reconnect.backoff.ms": 400, "reconnect.backoff.max.ms": 800}
TIMES = {"session.timeout.ms": 3000, "heartbeat.interval.ms": 500}
SHORT = {"group.min.session.timeout.ms": 1000}


@incident(
    "client", "client", "billing-1", "one record takes 5 s, max.poll.interval.ms=3000", properties=SHORT
)
def poll_interval_exceeded(site: Site) -> None:
    site.create(orders=1)
    site.warm()
    with site.recording():
        site.run("near", "produce", count=4, every_s=0.02)
        settings = {**TIMES, "max.poll.interval.ms": 3000}
        site.run("near", "consume", seconds=12, work_s=5, settings=settings)


@incident(
    "client",
    "client",
    "billing-2",
    "billing-2's process is stopped (SIGSTOP) for 6 s, session.timeout.ms=3000; billing-1 is healthy",
    properties=SHORT,
)
def session_expired(site: Site) -> None:
    site.create(orders=2)
    site.warm()
    with site.recording():
        first = site.start("near", "consume", seconds=14, settings={**TIMES, "fetch.wait.max.ms": 2000})
        second = site.start("near", "consume", client_id="billing-2", seconds=13, settings=TIMES)
        time.sleep(4)
        with second.asleep():
            time.sleep(6)
        site.counted(first)
        site.counted(second)


@incident("configuration", "group", "billing", "three members, one partition")
def idle_members(site: Site) -> None:
    site.create(orders=1)
    site.warm()
    with site.recording():
        settings = {"fetch.wait.max.ms": 2000, "heartbeat.interval.ms": 1000}
        members = [
            site.start("near", "consume", client_id=f"billing-{number}", seconds=9, settings=settings)
            for number in (1, 2, 3)
        ]
        site.run("near", "produce", count=8, every_s=0.8)
        for member in members:
            site.counted(member)


@incident("client", "topic", "orders", "every record of shop has the same key; the topic has four partitions")
def hot_partition(site: Site) -> None:
    site.create(orders=4)
    with site.recording():
        other = site.start(
            "near", "produce", client_id="till", count=8, partitions=4, every_s=0.5, settings=EACH
        )
        site.run("near", "produce", count=80, every_s=0.04, size=150, key="the-one", settings=EACH)
        site.counted(other)


@incident("configuration", "client", "reader", "fetch.wait.max.ms=1 on a topic to which nobody writes")
def busy_fetch(site: Site) -> None:
    site.create(orders=1)
    with site.recording():
        settings = {"fetch.wait.max.ms": 1, "fetch.error.backoff.ms": 1, "fetch.queue.backoff.ms": 0}
        site.run("near", "assign", seconds=0.7, settings=settings)


@incident(
    "client",
    "client",
    "stubborn",
    "a client keeps asking broker 2 to write to orders-0, whose leader is broker 1; it never asks for "
    "metadata",
    nodes=2,
)
def stale_leader(site: Site) -> None:
    site.create(orders=[[1]])
    with site.recording():
        bootstrap = site.cluster.bootstrap.split(",")[1]
        site.run("near", "insist", bootstrap=bootstrap, client_id="stubborn", times=20, every_s=0.25)


@incident(
    "client",
    "topic",
    "orders",
    "message.max.bytes=2000 at the broker; shop sends records of 5000 bytes, till small ones",
    properties={"message.max.bytes": 2000},
)
def message_too_large(site: Site) -> None:
    site.create(orders=1)
    with site.recording():
        site.run("near", "produce", client_id="till", count=5, settings=EACH)
        site.run("near", "produce", count=6, every_s=0.3, size=5000, settings=EACH)


@incident(
    "configuration",
    "client",
    "shop",
    "user ann may do nothing on the topic",
    properties={**SASL, **AUTHORIZER},
    options={"protocol": "SASL_PLAINTEXT"},
)
def not_authorized(site: Site) -> None:
    site.create(orders=1)
    with site.recording():
        settings = {**login(), "message.timeout.ms": 3000, "topic.metadata.refresh.interval.ms": 500}
        site.run("near", "produce", count=3, settings=settings)


@incident(
    "client",
    "client",
    "shop",
    "SASL PLAIN with a wrong password, again and again",
    properties=SASL,
    options={"protocol": "SASL_PLAINTEXT"},
)
def authentication_failed(site: Site) -> None:
    site.create(orders=1)
    with site.recording():
        settings = {**login("wrong"), "message.timeout.ms": 5000, "reconnect.backoff.max.ms": 500}
        site.run("near", "produce", count=1, settings=settings)


@incident(
    "configuration",
    "client",
    "shop",
    "the client wants SCRAM-SHA-256, the broker offers PLAIN",
    properties=SASL,
    options={"protocol": "SASL_PLAINTEXT"},
)
def sasl_mechanism_refused(site: Site) -> None:
    site.create(orders=1)
    with site.recording():
        settings = {
            **login(mechanism="SCRAM-SHA-256"),
            "message.timeout.ms": 4000,
            "reconnect.backoff.max.ms": 500,
        }
        site.run("near", "produce", count=1, settings=settings)


@incident(
    "client",
    "client",
    "shop",
    "a client without SASL on a SASL listener",
    properties=SASL,
    options={"protocol": "SASL_PLAINTEXT"},
)
def sasl_expected(site: Site) -> None:
    site.create(orders=1)
    with site.recording():
        settings = {"message.timeout.ms": 4000, **SLOW}
        site.run("near", "produce", count=1, settings=settings)


@incident(
    "client",
    "client",
    "10.88.0.11",
    "a client without TLS on a TLS listener",
    options={"protocol": "SSL"},
    prepared=lambda site: {
        "listener.name.ssl.ssl.keystore.type": "PEM",
        "listener.name.ssl.ssl.keystore.location": certificate(site.folder),
    },
)
def plaintext_on_tls(site: Site) -> None:
    site.create(orders=1)
    with site.recording():
        settings = {"message.timeout.ms": 4000, **SLOW}
        site.run("near", "produce", count=1, settings=settings)


@incident(
    "client",
    "transactional_id",
    "till-7",
    "till-b begins with the same transactional.id while till-a is inside a transaction",
)
def producer_fenced(site: Site) -> None:
    site.create(orders=1)
    with site.recording():
        first = site.start("near", "transact", client_id="till-a", work_s=4)
        time.sleep(3)
        site.run("near", "transact", client_id="till-b", transactions=2)
        site.counted(first)


@incident(
    "client",
    "transactional_id",
    "till-7",
    "till stays 8 s inside a transaction; shop writes on, and a reader with read_committed gets nothing",
)
def read_committed_held_back(site: Site) -> None:
    site.create(orders=1)
    with site.recording():
        till = site.start("near", "transact", work_s=8)
        shop = site.start("near", "produce", count=30, every_s=0.3, settings=EACH)
        settings = {"isolation.level": "read_committed", "fetch.wait.max.ms": 700}
        site.run("near", "assign", seconds=11, settings=settings)
        site.counted(till)
        site.counted(shop)


@incident("client", "group", "billing", "members come and go every second or two")
def rebalance_storm(site: Site) -> None:
    site.create(orders=2)
    site.warm()
    settings = {"heartbeat.interval.ms": 300, "fetch.wait.max.ms": 1500}
    with site.recording():
        first = site.start("near", "consume", seconds=14, settings=settings)
        for number in range(2, 7):
            site.run("near", "consume", client_id=f"billing-{number}", seconds=1, settings=settings)
        site.counted(first)


@incident(
    "client", "partition", "orders-0", "a reader begins at offset 1000 of a log with 5 records, four times"
)
def offset_out_of_range(site: Site) -> None:
    site.create(orders=1)
    with site.recording():
        site.run("near", "produce", count=5, every_s=0.02)
        for _ in range(4):
            settings = {"auto.offset.reset": "error"}
            site.run("near", "assign", offset=1000, seconds=1.5, settings=settings)


@incident(
    "client",
    "group",
    "packers",
    "packer-1 takes records of a share group and its process is stopped (SIGSTOP): the locks of 1 s expire, "
    "packer-2 gets the records",
    properties={"group.share.min.record.lock.duration.ms": 1000, "group.share.record.lock.duration.ms": 1000},
)
def share_lock_expired(site: Site) -> None:
    site.create(orders=1)
    site.office("share-from-start", "packers")
    with site.recording():
        site.run("near", "produce", count=6, every_s=0.02)
        first = site.start("near", "share", client_id="packer-1", seconds=30, sleep_after=1)
        time.sleep(10)  # its second heartbeat, after 5 s, brings it the partition
        site.run("near", "share", client_id="packer-2", seconds=8)
        first.kill()


@incident(
    "configuration",
    "client",
    "shop",
    "a quota of 10 kB/s for shop, which sends 30 kB/s",
    properties={"quota.window.num": 4},
)
def throttled(site: Site) -> None:
    site.create(orders=1)
    site.office("quota", "shop", "producer_byte_rate", "10000")
    time.sleep(1)
    with site.recording():
        site.run("near", "produce", count=25, every_s=0.1, size=1500, settings=EACH)


@incident("configuration", "topic", "ordres", "a group reads a topic that does not exist", properties=PLAIN)
def unknown_topic(site: Site) -> None:
    site.create(orders=1)
    site.warm()
    with site.recording():
        settings = {"topic.metadata.refresh.interval.ms": 500, "allow.auto.create.topics": False}
        site.run("near", "consume", topic="ordres", seconds=6, settings=settings)
