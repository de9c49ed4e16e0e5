"""A second round with other clients: what the network, limits, followers and rights do to them."""

from __future__ import annotations

import time

from tests.broker.brokers import paused
from tests.broker.network.clocks import OLD, SASL, SLOW_QUORUM
from tests.broker.network.incidents import incident
from tests.broker.network.namespaces import Way
from tests.broker.network.others import JAVA_2, SASL_PLAIN
from tests.broker.network.site import Site
from tests.broker.security import AUTHORIZER

LOGIN = {
    "security_protocol": "SASL_PLAINTEXT",
    "sasl_mechanism": "PLAIN",
    "sasl_plain_username": "ann",
    "sasl_plain_password": "not-a-secret",
}


@incident(
    "configuration",
    "client",
    "10.88.0.11",
    "max.connections.per.ip=1 on 3.9.2; a process of 10.88.0.11 holds the one connection, a Java producer "
    "there is closed at once",
    finding="connection_limit",
    version=OLD,
    properties={
        "max.connections.per.ip": 1,
        "max.connections.per.ip.overrides": "10.88.0.1:50,10.88.0.254:50",
    },
)
def limit_java(site: Site) -> None:
    site.create(orders=1)
    with site.recording():
        holder = site.start("near", "connect", times=1, hold=1, seconds=14)
        time.sleep(2)
        settings = {"max_block_ms": 5000, "reconnect_backoff_ms": 300, "x_count": 1}
        site.counted(site.work("near", "produce", client_id="shop", **settings))
        site.counted(holder)


@incident(
    "follower",
    "topic",
    "orders",
    "request.timeout.ms=1500, acks=all, Java 2.3.1 on 3.9.2; broker 2, the follower, is stopped for 8 s",
    finding="request_timed_out",
    version=OLD,
    nodes=3,
    properties=SLOW_QUORUM,
    also=["replication_slow"],
)
def timed_out_java(site: Site) -> None:
    site.create(orders=[[1, 2]])
    with site.recording():
        settings = {"acks": "all", "request_timeout_ms": 1500, "retries": 2, "x_count": 14, "x_every_ms": 700}
        shop = site.work("near", "produce", x_version=JAVA_2, client_id="shop", **settings)
        time.sleep(8)
        with paused(site.brokers[1]):
            time.sleep(8)
        site.counted(shop)


@incident(
    "follower",
    "broker",
    "10.88.0.2:9093",
    "broker 2, a follower of orders-0 in the ISR, stands still for 1.1 of every 1.5 s (SIGSTOP), seen at the "
    "clients: aio-shop waits for all copies, till for none",
    finding="replication_slow",
    version=OLD,
    nodes=3,
    properties=SLOW_QUORUM,
    sides=("client",),
    witnessed=False,
)
def follower_slow_python(site: Site) -> None:
    site.create(orders=[[1, 2]])
    with site.recording():
        shop = site.start("near", "aio_produce", count=25, every_s=0.3, settings={"acks": "all"})
        till = site.start("near", "produce", client_id="till", count=60, every_s=0.3, settings={"acks": 1})
        end = time.monotonic() + 18
        while time.monotonic() < end:
            with paused(site.brokers[1]):
                time.sleep(1.1)
            time.sleep(0.4)
        site.counted(shop)
        site.counted(till)


@incident(
    "network",
    "client",
    "py-shop",
    "from a moment on the relay drops all packets of py-shop, kafka-python; recorded there",
    finding="path_dead",
    clients={"cut": Way(10)},
    sides=("client",),
    witnessed=False,
)
def path_dead_python(site: Site) -> None:
    site.create(orders=1)
    with site.recording():
        shop = site.start("cut", "kp_produce", count=60, every_s=0.2, settings={"request_timeout_ms": 6000})
        time.sleep(7)
        site.net.change("cut", Way(10, 1.0))
        time.sleep(9)
        shop.kill()


@incident(
    "configuration",
    "client",
    "py-billing-1",
    "user ann may read the topic and not the group, kafka-python on 3.9.2",
    finding="not_authorized",
    version=OLD,
    properties={**SASL, **AUTHORIZER},
    options=SASL_PLAIN,
)
def no_right_python(site: Site) -> None:
    site.create(orders=1)
    with site.recording():
        site.run("near", "kp_consume", seconds=4, settings=LOGIN)


@incident(
    "client",
    "client",
    "sarama-shop",
    "sarama is 700 ms away, Net.ReadTimeout=400 ms; recorded there",
    finding="timeout_too_short",
    clients={"far": Way(700)},
    sides=("client",),
    witnessed=False,
    also=["far_away"],
    anomalies=["data_after_end"],
)
def timeout_sarama(site: Site) -> None:
    site.create(orders=1)
    with site.recording():
        site.counted(site.foreign("far", "sarama", "produce", read_timeout_ms=400, count=2))
