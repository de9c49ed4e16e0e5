"""Recordings with packets taken out as a kernel drops them: nothing false is said of any call. `python -m
tests.pipeline.drops` takes every recording and more seeds."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from tests.pipeline.drops import APART, ROOT, WAYS, Truth, judge, packets_of, rows, tried

RECORDINGS = (
    "captures/clocks/far_40/client.pcap",
    "captures/clocks/data_every_300_far/client.pcap",
    "captures/incidents/idle_sarama/broker.pcap",
    "captures/incidents/broker_stalled/client.pcap",
    "captures/killed_broker/capture.pcap",
    "captures/sasl_scram/capture.pcap",
    "captures/tls_sasl/capture.pcap",
    "captures/tls_suites/capture.pcap",
    "captures/zookeeper_2_8/capture.pcap",
)


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", RECORDINGS)
def test_nothing_false_is_said_where_packets_were_dropped(name: str) -> None:
    total: Counter[str] = Counter()
    found: list[str] = []
    for _, _, faults, where in tried(ROOT / name, seeds=2):
        total += faults
        found += where
    assert {fault: count for fault, count in total.items() if fault not in APART} == {}, found


@pytest.mark.parametrize(
    ("false", "told"),
    [
        ({"status": "unanswered", "reason": "passed_over", "response_frame": None}, "said passed_over"),
        ({"status": "no_response_expected"}, "said no_response_expected"),
        ({"response_bytes": 7}, "wrong answer"),
        ({"latency_ns": 7}, "wrong latency"),
        ({"correlation_id": -77}, "invented"),
        ({"status": "unanswered", "reason": "open_at_end", "response_frame": None}, ""),
        ({"status": "response_not_captured", "reason": "segment_lost", "response_frame": None}, ""),
    ],
)
def test_a_false_claim_is_found(false: dict[str, Any], told: str) -> None:
    path = ROOT / "captures/first_steps/capture.pcap"
    link, frames = packets_of(path)
    whole = rows(link, frames)
    row = next(r for r in whole["api_calls"] if r["status"] == "answered" and r["latency_ns"])
    numbers = range(1, len(frames) + 1)
    assert judge(row, Truth(whole), numbers) == ""
    assert judge(row | false, Truth(whole), numbers) == told


@pytest.mark.parametrize(
    ("way", "least", "most"),
    [("3 of 20", 0.13, 0.17), ("40% alone", 0.37, 0.43), ("bursts of 30, 20%", 0.15, 0.25)],
)
def test_so_many_packets_are_dropped(way: str, least: float, most: float) -> None:
    kept: Sequence[bool] = WAYS[way](20_000, random.Random(1))
    assert least <= 1 - sum(kept) / len(kept) <= most


def test_every_packet_of_a_recording_is_there() -> None:
    """pcap and pcapng, against the number that kwsniff's own reader counts."""
    for name in ("first_steps/capture.pcap", "codecs/capture.pcapng", "snaplen_96/capture.pcap"):
        import kwsniff

        path = ROOT / "captures" / name
        (row,) = kwsniff.analyze([str(path)]).captures.to_pylist()
        assert len(packets_of(path)[1]) == row["packets"]
