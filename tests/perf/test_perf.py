"""The benchmark runs and prints every row. How fast it was is nobody's test."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from tests.perf import against, instructions, loads, repeat
from tests.perf.measure import Measured
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
    both = loads.rounds(partial(loads.small, connections=4))
    scene = both[0]
    path = tmp_path / "small.pcap"
    one = len(pcap(frames(repeat.acknowledged(scene.packets(), 2))))
    calls = repeat.write(path, both, megabytes=2 * one / 1e6, period_ns=loads.SMALL_PERIOD)
    assert calls == 2 * len(scene.calls)
    twice = Scene()
    for script in scene.scripts:
        again = twice.connection(script.client, script.broker)
        again.open()
        for number in range(2):
            for call in both[number].scripts[script.number].calls:
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
    rows: list[Frame] = frames(loads.small(loads.Offsets(), connections=2).packets())
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


CALLGRIND = """# callgrind format
events: Ir

ob=(1) /usr/lib/libc.so.6
fl=(1)
fn=(1) memcpy
3 100
cob=(2) /a/kwsniff/core/tcp/streams.cpython-311-x86_64-linux-gnu.so
cfn=(2) take_segment
calls=1 3
4 42
ob=(2)
fn=(2)
+2 40
cob=(1)
cfn=(1)
calls=7 3
+1 100
* 2
ob=(1)
fn=(3) memset
5 8
totals: 150
"""


def test_instructions_of_what_was_called_are_counted_once(tmp_path: Path) -> None:
    (tmp_path / "out").write_text(CALLGRIND)
    assert instructions.read_callgrind(tmp_path / "out") == instructions.Counted(42 / 1e6, 150 / 1e6)


def test_more_instructions_than_kept_are_told(tmp_path: Path) -> None:
    lines = [
        instructions.Line(name, "small", core, 2000.0, 300.0) for name, core in (("a", 1000.0), ("b", 980.0))
    ]
    instructions.keep(lines[:1], tmp_path / "history.tsv")
    instructions.keep(lines[1:], tmp_path / "history.tsv")
    history = instructions.kept(tmp_path / "history.tsv")
    assert history == lines
    now = instructions.Line("c", "small", 1020.0, 1900.0, 309.0)
    last, chosen = instructions.latest(history, "small"), instructions.latest(history, "small", "a")
    assert last == lines[1] and chosen == lines[0]
    assert instructions.latest(history, "small", made_with="another compiler") is None
    assert instructions.latest(history, "small", made_with="") == lines[1]
    assert instructions.grown(now, lines[1]) == ["core"]
    assert instructions.grown(now, lines[0]) == []


def test_of_twenty_mixed_calls_eight_write_and_eight_read() -> None:
    scene = loads.mixed(loads.Offsets(), connections=3, topics=5)
    for script in scene.scripts:
        keys = sorted(call.exchange.api_key for call in script.calls)
        assert keys == [0] * 8 + [1] * 8 + [3, 8, 12, 12]


def test_a_share_of_the_heartbeats_and_commits_fails() -> None:
    scene = loads.mixed(loads.Offsets(), connections=200, topics=37, errors=0.5)
    failed = {12: 0, 8: 0}
    for call in scene.calls:
        if call.exchange.api_key in failed and call.exchange.facts.errors:
            failed[call.exchange.api_key] += 1
    assert 150 < failed[12] < 250 and 70 < failed[8] < 130


def test_a_revision_that_git_does_not_know_is_one_line(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.perf", "--quick", "--keep", str(tmp_path), "--against", "no-such"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("no-such: git rev-parse") and done.stderr.count("\n") == 1


def test_this_checkout_beside_itself_has_the_same_rows(tmp_path: Path) -> None:
    capture = tmp_path / "small.pcap"
    repeat.write(
        capture,
        loads.rounds(partial(loads.small, connections=4)),
        megabytes=0.0,
        period_ns=loads.SMALL_PERIOD,
    )
    (first, second), other = against.take_turns([against.ROOT] * 2, capture, tmp_path, 1)
    assert [run.problem for run in first + second] == [None, None]
    assert first[0].peak_bytes > 20_000_000 and other == []


def test_other_rows_are_named() -> None:
    before = {"api_calls": 3, "findings": 1, "commits": 2}
    assert against.differing(before, {"api_calls": 3, "findings": 9, "members": 5}) == []
    assert against.differing(before, {"api_calls": 4, "commits": 1}) == ["api_calls", "commits"]


def test_ratios_are_those_of_the_best_and_of_the_medians() -> None:
    lines: list[tuple[str, ...]] = []
    ours = [Measured(seconds, 2 * seconds, 10**8) for seconds in (3.0, 1.0, 2.0)]
    theirs = [Measured(seconds, seconds, 2 * 10**8) for seconds in (4.0, 2.0, 9.0)]
    against.report(
        lambda *columns: lines.append(columns), "load", ["this", "that"], [ours, theirs], ["commits"]
    )
    assert lines[1][1:] == ("1.00 s", "2.00 s", "2.00 s", "4.00 s", "100 MB")
    assert lines[3] == ("  ratio", "0.500x", "0.500x", "1.000x", "1.000x", "0.500x")
    assert lines[4] == ("  tables with other rows", "commits")
