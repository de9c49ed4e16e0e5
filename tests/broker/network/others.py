"""The same causes with other clients, other releases and other numbers: brokers, network, wrong listeners."""

from __future__ import annotations

import time

from tests.broker.brokers import paused
from tests.broker.network.clocks import OLD, SASL, SLOW_QUORUM
from tests.broker.network.incidents import incident
from tests.broker.network.namespaces import Way
from tests.broker.network.site import Site
from tests.broker.security import certificate

JAVA_2 = "2.3.1"
SASL_PLAIN = {"protocol": "SASL_PLAINTEXT"}
TLS = {"protocol": "SSL"}


def _stop_and_go(site: Site, number: int, asleep_s: float, awake_s: float, seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with paused(site.brokers[number]):
            time.sleep(asleep_s)
        time.sleep(awake_s)


@incident(
    "broker",
    "broker",
    "10.88.0.1:9092",
    "the only broker, 3.9.2, gets the processor for 60 of every 240 ms (SIGSTOP); two producers and a reader",
    finding="broker_slow",
    version=OLD,
)
def slow_broker_java(site: Site) -> None:
    site.create(orders=1)
    with site.recording():
        java = site.work("near", "produce", x_version=JAVA_2, client_id="shop", x_count=60, x_every_ms=40)
        other = site.start("near", "aio_produce", count=60, every_s=0.06)
        time.sleep(4)
        _stop_and_go(site, 0, 0.18, 0.06, 5)
        site.counted(java)
        site.counted(other)


@incident(
    "broker",
    "broker",
    "10.88.0.2:9093",
    "broker 2 of three (3.9.2), the leader of parcels, is stopped (SIGSTOP) for 2.2 s",
    finding="broker_stalled",
    version=OLD,
    nodes=3,
    properties=SLOW_QUORUM,
)
def one_of_three_stalled(site: Site) -> None:
    site.create(orders=[[1]], parcels=[[2]])
    site.warm()
    with site.recording():
        roles = [
            site.start("near", "kp_produce", client_id="py-parcels", topic="parcels", count=40, every_s=0.3),
            site.work("near", "produce", client_id="till", acks=1, x_topic="parcels", x_count=40),
            site.start("near", "kp_consume", topics="orders,parcels", seconds=12),
        ]
        time.sleep(8)
        with paused(site.brokers[1]):
            time.sleep(2.2)
        for role in roles:
            site.counted(role)


@incident(
    "follower",
    "topic",
    "orders",
    "min.insync.replicas=2, two copies; broker 2, the follower, is stopped (SIGSTOP) for 14 s and falls out "
    "of the ISR; it stays a member of the cluster",
    finding="not_enough_replicas",
    version=OLD,
    nodes=3,
    properties={**SLOW_QUORUM, "replica.lag.time.max.ms": 2000},
    also=["replication_slow"],
)
def follower_falls_out(site: Site) -> None:
    site.create(orders={"brokers": [[1, 2]], "config": {"min.insync.replicas": "2"}})
    with site.recording():
        settings = {
            "acks": "all",
            "retry_backoff_ms": 300,
            "delivery_timeout_ms": 6000,
            "request_timeout_ms": 5000,
        }
        shop = site.work("near", "produce", client_id="shop", x_count=30, x_every_ms=500, **settings)
        time.sleep(7)
        with paused(site.brokers[1]):
            time.sleep(14)
        site.counted(shop)


@incident(
    "network",
    "client",
    "aio-shop",
    "the relay drops 5 % of the packets of aio-shop, 30 ms away; py-shop is near and loses none",
    finding="loss_slows_calls",
    clients={"lossy": Way(30, 0.05), "near": Way()},
    sides=("client",),
    witnessed=False,
)
def loss_5(site: Site) -> None:
    site.create(orders=1, parcels=1)
    with site.recording():
        near = site.start("near", "kp_produce", topic="parcels", count=30, every_s=0.1)
        site.run("lossy", "aio_produce", count=80, every_s=0.05, size=200)
        site.counted(near)


@incident(
    "client",
    "client",
    "10.88.0.11",
    "a Java client 4.3.1 speaks TLS to a plaintext listener of 3.9.2",
    finding="tls_on_plaintext",
    version=OLD,
)
def tls_to_plain_java(site: Site) -> None:
    site.create(orders=1)
    with site.recording():
        settings = {"security_protocol": "SSL", "max_block_ms": 5000, "x_count": 1}
        site.counted(site.work("near", "produce", client_id="shop", **settings))


@incident(
    "client",
    "client",
    "py-shop",
    "kafka-python in plain text on a TLS listener",
    finding="plaintext_on_tls",
    options=TLS,
    prepared=lambda site: {
        "listener.name.ssl.ssl.keystore.type": "PEM",
        "listener.name.ssl.ssl.keystore.location": certificate(site.folder),
    },
)
def plain_to_tls_python(site: Site) -> None:
    site.create(orders=1)
    with site.recording():
        site.run("near", "kp_produce", count=1, settings={"request_timeout_ms": 4000, "max_block_ms": 5000})


@incident(
    "client",
    "client",
    "shop",
    "a Java client 2.3.1 without SASL on a SASL listener; another logs in",
    finding="sasl_expected",
    version=OLD,
    properties=SASL,
    options=SASL_PLAIN,
)
def no_sasl_java(site: Site) -> None:
    site.create(orders=1)
    with site.recording():
        right = {
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": "PLAIN",
            "sasl_plain_username": "ann",
            "sasl_plain_password": "not-a-secret",
        }
        other = site.start("near", "kp_produce", count=20, every_s=0.2, settings=right)
        settings = {"max_block_ms": 5000, "reconnect_backoff_ms": 300, "x_count": 1}
        site.counted(site.work("near", "produce", x_version=JAVA_2, client_id="shop", **settings))
        site.counted(other)


@incident(
    "client",
    "client",
    "py-shop",
    "kafka-python without SASL on a SASL listener, and nobody else",
    finding="sasl_expected",
    properties=SASL,
    options=SASL_PLAIN,
)
def no_sasl_python(site: Site) -> None:
    site.create(orders=1)
    with site.recording():
        site.run("near", "kp_produce", count=1, settings={"request_timeout_ms": 4000, "max_block_ms": 5000})


@incident(
    "client",
    "client",
    "py-shop",
    "kafka-python, SASL PLAIN with a wrong password on 3.9.2",
    finding="authentication_failed",
    version=OLD,
    properties=SASL,
    options=SASL_PLAIN,
)
def wrong_password_python(site: Site) -> None:
    site.create(orders=1)
    with site.recording():
        settings = {
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": "PLAIN",
            "sasl_plain_username": "bob",
            "sasl_plain_password": "guess",
            "request_timeout_ms": 3000,
            "max_block_ms": 3000,
        }
        site.run("near", "kp_produce", count=1, settings=settings)


@incident(
    "configuration",
    "client",
    "aio-shop",
    "aiokafka wants SCRAM-SHA-512, 3.9.2 offers PLAIN",
    finding="sasl_mechanism_refused",
    version=OLD,
    properties=SASL,
    options=SASL_PLAIN,
)
def mechanism_aiokafka(site: Site) -> None:
    site.create(orders=1)
    with site.recording():
        settings = {
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": "SCRAM-SHA-512",
            "sasl_plain_username": "ann",
            "sasl_plain_password": "not-a-secret",
        }
        site.run("near", "aio_produce", count=1, settings=settings)


@incident(
    "configuration",
    "client",
    "py-cron",
    "connections.max.idle.ms=1500; kafka-python produces every 5 s",
    finding="idle_closed",
    version=OLD,
    properties={"connections.max.idle.ms": 1500},
    also=["connection_churn"],
)
def idle_python(site: Site) -> None:
    site.create(orders=1)
    with site.recording():
        site.run("near", "kp_produce", client_id="py-cron", count=4, every_s=5)


@incident(
    "configuration",
    "client",
    "shop",
    "a Java producer 4.3.1 with a quota of 20 kB/s sends 80 kB/s with acks=1 to 3.9.2; till has none",
    finding="throttled",
    version=OLD,
    properties={"quota.window.num": 3},
)
def quota_java(site: Site) -> None:
    site.create(orders=1)
    site.office("quota", "shop", "producer_byte_rate", "20000")
    time.sleep(1)
    with site.recording():
        other = site.work("near", "produce", client_id="till", x_count=25)
        settings = {"acks": 1, "x_count": 12, "x_size": 4000, "x_every_ms": 50}
        site.counted(site.work("near", "produce", client_id="shop", **settings))
        site.counted(other)


@incident(
    "configuration",
    "client",
    "py-billing-1",
    "kafka-python with a quota of 3 kB/s reads 40 kB of 3.9.2",
    finding="throttled",
    version=OLD,
    properties={"quota.window.num": 3},
)
def quota_fetch_python(site: Site) -> None:
    site.create(orders=1)
    site.office("quota", "py-billing-1", "consumer_byte_rate", "3000")
    site.warm()
    with site.recording():
        site.run("near", "kp_produce", count=10, every_s=0.02, size=4000)
        settings = {"max_partition_fetch_bytes": 8000}
        site.run("near", "kp_consume", seconds=9, settings=settings)


@incident(
    "configuration",
    "broker",
    "10.88.0.1:9999",
    "advertised.listeners names port 9999, where nobody listens; the listener is at the usual one",
    finding="advertised_unreachable",
    version=OLD,
    prepared=lambda site: {
        "advertised.listeners": f"PLAINTEXT://10.88.0.1:9999,"
        f"INTERNAL://10.88.0.1:{site.cluster.internal_ports[0]}"
    },
    more_ports=[9999],
    also=["connection_refused"],
)
def advertised_port_wrong(site: Site) -> None:
    site.create(orders=1)
    with site.recording():
        site.run("near", "kp_produce", count=1, settings={"request_timeout_ms": 4000, "max_block_ms": 5000})
