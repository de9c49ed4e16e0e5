"""Connections that do not come about, or late; responses that a client does not want."""

from __future__ import annotations

import time

from tests.broker.brokers import paused
from tests.broker.network.between import QUICK
from tests.broker.network.calm import calm
from tests.broker.network.clocks import OLD
from tests.broker.network.incidents import BROKER, EACH, incident
from tests.broker.network.machines import command, filtered, open_ports
from tests.broker.network.namespaces import Way
from tests.broker.network.others import JAVA_2
from tests.broker.network.site import Site


@incident(
    "network",
    "broker",
    BROKER,
    "a firewall drops the SYNs of kafka-python and a Java client 2.3.1; nothing else is recorded",
    finding="unreachable",
    version=OLD,
    sides=("client",),
    witnessed=False,
)
def unreachable(site: Site) -> None:
    with filtered(site, f"tcp dport {site.cluster.ports[0]} drop"), site.recording():
        python = site.start("near", "kp_produce", client_id="py-shop", count=1)
        java = site.work("near", "produce", x_version=JAVA_2, client_id="shop", x_count=1)
        time.sleep(9)
        python.kill()
        java.kill()


@incident(
    "configuration",
    "broker",
    BROKER,
    "a firewall refuses go-shop (franz-go) with ICMP, administratively prohibited; a Java client is served",
    finding="unreachable",
    clients={"refused": Way(), "near": Way()},
    sides=("broker",),
    icmp=True,
    witnessed=False,
)
def unreachable_prohibited(site: Site) -> None:
    site.create(orders=1)
    ends = f"ip saddr {site.net.address('refused')} tcp dport {site.cluster.ports[0]}"
    rule = f"{ends} reject with icmp type admin-prohibited"
    with filtered(site, rule), site.recording():
        java = site.work("near", "produce", client_id="shop", x_count=8, x_every_ms=300)
        go = site.foreign("refused", "franz", "produce", client_id="go-shop", count=1)
        site.counted(java)
        go.kill()


@incident(
    "configuration",
    "broker",
    BROKER,
    "a firewall refuses librdkafka with ICMP, port unreachable, as iptables' REJECT does",
    finding="unreachable",
    version=OLD,
    sides=("client",),
    icmp=True,
    witnessed=False,
)
def unreachable_port(site: Site) -> None:
    with filtered(site, f"tcp dport {site.cluster.ports[0]} reject"), site.recording():
        shop = site.start("near", "produce", client_id="shop", count=1, settings=QUICK)
        time.sleep(4)
        shop.kill()


@incident(
    "network",
    "broker",
    BROKER,
    "the broker's answers leave with another source address, and sarama's machine resets them",
    finding="unreachable",
    sides=("client",),
    witnessed=False,
)
def unreachable_elsewhere(site: Site) -> None:
    rule = f"ip saddr 10.88.0.1 tcp sport {site.cluster.ports[0]} ip saddr set 10.88.0.77"
    with filtered(site, rule, hook="output"), site.recording():
        go = site.foreign("near", "sarama", "produce", client_id="sarama-shop", count=1)
        time.sleep(5)
        go.kill()


@incident(
    "network",
    "broker",
    "10.88.0.12:9092",
    "bootstrap.servers names a machine that is gone, and one that is there; two clients with KafkaJS begin "
    "with either; till, on the same machine, knows only the other",
    finding="unreachable",
    clients={"near": Way(), "void": Way(0, 1.0)},
    sides=("client",),
    witnessed=False,
)
def dead_bootstrap(site: Site) -> None:
    site.create(orders=1)
    with site.recording():
        other = site.start("near", "produce", client_id="till", count=12, every_s=0.5, settings=EACH)
        alive, gone = site.cluster.bootstrap, f"10.88.0.12:{site.cluster.ports[0]}"
        for begin in (f"{gone},{alive}", f"{alive},{gone}"):
            site.door = begin
            site.counted(site.foreign("near", "kafkajs", "produce", client_id="js-shop", count=5))
        site.counted(other)


@incident(
    "network",
    "broker",
    BROKER,
    "a firewall drops 45 % of the SYNs; KafkaJS makes a producer for each record",
    finding="connect_slow",
    clients={"far": Way(8), "near": Way()},
    sides=("client",),
    also=["connection_churn"],
    witnessed=False,
)
def connect_slow(site: Site) -> None:
    site.create(orders=1)
    ends = f"ip saddr {site.net.address('far')} tcp dport {site.cluster.ports[0]}"
    rule = f"{ends} tcp flags syn numgen random mod 100 < 45 drop"
    with filtered(site, rule), site.recording():
        site.counted(site.foreign("far", "kafkajs", "churn", client_id="lambda", count=14, every_ms=300))


def _short_queue(site: Site) -> dict[str, object]:
    command(site.net.broker(1), "sysctl", "-qw", "net.core.somaxconn=1")
    return {}


@incident(
    "broker",
    "broker",
    BROKER,
    "net.core.somaxconn=1 beside the broker, which is stopped (SIGSTOP) for half a second: of 12 producers "
    "(sarama) that begin then, most wait until their first request is sent again",
    finding="connect_slow",
    version=OLD,
    prepared=_short_queue,
    sides=("broker",),
    witnessed=False,
)
def accept_queue(site: Site) -> None:
    site.create(orders=1)
    with site.recording():
        with paused(site.brokers[0]):
            storm = {"client_id": "storm", "workers": 12, "count": 1, "acks": 1}
            go = site.foreign("near", "sarama", "storm", **storm)
            open_ports(site, "near", set())
            time.sleep(0.4)
        site.counted(go)


@incident(
    "client",
    "client",
    "smallreader",
    "receive.message.max.bytes=1600 (librdkafka) and records of 3 kB, on 3.9.2",
    finding="response_refused",
    version=OLD,
    sides=("client",),
)
def response_refused(site: Site) -> None:
    site.create(orders=1)
    site.run("near", "produce", client_id="shop", count=4, every_s=0.1, size=3000, settings=EACH)
    with site.recording():
        other = site.start("near", "kp_produce", client_id="till", count=10, every_s=0.4)
        settings = dict.fromkeys(("fetch.max.bytes", "message.max.bytes"), 1000)
        settings["receive.message.max.bytes"] = 1600
        reader = site.start("near", "assign", client_id="smallreader", seconds=5, settings=settings)
        site.counted(reader)
        site.counted(other)


@incident(
    "client",
    "client",
    "go-billing",
    "BrokerMaxReadBytes of 5 kB (franz-go) and a record of 15 kB",
    finding="response_refused",
    sides=("broker",),
    also=["metadata_storm"],
)
def response_refused_franz(site: Site) -> None:
    site.create(orders=1)
    with site.recording():
        site.run("near", "produce", client_id="shop", count=1, size=15_000, settings=EACH)
        go = site.foreign(
            "near", "franz", "consume", client_id="go-billing", seconds=1, max_read=5_000, offset=0
        )
        site.counted(go)


@calm(
    "a Java consumer with fetch.max.bytes=1000 reads records of 5 kB: a larger batch comes all the same",
    version=OLD,
    sides=("client",),
)
def healthy_small_fetch(site: Site) -> None:
    site.create(orders=1)
    site.warm()
    with site.recording():
        writer = site.start("near", "kp_produce", client_id="till", count=8, every_s=0.3, size=5000)
        settings = {"fetch_max_bytes": 1000, "max_partition_fetch_bytes": 1000, "x_offset": 0, "x_seconds": 4}
        site.counted(site.work("near", "consume", client_id="reader", **settings))
        site.counted(writer)


@incident(
    "configuration",
    "broker",
    "10.88.0.1:9092",
    "max.connection.creation.rate=1 of 3.9.2: it takes up the connections of a job late, which opens new "
    "ones for each record (Java 4.3.1)",
    finding="broker_slow",
    version=OLD,
    properties={"max.connection.creation.rate": 1},
    also=["connection_churn"],
)
def creation_rate(site: Site) -> None:
    site.create(orders=1)
    with site.recording():
        site.counted(site.work("near", "churn", client_id="job", x_count=16, x_every_ms=50))
