"""Incidents whose cause is known: brokers and the network."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from typing import Any

from tests.broker.brokers import paused
from tests.broker.network.clocks import SLOW_QUORUM
from tests.broker.network.namespaces import Way
from tests.broker.network.site import PLAIN, Site, scene

Play = Callable[[Site], None]
EACH = {"linger.ms": 0}
SAFE = {"linger.ms": 0, "acks": "all"}
BROKER = "10.88.0.1:9092"
CLIENT = "10.88.0.11"


def found(name: str, blames: str, kind: str, subject: str) -> dict[str, str]:
    """What about.toml says of the finding that must be there; see DESIGN 8.2."""
    return {"finding": name, "blames": blames, "subject_kind": kind, "subject": subject}


def incident(blames: str, kind: str, subject: str, did: str, **more: Any) -> Callable[[Play], Play]:
    """Registers a play; its name is that of its finding, unless `finding` says which."""

    def register(play: Play) -> Play:
        named = more.pop("finding", play.__name__)
        more.setdefault("sides", ("broker",))
        finding = found(named, blames, kind, subject)
        return scene(play.__name__, f"An incident: {named}.", did, finding=finding, **more)(play)

    return register


@incident(
    "client",
    "client",
    "old-shop",
    "the Java client 0.10.2.2 talks to 4.3.1, which closes instead of answering",
)
def broker_hangs_up(site: Site) -> None:
    site.create(orders=1)
    with site.recording():
        arguments = ("orders", "5", "client.id=old-shop", "c.group.id=billing")
        site.java("near", "Classic", "0.10.2.2", *arguments, seconds=5)


@incident(
    "follower",
    "broker",
    "10.88.0.3:9094",
    "broker 3, a follower of orders-0 in the ISR, stands still for 0.7 of every 0.9 seconds (SIGSTOP)",
    nodes=3,
    properties=SLOW_QUORUM,
)
def replication_slow(site: Site) -> None:
    site.create(orders=[[1, 2, 3]])
    with site.recording():
        producer = site.start("near", "produce", count=30, every_s=0.25, settings=SAFE)
        end = time.monotonic() + 8
        while time.monotonic() < end:
            with paused(site.brokers[2]):
                time.sleep(0.7)
            time.sleep(0.2)
        site.counted(producer)


@incident(
    "broker",
    "partition",
    "orders-0",
    "min.insync.replicas=2, two copies; broker 3, which has the second, is killed",
    nodes=3,
    properties={
        **PLAIN,
        "broker.session.timeout.ms": 3000,
        "replica.lag.time.max.ms": 3000,
        "replica.fetch.wait.max.ms": 2000,
    },
)
def not_enough_replicas(site: Site) -> None:
    site.create(orders={"brokers": [[1, 3]], "config": {"min.insync.replicas": "2"}})
    with site.recording():
        site.run("near", "produce", count=3, every_s=0.2, settings=SAFE)
        site.brokers[2].stop(signal.SIGKILL)
        time.sleep(5)
        settings = {**SAFE, "retry.backoff.ms": 400, "message.timeout.ms": 5000}
        site.run("near", "produce", count=6, every_s=0.5, settings=settings)


@incident(
    "follower",
    "topic",
    "orders",
    "request.timeout.ms=1000, acks=all; broker 3, a follower in the ISR, is stopped for 5 s",
    nodes=3,
    properties=SLOW_QUORUM,
    also=["replication_slow", "duplicated_records"],
)
def request_timed_out(site: Site) -> None:
    site.create(orders=[[1, 2, 3]])
    with site.recording():
        settings = {**SAFE, "request.timeout.ms": 1000, "retry.backoff.ms": 300, "max.in.flight": 1}
        producer = site.start("near", "produce", count=15, every_s=0.5, settings=settings)
        time.sleep(1.5)
        with paused(site.brokers[2]):
            time.sleep(5)
        site.counted(producer)


@incident(
    "client",
    "client",
    "shop",
    "the client, Java 2.3.1, is 500 ms away; request.timeout.ms=300; the broker answers in milliseconds",
    clients={"far": Way(500)},
    sides=("client", "broker"),
    also=["far_away"],
)
def timeout_too_short(site: Site) -> None:
    site.create(orders=1)
    with site.recording():
        settings = ("client.id=shop", "request.timeout.ms=300", "p.max.block.ms=7000")
        site.java("far", "Classic", "2.3.1", "orders", "2", *settings, seconds=8)


@incident(
    "configuration",
    "client",
    "cron",
    "connections.max.idle.ms=2000; a client asks every 4 s on one connection and finds it closed",
    properties={"connections.max.idle.ms": 2000},
)
def idle_closed(site: Site) -> None:
    site.create(orders=1)
    with site.recording():
        site.run("near", "ask", client_id="cron", times=4, every_s=4)


@incident("broker", "broker", BROKER, "the broker is killed while a producer and a group are at work")
def connection_refused(site: Site) -> None:
    site.create(orders=1)
    site.warm()
    with site.recording():
        slow = {"reconnect.backoff.ms": 500, "reconnect.backoff.max.ms": 1000}
        settings = {**EACH, "message.timeout.ms": 3000, **slow}
        producer = site.start("near", "produce", count=20, every_s=0.2, settings=settings)
        reader = site.start("near", "consume", seconds=5, settings=slow)
        time.sleep(2)
        site.brokers[0].stop(signal.SIGKILL)
        site.counted(producer)
        site.counted(reader)


@incident(
    "configuration",
    "broker",
    "10.88.0.12:9092",
    "advertised.listeners names 10.88.0.12, which answers nothing; the bootstrap server is 10.88.0.1",
    clients={"near": Way(), "void": Way(0, 1.0)},
    prepared=lambda site: {
        "advertised.listeners": f"PLAINTEXT://10.88.0.12:{site.cluster.ports[0]},"
        f"INTERNAL://10.88.0.1:{site.cluster.internal_ports[0]}"
    },
)
def advertised_unreachable(site: Site) -> None:
    site.create(orders=1)
    with site.recording():
        settings = {"message.timeout.ms": 7000, "socket.connection.setup.timeout.ms": 2500}
        site.run("near", "produce", count=2, settings=settings)


@incident(
    "configuration",
    "client",
    CLIENT,
    "max.connections.per.ip=2; one process of 10.88.0.11 holds two connections, a producer there is closed "
    "at once",
    properties={
        "max.connections.per.ip": 2,
        "max.connections.per.ip.overrides": "10.88.0.1:50,10.88.0.254:50",
    },
)
def connection_limit(site: Site) -> None:
    site.create(orders=1)
    with site.recording():
        holder = site.start("near", "connect", times=2, hold=2, seconds=6)
        time.sleep(1.5)
        settings = {"message.timeout.ms": 4000, "reconnect.backoff.ms": 300}
        site.run("near", "produce", count=2, settings=settings)
        site.counted(holder)


@incident(
    "network",
    "connection",
    CLIENT,
    "from a moment on the relay drops all packets of 10.88.0.11; another client goes on",
    clients={"cut": Way(20), "near": Way()},
    sides=("client", "broker"),
)
def path_dead(site: Site) -> None:
    site.create(orders=1)
    with site.recording():
        other = site.start("near", "produce", client_id="till", count=20, every_s=0.5, settings=EACH)
        settings = {**EACH, "socket.timeout.ms": 8000, "message.timeout.ms": 9000}
        producer = site.start("cut", "produce", count=30, every_s=0.2, settings=settings)
        time.sleep(2.5)
        site.net.change("cut", Way(20, 1.0))
        site.counted(producer)
        site.counted(other)


@incident(
    "client",
    "client",
    "billing-1",
    "the consumer's process is stopped (SIGSTOP) for 5 s while a fetch is answered; its receive buffer is "
    "small",
    sides=("client",),
    also=["client_silent"],
)
def receiver_full(site: Site) -> None:
    site.create(orders=1)
    site.warm()
    with site.recording():
        settings = {"socket.receive.buffer.bytes": 4096, "fetch.wait.max.ms": 3000, "fetch.min.bytes": 30_000}
        reader = site.start("near", "consume", seconds=14, settings=settings)
        time.sleep(4)
        with reader.asleep():
            site.run("near", "produce", client_id="shop", count=4, every_s=0.05, size=9000, settings=EACH)
            time.sleep(5)
        site.counted(reader)


@incident(
    "broker",
    "broker",
    BROKER,
    "the only broker is stopped (SIGSTOP) for 3 s; the client is 60 ms away",
    clients={"far": Way(60)},
    sides=("client", "broker"),
)
def broker_stalled(site: Site) -> None:
    site.create(orders=1)
    site.warm()
    with site.recording():
        producer = site.start("far", "produce", count=30, every_s=0.25, settings=EACH)
        reader = site.start("far", "consume", seconds=9)
        time.sleep(3)
        with paused(site.brokers[0]):
            time.sleep(3)
        site.counted(producer)
        site.counted(reader)
