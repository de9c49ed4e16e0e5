"""More traffic in which nothing is wrong: growing groups, readers of transactions, brokers that restart."""

from __future__ import annotations

import time
from collections.abc import Callable

from tests.broker.network.calm import calm
from tests.broker.network.clocks import OLD
from tests.broker.network.incidents import SAFE
from tests.broker.network.site import Role, Site

STICKY = "org.apache.kafka.clients.consumer.CooperativeStickyAssignor"


def _grow(
    site: Site, start: Callable[[int, float], Role], *, members: int, every_s: float, seconds: float
) -> None:
    """One member after the other; all leave at about the same time."""
    with site.recording():
        shop = site.start("near", "produce", count=int(seconds / 0.8), every_s=0.8, partitions=4)
        roles = []
        for number in range(members):
            roles.append(start(number, seconds - every_s * number))
            time.sleep(every_s)
        for role in (*roles, shop):
            site.counted(role)


@calm("a cooperative group of Java 4.3.1 grows from one to four members, one each 3 s")
def healthy_growing(site: Site) -> None:
    site.create(orders=4)
    site.warm()
    common = {"group_id": "work", "partition_assignment_strategy": STICKY, "fetch_max_wait_ms": 2000}

    def member(number: int, seconds: float) -> Role:
        return site.work("near", "consume", client_id=f"worker-{number}", x_seconds=int(seconds), **common)

    _grow(site, member, members=4, every_s=3, seconds=16)


@calm("a group of KIP-848 grows from one to four members, one each 2 s")
def healthy_growing_848(site: Site) -> None:
    site.create(orders=4)
    site.warm()
    common = {"group_id": "work", "group_protocol": "consumer", "fetch_max_wait_ms": 2000}

    def member(number: int, seconds: float) -> Role:
        return site.work("near", "consume", client_id=f"worker-{number}", x_seconds=int(seconds), **common)

    _grow(site, member, members=4, every_s=2, seconds=20)


@calm("a share group grows to three members, on one partition")
def healthy_growing_share(site: Site) -> None:
    site.create(orders=4)
    site.office("share-from-start", "packers")

    def member(number: int, seconds: float) -> Role:
        return site.start("near", "share", client_id=f"packer-{number}", seconds=seconds)

    _grow(site, member, members=3, every_s=3, seconds=18)


@calm("two Java producers commit transactions of 300 ms to one partition; Java and librdkafka read committed")
def healthy_committed_reads(site: Site) -> None:
    site.create(orders=1)
    site.counted(site.work("near", "transact", transactional_id="early", client_id="early", x_count=1))
    site.warm()
    with site.recording():
        readers = [
            site.work(
                "near",
                "consume",
                client_id="audit-1",
                group_id="audit",
                isolation_level="read_committed",
                x_seconds=10,
            ),
            site.start("near", "assign", seconds=10),
        ]
        tills = [
            site.work(
                "near",
                "transact",
                client_id=f"till-{name}",
                transactional_id=f"till-{name}",
                x_count=16,
                x_work_ms=300,
            )
            for name in "ab"
        ]
        for role in (*tills, *readers):
            site.counted(role)


@calm(
    "a transaction of 3 s each, KafkaJS on 3.9.2, and readers with read_committed: franz-go, kafka-python",
    version=OLD,
)
def healthy_long_transactions(site: Site) -> None:
    site.create(orders=1)
    site.counted(site.work("near", "transact", transactional_id="early", client_id="early", x_count=1))
    site.warm()
    with site.recording():
        readers = [
            site.foreign("near", "franz", "consume", isolation="committed", seconds=15, max_wait_ms=4000),
            site.start("near", "kp_consume", seconds=15, settings={"isolation_level": "read_committed"}),
        ]
        site.counted(site.foreign("near", "kafkajs", "transact", count=4, work_ms=3000))
        for role in readers:
            site.counted(role)


@calm("applications create their topics where they are missing, with five clients; most of them are there")
def healthy_create_if_missing(site: Site) -> None:
    site.create(orders=1, parcels=1)
    with site.recording():
        for _ in range(2):
            roles = [
                site.start("near", "ensure", topics="orders,parcels,receipts"),
                site.work("near", "ensure", client_id="java-deploy", x_topic="orders,parcels"),
                site.start("near", "kp_ensure", topics="orders,parcels"),
                site.foreign("near", "sarama", "ensure", client_id="go-deploy", topic="orders,parcels"),
                site.foreign("near", "kafkajs", "ensure", client_id="js-deploy", topic="orders,parcels"),
            ]
            for role in roles:
                site.counted(role)


def _restart(site: Site, roles: list[Role]) -> None:
    """Each broker stops in good order and comes back before the next one stops."""
    time.sleep(4)
    for broker in site.brokers:
        broker.stop()
        time.sleep(1)
        broker.log.write_bytes(b"")
        broker.start()
        broker.wait()
        time.sleep(4)
    for role in roles:
        site.counted(role)


SOON = {"controller.quorum.election.timeout.ms": 1000}
ALL = [[1, 2, 3], [2, 3, 1], [3, 1, 2]]


@calm(
    "three brokers restart one after the other; librdkafka writes with acks=all, a group reads",
    nodes=3,
    properties=SOON,
    witnessed=False,
)
def healthy_restart(site: Site) -> None:
    site.create(orders=ALL)
    site.warm()
    with site.recording():
        roles = [
            site.start("near", "produce", count=70, every_s=0.6, partitions=3, settings=SAFE),
            site.start("near", "consume", seconds=44, settings={"fetch.wait.max.ms": 2000}),
        ]
        _restart(site, roles)


@calm(
    "three brokers of 3.9.2 restart one after the other; Java writes with acks=all, sarama reads",
    nodes=3,
    properties=SOON,
    witnessed=False,
    version=OLD,
)
def healthy_restart_java(site: Site) -> None:
    site.create(orders=ALL)
    site.warm()
    with site.recording():
        roles = [
            site.work("near", "produce", client_id="shop", acks="all", x_count=60, x_every_ms=600),
            site.foreign("near", "sarama", "consume", seconds=45, max_wait_ms=2000),
        ]
        _restart(site, roles)
