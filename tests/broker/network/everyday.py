"""More traffic in which nobody is harmed: other clients, other releases, and what looks odd and is meant."""

from __future__ import annotations

import time

from tests.broker.network.calm import calm
from tests.broker.network.clocks import OLD
from tests.broker.network.incidents import EACH
from tests.broker.network.others import TLS
from tests.broker.network.site import Site
from tests.broker.security import certificate


@calm(
    "a Java producer commits a transaction of two records twice a second and aborts none; a reader with "
    "read_committed and one with read_uncommitted"
)
def healthy_transactions(site: Site) -> None:
    site.create(orders=1)
    site.counted(site.work("near", "transact", transactional_id="early", client_id="early", x_count=1))
    with site.recording():
        settings = {"isolation.level": "read_committed", "fetch.wait.max.ms": 700}
        readers = [
            site.start("near", "assign", seconds=8, settings=settings),
            site.start("near", "assign", client_id="spy", seconds=8),
        ]
        work = {"x_count": 10, "x_work_ms": 150, "x_every_ms": 200}
        site.counted(site.work("near", "transact", client_id="till", transactional_id="till-7", **work))
        for reader in readers:
            site.counted(reader)


@calm("a Java producer aborts transactions now and then, on 3.9.2", version=OLD)
def healthy_aborts(site: Site) -> None:
    site.create(orders=2)
    site.counted(site.work("near", "transact", transactional_id="early", client_id="early", x_count=1))
    with site.recording():
        common = {"client_id": "till", "transactional_id": "till-7", "x_work_ms": 100}
        for ending in ("commit", "abort", "commit"):
            site.counted(site.work("near", "transact", x_ending=ending, x_count=3, **common))


@calm("a group of KIP-848: two Java members, a third comes and goes")
def healthy_848(site: Site) -> None:
    site.create(orders=4)
    site.warm()
    with site.recording():
        common = {"group_id": "audit", "group_protocol": "consumer"}
        shop = site.start("near", "aio_produce", count=60, every_s=0.2)
        members = [
            site.work("near", "consume", client_id=f"audit-{number}", x_seconds=14, **common)
            for number in (1, 2)
        ]
        time.sleep(5)
        site.counted(site.work("near", "consume", client_id="audit-3", x_seconds=5, **common))
        for member in (*members, shop):
            site.counted(member)


@calm("a share group of two, records come all the time")
def healthy_share(site: Site) -> None:
    site.create(orders=1)
    site.office("share-from-start", "packers")
    with site.recording():
        shop = site.start("near", "produce", count=40, every_s=0.3, settings=EACH)
        members = [site.start("near", "share", client_id=f"packer-{number}", seconds=12) for number in (1, 2)]
        for member in (*members, shop):
            site.counted(member)


@calm("a static member stops and starts again within its session timeout, on 3.9.2", version=OLD)
def healthy_static_restart(site: Site) -> None:
    site.create(orders=2)
    site.warm()
    with site.recording():
        shop = site.start("near", "produce", count=40, every_s=0.4)
        settings = {"session.timeout.ms": 10_000, "heartbeat.interval.ms": 1000}
        stays = {**settings, "group.instance.id": "pod-0"}
        other = site.start("near", "consume", seconds=17, settings=stays)
        moving = {**settings, "group.instance.id": "pod-1"}
        for _ in range(2):
            site.run("near", "consume", client_id="billing-2", seconds=6, settings=moving)
            time.sleep(1)
        site.counted(other)
        site.counted(shop)


@calm(
    "administrators at work: topics are created and used at once, lists and descriptions, every second or so"
)
def healthy_admin(site: Site) -> None:
    site.create(orders=1)
    site.warm()
    with site.recording():
        reader = site.start("near", "consume", seconds=9)
        for number in range(3):
            site.run("near", "create", topics={f"parcels-{number}": 2})
            site.run("near", "produce", topic=f"parcels-{number}", count=3)
            site.run("near", "kp_look", client_id="office", count=2, every_s=0.5)
        site.counted(reader)


@calm("a process copies 12 topics, as MirrorMaker does: one consumer, one producer, little traffic")
def healthy_many_topics(site: Site) -> None:
    topics = [f"store-{number}" for number in range(12)]
    site.create(**dict.fromkeys(topics, 2))
    site.warm()
    with site.recording():
        reader = site.start("near", "kp_consume", client_id="mirror", topics=",".join(topics), seconds=12)
        time.sleep(4)
        site.run("near", "kp_produce", client_id="mirror-out", topic=",".join(topics), count=24, every_s=0.2)
        site.counted(reader)


@calm("records of 30 kB, few of them, read by a group; Java 4.3.1 and 3.9.2", version=OLD)
def healthy_large(site: Site) -> None:
    site.create(orders=1)
    site.warm()
    with site.recording():
        reader = site.work("near", "consume", client_id="audit-1", group_id="audit", x_seconds=9)
        site.counted(site.work("near", "produce", client_id="shop", x_count=2, x_size=30_000, x_every_ms=900))
        site.counted(reader)


@calm("a producer that stays below its quota of 200 kB/s", properties={"quota.window.num": 4})
def healthy_under_quota(site: Site) -> None:
    site.create(orders=1)
    site.office("quota", "shop", "producer_byte_rate", "200000")
    time.sleep(1)
    with site.recording():
        site.run("near", "produce", count=40, every_s=0.1, size=500, settings=EACH)


@calm("kafka-python and aiokafka, producers and groups, on 3.9.2", version=OLD)
def healthy_python(site: Site) -> None:
    site.create(orders=2)
    site.warm()
    with site.recording():
        readers = [
            site.start("near", "kp_consume", seconds=9),
            site.start("near", "aio_consume", seconds=9),
        ]
        shop = site.start("near", "kp_produce", count=25, every_s=0.3)
        site.run("near", "aio_produce", count=25, every_s=0.3)
        for role in (*readers, shop):
            site.counted(role)


@calm(
    "a producer and a group over TLS; nobody has the keys",
    options=TLS,
    prepared=lambda site: {
        "listener.name.ssl.ssl.keystore.type": "PEM",
        "listener.name.ssl.ssl.keystore.location": certificate(site.folder),
    },
    also=["encrypted"],
    witnessed=False,
)
def healthy_tls(site: Site) -> None:
    site.create(orders=1)
    with site.recording():
        settings = {"security.protocol": "SSL", "enable.ssl.certificate.verification": False}
        shop = site.start("near", "produce", count=15, every_s=0.3, settings=settings)
        site.run("near", "consume", seconds=7, settings=settings)
        site.counted(shop)


@calm("a topic that is compacted: few keys, written again and again, read from the beginning", version=OLD)
def healthy_compacted(site: Site) -> None:
    config = {"cleanup.policy": "compact", "segment.ms": "1000"}
    site.create(orders={"brokers": 3, "config": config})
    with site.recording():
        shops = [
            site.work("near", "produce", client_id="shop", x_key=f"customer {number}", x_count=12)
            for number in range(5)
        ]
        for shop in shops:
            site.counted(shop)
        site.run("near", "assign", seconds=3)


@calm("a job that runs every 3 s: connects, writes five records, goes", version=OLD)
def healthy_cron(site: Site) -> None:
    site.create(orders=1)
    with site.recording():
        for _ in range(5):
            site.run("near", "produce", client_id="cron", count=5, every_s=0.01)
            time.sleep(2.5)


@calm("a member that works 2 s on every poll, with max.poll.interval.ms=300000, and keeps up")
def healthy_slow_work(site: Site) -> None:
    site.create(orders=1)
    site.warm()
    with site.recording():
        shop = site.start("near", "produce", count=8, every_s=1.5)
        work = {"x_work_ms": 2000, "x_seconds": 12}
        site.counted(site.work("near", "consume", client_id="audit-1", group_id="audit", **work))
        site.counted(shop)
