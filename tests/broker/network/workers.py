"""The same causes with other clients, other releases and other numbers: clients and transactions."""

from __future__ import annotations

import time

from tests.broker.network.clocks import OLD
from tests.broker.network.incidents import EACH, incident
from tests.broker.network.others import JAVA_2
from tests.broker.network.site import NEWEST, Site

SHORT = {"group.min.session.timeout.ms": 1000}


@incident(
    "client",
    "client",
    "poller",
    "fetch.max.wait.ms=4 with Java 2.3.1 on 3.9.2, a topic to which nobody writes",
    finding="busy_fetch",
    version=OLD,
)
def busy_fetch_java(site: Site) -> None:
    site.create(orders=1)
    with site.recording():
        settings = {"fetch_max_wait_ms": 4, "x_offset": 0, "x_seconds": 4}
        site.counted(site.work("near", "consume", x_version=JAVA_2, client_id="poller", **settings))


@incident(
    "client",
    "client",
    "aio-shop",
    "two processes with aiokafka await every one of 150 records of 30 bytes each",
    finding="request_storm",
)
def storm_aiokafka(site: Site) -> None:
    site.create(orders=1)
    with site.recording():
        other = site.start("near", "aio_produce", count=150, size=30, settings={"linger_ms": 0})
        site.run("near", "aio_produce", count=150, size=30, settings={"linger_ms": 0})
        site.counted(other)


@incident(
    "client",
    "client",
    "monitor",
    "a Java administrator 2.3.1 lists and describes all topics of 3.9.2 ten times a second",
    finding="metadata_storm",
    version=OLD,
)
def metadata_storm_java(site: Site) -> None:
    site.create(orders=2, parcels=1, receipts=1)
    with site.recording():
        other = site.start("near", "kp_produce", count=20, every_s=0.2)
        site.counted(
            site.work("near", "look", x_version=JAVA_2, client_id="monitor", x_count=45, x_every_ms=60)
        )
        site.counted(other)


@incident(
    "client",
    "client",
    "webshop",
    "a new Java producer 4.3.1 for every record, 18 of them, on 3.9.2",
    finding="connection_churn",
    version=OLD,
)
def churn_java(site: Site) -> None:
    site.create(orders=1)
    with site.recording():
        site.counted(site.work("near", "churn", client_id="webshop", x_count=18, x_every_ms=200))


@incident(
    "client",
    "client",
    "shop",
    "max.message.bytes=1500 of the topic; a Java producer 4.3.1 sends records of 9000 bytes to 3.9.2",
    finding="message_too_large",
    version=OLD,
)
def too_large_java(site: Site) -> None:
    site.create(orders={"brokers": 1, "config": {"max.message.bytes": "1500"}})
    with site.recording():
        site.counted(site.work("near", "produce", client_id="shop", x_count=3, x_size=9000))


@incident(
    "client",
    "topic",
    "oders",
    "a Java producer 4.3.1 and a group of kafka-python use a topic oders that does not exist, on 3.9.2",
    finding="unknown_topic",
    version=OLD,
)
def wrong_topic_java(site: Site) -> None:
    site.create(orders=1)
    site.warm()
    with site.recording():
        reader = site.start("near", "kp_consume", topics="oders", seconds=6)
        site.counted(
            site.work("near", "produce", client_id="shop", max_block_ms=5000, x_topic="oders", x_count=1)
        )
        site.counted(reader)


@incident(
    "client",
    "topic",
    "orders",
    "kafka-python reads from offset 70 of a log of 12 records of 3.9.2, without a reset",
    finding="offset_out_of_range",
    version=OLD,
)
def out_of_range_python(site: Site) -> None:
    site.create(orders=1)
    with site.recording():
        site.run("near", "kp_produce", count=12, every_s=0.01)
        settings = {"auto_offset_reset": "none"}
        site.run("near", "kp_consume", group=None, offset=70, seconds=4, settings=settings)


@incident(
    "client",
    "transactional_id",
    "tx-9",
    "transaction.timeout.ms=2500, the application, Java 4.3.1, works 14 s inside a transaction, on 3.9.2",
    finding="transaction_timed_out",
    version=OLD,
    properties={"transaction.abort.timed.out.transaction.cleanup.interval.ms": 1000},
)
def transaction_timeout_java(site: Site) -> None:
    site.create(orders=1)
    site.counted(site.work("near", "transact", transactional_id="early", client_id="early", x_count=1))
    with site.recording():
        settings = {"transactional_id": "tx-9", "transaction_timeout_ms": 2500, "client_id": "till"}
        site.counted(site.work("near", "transact", x_count=1, x_work_ms=14_000, **settings))


@incident(
    "client",
    "transactional_id",
    "tx-9",
    "a second Java producer 2.3.1 takes the transactional.id of the first, which is inside a transaction",
    finding="producer_fenced",
    version=OLD,
)
def fenced_java(site: Site) -> None:
    site.create(orders=1)
    with site.recording():
        settings = {"transactional_id": "tx-9"}
        first = site.work(
            "near", "transact", x_version=JAVA_2, client_id="old", x_count=3, x_work_ms=3000, **settings
        )
        time.sleep(5)
        site.counted(site.work("near", "transact", x_version=JAVA_2, client_id="new", x_count=3, **settings))
        site.counted(first)


@incident(
    "configuration",
    "topic",
    "orders",
    "the topic has compression.type=gzip, the producer, Java 4.3.1, uses lz4; a group reads",
    finding="recompressed",
)
def recompressed_java(site: Site) -> None:
    site.create(orders={"brokers": 1, "config": {"compression.type": "gzip"}})
    site.warm()
    with site.recording():
        reader = site.start("near", "consume", seconds=7)
        settings = {"compression_type": "lz4", "x_count": 12, "x_size": 400}
        site.counted(site.work("near", "produce", client_id="shop", **settings))
        site.counted(reader)


@incident(
    "client",
    "partition",
    "orders-4",
    "a Java producer 2.3.1 gives all records the key K; the topic of 3.9.2 has six partitions",
    finding="hot_partition",
    version=OLD,
)
def hot_java(site: Site) -> None:
    site.create(orders=6)
    with site.recording():
        other = site.start(
            "near", "produce", client_id="till", count=12, partitions=6, every_s=0.2, settings=EACH
        )
        settings = {"x_count": 60, "x_every_ms": 30, "x_size": 250, "x_key": "K"}
        site.counted(site.work("near", "produce", x_version=JAVA_2, client_id="shop", **settings))
        site.counted(other)


@incident(
    "client",
    "partition",
    "orders-0",
    "a Java producer 4.3.1 stays 9 s inside a transaction on 3.9.2; others write, kafka-python reads "
    "read_committed",
    finding="read_committed_held_back",
    version=OLD,
)
def held_back_python(site: Site) -> None:
    site.create(orders=1)
    site.counted(
        site.work(
            "near", "transact", x_version=NEWEST, transactional_id="early", client_id="early", x_count=1
        )
    )
    with site.recording():
        till = site.work(
            "near", "transact", client_id="till", transactional_id="tx-1", x_count=1, x_work_ms=9000
        )
        shop = site.start("near", "kp_produce", count=30, every_s=0.3)
        site.run("near", "kp_consume", seconds=12, settings={"isolation_level": "read_committed"})
        site.counted(till)
        site.counted(shop)


@incident(
    "client",
    "client",
    "shop",
    "the process of a busy Java producer is stopped (SIGSTOP) for 5 s",
    finding="client_silent",
)
def silent_java(site: Site) -> None:
    site.create(orders=1)
    with site.recording():
        other = site.start("near", "aio_produce", count=40, every_s=0.6)
        shop = site.work("near", "produce", client_id="shop", x_count=130, x_every_ms=130)
        time.sleep(14)
        with shop.asleep():
            time.sleep(5)
        site.counted(shop)
        site.counted(other)
