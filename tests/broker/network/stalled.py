"""Directions that stall: Nagle's algorithm, windows too small for the way; and bulk that is healthy."""

from __future__ import annotations

from tests.broker.network.calm import calm
from tests.broker.network.clocks import OLD
from tests.broker.network.incidents import EACH, incident
from tests.broker.network.namespaces import Way
from tests.broker.network.site import Site

CUT = 128
"""Bytes of each packet that are kept: of bulk, the headers tell all."""
SCALING = "net.ipv4.tcp_window_scaling"


@incident(
    "client",
    "client",
    "bare-shop",
    "a sender by hand without TCP_NODELAY writes the size of each Produce and its body in two writes",
    finding="nagle_stall",
    sides=("client", "broker"),
    witnessed=False,
)
def nagle_stall(site: Site) -> None:
    site.create(orders=1)
    with site.recording():
        site.run("near", "two_writes")


@calm(
    "the same records by librdkafka with socket.nagle.disable=false, which writes each request at once",
    sides=("client",),
    witnessed=False,
)
def healthy_nagle(site: Site) -> None:
    site.create(orders=1)
    with site.recording():
        settings = {**EACH, "socket.nagle.disable": "false"}
        site.run("near", "produce", count=40, every_s=0.06, size=300, settings=settings)


@incident(
    "configuration",
    "client",
    "billing-1",
    "a consumer 100 ms away (librdkafka), whose kernel does not scale windows "
    "(net.ipv4.tcp_window_scaling=0), reads 1 MB",
    finding="window_limited",
    clients={"far": Way(100)},
    sides=("client", "broker"),
    witnessed=False,
    also=["far_away"],
    snaplen=CUT,
    anomalies=["packet_cut"],
)
def window_unscaled(site: Site) -> None:
    site.create(orders=1)
    site.fill("orders", 20, 50_000)
    site.net.tune("far", SCALING, "0")
    with site.recording():
        site.run("far", "assign", client_id="billing-1", seconds=6)


@incident(
    "configuration",
    "client",
    "bulk",
    "socket.receive.buffer.bytes=16384 of a broker 3.9.2; a Java producer 4.3.1, 60 ms away, writes records "
    "of 20 kB",
    finding="window_limited",
    version=OLD,
    properties={"socket.receive.buffer.bytes": 16384},
    clients={"far": Way(60)},
    sides=("client", "broker"),
    witnessed=False,
    also=["far_away"],
    snaplen=CUT,
    anomalies=["packet_cut"],
)
def window_of_the_broker(site: Site) -> None:
    site.create(orders=1)
    with site.recording():
        settings = {"linger_ms": 0, "batch_size": 100_000, "max_in_flight_requests_per_connection": 1}
        site.counted(
            site.work("far", "flood", client_id="bulk", x_size=20_000, x_count=40, x_every_ms=5, **settings)
        )


@calm(
    "a consumer 100 ms away reads 150 kB: the windows are what Linux makes them",
    clients={"far": Way(100)},
    sides=("client", "broker"),
    witnessed=False,
    also=["far_away"],
)
def healthy_bulk_far(site: Site) -> None:
    site.create(orders=1)
    site.fill("orders", 3, 50_000)
    with site.recording():
        site.run("far", "assign", client_id="billing-1", seconds=4)


@calm(
    "a producer writes 75 kB in large batches, a consumer beside it reads them",
    sides=("client",),
    witnessed=False,
)
def healthy_bulk(site: Site) -> None:
    site.create(orders=1)
    site.warm()
    with site.recording():
        reader = site.start("near", "assign", client_id="billing-1", seconds=4)
        settings = {"linger.ms": 50, "batch.size": 100_000}
        site.run("near", "produce", client_id="bulk", count=15, every_s=0, size=5_000, settings=settings)
        site.counted(reader)
