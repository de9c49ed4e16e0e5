"""Scenes for the question where the time of a call went: distance, loss, followers, members, quotas."""

from __future__ import annotations

import time
from collections.abc import Mapping

from tests.broker.brokers import paused
from tests.broker.network.namespaces import Way
from tests.broker.network.site import PLAIN, Site, scene

OLD = "3.9.2"
SLOW_QUORUM = {
    **PLAIN,
    "controller.quorum.fetch.timeout.ms": 20_000,
    "controller.quorum.election.timeout.ms": 20_000,
    "broker.session.timeout.ms": 30_000,
    "replica.lag.time.max.ms": 30_000,
    "replica.fetch.wait.max.ms": 500,
}
ONE_BY_ONE = {"linger.ms": 0, "acks": "all"}


def _talk(site: Site, client: str, count: int = 12) -> None:
    """A producer, then a group of one."""
    site.run(client, "produce", count=count, every_s=0.15, settings=ONE_BY_ONE)
    site.run(client, "consume", seconds=4, settings={"fetch.wait.max.ms": 700})


def _far(name: str, milliseconds: float, version: str) -> None:
    @scene(
        name,
        f"A client whose round trip takes {milliseconds:.0f} ms.",
        "the relay holds every packet back for half of it",
        version=version,
        clients={"far": Way(milliseconds)},
    )
    def play(site: Site) -> None:
        site.create(orders=1)
        site.warm()
        with site.recording():
            _talk(site, "far")


_far("far_40", 40, "4.3.1")
_far("far_120", 120, "4.3.1")
_far("far_120_3_9", 120, OLD)


def _near(name: str, version: str) -> None:
    @scene(name, "A client on the same network, and nothing wrong.", "nothing", version=version)
    def play(site: Site) -> None:
        site.create(orders=1)
        site.warm()
        with site.recording():
            _talk(site, "near")


_near("near", "4.3.1")
_near("near_3_9", OLD)


def _lossy(name: str, version: str, round_trip_ms: float, loss: float) -> None:
    @scene(
        name,
        f"One client loses {100 * loss:.0f} % of its packets, another none.",
        "the relay drops packets of billing-1 and shop (10.88.0.11), by chance, in both directions",
        version=version,
        clients={"lossy": Way(round_trip_ms, loss), "near": Way()},
        anomalies=["data_after_end"],  # an answer to a consumer that has left
    )
    def play(site: Site) -> None:
        site.create(orders=1, parcels=1)
        site.warm()
        with site.recording():
            healthy = site.start("near", "produce", client_id="till", topic="parcels", count=30, every_s=0.2)
            slow = site.start("lossy", "produce", count=60, every_s=0.1, size=300, settings=ONE_BY_ONE)
            reader = site.start("lossy", "consume", seconds=8, settings={"fetch.wait.max.ms": 500})
            for role in (slow, reader, healthy):
                site.counted(role)


_lossy("loss_2", "4.3.1", 10, 0.02)
_lossy("loss_2_3_9", OLD, 10, 0.02)
_lossy("loss_3_far", "4.3.1", 40, 0.03)


def _follower(name: str, version: str, round_trip_ms: float) -> None:
    @scene(
        name,
        "Produce with acks=all that waits for a follower.",
        "broker 3, a follower of orders-0, is stopped (SIGSTOP) for 2 s and for 1 s while the producer "
        "works; it stays in the ISR",
        version=version,
        nodes=3,
        clients={"shop": Way(round_trip_ms)},
        properties=SLOW_QUORUM,
    )
    def play(site: Site) -> None:
        site.create(orders=[[1, 2, 3]])
        site.warm()
        with site.recording():
            settings = {"linger.ms": 0, "acks": "all", "max.in.flight": 5}
            producer = site.start("shop", "produce", count=40, every_s=0.15, settings=settings)
            time.sleep(1.5)
            for seconds in (2, 1):
                with paused(site.brokers[2]):
                    time.sleep(seconds)
                time.sleep(1)
            site.counted(producer)


_follower("follower_stopped", "4.3.1", 0)
_follower("follower_stopped_3_9", OLD, 0)
_follower("follower_stopped_far", "4.3.1", 40)


def _waiting(name: str, version: str, round_trip_ms: float) -> None:
    @scene(
        name,
        "Fetches that wait for records that do not exist yet.",
        "a producer sends a record every 300 ms; a group reads with fetch.wait.max.ms=2000",
        version=version,
        clients={"reader": Way(round_trip_ms), "near": Way()},
        anomalies=["data_after_end"] if round_trip_ms else [],  # an answer to a consumer that has left
    )
    def play(site: Site) -> None:
        site.create(orders=1)
        site.warm()
        with site.recording():
            reader = site.start("reader", "consume", seconds=9, settings={"fetch.wait.max.ms": 2000})
            site.run("near", "produce", count=20, every_s=0.3, settings={"linger.ms": 0})
            site.counted(reader)


_waiting("data_every_300", "4.3.1", 0)
_waiting("data_every_300_3_9", OLD, 0)
_waiting("data_every_300_far", "4.3.1", 40)


def _members(name: str, version: str, round_trip_ms: float, protocol: Mapping[str, str]) -> None:
    @scene(
        name,
        "Rebalances of a group in which one member needs 2 s to come back.",
        "billing-1 works 2 s on every record and rejoins only then; billing-2 and billing-3 join one after "
        "the other",
        version=version,
        clients={"group": Way(round_trip_ms)},
    )
    def play(site: Site) -> None:
        site.create(orders=4)
        site.warm()
        settings = {"heartbeat.interval.ms": 500, **protocol}
        with site.recording():
            site.run("group", "produce", count=24, every_s=0.01, partitions=4)
            first = site.start("group", "consume", seconds=16, work_s=2, settings=settings)
            time.sleep(4)
            second = site.start("group", "consume", client_id="billing-2", seconds=11, settings=settings)
            time.sleep(4)
            third = site.start("group", "consume", client_id="billing-3", seconds=5, settings=settings)
            for role in (third, second, first):
                site.counted(role)


_members("members_slow", "4.3.1", 0, {})
_members("members_slow_3_9", OLD, 40, {})


def _quota(name: str, version: str) -> None:
    @scene(
        name,
        "A producer over its quota.",
        "quota of 12.5 kB/s for shop, which sends records of 2.5 kB every 100 ms, some in flight at once",
        version=version,
        properties={"quota.window.num": 4},
    )
    def play(site: Site) -> None:
        site.create(orders=1)
        site.office("quota", "shop", "producer_byte_rate", "12500")
        site.warm()
        with site.recording():
            settings = {"linger.ms": 0, "batch.num.messages": 1}
            site.run("near", "produce", count=32, every_s=0.1, size=2500, settings=settings)


_quota("quota", "4.3.1")
_quota("quota_3_9", OLD)

MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
PASSWORD = "not-a-secret"  # noqa: S105 (recorded for everybody to read)
SASL = {
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": f'{MODULE} required user_ann="{PASSWORD}";',
    "inter.broker.listener.name": "INTERNAL",
}


def login(password: str = PASSWORD, mechanism: str = "PLAIN") -> dict[str, object]:
    """What a client needs to authenticate."""
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.username": "ann",
        "sasl.password": password,
    }


def _password(name: str, version: str) -> None:
    @scene(
        name,
        "A password that is refused, after a wait that the broker makes on purpose.",
        "SASL PLAIN with a wrong password, connection.failed.authentication.delay.ms=400; then with the "
        "right one",
        version=version,
        properties={**SASL, "connection.failed.authentication.delay.ms": 400},
        known={"authentication_delay_ms": 400},
        options={"protocol": "SASL_PLAINTEXT"},
    )
    def play(site: Site) -> None:
        site.create(orders=1)
        site.warm()
        with site.recording():
            wrong = {**login("wrong"), "message.timeout.ms": 4000}
            site.run("near", "produce", count=1, settings=wrong)
            site.run("near", "produce", count=5, settings={**login(), **ONE_BY_ONE})


_password("password_wrong", "4.3.1")
_password("password_wrong_3_9", OLD)


def _line(name: str, version: str, round_trip_ms: float) -> None:
    @scene(
        name,
        "Requests in line behind a fetch that waits for data, on the same connection.",
        "a group reads with fetch.wait.max.ms=1500 and asks for the ends of logs (ListOffsets) every 400 ms; "
        "a record comes every 700 ms",
        version=version,
        clients={"reader": Way(round_trip_ms), "near": Way()},
    )
    def play(site: Site) -> None:
        site.create(orders=1)
        site.warm()
        with site.recording():
            reader = site.start(
                "reader", "consume", seconds=9, ask_ends_every_s=0.4, settings={"fetch.wait.max.ms": 1500}
            )
            site.run("near", "produce", count=11, every_s=0.7, settings={"linger.ms": 0})
            site.counted(reader)


_line("line_behind_fetch", "4.3.1", 0)
_line("line_behind_fetch_3_9", OLD, 0)
_line("line_behind_fetch_far", "4.3.1", 40)
