"""Readers that get on badly: commits per record, slow rebalances, assignors, lost fetch sessions."""

from __future__ import annotations

import time
from datetime import datetime

from tests.broker.network.calm import calm
from tests.broker.network.clocks import OLD
from tests.broker.network.growth import STICKY
from tests.broker.network.incidents import EACH, incident
from tests.broker.network.others import JAVA_2
from tests.broker.network.site import Role, Site

BEFORE_SHARDS = "3.6.2"
"""A release whose cache of fetch sessions is one: later ones have eight shards (KAFKA-9401)."""
RANGE = "org.apache.kafka.clients.consumer.RangeAssignor"


@incident("client", "client", "billing-1", "a Java consumer 4.3.1 calls commitSync after each of 240 records")
def commit_storm(site: Site) -> None:
    site.create(orders=1)
    site.warm()
    site.fill("orders", 240, 30)
    with site.recording():
        common = {"group_id": "billing", "enable_auto_commit": "false", "x_commit": "each", "x_seconds": 5}
        site.counted(site.work("near", "consume", client_id="billing-1", **common))


@incident(
    "client",
    "client",
    "js-billing-1",
    "KafkaJS with autoCommitThreshold=1 reads 20 records per second from 3.9.2",
    finding="commit_storm",
    version=OLD,
)
def commit_storm_kafkajs(site: Site) -> None:
    site.create(orders=2)
    site.warm()
    with site.recording():
        common = {"client_id": "js-billing-1", "commit_each": 1, "seconds": 4}
        reader = site.foreign("near", "kafkajs", "consume", **common)
        site.run("near", "produce", count=64, every_s=0.05, size=40, partitions=2, settings=EACH)
        site.counted(reader)


@incident(
    "client",
    "client",
    "go-billing",
    "franz-go calls CommitRecords after each record of a backlog of 150, each with 20 ms of work",
    finding="commit_storm",
)
def commit_storm_franz(site: Site) -> None:
    site.create(orders=3)
    site.warm()
    site.fill("orders", 150, 60)
    with site.recording():
        common = {"client_id": "go-billing", "commit_each": 1, "work_ms": 20, "seconds": 7}
        site.counted(site.foreign("near", "franz", "consume", **common))


@incident(
    "client",
    "client",
    "idler",
    "auto.commit.interval.ms=40 with Java 4.3.1 on 3.9.2; nothing is written after the first 5 records",
    finding="commit_storm",
    version=OLD,
)
def commit_storm_idle(site: Site) -> None:
    site.create(orders=1)
    site.warm()
    site.fill("orders", 5, 30)
    with site.recording():
        common = {"group_id": "idlers", "auto_commit_interval_ms": 40, "x_seconds": 8}
        site.counted(site.work("near", "consume", client_id="idler", **common))


@calm("a Java consumer commits after each poll of many records, a librdkafka consumer once per second")
def healthy_commits(site: Site) -> None:
    site.create(orders=1)
    site.warm()
    site.fill("orders", 300, 30)
    with site.recording():
        other = site.start("near", "consume", client_id="audit-1", group="audit", seconds=7)
        common = {"group_id": "billing", "enable_auto_commit": "false", "x_commit": "poll", "x_seconds": 6}
        reader = site.work("near", "consume", client_id="billing-1", **common)
        site.run("near", "produce", count=240, every_s=0.02, size=40, settings={"linger.ms": 700})
        site.counted(reader)
        site.counted(other)


@incident(
    "configuration",
    "group",
    "billing",
    "a Java member has CooperativeStickyAssignor alone, the member at work RangeAssignor alone (Java 2.3.1)",
    finding="mixed_assignors",
)
def mixed_java(site: Site) -> None:
    site.create(orders=2)
    site.warm()
    with site.recording():
        common = {"group_id": "billing", "fetch_max_wait_ms": 1500}
        first = site.work("near", "consume", client_id="billing-1", x_version=JAVA_2, x_seconds=12, **common)
        time.sleep(5)
        more = {"partition_assignment_strategy": STICKY, "x_seconds": 5}
        site.counted(site.work("near", "consume", client_id="billing-2", **common, **more))
        site.counted(first)


@incident(
    "configuration",
    "group",
    "work",
    "KafkaJS with its RoundRobinAssigner works in a group of 3.9.2; librdkafka (range, roundrobin) "
    "wants to join",
    finding="mixed_assignors",
    version=OLD,
)
def mixed_libraries(site: Site) -> None:
    site.create(orders=2)
    site.warm()
    with site.recording():
        first = site.foreign("near", "kafkajs", "consume", client_id="js", group="work", seconds=13)
        time.sleep(5)
        settings = {"fetch.wait.max.ms": 1500}
        site.run("near", "consume", client_id="rd", group="work", seconds=6, settings=settings)
        site.counted(first)


@incident(
    "configuration",
    "group",
    "picking",
    "sarama with the sticky strategy alone joins a group of aiokafka (roundrobin)",
    finding="mixed_assignors",
)
def mixed_sarama(site: Site) -> None:
    site.create(orders=2)
    site.warm()
    with site.recording():
        first = site.start("near", "aio_consume", group="picking", seconds=12)
        time.sleep(5)
        common = {"client_id": "go-picker", "group": "picking", "assignor": "sticky", "seconds": 5}
        site.counted(site.foreign("near", "sarama", "consume", **common))
        site.counted(first)


@calm("members of Java (range, cooperative-sticky), librdkafka (range, roundrobin) and sarama (range)")
def healthy_assignors(site: Site) -> None:
    site.create(orders=3)
    site.warm()
    with site.recording():
        writer = site.start("near", "produce", count=30, every_s=0.5, partitions=3)
        java = {"group_id": "work", "fetch_max_wait_ms": 1500, "x_seconds": 14}
        roles = [site.work("near", "consume", client_id="java", **java)]
        time.sleep(3)
        settings = {"fetch.wait.max.ms": 1500}
        roles.append(
            site.start("near", "consume", client_id="rd", group="work", seconds=10, settings=settings)
        )
        time.sleep(3)
        go = {"client_id": "go", "group": "work", "max_wait_ms": 1500, "seconds": 6}
        roles.append(site.foreign("near", "sarama", "consume", **go))
        for role in (*roles, writer):
            site.counted(role)


def _rebalanced(site: Site) -> None:
    """How long the longest rebalance took by the coordinator's log."""
    longest, since = 0.0, None
    for line in site.lines("Preparing to rebalance group|Stabilized group"):
        moment = datetime.strptime(line[:23], "%Y-%m-%d %H:%M:%S,%f")
        if "Preparing" in line:
            since = since or moment
        elif since:
            longest, since = max(longest, (moment - since).total_seconds()), None
    site.report["ms of the longest rebalance by the broker's log"] = round(longest * 1000)


def _late(site: Site, worker: Role, second: Role, writer: Role) -> None:
    for role in (second, worker, writer):
        site.counted(role)
    _rebalanced(site)


@incident(
    "client",
    "group",
    "billing",
    "a Java member works 12 s on what one poll brings when a second member joins",
    finding="rebalance_slow",
)
def rebalance_slow(site: Site) -> None:
    site.create(orders=2)
    site.warm()
    with site.recording():
        common = {"group_id": "billing", "partition_assignment_strategy": RANGE, "fetch_max_wait_ms": 1500}
        more = {"x_work_ms": 12000, "x_times": 1, "x_seconds": 21}
        worker = site.work("near", "consume", client_id="billing-1", **common, **more)
        time.sleep(4)
        writer = site.start("near", "produce", count=12, every_s=0.8, partitions=2)
        time.sleep(2)
        second = site.work("near", "consume", client_id="billing-2", x_seconds=14, **common)
        _late(site, worker, second, writer)


@incident(
    "client",
    "group",
    "picking",
    "a librdkafka consumer works 7 s on a record when another member of 3.9.2 joins",
    finding="rebalance_slow",
    version=OLD,
)
def rebalance_slow_rdkafka(site: Site) -> None:
    site.create(orders=2)
    site.warm()
    settings = {"fetch.wait.max.ms": 1500, "heartbeat.interval.ms": 1000}
    with site.recording():
        common = {"group": "picking", "settings": settings}
        worker = site.start("near", "consume", client_id="picker-1", seconds=16, work_s=7, wanted=2, **common)
        time.sleep(4)
        writer = site.start("near", "produce", count=2, every_s=1, partitions=2)
        time.sleep(2)
        second = site.start("near", "consume", client_id="picker-2", seconds=14, **common)
        _late(site, worker, second, writer)


@incident(
    "client",
    "group",
    "sarama-billing",
    "the handler of a sarama member works 8 s on a record while another member leaves and one joins",
    finding="rebalance_slow",
)
def rebalance_slow_sarama(site: Site) -> None:
    site.create(orders=2)
    site.warm()
    with site.recording():
        common = {"max_wait_ms": 1500}
        worker = site.foreign(
            "near", "sarama", "consume", client_id="slow", work_ms=8000, seconds=20, **common
        )
        time.sleep(3)
        writer = site.start("near", "produce", count=2, every_s=0.5, partitions=2)
        time.sleep(2)
        second = site.foreign("near", "sarama", "consume", client_id="quick", seconds=13, **common)
        _late(site, worker, second, writer)


@calm("a Java member works 2 s on each poll, a second one joins and leaves")
def healthy_short_waits(site: Site) -> None:
    site.create(orders=2)
    site.warm()
    with site.recording():
        common = {"group_id": "billing", "partition_assignment_strategy": RANGE, "fetch_max_wait_ms": 1500}
        worker = site.work("near", "consume", client_id="billing-1", x_work_ms=2000, x_seconds=18, **common)
        time.sleep(4)
        writer = site.start("near", "produce", count=12, every_s=0.8, partitions=2)
        time.sleep(2)
        second = site.work("near", "consume", client_id="billing-2", x_seconds=7, **common)
        _late(site, worker, second, writer)


EVICTABLE_S = 124
"""A session younger than two minutes keeps its place (FetchSession.EvictableKey, KIP-227)."""
LIFE_S = 200
BEGUN = ["framing_resumed", "api_versions_fallback"]
"""The small readers connect before the recording begins; 3.6.2 lacks versions that they ask for."""


def _small(site: Site, **how: object) -> Role:
    """Readers of one partition each, which have all sessions; recorded when those are old."""
    common = {"client_id": "reader", "count": 12, "every_ms": 20, "life_s": LIFE_S, **how}
    return site.foreign("near", "franz", "readers", **common)


def _large(site: Site, **how: object) -> Role:
    """One reader of many partitions after the other: each gets the place of a small one's session."""
    common = {"client_id": "job", "topic": "parcels", "max_wait_ms": 1200, "seconds": 14, **how}
    return site.foreign("near", "franz", "readers", **common)


def _lost(site: Site) -> None:
    lost = sum(row.api == "FETCH" and row.error_code in (70, 71) for row in site.logged())
    site.report["fetch sessions lost by the broker's log"] = lost


@incident(
    "configuration",
    "broker",
    "10.88.0.1:9092",
    "max.incremental.fetch.session.cache.slots=12 on 3.6.2 and 12 readers, franz-go; nine more with 12 "
    "partitions each begin",
    finding="fetch_sessions_lost",
    version=BEFORE_SHARDS,
    properties={"max.incremental.fetch.session.cache.slots": 12},
    anomalies=BEGUN,
)
def fetch_sessions_lost(site: Site) -> None:
    site.create(orders=1, parcels=12)
    site.warm()
    readers = _small(site, seconds=EVICTABLE_S + 20, max_wait_ms=1500)
    time.sleep(EVICTABLE_S)
    with site.recording():
        site.counted(_large(site, count=9, every_ms=1000))
        site.counted(readers)
    _lost(site)


@incident(
    "configuration",
    "broker",
    "10.88.0.1:9092",
    "max.incremental.fetch.session.cache.slots=8 on 4.3.1, one in each shard; 8 kafka-python readers, and "
    "14 of franz-go with 6 partitions each, which begin later",
    finding="fetch_sessions_lost",
    properties={"max.incremental.fetch.session.cache.slots": 8},
    anomalies=BEGUN,
)
def fetch_sessions_lost_python(site: Site) -> None:
    site.create(orders=1, parcels=6)
    site.warm()
    settings = {"fetch_max_wait_ms": 1500}
    common = {"group": None, "offset": 0, "seconds": EVICTABLE_S + 24, "settings": settings}
    readers = [site.start("near", "kp_consume", client_id="py-reader", **common) for _ in range(8)]
    time.sleep(EVICTABLE_S + 8)
    with site.recording():
        site.counted(_large(site, count=14, every_ms=600, max_wait_ms=2000, seconds=12))
        for reader in readers:
            site.counted(reader)
    _lost(site)


@calm(
    "12 readers of franz-go and six of 12 partitions that begin later, on 3.6.2 with 1000 sessions",
    version=BEFORE_SHARDS,
    anomalies=BEGUN,
)
def healthy_sessions(site: Site) -> None:
    site.create(orders=1, parcels=12)
    site.warm()
    readers = _small(site, seconds=20, max_wait_ms=1500)
    with site.recording():
        site.counted(_large(site, count=6, every_ms=1000, seconds=9))
        site.counted(readers)
