"""Brokers that clients cannot reach at the addresses they are told; readers that stop; short pauses."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from tests.broker.brokers import paused
from tests.broker.network.calm import calm
from tests.broker.network.incidents import EACH, incident
from tests.broker.network.site import Site


def _named(host: str, number: int) -> Callable[[Site], Mapping[str, object]]:
    """A broker tells clients this host, and its port."""

    def prepared(site: Site) -> Mapping[str, object]:
        port, inside = site.cluster.ports[number - 1], site.cluster.internal_ports[number - 1]
        listeners = f"PLAINTEXT://{host}:{port},INTERNAL://{site.net.host(number)}:{inside}"
        site.cluster.per_node = {number: {"advertised.listeners": listeners}}
        return {}

    return prepared


def _first(site: Site) -> str:
    return f"{site.net.host(1)}:{site.cluster.ports[0]}"


@incident(
    "configuration",
    "broker",
    "localhost:9092",
    "advertised.listeners names localhost; librdkafka on another host gets no further than Metadata",
    finding="advertised_unreachable",
    prepared=_named("localhost", 1),
    witnessed=False,
)
def advertised_loopback(site: Site) -> None:
    site.create(orders=1)
    with site.recording():
        site.run("near", "produce", count=3, every_s=1, settings={"message.timeout.ms": 8000})


@incident(
    "configuration",
    "broker",
    "kafka-2.internal:9093",
    "the second broker's advertised name is not in the DNS of a kafka-python producer",
    finding="advertised_unreachable",
    nodes=2,
    prepared=_named("kafka-2.internal", 2),
    witnessed=False,
)
def advertised_unresolved(site: Site) -> None:
    site.create(orders=[[1], [2]])
    site.warm()
    with site.recording():
        settings = {"request_timeout_ms": 2000, "delivery_timeout_ms": 3000}
        what = {"count": 10, "every_s": 0.4, "partitions": 2, "settings": settings}
        site.run("near", "kp_produce", bootstrap=_first(site), **what)


@calm(
    "a monitor asks for the Metadata of orders every second and never visits the second broker; a producer "
    "writes to the first one only",
    nodes=2,
    witnessed=False,
)
def healthy_monitor(site: Site) -> None:
    site.create(orders=[[1], [2]])
    site.warm()
    with site.recording():
        settings = {**EACH, "topic.metadata.refresh.interval.ms": 900}
        shop = site.start("near", "produce", count=30, every_s=0.3, partitions=1, bootstrap=_first(site))
        idle = {"client_id": "monitor", "topic": "orders", "count": 1, "every_s": 10, "partitions": 1}
        site.run("near", "produce", bootstrap=_first(site), settings=settings, **idle)
        site.counted(shop)


@incident(
    "client",
    "client",
    "billing-1",
    "request.timeout.ms=3000 of a Java group is less than its fetch.max.wait.ms=8000; few records come",
    finding="timeout_too_short",
    witnessed=False,
)
def fetch_wait_java(site: Site) -> None:
    site.create(orders=1)
    site.warm()
    with site.recording():
        times = {"request_timeout_ms": 3000, "default_api_timeout_ms": 3500, "fetch_max_wait_ms": 8000}
        reader = site.work(
            "near",
            "consume",
            client_id="billing-1",
            group_id="billing",
            x_seconds=15,
            fetch_min_bytes=5000,
            **times,
        )
        shop = site.start("near", "kp_produce", count=6, every_s=2)
        site.counted(reader)
        site.counted(shop)


@incident(
    "broker",
    "broker",
    "10.88.0.1:9092",
    "the broker stands still for 0.9 of each 1.5 s (SIGSTOP), six times; aiokafka writes",
    finding="broker_slow",
    witnessed=False,
)
def pauses_aiokafka(site: Site) -> None:
    site.create(orders=1)
    site.warm()
    with site.recording():
        shop = site.start("near", "aio_produce", count=40, every_s=0.12)
        time.sleep(3)
        for _ in range(6):
            with paused(site.brokers[0]):
                time.sleep(0.9)
            time.sleep(0.6)
        site.counted(shop)


@incident(
    "client",
    "partition",
    "orders-1",
    "one of two Java members of a group does not return from its first record; its heartbeats go on",
    finding="consumer_stuck",
    witnessed=False,
)
def member_stuck_java(site: Site) -> None:
    site.create(orders=2)
    site.warm()
    with site.recording():
        first = site.work("near", "consume", client_id="billing-1", group_id="billing", x_seconds=22)
        settings = {"x_work_ms": 60_000, "x_times": 1, "max_poll_records": 1}
        second = site.work(
            "near", "consume", client_id="billing-2", group_id="billing", x_seconds=60, **settings
        )
        time.sleep(4)
        shop = site.start("near", "produce", count=44, every_s=0.4, partitions=2, settings=EACH)
        site.counted(shop)
    second.kill()
    site.counted(first)
