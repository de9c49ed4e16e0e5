"""The same causes with other clients, other releases and other numbers: groups."""

from __future__ import annotations

import time

from tests.broker.network.calm import calm
from tests.broker.network.clocks import OLD
from tests.broker.network.incidents import EACH, incident
from tests.broker.network.others import JAVA_2
from tests.broker.network.site import Site

SHORT = {"group.min.session.timeout.ms": 1000}


@incident(
    "client",
    "client",
    "audit-1",
    "a Java consumer 4.3.1 works 7 s on what a poll brings, max.poll.interval.ms=4000, on 3.9.2; once",
    finding="poll_interval_exceeded",
    version=OLD,
    properties=SHORT,
)
def poll_interval_java(site: Site) -> None:
    site.create(orders=1)
    site.warm()
    with site.recording():
        site.counted(site.work("near", "produce", client_id="shop", x_count=5, x_every_ms=10))
        settings = {"max_poll_interval_ms": 4000, "max_poll_records": 2, "heartbeat_interval_ms": 1000}
        work = {"x_work_ms": 7000, "x_seconds": 9, "x_times": 1}
        site.counted(site.work("near", "consume", client_id="audit-1", group_id="audit", **settings, **work))


@incident(
    "client",
    "client",
    "packer-1",
    "a Java consumer in a group of KIP-848 works 6 s on every poll, max.poll.interval.ms=3000",
    finding="poll_interval_exceeded",
)
def poll_interval_848(site: Site) -> None:
    site.create(orders=2)
    site.warm()
    with site.recording():
        site.counted(site.work("near", "produce", client_id="shop", x_count=8, x_every_ms=10))
        settings = {"group_protocol": "consumer", "max_poll_interval_ms": 3000, "max_poll_records": 1}
        work = {"x_work_ms": 6000, "x_seconds": 16}
        site.counted(
            site.work("near", "consume", client_id="packer-1", group_id="packing", **settings, **work)
        )


@incident(
    "client",
    "client",
    "aio-billing-1",
    "aiokafka's process is stopped (SIGSTOP) for 8 s, session.timeout.ms=4000, on 3.9.2",
    finding="session_expired",
    version=OLD,
    properties=SHORT,
    also=["client_silent"],
)
def session_aiokafka(site: Site) -> None:
    site.create(orders=1)
    site.warm()
    with site.recording():
        settings = {"session_timeout_ms": 4000, "heartbeat_interval_ms": 800}
        first = site.start("near", "aio_consume", seconds=16, settings=settings)
        time.sleep(4)
        with first.asleep():
            time.sleep(8)
        site.counted(first)


@incident(
    "client",
    "client",
    "audit-2",
    "the process of audit-2, Java, in a group of KIP-848, is stopped (SIGSTOP) for 9 s; the broker wants "
    "heartbeats within 4 s",
    finding="session_expired",
    properties={
        "group.consumer.session.timeout.ms": 4000,
        "group.consumer.heartbeat.interval.ms": 1000,
        "group.consumer.min.session.timeout.ms": 2000,
        "group.consumer.min.heartbeat.interval.ms": 500,
    },
    also=["client_silent"],
)
def session_848(site: Site) -> None:
    site.create(orders=2)
    site.warm()
    with site.recording():
        common = {"group_id": "audit", "group_protocol": "consumer"}
        first = site.work("near", "consume", client_id="audit-1", x_seconds=22, **common)
        second = site.work("near", "consume", client_id="audit-2", x_seconds=20, **common)
        time.sleep(7)
        with second.asleep():
            time.sleep(9)
        site.counted(first)
        site.counted(second)


@incident(
    "client",
    "group",
    "py-billing",
    "kafka-python works 150 ms on a record; 40 come per second, on 3.9.2",
    finding="lag_grows",
    version=OLD,
)
def lag_python(site: Site) -> None:
    site.create(orders=1)
    site.warm()
    with site.recording():
        shop = site.start("near", "produce", count=500, every_s=0.02, size=10, settings={"linger.ms": 200})
        site.run("near", "kp_consume", seconds=11, work_s=0.15)
        site.counted(shop)


@incident(
    "configuration",
    "group",
    "audit",
    "two Java consumers 4.3.1 with the same group.instance.id in a group of KIP-848",
    finding="static_id_shared",
)
def static_848(site: Site) -> None:
    site.create(orders=2)
    site.warm()
    with site.recording():
        common = {"group_id": "audit", "group_protocol": "consumer", "group_instance_id": "pod-3"}
        first = site.work("near", "consume", client_id="audit-1", x_seconds=9, **common)
        time.sleep(4)
        site.counted(site.work("near", "consume", client_id="audit-2", x_seconds=5, **common))
        site.counted(first)


@incident(
    "client",
    "group",
    "crashers",
    "Java consumers 2.3.1 come every 1.5 s and go, five of them; one stays",
    finding="rebalance_storm",
    version=OLD,
    properties=SHORT,
)
def rebalances_java(site: Site) -> None:
    site.create(orders=3)
    site.warm()
    with site.recording():
        settings = {"group_id": "crashers", "heartbeat_interval_ms": 300, "session_timeout_ms": 6000}
        first = site.work("near", "consume", x_version=JAVA_2, client_id="stays", x_seconds=24, **settings)
        time.sleep(3)
        for number in range(5):
            guest = site.work(
                "near", "consume", x_version=JAVA_2, client_id=f"guest-{number}", x_seconds=2, **settings
            )
            site.counted(guest)
        site.counted(first)


@incident(
    "client",
    "group",
    "audit",
    "the process of audit-2, one of two Java consumers 4.3.1 on 3.9.2, is killed (SIGKILL); "
    "session.timeout.ms=6000",
    finding="session_expired",
    version=OLD,
)
def member_killed(site: Site) -> None:
    site.create(orders=2)
    site.warm()
    with site.recording():
        common = {"group_id": "audit", "session_timeout_ms": 6000, "heartbeat_interval_ms": 1000}
        first = site.work("near", "consume", client_id="audit-1", x_seconds=24, **common)
        second = site.work("near", "consume", client_id="audit-2", x_seconds=60, **common)
        time.sleep(14)
        second.kill()
        site.counted(first)


@incident(
    "configuration",
    "group",
    "audit",
    "three Java members of a group of KIP-848, two partitions",
    finding="idle_members",
)
def idle_848(site: Site) -> None:
    site.create(orders=2)
    site.warm()
    with site.recording():
        common = {"group_id": "audit", "group_protocol": "consumer", "x_seconds": 14}
        members = [
            site.work("near", "consume", client_id=f"audit-{number}", **common) for number in (1, 2, 3)
        ]
        site.run("near", "produce", count=10, every_s=0.8, partitions=2)
        for member in members:
            site.counted(member)


DELETING = {
    "log.retention.check.interval.ms": 500,
    "log.initial.task.delay.ms": 100,
    "log.segment.delete.delay.ms": 100,
}


def _race_retention(site: Site, first: int, work_s: float, count: int) -> None:
    """Of 2,400 records of 10 bytes the group has read `first`; retention keeps about 2,200, and 50 more come
    per second."""
    site.create(orders={"brokers": 1, "config": {"segment.bytes": "1500", "retention.bytes": "40000"}})
    site.warm()
    few = {"batch.num.messages": 50}
    site.run("near", "produce", client_id="early", count=2400, every_s=0, size=10, settings=few)
    site.run("near", "consume", client_id="early", group="py-billing", wanted=first)
    with site.recording():
        settings = {"linger.ms": 200}
        shop = site.start("near", "produce", count=count, every_s=0.01, size=10, settings=settings)
        site.counted(site.start("near", "kp_consume", seconds=count / 50, work_s=work_s))
        site.counted(shop)


@incident(
    "client",
    "group",
    "py-billing",
    "kafka-python works 30 ms on a record, 50 come per second, and retention.bytes deletes as many, on 3.9.2",
    version=OLD,
    properties=DELETING,
    also=["lag_grows"],
)
def retention_overtakes(site: Site) -> None:
    _race_retention(site, first=2400, work_s=0.03, count=600)


@calm(
    "retention.bytes deletes 60 records per second; a group that is 1,300 behind reads 200",
    version=OLD,
    properties=DELETING,
)
def healthy_late_group(site: Site) -> None:
    _race_retention(site, first=800, work_s=0.004, count=300)


@calm(
    "a second member joins a group of librdkafka that never commits, and all is read again; nothing is "
    "written meanwhile"
)
def healthy_uncommitted(site: Site) -> None:
    site.create(orders=2)
    site.warm()
    with site.recording():
        never = {"enable.auto.commit": False, "fetch.wait.max.ms": 1500}
        first = site.start("near", "consume", seconds=13, settings=never)
        shop = site.start("near", "produce", count=24, every_s=0.15, size=40, partitions=2, settings=EACH)
        time.sleep(6)
        second = site.start("near", "consume", client_id="billing-2", seconds=7, settings=never)
        for role in (shop, second, first):
            site.counted(role)
