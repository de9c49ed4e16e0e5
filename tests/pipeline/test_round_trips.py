"""The round trip that the network time of a call has, and its error, against both ends of recordings."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import kwsniff
from tests.pipeline.compare import decoded
from tests.pipeline.places import CLOCKS
from tests.pipeline.test_latency import exact, heartbeat
from tests.pipeline.test_network import MS, WAY, far, payloads
from tests.traffic.files import frames, pcap
from tests.traffic.tcp import Packet, Scene

PAIRS = sorted(path.parent.name for path in CLOCKS.glob("*/broker.pcap"))
SCHEDULED = 500_000  # nanoseconds by which a machine of two processors passes packets on later


def trips(packets: list[Packet], folder: Path) -> list[tuple[int | None, int | None, int]]:
    """Round trip, its error and network time of each call."""
    names = ("broker_round_trip_ns", "broker_round_trip_error_ns", "network_ns")
    rows = exact(folder, packets)["latencies"]
    return [(row[names[0]], row[names[1]], row[names[2]]) for row in rows]


def outside(path: Path) -> dict[tuple[int, int, int], tuple[int, dict[str, Any]]]:
    """Of each call without retransmissions, by ports and correlation id: time from the end of its request to
    the beginning of its response, and its row."""
    done = kwsniff.analyze(path, tables=["api_calls", "latencies"])
    calls = {row["call_id"]: row for row in done.api_calls.to_pylist()}
    found = {}
    for row in done.latencies.to_pylist():
        call = calls[row["call_id"]]
        took = row["total_ns"] - row["request_transmission_ns"] - row["response_transmission_ns"]
        if not row["retransmissions"]:
            found[call["client_port"], call["broker_port"], call["correlation_id"]] = took, row
    return found


def test_of_recorded_calls_95_percent_were_on_their_way_as_long_as_told() -> None:
    """What a call took longer at the client than beside the broker is the round trip, within its error."""
    right, other = 0, []
    for name in PAIRS:
        here, there = (outside(CLOCKS / name / f"{side}.pcap") for side in ("client", "broker"))
        for key in here.keys() & there.keys():
            took, row = here[key]
            trip, error = row["broker_round_trip_ns"], row["broker_round_trip_error_ns"]
            if trip is None:
                continue
            if abs(took - there[key][0] - trip) <= error + SCHEDULED:
                right += 1
            else:
                other.append((name, key))
        assert all(row["broker_round_trip_ns"] in {0, None} for _, row in there.values()), name
    assert right > 1000
    assert right / (right + len(other)) >= 0.95, other


def test_an_answer_that_is_quicker_than_the_handshake_tells_the_round_trip(tmp_path: Path) -> None:
    scene, script = far()
    script.call(heartbeat(1), at=1000 * MS, answer_at=1100 * MS)
    script.call(heartbeat(2), at=2000 * MS, answer_at=2110 * MS)
    assert trips(scene.packets(), tmp_path) == [(100 * MS, 20 * MS, 100 * MS), (100 * MS, 20 * MS, 100 * MS)]


@pytest.mark.parametrize(("late", "error"), [(10 * MS, 10 * MS), (60 * MS, 0)])
def test_a_later_acknowledgement_of_the_request_is_the_error(late: int, error: int, tmp_path: Path) -> None:
    """Unless the receiver may have delayed it."""
    scene, script = far()
    script.call(heartbeat(1), at=1000 * MS, answer_at=1000 * MS + WAY + 100 * MS)
    packets = scene.packets()
    (request,) = payloads(packets, from_client=True)
    (answer,) = payloads(packets, from_client=False)
    alone = replace(answer, time_ns=request.time_ns + WAY + late, payload=b"")
    found = trips(sorted([*packets, alone], key=lambda packet: packet.time_ns), tmp_path)
    assert found == [(WAY, error, WAY)]


def test_without_handshake_and_acknowledgements_it_is_unknown(tmp_path: Path) -> None:
    scene, script = far()
    script.call(heartbeat(1), at=1000 * MS, answer_at=1000 * MS + WAY)
    packets = [packet for packet in scene.packets() if packet.payload]
    (tmp_path / "midway.pcap").write_bytes(pcap(frames(packets), 1, nanoseconds=True))
    (row,) = decoded(tmp_path / "midway.pcap")["latencies"]
    assert (row["broker_round_trip_ns"], row["broker_round_trip_error_ns"], row["network_ns"]) == (
        None,
        None,
        0,
    )


def test_at_the_broker_it_is_nothing(tmp_path: Path) -> None:
    scene = Scene()
    script = scene.connection()
    script._control(0, True, 2)
    script._control(10_000, False, 2 | 16)
    script._control(10_000 + WAY, True, 16)
    script.call(heartbeat(1), at=1000 * MS, answer_at=1003 * MS)
    assert trips(scene.packets(), tmp_path) == [(0, 10_000, 0)]
