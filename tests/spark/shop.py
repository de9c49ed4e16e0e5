"""Ten minutes of a scripted shop in which one topic becomes slow: the capture of docs/slow_topic.ipynb."""

from __future__ import annotations

import math
import random
from pathlib import Path

from tests.spark.compare import rotated
from tests.traffic import messages
from tests.traffic.files import frames, pcap
from tests.traffic.records import batch
from tests.traffic.tcp import MILLISECOND, Endpoint, Scene

MINUTES = 10
SLOW = ("parcels", 4)  # and from which minute on
_LEADERS = {"orders": 1, "payments": 2, "invoices": 3, "parcels": 3}
_EVERY_MS = 400
_ACKNOWLEDGED_MS = 40
"""Linux delays an acknowledgement that long at most."""


def scene() -> Scene:
    """One producer per topic, each with a connection to the broker that leads it."""
    dice = random.Random(7)
    shop = Scene()
    for number, (topic, leader) in enumerate(_LEADERS.items()):
        script = shop.connection(
            Endpoint(f"10.4.0.{number + 1}", 44_000 + number), Endpoint(f"10.4.1.{leader}", 9092)
        )
        script.open()
        for call in range(MINUTES * 60_000 // _EVERY_MS):
            at_ms = 5 + call * _EVERY_MS + number * 90
            took_ms = dice.lognormvariate(math.log(2.5), 0.35)
            if (topic, at_ms // 60_000) >= SLOW and topic == SLOW[0] and dice.random() < 0.4:
                took_ms += dice.uniform(40, 90)
            made = messages.produce(
                7, call + 1, {topic: {call % 3: batch([b"x" * 200])}}, client_id=f"{topic}-writer"
            )
            at = at_ms * MILLISECOND
            script.call(made, at=at, answer_at=at + int(took_ms * MILLISECOND))
            if took_ms > _ACKNOWLEDGED_MS:
                script.acknowledge(at + _ACKNOWLEDGED_MS * MILLISECOND, from_client=False)
    return shop


def write_captures(folder: Path, number: int = 3) -> list[Path]:
    """The packets as files that tcpdump rotated."""
    return rotated(pcap(frames(scene().packets())), number, folder, "shop.pcap")
