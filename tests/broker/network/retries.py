"""Producers that write again what was not acknowledged, and leaders lost with what they acknowledged."""

from __future__ import annotations

import signal
import time

from tests.broker.brokers import paused
from tests.broker.network.calm import calm
from tests.broker.network.clocks import OLD
from tests.broker.network.growth import SOON
from tests.broker.network.incidents import SAFE, incident
from tests.broker.network.namespaces import Way
from tests.broker.network.site import Role, Site

QUICK = {**SOON, "broker.session.timeout.ms": 3000}
DEAF = Way(4, largest_down=60)
"""A SYN-ACK of 60 bytes and acknowledgements reach the client; what has 9 bytes of Kafka or more does not."""
TORN = ["framing_lost", "framing_resumed", "frame_torn", "segment_lost", "data_after_end"]
PATIENT = {"request_timeout_ms": 2000, "delivery_timeout_ms": 20_000, "retry_backoff_ms": 200}


def _deafen(site: Site, shop: Role, *, before_s: float = 4, seconds: float = 2.3) -> None:
    """The client gets no response for a while; a reader counts afterwards."""
    time.sleep(before_s)
    site.net.change("near", DEAF)
    time.sleep(seconds)
    site.net.change("near", Way(4))
    site.counted(shop)
    site.run("near", "assign", client_id="audit", seconds=4)


def _write_to(site: Site, **settings: object) -> Role:
    return site.work("near", "produce", client_id="shop", linger_ms=0, x_every_ms=200, x_count=40, **settings)


@incident(
    "configuration",
    "topic",
    "orders",
    "Java with enable.idempotence=false, acks=1, request.timeout.ms=2000; for 2.3 s the relay drops what "
    "the broker answers; the producer writes again, and a reader counts",
    clients={"near": Way(4)},
    sides=("client", "broker"),
    anomalies=TORN,
    also=["path_dead"],
)
def duplicated_records(site: Site) -> None:
    site.create(orders=1)
    site.warm()
    with site.recording():
        _deafen(site, _write_to(site, acks=1, enable_idempotence="false", **PATIENT))


@calm(
    "a producer with enable.idempotence=true sends again what had no response, since the relay drops "
    "responses for 2.3 s; the broker answers with the first offset",
    clients={"near": Way(4)},
    anomalies=TORN,
)
def healthy_idempotent(site: Site) -> None:
    site.create(orders=1)
    site.warm()
    with site.recording():
        _deafen(site, _write_to(site, acks="all", enable_idempotence="true", **PATIENT))


def _kill_alone(site: Site, **settings: object) -> None:
    """The follower stands still while the leader writes and is killed."""
    site.create(orders=[[1, 2]])
    site.warm()
    with site.recording():
        own = {**SAFE, "retry.backoff.ms": 300, **settings}
        shop = site.start("near", "produce", count=80, every_s=0.15, settings=own)
        time.sleep(3)
        with paused(site.brokers[1]):
            time.sleep(1.2)
            site.brokers[0].stop(signal.SIGKILL)
        site.counted(shop)
        bootstrap = f"10.88.0.2:{site.cluster.ports[1]}"
        site.run("near", "assign", client_id="audit", seconds=4, bootstrap=bootstrap)


@incident(
    "configuration",
    "partition",
    "orders-0",
    "acks=1; broker 2, the follower of orders-0, stands still for 1.2 s, then the leader is killed, and "
    "broker 2 is elected; a reader counts",
    nodes=3,
    properties=QUICK,
    also=["connection_refused"],
)
def lost_records(site: Site) -> None:
    _kill_alone(site, acks=1)


@incident(
    "broker",
    "broker",
    "10.88.0.1:9092",
    "the same with acks=all and enable.idempotence=true: nothing is lost or stored twice",
    finding="connection_refused",
    nodes=3,
    properties=QUICK,
)
def leader_killed_in_sync(site: Site) -> None:
    _kill_alone(site, **{"enable.idempotence": True})


@incident(
    "configuration",
    "partition",
    "orders-0",
    "unclean.leader.election.enable=true on 3.9.2: broker 2 is out of the ISR when broker 1, which "
    "acknowledged alone, is killed; broker 2 returns and leads; acks=all; a reader counts",
    finding="lost_records",
    nodes=3,
    version=OLD,
    properties=QUICK,
    also=["connection_refused", "offline_partition"],
    witnessed=False,
)
def lost_unclean(site: Site) -> None:
    site.create(orders={"brokers": [[1, 2]], "config": {"unclean.leader.election.enable": "true"}})
    site.warm()
    second = site.brokers[1]
    with site.recording():
        settings = {**SAFE, "retry.backoff.ms": 500, "reconnect.backoff.max.ms": 1000}
        shop = site.start("near", "produce", count=60, every_s=0.35, settings=settings)
        time.sleep(2)
        second.stop(signal.SIGKILL)
        time.sleep(7)
        site.brokers[0].stop(signal.SIGKILL)
        time.sleep(1)
        second.log.write_bytes(b"")
        second.start()
        second.wait()
        site.counted(shop)
        bootstrap = f"10.88.0.2:{site.cluster.ports[1]}"
        site.run("near", "assign", client_id="audit", seconds=4, bootstrap=bootstrap)
