"""Clients that reach a limit: a request's size, unacknowledged records, open connections, a round trip."""

from __future__ import annotations

from tests.broker.network.clocks import OLD
from tests.broker.network.incidents import EACH, incident
from tests.broker.network.namespaces import Way
from tests.broker.network.site import Site

RETRIES = {**EACH, "message.timeout.ms": 3000, "reconnect.backoff.ms": 600, "reconnect.backoff.max.ms": 900}


@incident(
    "client",
    "client",
    "bulk",
    "socket.request.max.bytes=6000 of the broker, 3.9.2; bulk, librdkafka, sends records of 7 kB, and small "
    "ones before",
    finding="message_too_large",
    version=OLD,
    properties={"socket.request.max.bytes": 6000},
)
def request_too_large(site: Site) -> None:
    site.create(orders=1)
    site.warm()
    with site.recording():
        site.run("near", "produce", client_id="bulk", count=8, every_s=0.3, settings=RETRIES)
        site.run("near", "produce", client_id="bulk", count=1, size=7000, settings=RETRIES)


@incident(
    "client",
    "client",
    "meter",
    "acks=0 and records of 3 kB for a topic with max.message.bytes=1000: the broker can only close the "
    "connection",
    finding="broker_hangs_up",
)
def unacknowledged_refused(site: Site) -> None:
    site.create(readings={"brokers": 1, "config": {"max.message.bytes": "1000"}})
    site.warm()
    with site.recording():
        what = {"topic": "readings", "size": 3000, "settings": {**EACH, "acks": 0}}
        site.run("near", "produce", client_id="meter", count=8, every_s=0.8, **what)


@incident(
    "client",
    "client",
    "jobs",
    "kafka-python on 3.9.2: a new producer for each of 13 records, none of which is closed",
    finding="connection_churn",
    version=OLD,
)
def left_open(site: Site) -> None:
    site.create(orders=1)
    site.warm()
    with site.recording():
        site.run("near", "kp_hoard", client_id="jobs", count=13, every_s=0.5, stays_s=4)


@incident(
    "network",
    "client",
    "edge",
    "a Java producer 4.3.1, 300 ms away, awaits each of 60 records before it writes the next one",
    finding="far_away",
    clients={"far": Way(300)},
)
def one_at_a_time(site: Site) -> None:
    site.create(orders=1)
    site.warm()
    with site.recording():
        site.counted(site.work("far", "produce", client_id="edge", x_count=60, x_every_ms=0))


@incident(
    "client",
    "client",
    "shop",
    "linger.ms=2000 at a Java producer 4.3.1 of two records a second",
    finding="delivery_delayed",
)
def delivery_delayed(site: Site) -> None:
    site.create(orders=1)
    site.warm()
    with site.recording():
        site.counted(site.work("near", "flood", client_id="shop", linger_ms=2000, x_count=24, x_every_ms=500))
