"""Queues on the way count for the network, as far as acknowledgements prove them."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

import kwsniff
from tests.core.hand import START_NS, Talk, request, response, tables_of

ROOT = Path(__file__).parents[2]
MS = 1_000_000
WAY = 20 * MS


def _latency(acked_ms: int | None, answered_ms: int, *, at_broker: bool = False) -> dict[str, Any]:
    """The last of four calls, 20 ms away from its broker: its acknowledgement comes after so much (None: with
    the answer), its answer after `answered_ms`. The others take 21 ms."""
    way = 0 if at_broker else WAY
    talk, times, at = (
        Talk().open(),
        [0, way or 1_000, (way or 1_000) + (WAY if at_broker else 1_000)],
        100 * MS,
    )
    for number in range(4):
        acked, answered = (acked_ms, answered_ms) if number == 3 else (None, way // MS + 1)
        talk.send(True, request(number))
        times.append(at)
        if acked is not None:
            talk.send(False)
            times.append(at + acked * MS)
        talk.send(False, response(number))
        times.append(at + answered * MS)
        talk.send(True)
        times.append(times[-1] + (WAY if at_broker else 1_000))
        at = times[-1] + 50 * MS
    tables = tables_of(talk.packets, times_ns=[START_NS + each for each in times])
    return max(tables["latencies"], key=lambda row: row["call_id"])


def test_an_acknowledgement_that_comes_with_the_answer_after_long_waited_in_a_queue() -> None:
    """No receiver holds it up for 300 ms: the answer was there soon, and both were on their way."""
    row = _latency(None, 320)
    assert row["network_ns"] == 319 * MS
    assert row["broker_ns"] == 1 * MS


def test_an_acknowledgement_of_its_own_that_comes_late_tells_the_way() -> None:
    row = _latency(200, 320)
    assert row["network_ns"] == 200 * MS
    assert row["broker_ns"] == 120 * MS


@pytest.mark.parametrize("acked_ms", [20, 21, 59, 61])
def test_a_broker_that_is_slow_acknowledges_and_is_blamed(acked_ms: int) -> None:
    """Its kernel does so immediately, or 40 ms later."""
    row = _latency(acked_ms, 320)
    assert row["network_ns"] == WAY
    assert row["broker_ns"] == 300 * MS


@pytest.mark.parametrize("answered_ms", [25, 50, 65])
def test_an_acknowledgement_that_a_receiver_may_have_held_up_proves_no_queue(answered_ms: int) -> None:
    row = _latency(None, answered_ms)
    assert row["network_ns"] == WAY


@pytest.mark.parametrize("acked_ms", [None, 200])
def test_beside_the_broker_all_is_the_brokers(acked_ms: int | None) -> None:
    row = _latency(acked_ms, 320, at_broker=True)
    assert row["broker_ns"] == 320 * MS


def _logged(folder: Path) -> dict[tuple[int, int], int]:
    """Port of the client and correlation id -> what the broker's log says that it took, in nanoseconds."""
    with (folder / "witness.tsv").open(encoding="utf-8") as file:
        return {
            (int(row["client_port"]), int(row["correlation_id"])): int(row["total_us"]) * 1_000
            for row in csv.DictReader(file, delimiter="\t")
        }


def test_on_a_full_link_brokers_take_what_their_log_says() -> None:
    folder = ROOT / "captures" / "incidents" / "link_full_java"
    found, logged = kwsniff.analyze(folder / "client.pcap"), _logged(folder)
    latencies = {row["call_id"]: row for row in found.latencies.to_pylist()}
    ours, theirs, network = [], [], 0
    for call in found.api_calls.to_pylist():
        took = logged.get((call["client_port"], call["correlation_id"]))
        if took is not None and (row := latencies.get(call["call_id"])):
            ours.append(row["broker_ns"] + row["queue_wait_ns"] + row["deliberate_wait_ns"])
            theirs.append(took)
            network += row["network_ns"]
    assert len(ours) == 97
    assert max(abs(one - other) for one, other in zip(ours, theirs, strict=True)) <= 20 * MS
    assert abs(sum(ours) - sum(theirs)) <= 97 * MS
    assert network > 50 * sum(theirs)


def test_the_client_that_fills_a_link_is_named() -> None:
    """bulk writes 57 kB/s into a line of 40 kB/s; the relay's round trip is 30 ms without a queue."""
    (finding,) = (
        row
        for row in kwsniff.analyze(
            ROOT / "captures/incidents/link_full_java/client.pcap"
        ).findings.to_pylist()
        if row["severity"] != "info"
    )
    assert (finding["finding"], finding["blames"], finding["subject"]) == ("link_full", "network", "bulk")
    assert 30 <= finding["expected"] <= 40
    assert finding["value"] >= 100


@pytest.mark.parametrize("name", ["healthy_thin", "healthy_far", "slow_broker_far"])
def test_where_no_link_is_full_none_is_named(name: str) -> None:
    found = kwsniff.analyze(ROOT / "captures" / "incidents" / name / "client.pcap").findings.to_pylist()
    assert "link_full" not in {row["finding"] for row in found}
