"""Monitors that ask too often, or just as often as they should; and clients that ask a controller."""

from __future__ import annotations

from tests.broker.network.calm import calm
from tests.broker.network.incidents import EACH, incident
from tests.broker.network.site import Site

CONTROLLER = 9093
"""The port of the controller beside the only broker."""


@incident(
    "client",
    "client",
    "lagmon",
    "a lag monitor asks for the committed offsets of one group 20 times per second (librdkafka)",
    finding="monitor_storm",
    witnessed=False,
)
def monitor_storm(site: Site) -> None:
    site.create(orders=1)
    site.warm()
    with site.recording():
        shop = site.start("near", "produce", count=8, every_s=0.7, settings=EACH)
        site.run("near", "monitor", client_id="lagmon", groups=1, rounds=115, every_s=0.045)
        site.counted(shop)


@calm(
    "an exporter asks for the committed offsets of 12 groups in a row, every 2 s; a producer writes",
    witnessed=False,
)
def healthy_exporter(site: Site) -> None:
    site.create(orders=1)
    site.warm()
    with site.recording():
        shop = site.start("near", "produce", count=8, every_s=0.7, settings=EACH)
        site.run("near", "monitor", client_id="exporter", groups=12, rounds=4, every_s=2)
        site.counted(shop)


@incident(
    "client",
    "client",
    "lost",
    "bootstrap.servers of a Java producer has the port of the KRaft controller",
    finding="controller_listener",
    more_ports=(CONTROLLER,),
    witnessed=False,
)
def controller_listener(site: Site) -> None:
    site.create(orders=1)
    site.warm()
    with site.recording():
        shop = site.start("near", "produce", count=8, every_s=0.5, settings=EACH)
        address = f"{site.cluster.host(1)}:{site.cluster.controller_ports[0]}"
        lost = {"client_id": "lost", "x_bootstrap": address, "max_block_ms": 3000}
        site.counted(site.work("near", "produce", x_count=1, **lost))
        site.counted(shop)
