"""Clients in Go and JavaScript: franz-go, sarama and KafkaJS meet what others have met, and healthy work."""

from __future__ import annotations

import time

from tests.broker.brokers import paused
from tests.broker.network.calm import calm
from tests.broker.network.clocks import OLD, SASL
from tests.broker.network.incidents import incident
from tests.broker.network.namespaces import Way
from tests.broker.network.others import SASL_PLAIN, TLS
from tests.broker.network.site import Site
from tests.broker.security import certificate

ANN = {"user": "ann", "password": "not-a-secret"}


@incident(
    "client",
    "topic",
    "oders",
    "a producer and a group of KafkaJS use a topic oders that does not exist, on 3.9.2",
    finding="unknown_topic",
    version=OLD,
)
def wrong_topic_kafkajs(site: Site) -> None:
    site.create(orders=1)
    site.warm()
    with site.recording():
        reader = site.foreign("near", "kafkajs", "consume", topic="oders", seconds=6)
        site.counted(site.foreign("near", "kafkajs", "produce", topic="oders", count=2))
        site.counted(reader)


@incident(
    "client",
    "client",
    "js-billing-2",
    "the process of one of two members, KafkaJS on 3.9.2, is stopped (SIGSTOP) for 11 s; its session is 6 s",
    finding="session_expired",
    version=OLD,
    also=["client_silent"],
)
def session_kafkajs(site: Site) -> None:
    site.create(orders=2)
    site.warm()
    with site.recording():
        shop = site.foreign("near", "kafkajs", "produce", count=30, every_ms=700)
        common = {"session_ms": 6000, "seconds": 24}
        first = site.foreign("near", "kafkajs", "consume", client_id="js-billing-1", **common)
        second = site.foreign("near", "kafkajs", "consume", client_id="js-billing-2", **common)
        time.sleep(9)
        with second.asleep():
            time.sleep(11)
        for role in (shop, first, second):
            site.counted(role)


@incident(
    "client",
    "group",
    "js-billing",
    "KafkaJS works 120 ms on each record; 45 come per second, on 3.9.2",
    finding="lag_grows",
    version=OLD,
)
def lag_kafkajs(site: Site) -> None:
    site.create(orders=1)
    site.warm()
    with site.recording():
        reader = site.foreign("near", "kafkajs", "consume", work_ms=120, seconds=15, max_wait_ms=100)
        site.run("near", "produce", count=400, every_s=0.02, size=20, settings={"linger.ms": 200})
        site.counted(reader)


@incident(
    "client",
    "client",
    "js-shop",
    "KafkaJS with SASL PLAIN and a wrong password on 4.3.1; ann has the right one",
    finding="authentication_failed",
    properties=SASL,
    options=SASL_PLAIN,
)
def wrong_password_kafkajs(site: Site) -> None:
    site.create(orders=1)
    with site.recording():
        other = site.foreign("near", "franz", "produce", count=20, **ANN)
        site.counted(site.foreign("near", "kafkajs", "produce", count=2, **{**ANN, "password": "guess"}))
        site.counted(other)


@incident(
    "client",
    "client",
    "js-webshop",
    "a new KafkaJS producer for every record, 25 of them, on 3.9.2",
    finding="connection_churn",
    version=OLD,
)
def churn_kafkajs(site: Site) -> None:
    site.create(orders=1)
    with site.recording():
        site.counted(site.foreign("near", "kafkajs", "churn", client_id="js-webshop", count=25, every_ms=150))


@incident(
    "configuration",
    "client",
    "js-shop",
    "a quota of 15 kB/s for js-shop, KafkaJS, which sends 60 kB/s; go-till has none",
    finding="throttled",
    properties={"quota.window.num": 3},
)
def quota_kafkajs(site: Site) -> None:
    site.create(orders=1)
    site.office("quota", "js-shop", "producer_byte_rate", "15000")
    time.sleep(1)
    with site.recording():
        other = site.foreign("near", "franz", "produce", client_id="go-till", count=30)
        site.counted(site.foreign("near", "kafkajs", "produce", count=14, size=4000, every_ms=50))
        site.counted(other)


@incident(
    "client",
    "partition",
    "orders-0",
    "a transaction of KafkaJS stays open for 9 s on 3.9.2; go-shop writes, franz-go reads read_committed",
    finding="read_committed_held_back",
    version=OLD,
)
def held_back_franz(site: Site) -> None:
    site.create(orders=1)
    site.counted(site.foreign("near", "franz", "transact", transactional_id="early", client_id="early"))
    with site.recording():
        till = site.foreign("near", "kafkajs", "transact", client_id="till", count=1, work_ms=9000)
        shop = site.foreign("near", "franz", "produce", count=30, every_ms=300)
        work = {"offset": 0, "isolation": "committed", "seconds": 12}
        site.counted(site.foreign("near", "franz", "consume", client_id="go-billing", **work))
        site.counted(till)
        site.counted(shop)


@incident(
    "client",
    "transactional_id",
    "tx-5",
    "transaction.timeout.ms=3000, the application, franz-go, works 12 s inside a transaction, on 4.3.1",
    finding="transaction_timed_out",
    properties={"transaction.abort.timed.out.transaction.cleanup.interval.ms": 1000},
)
def transaction_timeout_franz(site: Site) -> None:
    site.create(orders=1)
    site.counted(site.foreign("near", "franz", "transact", transactional_id="early", client_id="early"))
    with site.recording():
        work = {"transactional_id": "tx-5", "transaction_timeout_ms": 3000, "count": 1, "work_ms": 12_000}
        site.counted(site.foreign("near", "franz", "transact", **work))


@incident(
    "client",
    "topic",
    "orders",
    "franz-go reads from offset 500 of a log of 20 records, without a reset",
    finding="offset_out_of_range",
)
def out_of_range_franz(site: Site) -> None:
    site.create(orders=1)
    with site.recording():
        site.counted(site.foreign("near", "franz", "produce", count=20, every_ms=5))
        site.counted(site.foreign("near", "franz", "consume", client_id="go-reader", offset=500, seconds=4))


@incident(
    "configuration",
    "group",
    "go-billing",
    "two members of franz-go with the same group.instance.id pod-3, on 3.9.2",
    finding="static_id_shared",
    version=OLD,
)
def static_franz(site: Site) -> None:
    site.create(orders=2)
    site.warm()
    with site.recording():
        common = {"instance_id": "pod-3", "seconds": 10}
        first = site.foreign("near", "franz", "consume", client_id="go-billing-1", **common)
        time.sleep(5)
        second = site.foreign("near", "franz", "consume", client_id="go-billing-2", **common)
        for role in (first, second):
            site.counted(role)


@incident(
    "client",
    "client",
    "go-dashboard",
    "an administrator of franz-go asks for all topics' metadata eight times a second",
    finding="metadata_storm",
)
def metadata_storm_franz(site: Site) -> None:
    site.create(orders=2, parcels=1)
    with site.recording():
        other = site.foreign("near", "sarama", "produce", count=25, every_ms=200)
        looks = site.foreign("near", "franz", "look", client_id="go-dashboard", count=50, every_ms=110)
        site.counted(looks)
        site.counted(other)


@incident(
    "broker",
    "broker",
    "10.88.0.1:9092",
    "the only broker, 3.9.2, is stopped (SIGSTOP) for 4 s; sarama and franz-go write, sarama reads",
    finding="broker_stalled",
    version=OLD,
)
def stalled_golang(site: Site) -> None:
    site.create(orders=1)
    site.warm()
    with site.recording():
        roles = [
            site.foreign("near", "sarama", "produce", count=60, every_ms=150),
            site.foreign("near", "franz", "produce", count=60, every_ms=150),
            site.foreign("near", "sarama", "consume", seconds=13),
        ]
        time.sleep(7)
        with paused(site.brokers[0]):
            time.sleep(4)
        for role in roles:
            site.counted(role)


@incident(
    "client",
    "client",
    "sarama-shop",
    "three goroutines of sarama await every one of 70 records of 60 bytes each",
    finding="request_storm",
)
def storm_sarama(site: Site) -> None:
    site.create(orders=1)
    with site.recording():
        work = {"workers": 3, "count": 70, "every_ms": 0, "size": 60}
        site.counted(site.foreign("near", "sarama", "storm", **work))


@incident(
    "client",
    "client",
    "sarama-old",
    "sarama pinned to release 0.10.0.0 writes to 4.3.1, which closes instead of answering",
    finding="broker_hangs_up",
)
def hangs_up_sarama(site: Site) -> None:
    site.create(orders=1)
    with site.recording():
        work = {"client_id": "sarama-old", "version": "0.10.0.0", "count": 3}
        site.counted(site.foreign("near", "sarama", "produce", **work))


@incident(
    "configuration",
    "client",
    "sarama-cron",
    "connections.max.idle.ms=1500; a producer of sarama writes every 4 s, on 3.9.2",
    finding="idle_closed",
    version=OLD,
    properties={"connections.max.idle.ms": 1500},
)
def idle_sarama(site: Site) -> None:
    site.create(orders=1)
    with site.recording():
        work = {"client_id": "sarama-cron", "count": 5, "every_ms": 4000}
        site.counted(site.foreign("near", "sarama", "produce", **work))


@incident(
    "client",
    "client",
    "sarama-shop",
    "sarama speaks TLS to a plaintext listener of 3.9.2",
    finding="tls_on_plaintext",
    version=OLD,
)
def tls_to_plain_sarama(site: Site) -> None:
    site.create(orders=1)
    with site.recording():
        site.counted(site.foreign("near", "sarama", "produce", tls=1, count=1))


@incident(
    "client",
    "client",
    "js-shop",
    "KafkaJS in plain text on a TLS listener",
    finding="plaintext_on_tls",
    options=TLS,
    prepared=lambda site: {
        "listener.name.ssl.ssl.keystore.type": "PEM",
        "listener.name.ssl.ssl.keystore.location": certificate(site.folder),
    },
    witnessed=False,
)
def plain_to_tls_kafkajs(site: Site) -> None:
    site.create(orders=1)
    with site.recording():
        site.counted(site.foreign("near", "kafkajs", "produce", count=1))


@calm("producers and groups of KafkaJS, franz-go and sarama on 3.9.2", version=OLD)
def healthy_elsewhere(site: Site) -> None:
    site.create(orders=3)
    site.warm()
    with site.recording():
        names = ("kafkajs", "franz", "sarama")
        roles = [site.foreign("near", name, "consume", seconds=8, max_wait_ms=2000) for name in names]
        roles += [site.foreign("near", name, "produce", count=6, every_ms=900) for name in names]
        for role in roles:
            site.counted(role)


@calm(
    "franz-go and sarama 50 ms away: transactions, a group that works 300 ms on a record and keeps up",
    clients={"far": Way(50)},
    also=["far_away"],
)
def healthy_golang_far(site: Site) -> None:
    site.create(orders=2)
    site.warm()
    site.counted(site.foreign("far", "franz", "transact", transactional_id="early", client_id="early"))
    with site.recording():
        reader = site.foreign("far", "sarama", "consume", work_ms=300, seconds=14)
        till = site.foreign("far", "franz", "transact", client_id="go-till", count=6, work_ms=200)
        site.counted(site.foreign("far", "sarama", "produce", count=12, every_ms=600))
        for role in (reader, till):
            site.counted(role)
