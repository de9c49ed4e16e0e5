"""The search for the next record: packets of TLS connections are lost, cut, or sent before the capture."""

from __future__ import annotations

import random
from functools import cache
from typing import Any

from kwsniff.core.declared import COLUMNS
from tests.hostile import mutate, sealed, seeds
from tests.traffic import scenes
from tests.traffic.messages import produce
from tests.traffic.records import batch
from tests.traffic.tcp import Packet, Scene

_NAMES = tuple(name for name, _, _ in COLUMNS["api_calls"])
Known = frozenset[tuple[int, int]]


@cache
def _talks() -> list[tuple[list[Packet], Known]]:
    """Packets inside TLS, and the calls that they hold: client's port and correlation id."""
    large = scenes.one_by_one([produce(7, n, {"t": {0: batch([b"z" * 9000])}}) for n in range(6)], mss=1448)
    some: list[tuple[Scene, int, int]] = [
        (scenes.two_clients(), 16_384, 0),
        (large, 16_384, 2),
        (large, 700, 0),
        (scenes.pipelined(3, 20, 300), 500, 0),
        (scenes.one_by_one(scenes.vocabulary()[:20], mss=70), 200, 9),
    ]
    return [
        (
            sealed.sealed(scene, largest, updates=updates),
            frozenset((call.client.port, call.exchange.correlation_id) for call in scene.calls),
        )
        for scene, largest, updates in some
    ]


def searched(seed: int, executions: int, hold: Any) -> None:
    """Whatever is lost: every call is one of the script's, none comes twice, tries are bounded."""
    dice = random.Random(seed)
    for number in range(executions):
        packets, known = dice.choice(_talks())
        rows = mutate.rows_of(_thinned(dice, packets))
        for row in rows:
            if dice.random() < 0.02:  # as a snaplen cuts
                del row.frame[dice.randrange(54, len(row.frame) + 1) :]
        tries = dice.choice((1, 50, 20_000))
        analyzer = seeds.analyzer(limits={"tls_tries": tries}, ports=dice.choice(((), (9092,))))
        secrets = sealed.Secrets(late=dice.random() < 0.2, guesses=dice.random() < 0.7)
        analyzer.open_tls(secrets)
        analyzer.open_capture("hostile")
        data = mutate.capture_of(rows)
        half = dice.randrange(len(data))
        analyzer.feed(hold(data[:half]))
        secrets.come()
        analyzer.secrets_came()
        analyzer.feed(hold(data[half:]))
        analyzer.close_capture()
        analyzer.finish()
        found = _calls(analyzer)
        if len(found) != len(set(found)) or not known.issuperset(found):
            raise AssertionError(f"{sorted(set(found) - known)[:3]}: execution {number}")


def _thinned(dice: random.Random, packets: list[Packet]) -> list[Packet]:
    """Single packets, a run of them, the beginning: lost."""
    share = dice.choice((0.0, 0.01, 0.05, 0.3))
    kept = [packet for packet in packets if dice.random() >= share]
    if dice.random() < 0.3:
        kept = kept[dice.randrange(len(kept) // 2) :]
    if dice.random() < 0.3:
        at = dice.randrange(len(kept))
        del kept[at : at + dice.randrange(20)]
    return kept


def _calls(analyzer: Any) -> list[tuple[int, int]]:
    columns = dict(zip(_NAMES, analyzer.drain("api_calls"), strict=True))
    ports, numbers = (
        memoryview(columns[name][4]).cast("B").cast("i") for name in ("client_port", "correlation_id")
    )
    return list(zip(ports, numbers, strict=True))
