"""Traffic of several shapes in which nobody is harmed: no finding may be a problem or a warning here."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from tests.broker.network.incidents import EACH, SAFE, Play
from tests.broker.network.namespaces import Way
from tests.broker.network.site import PLAIN, Site, scene

NOBODY = {"finding": "", "blames": "", "subject_kind": "", "subject": ""}


def calm(did: str, **more: Any) -> Callable[[Play], Play]:
    """Registers a play in which nothing is wrong."""

    def register(play: Play) -> Play:
        more.setdefault("sides", ("broker",))
        return scene(play.__name__, "Nothing is wrong.", did, finding=NOBODY, **more)(play)

    return register


@calm(
    "a producer and a group 80 ms away",
    clients={"far": Way(80)},
    sides=("client", "broker"),
    also=["far_away"],
)
def healthy_far(site: Site) -> None:
    site.create(orders=2)
    site.warm()
    with site.recording():
        producer = site.start("far", "produce", count=25, every_s=0.25, settings=SAFE)
        site.run("far", "consume", seconds=8)
        site.counted(producer)


@calm("bursts of 200 records every 2 s, a group that keeps up")
def healthy_bursts(site: Site) -> None:
    site.create(orders=2)
    site.warm()
    with site.recording():
        reader = site.start("near", "consume", seconds=10)
        for _ in range(3):
            site.run("near", "produce", count=100, every_s=0, size=40, settings={"linger.ms": 20})
            time.sleep(1)
        site.counted(reader)


@calm("a consumer that fetches only when 5 kB or 4 s are there: long polls, batches")
def healthy_batch_consumer(site: Site) -> None:
    site.create(orders=1)
    site.warm()
    with site.recording():
        settings = {"fetch.min.bytes": 5000, "fetch.wait.max.ms": 4000}
        reader = site.start("near", "consume", seconds=11, settings=settings)
        site.run("near", "produce", count=30, every_s=0.3, size=200, settings=EACH)
        site.counted(reader)


@calm(
    "three brokers of 3.9.2 with three copies, acks=all, a group of two",
    version="3.9.2",
    nodes=3,
    properties=PLAIN,
)
def healthy_three_brokers(site: Site) -> None:
    site.create(orders=[[1, 2, 3], [2, 3, 1]])
    site.warm()
    with site.recording():
        members = [
            site.start("near", "consume", client_id=f"billing-{number}", seconds=6) for number in (1, 2)
        ]
        site.run("near", "produce", count=10, every_s=0.4, partitions=2, settings=SAFE)
        for member in members:
            site.counted(member)


@calm("a group on a topic to which nobody writes: long polls and heartbeats only")
def healthy_idle(site: Site) -> None:
    site.create(orders=1)
    site.warm()
    with site.recording():
        site.run("near", "consume", seconds=10, settings={"fetch.wait.max.ms": 1000})


@calm("members of a group are replaced one by one, as in a rolling deployment")
def healthy_rolling(site: Site) -> None:
    site.create(orders=2)
    site.warm()
    settings = {"heartbeat.interval.ms": 500, "fetch.wait.max.ms": 2000}
    with site.recording():
        old = [
            site.start("near", "consume", client_id=f"billing-{number}", seconds=40, settings=settings)
            for number in (1, 2)
        ]
        producer = site.start("near", "produce", count=40, every_s=0.5)
        time.sleep(6)
        new = []
        for number, role in enumerate(old, 1):
            site.counted(role, stop=True)
            more = {"client_id": f"billing-{number}", "seconds": 13 - 6 * (number - 1), "settings": settings}
            new.append(site.start("near", "consume", **more))
            time.sleep(6)
        for role in (*new, producer):
            site.counted(role)
