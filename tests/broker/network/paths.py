"""Paths that lose what is large, that fill up, that forget silent connections; clients that give up."""

from __future__ import annotations

import time
from collections.abc import Callable

from tests.broker.brokers import paused
from tests.broker.network.calm import calm
from tests.broker.network.clocks import OLD
from tests.broker.network.incidents import EACH, Play, incident
from tests.broker.network.namespaces import Way
from tests.broker.network.site import Site

TORN = ["framing_lost", "framing_resumed", "frame_torn", "segment_lost", "data_after_end"]
NARROW = 1200
"""Bytes of the largest packet that arrives: Ethernet has 1500, and the hosts believe it."""


@incident(
    "network",
    "client",
    "billing-1",
    "packets above 1200 bytes do not arrive at the client (the relay drops them); a consumer, librdkafka "
    "with socket.timeout.ms=4000, reads records of 6 kB",
    finding="path_mtu",
    clients={"narrow": Way(20, largest_down=NARROW)},
    sides=("client", "broker"),
    witnessed=False,
    anomalies=TORN,
)
def mtu_answers(site: Site) -> None:
    site.create(orders=1)
    site.fill("orders", 10, 6000)
    with site.recording():
        site.run("narrow", "assign", client_id="billing-1", seconds=14, settings={"socket.timeout.ms": 4000})


@incident(
    "network",
    "client",
    "shop",
    "packets above 1200 bytes do not arrive at the broker (the relay drops them); a producer, Java 4.3.1 "
    "with request.timeout.ms=3000, writes a record of 3 kB to 3.9.2",
    finding="path_mtu",
    version=OLD,
    clients={"narrow": Way(30, largest_up=NARROW)},
    sides=("client", "broker"),
    witnessed=False,
    anomalies=TORN,
)
def mtu_requests(site: Site) -> None:
    site.create(orders=1)
    with site.recording():
        settings = {"request_timeout_ms": 3000, "delivery_timeout_ms": 9000, "max_block_ms": 6000}
        site.counted(site.work("narrow", "produce", client_id="shop", x_size=3000, x_count=1, **settings))


@incident(
    "network",
    "client",
    "py-shop",
    "from a moment on the relay drops all packets of py-shop, kafka-python with request_timeout_ms=3000, "
    "which gives up, closes and comes back in vain; recorded there",
    finding="path_dead",
    clients={"cut": Way(16)},
    sides=("client",),
    witnessed=False,
    also=["advertised_unreachable"],
)
def path_dead_gives_up(site: Site) -> None:
    site.create(orders=1)
    with site.recording():
        shop = site.start("cut", "kp_produce", count=60, every_s=0.2, settings={"request_timeout_ms": 3000})
        time.sleep(6)
        site.net.change("cut", Way(16, 1.0))
        time.sleep(9)
        shop.kill()


@incident(
    "network",
    "client",
    "sarama-shop",
    "the relay drops all packets of sarama-shop before it writes a record of 60 kB: only the first segments "
    "of that request leave the client; recorded there",
    finding="path_dead",
    clients={"cut": Way(40)},
    sides=("client",),
    witnessed=False,
    also=["advertised_unreachable"],
    anomalies=TORN,
)
def path_dead_large(site: Site) -> None:
    site.create(orders=1)
    with site.recording():
        settings = {"read_timeout_ms": 4000, "count": 3, "every_ms": 4000, "size": 60_000}
        shop = site.foreign("cut", "sarama", "produce", **settings)
        time.sleep(2.5)
        site.net.change("cut", Way(40, 1.0))
        time.sleep(10)
        shop.kill()


@incident(
    "network",
    "client",
    "bulk",
    "a line of 40 kB/s with room for 10 kB, 30 ms away; bulk (Java 4.3.1) writes 57 kB/s, till (librdkafka) "
    "small records; recorded at these clients; the broker answers in milliseconds",
    finding="link_full",
    version=OLD,
    clients={"thin": Way(30, rate=40_000, room=10_000)},
    sides=("client",),
    also=["loss_slows_calls", "far_away"],
)
def link_full_java(site: Site) -> None:
    site.create(orders=1, small=1)
    site.warm()
    with site.recording():
        settings = {"linger_ms": 0, "batch_size": 4000, "max_in_flight_requests_per_connection": 3}
        bulk = site.work(
            "thin", "flood", client_id="bulk", x_size=2000, x_count=60, x_every_ms=35, **settings
        )
        site.run("thin", "produce", client_id="till", topic="small", count=30, every_s=0.25, settings=EACH)
        site.counted(bulk)


@calm(
    "the same line, and clients that send less than it takes",
    clients={"thin": Way(30, rate=40_000, room=10_000)},
    sides=("client",),
    witnessed=False,
    also=["far_away"],
)
def healthy_thin(site: Site) -> None:
    site.create(orders=1, small=1)
    site.warm()
    with site.recording():
        bulk = site.start(
            "thin", "produce", client_id="bulk", count=30, every_s=0.25, size=900, settings=EACH
        )
        site.run("thin", "produce", client_id="till", topic="small", count=25, every_s=0.3, settings=EACH)
        site.counted(bulk)


@calm(
    "packets above 1200 bytes do not arrive, and the client knows it: its interface takes no larger ones",
    clients={"narrow": Way(20, largest_up=NARROW, largest_down=NARROW)},
    sides=("client",),
    witnessed=False,
    also=["far_away"],
)
def healthy_narrow(site: Site) -> None:
    site.create(orders=1)
    site.fill("orders", 8, 6000)
    site.net.shrink("narrow", NARROW)
    site.warm()
    with site.recording():
        site.run("narrow", "assign", client_id="billing-1", seconds=4)
        site.run("narrow", "produce", count=8, every_s=0.1, size=3000, settings=EACH)


@incident(
    "broker",
    "broker",
    "10.88.0.1:9092",
    "the only broker gets the processor for 60 of every 240 ms (SIGSTOP), seen 36 ms away: its kernel "
    "acknowledges what it does not read",
    finding="broker_slow",
    clients={"far": Way(36)},
    sides=("client",),
    witnessed=False,
    also=["far_away"],
)
def slow_broker_far(site: Site) -> None:
    site.create(orders=1)
    with site.recording():
        shop = site.start("far", "produce", count=90, every_s=0.07, settings=EACH)
        other = site.start("far", "aio_produce", count=60, every_s=0.06)
        time.sleep(4)
        end = time.monotonic() + 5
        while time.monotonic() < end:
            with paused(site.brokers[0]):
                time.sleep(0.18)
            time.sleep(0.06)
        site.counted(shop)
        site.counted(other)


def _forgetful(client: str, did: str, **more: object) -> Callable[[Play], Play]:
    """Registers a play in which the relay forgets silent connections."""
    return incident(
        "network",
        "client",
        client,
        did,
        finding="idle_dropped",
        sides=("client",),
        witnessed=False,
        anomalies=TORN,
        **more,
    )


@_forgetful(
    "shop",
    "the relay drops connections after 6 s of silence without a reset; librdkafka writes every 11 s, "
    "socket.timeout.ms=4000",
    clients={"far": Way(8, idle_s=6)},
)
def idle_dropped(site: Site) -> None:
    site.create(orders=1)
    with site.recording():
        settings = {**EACH, "socket.timeout.ms": 4000, "message.timeout.ms": 20000}
        site.run("far", "produce", count=4, every_s=11, settings=settings)


@_forgetful(
    "shop",
    "the relay drops connections after 7 s of silence; Java 4.3.1 writes to 3.9.2 every 10 s, "
    "request.timeout.ms=3000",
    version=OLD,
    clients={"far": Way(30, idle_s=7)},
)
def idle_dropped_java(site: Site) -> None:
    site.create(orders=1)
    with site.recording():
        common = {"acks": "all", "request_timeout_ms": 3000, "delivery_timeout_ms": 20000}
        site.counted(
            site.work("far", "produce", client_id="shop", x_count=3, x_every_ms=10000, linger_ms=0, **common)
        )


@_forgetful(
    "sarama-shop",
    "the relay drops connections after 5.5 s of silence; sarama writes every 9 s, Net.ReadTimeout 3 s; "
    "another client writes all the time",
    clients={"far": Way(4, idle_s=5.5), "near": Way()},
)
def idle_dropped_sarama(site: Site) -> None:
    site.create(orders=1)
    with site.recording():
        other = site.start("near", "produce", client_id="till", count=60, every_s=0.6, settings=EACH)
        go = {"count": 4, "every_ms": 9000, "read_timeout_ms": 3000}
        site.counted(site.foreign("far", "sarama", "produce", **go))
        site.counted(other)


@calm(
    "librdkafka and Java write a record every 11 s; connections are silent between and stay",
    clients={"far": Way(8)},
    sides=("client",),
    witnessed=False,
)
def healthy_silences(site: Site) -> None:
    site.create(orders=1)
    with site.recording():
        java = site.work("far", "produce", client_id="shop", x_count=3, x_every_ms=11000, linger_ms=0)
        site.run("far", "produce", count=3, every_s=11, settings=EACH)
        site.counted(java)
