"""The benchmark runs and prints every row. How fast it was is nobody's test."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.perf import loads, repeat
from tests.traffic.exchange import Exchange
from tests.traffic.files import Frame, frames, pcap
from tests.traffic.tcp import Scene

ROOT = Path(__file__).parents[2]


def read_pcap(data: bytes) -> list[tuple[int, bytes]]:
    """Times (µs) and bytes of every record."""
    out = []
    at = 24
    while at < len(data):
        seconds, micros, size, _ = (
            int.from_bytes(data[at + i : at + i + 4], "little") for i in (0, 4, 8, 12)
        )
        out.append((seconds * 10**6 + micros, data[at + 16 : at + 16 + size]))
        at += 16 + size
    return out


def test_rounds_go_on_where_the_last_one_ended(tmp_path: Path) -> None:
    """Two rounds by patching are what one script of twice the calls would have written, checksums aside."""
    scene = loads.small(connections=4)
    path = tmp_path / "small.pcap"
    one = len(pcap(frames(repeat.acknowledged(scene.packets(), 2))))
    calls = repeat.write(path, scene, megabytes=2 * one / 1e6, period_ns=loads.SMALL_PERIOD)
    assert calls == 2 * len(scene.calls)
    twice = Scene()
    for script in scene.scripts:
        again = twice.connection(script.client, script.broker)
        again.open()
        for number in range(2):
            for call in script.calls:
                shift = number * len(script.calls)
                made = _renumbered(call.exchange, shift)
                index = call.exchange.correlation_id - 1
                at = 1_000_000 * (2 + 2 * index) + script.number * 20_000 + number * loads.SMALL_PERIOD
                again.call(made, at=at, answer_at=at + 1_000_000)
    expected = read_pcap(pcap(frames(repeat.acknowledged(twice.packets(), 2))))
    written = read_pcap(path.read_bytes())
    assert [time for time, _ in written] == [time for time, _ in expected]
    assert [_comparable(data) for _, data in written] == [_comparable(data) for _, data in expected]


def _comparable(frame: bytes) -> bytes:
    """Without the TCP checksum and the time stamp option, which stay those of the first round."""
    return frame[:50] + frame[52:54] + frame[66:]


def _renumbered(exchange: Exchange, shift: int) -> Exchange:
    number = (exchange.correlation_id + shift).to_bytes(4, "big")
    request = exchange.request[:8] + number + exchange.request[12:]
    response = None if exchange.response is None else exchange.response[:4] + number + exchange.response[8:]
    return replace(exchange, request=request, response=response)


def test_frames_have_the_size_they_say() -> None:
    rows: list[Frame] = frames(loads.small(connections=2).packets())
    assert all(len(row.data) == row.length for row in rows)


@pytest.mark.slow
def test_benchmark_prints_every_row(tmp_path: Path) -> None:
    pytest.importorskip("kwsniff.core.analyzer", reason="the analyzer is not built")
    done = subprocess.run(
        [sys.executable, "-m", "tests.perf", "--quick", "--keep", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "not measured" not in done.stdout, done.stdout
    wanted = ["kwsniff analyze -o", "kwsniff.analyze, warm", "peak memory, large", "peak memory, small"]
    wanted += ["Fetch 12 response", "Metadata 9 response", "Produce 9 request", "kwsniff --help"]
    if shutil.which("tshark"):
        wanted.append("tshark, fields")
    assert [row for row in wanted if row not in done.stdout] == []
