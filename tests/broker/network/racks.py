"""Consumers of a cluster in three racks: what they fetch from another one."""

from __future__ import annotations

from tests.broker.network.calm import calm
from tests.broker.network.clocks import OLD
from tests.broker.network.incidents import incident
from tests.broker.network.site import Site

RACKS = {number: {"broker.rack": rack} for number, rack in ((1, "a"), (2, "b"), (3, "c"))}
NEAREST = "org.apache.kafka.common.replica.RackAwareReplicaSelector"


def _read(site: Site, **settings: object) -> None:
    """A reader of 80 records of 1 kB of each topic, whose leaders are in racks a and b."""
    site.create(orders=[[1, 2, 3]], parcels=[[2, 3, 1]])
    for topic in ("orders", "parcels"):
        site.fill(topic, 80, 1000)
    with site.recording():
        java: dict[str, object] = {"group_id": "billing", "auto_offset_reset": "earliest"}
        java |= {"x_topic": "orders,parcels", "fetch_max_wait_ms": 1500, "x_seconds": 9}
        site.counted(site.work("near", "consume", client_id="billing-1", **java, **settings))


@incident(
    "configuration",
    "client",
    "billing-1",
    "three racks; a Java consumer without client.rack reads topics whose leaders are in racks a and b",
    finding="cross_rack",
    nodes=3,
    options={"per_node": RACKS},
)
def cross_rack(site: Site) -> None:
    _read(site)


@incident(
    "configuration",
    "client",
    "billing-1",
    "three racks of 3.9.2 without replica.selector.class; a Java consumer with client.rack=c reads",
    finding="cross_rack",
    nodes=3,
    version=OLD,
    options={"per_node": RACKS},
)
def cross_rack_ignored(site: Site) -> None:
    _read(site, client_rack="c")


@calm(
    "three racks with replica.selector.class; a Java consumer with client.rack=c reads the replica there",
    nodes=3,
    properties={"replica.selector.class": NEAREST},
    options={"per_node": RACKS},
)
def healthy_own_rack(site: Site) -> None:
    _read(site, client_rack="c")
