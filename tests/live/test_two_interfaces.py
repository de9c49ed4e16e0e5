"""Two interfaces that see the same packets, as of a bridge or a router: `live` counts these once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kwsniff.live.session import Session
from kwsniff.live.sniff import Sniffer
from kwsniff.sources.replay import Replay
from tests.pipeline.places import CLOCKS, frames_of
from tests.traffic.files import Frame, Resolution, pcapng

BEHIND_NS = 20_000


def followed(path: Path) -> Any:
    """What `live` makes of a capture, at once."""
    source = Replay(str(path), speed=0.0)
    return Sniffer(Session(source), interval=0.01, duration=None, stop_after=None).result()


def two_interfaces(frames: list[Frame], folder: Path) -> Path:
    """A capture of dumpcap on two interfaces: each packet passes the first, then the second."""
    pairs = [each for row in frames for each in (row, replace(row, time_ns=row.time_ns + BEHIND_NS))]
    path = folder / "both.pcapng"
    path.write_bytes(pcapng(pairs, resolutions=[Resolution(9), Resolution(9)]))
    return path


@pytest.mark.parametrize("recording", ["near", "loss_2"])
def test_calls_and_bytes_of_two_interfaces_count_once(recording: str, tmp_path: Path) -> None:
    """The witness is the same traffic of one interface."""
    path = CLOCKS / recording / "client.pcap"
    frames = frames_of(path)
    both, one = followed(two_interfaces(frames, tmp_path)), followed(path)
    for name in ("api_calls", "latencies", "error_codes", "partitions", "stalls", "tcp_events"):
        assert both.table(name).num_rows == one.table(name).num_rows, name
    for side in ("client", "broker"):
        for what in ("bytes", "retransmitted_bytes", "packets"):
            counted = [each.table("connections")[f"{side}_{what}"].to_pylist() for each in (both, one)]
            assert counted[0] == counted[1], (side, what)
    copies = sum(both.table("connections")["duplicate_packets"].to_pylist())
    assert copies > 0.9 * sum(one.table("captures")["tcp_packets"].to_pylist())
    assert both.table("hops").num_rows == 0
    assert both.table("captures")["place"].to_pylist() == [None]
