"""Calls on both sides of a proxy, against the log of Kroxylicious and proxies of scripts."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pytest

import kwsniff
from kwsniff.analysis import proxied_calls
from kwsniff.findings.sql import load_questions
from tests.pipeline.compare import analyzed_packets
from tests.traffic import messages
from tests.traffic.exchange import Exchange
from tests.traffic.records import batch
from tests.traffic.tcp import MICROSECOND, MILLISECOND, Endpoint, Scene

RECORDED = Path(__file__).parents[2] / "captures" / "proxied"
CLIENTS = 24
FRONT, BROKER = Endpoint("10.1.0.100", 9092), Endpoint("10.2.0.1", 9093)
COLUMN = "upstream_call_id"
Made = tuple[Callable[[int, int], Exchange], int, int]
"""Makes the call with a version's step back and a correlation id; when it begins, and how long it takes."""


@dataclass
class Proxy:
    """A proxy between two networks, and what it makes of each call."""

    random: Random
    scene: Scene = field(default_factory=Scene)
    truth: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    """Port and correlation id of a client's call -> those of the upstream call."""
    direct: set[int] = field(default_factory=set)
    """Ports of clients that go without it."""
    front: Endpoint = FRONT
    back: str = "10.2.0.100"
    broker: Endpoint = BROKER
    local: frozenset[int] = frozenset()
    """Calls that it answers itself, by their place in a connection."""
    step: int = 0
    """Its versions are so much lower."""
    changes: bool = True
    """Else it passes on what it gets, byte for byte."""

    def carry(self, host: str, begin: int, calls: Iterator[Made]) -> None:
        """A connection of a client, and the proxy's to the broker."""
        number = len(self.scene.scripts)
        client = self.scene.connection(Endpoint(host, 40_000 + number), self.front)
        upstream = self.scene.connection(Endpoint(self.back, 50_000 + number), self.broker)
        client.open(at=begin)
        upstream.open(at=begin + 2 * MILLISECOND)
        for place, (make, at, took) in enumerate(calls):
            own = place + 1
            other = 7 * place + 100 if self.changes else own
            client.call(make(0, own), at=at, answer_at=at + took)
            if place in self.local:
                continue
            late, early = (self.random.randint(50, 800) * MICROSECOND for _ in range(2))
            upstream.call(make(self.step, other), at=at + late, answer_at=at + took - early)
            self.truth[40_000 + number, own] = 50_000 + number, other

    def pass_by(self, host: str, begin: int, calls: Iterator[Made]) -> None:
        """A client that has the broker's address."""
        number = len(self.scene.scripts)
        script = self.scene.connection(Endpoint(host, 40_000 + number), self.broker)
        self.direct.add(40_000 + number)
        script.open(at=begin)
        for place, (make, at, took) in enumerate(calls):
            script.call(make(0, place + 1), at=at, answer_at=at + took)


def _ask_metadata(name: str) -> Callable[[int, int], Exchange]:
    def make(step: int, number: int) -> Exchange:
        return messages.metadata(9 - step, number, ["orders"], client_id=name)

    return make


def _send(name: str, records: bytes) -> Callable[[int, int], Exchange]:
    def make(step: int, number: int) -> Exchange:
        return messages.produce(9 - step, number, {"orders": {0: records}}, client_id=name)

    return make


def _read(name: str, records: bytes) -> Callable[[int, int], Exchange]:
    def make(step: int, number: int) -> Exchange:
        return messages.fetch(12 - step, number, {"orders": {0: records}}, client_id=name)

    return make


def _produce(random: Random, name: str, begin: int) -> Iterator[Made]:
    at = begin + 5 * MILLISECOND
    yield _ask_metadata(name), at, 5 * MILLISECOND
    for _ in range(random.randint(3, 30)):
        at += random.randint(6, 80) * MILLISECOND
        records = batch([random.randbytes(8)], time_ms=random.randrange(1 << 40))
        yield _send(name, records), at, random.randint(3, 5) * MILLISECOND


def _fetch(random: Random, name: str, begin: int) -> Iterator[Made]:
    """Most fetches find nothing, as those of consumers that have read all."""
    at = begin + 5 * MILLISECOND
    yield _ask_metadata(name), at, 5 * MILLISECOND
    for number in range(random.randint(10, 40)):
        at += random.randint(6, 9) * MILLISECOND
        records = batch([b"x"], base_offset=number, time_ms=number) if random.random() < 0.2 else b""
        took = random.randint(3, 60) * MILLISECOND
        yield _read(name, records), at, took
        at += took


def _play(proxy: Proxy, name: Callable[[int], str] = "client-{}".format) -> None:
    random = proxy.random
    for number in range(CLIENTS):
        begin = random.randint(0, 2_000) * MILLISECOND
        work = random.choice([_produce, _fetch])
        proxy.carry(f"10.1.0.{number + 1}", begin, work(random, name(number), begin))
        if number % 4 == 0:
            proxy.pass_by(f"10.2.0.{number + 2}", begin, work(random, name(number), begin))


def _joined(folder: Path, proxy: Proxy, packets: Any = None) -> tuple[int, int, list[Any]]:
    """How many calls are joined rightly, of how many; and those that are joined wrongly."""
    rows = analyzed_packets(folder, proxy.scene.packets() if packets is None else packets)["api_calls"]
    by_id = {row["call_id"]: (row["client_port"], row["correlation_id"]) for row in rows}
    found = {by_id[row["call_id"]]: by_id[row[COLUMN]] for row in rows if row[COLUMN] is not None}
    seen = {*by_id.values()}
    wanted = {call: other for call, other in proxy.truth.items() if call in seen and other in seen}
    wrong = [(call, other) for call, other in found.items() if proxy.truth.get(call) != other]
    return sum(found.get(call) == other for call, other in wanted.items()), len(wanted), wrong


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    "how",
    [
        {},
        {"step": 1},
        {"local": frozenset([0])},
        {"changes": False},
        {"back": FRONT.address},
        {"front": Endpoint("127.0.0.1", 19092), "back": "127.0.0.1", "broker": Endpoint("127.0.0.1", 9092)},
    ],
    ids=["plain", "versions", "answers_metadata", "balancer", "one_address", "loopback"],
)
def test_calls_through_a_proxy_have_their_upstream_calls(
    tmp_path: Path, how: dict[str, Any], seed: int
) -> None:
    proxy = Proxy(Random(seed), **how)
    _play(proxy)
    right, wanted, wrong = _joined(tmp_path, proxy)
    assert wrong == []
    assert right >= 0.99 * wanted > 200


@pytest.mark.parametrize("seed", range(4))
def test_of_half_a_capture_no_call_is_joined_wrongly(tmp_path: Path, seed: int) -> None:
    """Clients have one id, and connections begin before the capture."""
    proxy = Proxy(Random(seed))
    _play(proxy, lambda _: "rdkafka")
    packets = proxy.scene.packets()
    right, wanted, wrong = _joined(tmp_path, proxy, packets[len(packets) // 2 :])
    assert wrong == []
    assert right > 0.9 * wanted > 50


def test_without_a_proxy_no_call_is_joined(tmp_path: Path) -> None:
    """Clients with one id on several hosts, and two brokers."""
    proxy = Proxy(Random(1))
    for number in range(CLIENTS):
        begin = proxy.random.randint(0, 500) * MILLISECOND
        work = proxy.random.choice([_produce, _fetch])
        proxy.broker = Endpoint("10.2.0.1", 9092 + number % 2)
        proxy.pass_by(f"10.2.0.{number + 2}", begin, work(proxy.random, "rdkafka", begin))
    assert _joined(tmp_path, proxy) == (0, 0, [])


def test_a_retry_at_another_broker_is_no_upstream_call(tmp_path: Path) -> None:
    """The first broker does not respond."""
    scene = Scene()
    records = batch([b"paid"], producer=(7, 0, 0))
    first, second = (
        scene.connection(Endpoint("127.0.0.1", 40_000 + port), Endpoint("127.0.0.1", port))
        for port in (9092, 9093)
    )
    first.open(at=0)
    second.open(at=0)
    sent = messages.produce(9, 1, {"orders": {0: records}})
    first.call(sent.unanswered(), at=10 * MILLISECOND)
    second.call(sent, at=900 * MILLISECOND, answer_at=905 * MILLISECOND)
    rows = analyzed_packets(tmp_path, scene.packets())["api_calls"]
    assert [row[COLUMN] for row in rows] == [None, None]


def _upstream_ids() -> list[int | None]:
    ids: list[int | None] = kwsniff.analyze(RECORDED / "capture.pcap.gz").api_calls[COLUMN].to_pylist()
    return ids


def test_calls_joined_in_parts_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = _upstream_ids()
    monkeypatch.setattr(proxied_calls, "_CALLS_TOGETHER", 1)
    monkeypatch.setattr(proxied_calls, "_TOGETHER", 1)
    assert _upstream_ids() == whole


@pytest.mark.parametrize("seed", range(4))
def test_parts_of_a_large_run_show_the_proxy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(proxied_calls, "_FEW_CALLS", 0)
    monkeypatch.setattr(proxied_calls, "_PART", 16)
    proxy = Proxy(Random(seed))
    _play(proxy)
    right, wanted, wrong = _joined(tmp_path, proxy)
    assert (wrong, right >= 0.99 * wanted) == ([], True)


def test_of_more_calls_than_the_memory_allows_none_is_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proxied_calls, "_BYTES_OF_A_CALL", 1 << 40)
    assert not any(_upstream_ids())


def _ports() -> dict[int, int]:
    with (RECORDED / "proxied.tsv").open(newline="") as file:
        rows = csv.DictReader(file, delimiter="\t")
        return {int(row["client_port"]): int(row["upstream_port"]) for row in rows}


@pytest.mark.parametrize("on_disk", [True, False])
def test_calls_through_kroxylicious_are_those_of_its_log(tmp_path: Path, *, on_disk: bool) -> None:
    output = tmp_path / "tables" if on_disk else None
    found = kwsniff.analyze(RECORDED / "capture.pcap.gz", output=output)
    rows = found.api_calls.to_pylist()
    by_id = {row["call_id"]: row for row in rows}
    joined = [(row, by_id[row[COLUMN]]) for row in rows if row[COLUMN] is not None]
    ports = _ports()
    assert all(ports[row["client_port"]] == other["client_port"] for row, other in joined)
    assert all(
        (row["api_name"], row["client_id"]) == (other["api_name"], other["client_id"])
        for row, other in joined
    )
    assert len(joined) >= 0.99 * sum(row["client_port"] in ports for row in rows) > 90


def test_the_question_says_how_long_the_proxy_takes(tmp_path: Path) -> None:
    found = kwsniff.analyze(RECORDED / "capture.pcap.gz", output=tmp_path)
    by_id = {row["call_id"]: row for row in found.api_calls.to_pylist()}
    both = [
        (row["latency_ns"], by_id[row[COLUMN]]["latency_ns"])
        for row in by_id.values()
        if row[COLUMN] is not None
    ]
    own = [one - other for one, other in both if None not in (one, other)]
    rows = kwsniff.sql(tmp_path, load_questions()["proxies"].query).to_pylist()
    answer = [tuple(row.values()) for row in rows]
    assert sum(row[2] for row in answer) == len(both)
    assert min(own) > 0
    upstream = [by_id[row[COLUMN]] for row in by_id.values() if row[COLUMN] is not None]
    refused = sum(bool(row["error_code"]) for row in upstream)
    assert [sum(row[at] for row in answer) for at in (5, 6)] == [refused, 0]
