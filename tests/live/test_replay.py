"""Captures in the place of an interface: the rows are those of `kwsniff analyze`, at whatever pace."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import kwsniff
from kwsniff.findings.views import FOUND
from kwsniff.live.session import Session
from kwsniff.live.sniff import Sniffer
from kwsniff.sources.files import CaptureFile
from kwsniff.sources.replay import Replay, pace
from kwsniff.sources.times import TimeRange
from kwsniff.tables.schema import TABLES

from .running import PATIENCE_S, ROOT
from .test_findings import packets
from .test_session import in_order, plain

pytestmark = pytest.mark.sample_tests(5)

CAPTURES = sorted(ROOT.glob("captures/*/capture.pcap*"))[::6]
COMPARED = TABLES.keys() - FOUND  # those are of a folder
ONE = next(ROOT.glob("captures/group_classic/capture.pcap*"))


def live(*options: str, **given: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "kwsniff", "live", *options],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=PATIENCE_S, **given,
    )  # fmt: skip


def rows_of(source: Replay) -> dict[str, list[str]]:
    """Table -> its rows as text, sorted."""
    result = Sniffer(Session(source), interval=0.01, duration=None, stop_after=None).result()
    return {name: in_order(plain(name, result.table(name))) for name in COMPARED}


def rows_of_analysis(**options: Any) -> dict[str, list[str]]:
    analysis = kwsniff.analyze(**options)
    return {name: in_order(plain(name, analysis.table(name))) for name in COMPARED}


@pytest.mark.sample(6)
@pytest.mark.parametrize("capture", CAPTURES, ids=lambda path: path.parent.name)
def test_rows_are_those_of_analyze(capture: Path) -> None:
    found = rows_of(Replay(str(capture), speed=0.0))
    expected = rows_of_analysis(paths=str(capture))
    for name in COMPARED:
        assert found[name] == expected[name], name


def test_rows_are_those_of_analyze_at_a_pace_and_between_two_times() -> None:
    times = TimeRange("+100ms", "+1s")
    found = rows_of(Replay(str(ONE), speed=500.0, times=times))
    expected = rows_of_analysis(paths=str(ONE), since="+100ms", until="+1s")
    assert 0 < len(expected["api_calls"]) < kwsniff.analyze(ONE).api_calls.num_rows
    for name in COMPARED:
        assert found[name] == expected[name], name


@pytest.mark.sample(2)
@pytest.mark.parametrize("size", [1, 50, 4_000, 1 << 20])
@pytest.mark.parametrize("capture", CAPTURES[:3], ids=lambda path: path.parent.name)
def test_a_pace_changes_no_byte_and_cuts_between_packets(capture: Path, size: int) -> None:
    with CaptureFile(capture) as opened:
        data = b"".join(bytes(buffer) for buffer in opened.buffers())[:20_000]
    pieces = list(pace(memoryview(data)[at : at + size] for at in range(0, len(data), size)))
    assert b"".join(piece for piece, _ in pieces) == data
    times = [time for _, time in pieces if time is not None]
    assert len(times) > 3


def test_packets_come_at_their_time() -> None:
    """Every piece begins with the packet that its time is of; none holds more than 20 ms."""
    capture = next(ROOT.glob("captures/incidents/healthy_idle/broker.pcap"))
    data = capture.read_bytes()
    assert data[:4] in (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1")
    known = dict(packets(data))
    at = 0
    for piece, time in pace([memoryview(data)]):
        if time is not None:
            assert known[at] == pytest.approx(time / 1e9, abs=1e-6)
            inside = [moment for place, moment in known.items() if at <= place < at + len(piece)]
            assert max(inside) - min(inside) <= 0.0201
        at += len(piece)


@pytest.mark.slow
@pytest.mark.sample(1)
@pytest.mark.parametrize("packed", [False, True])
def test_a_pipe_is_read_to_its_end(packed: bool, tmp_path: Path) -> None:
    data = ONE.read_bytes()
    path = tmp_path / "input"
    path.write_bytes(gzip.compress(data) if packed else data)
    with path.open("rb") as given:
        done = live("-i", "-", "--json", "-o", str(tmp_path / "out"), stdin=given)
    assert done.returncode == 0, done.stderr
    calls = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(calls) == kwsniff.analyze(ONE).api_calls.num_rows
    assert {call["capture"] for call in calls} == {"-"}


def test_a_fifo_is_read_as_it_comes(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    writer = threading.Thread(target=lambda: fifo.write_bytes(ONE.read_bytes()))
    writer.start()
    done = live("-i", str(fifo), "--json", stdin=subprocess.DEVNULL)
    writer.join()
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == kwsniff.analyze(ONE).api_calls.num_rows


def test_a_pipe_that_breaks_off_is_no_success(tmp_path: Path) -> None:
    path = tmp_path / "cut"
    path.write_bytes(ONE.read_bytes()[:5_001])
    with path.open("rb") as given:
        done = live("-i", "-", "--lines", stdin=given)
    assert done.returncode == 2
    assert "standard input ended in the middle of a packet" in done.stderr


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["-i", "nosuch.pcap"], "no such interface and no such file: 'nosuch.pcap'"),
        (["-i", "nosuch/x.pcap"], "no such file"),
        (["-i", "README.md"], "README.md: not a pcap or pcapng capture"),
        (["-i", "captures"], "captures: is a directory"),
        (["-i", "README.md", "--tool", "dumpcap"], "--tool applies only to interfaces"),
        (["-i", "lo", "--speed", "2"], "--speed applies only to"),
        (["-i", "lo", "--since", "+1s"], "--since and --until cannot be used with an interface"),
        (["-i", str(ONE), "--speed", "fast"], "--speed fast: give a factor"),
        (["-i", str(ONE), "-i", "lo"], "live replays one capture"),
    ],
)
def test_what_cannot_be_read_is_said_in_a_line(options: list[str], says: str) -> None:
    done = live(*options, "--lines", stdin=subprocess.DEVNULL)
    assert done.returncode == 2
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_an_empty_pipe_is_no_success() -> None:
    done = live("-i", "-", "--lines", stdin=subprocess.DEVNULL)
    assert done.returncode == 2
    assert "is empty" in done.stderr


@pytest.fixture
def silent() -> Iterator[subprocess.Popen[str]]:
    """`kwsniff live` on a pipe through which nothing comes any more."""
    process = subprocess.Popen(
        [sys.executable, "-m", "kwsniff", "live", "-i", "-", "--json"],
        cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    yield process
    process.kill()
    process.communicate()


def test_a_silent_pipe_ends_when_it_is_asked_to(silent: subprocess.Popen[str]) -> None:
    assert silent.stdin is not None
    assert silent.stdout is not None
    os.write(silent.stdin.fileno(), ONE.read_bytes())
    assert json.loads(silent.stdout.readline())
    silent.send_signal(signal.SIGTERM)
    assert silent.wait(PATIENCE_S) == 0


@pytest.mark.slow
def test_lines_of_a_replay_tell_the_time_of_the_capture() -> None:
    done = live("-i", str(ONE), "--speed", "max", "--json", "--lines", stdin=subprocess.DEVNULL)
    last = json.loads(done.stdout.splitlines()[-1])
    end = kwsniff.analyze(ONE).captures["last_time"][0].as_py()
    assert last["time"].startswith(f"{end:%Y-%m-%dT%H:%M:%S}")
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert sum(each["calls"] for each in told) == kwsniff.analyze(ONE).api_calls.num_rows


@pytest.mark.parametrize("speed", ["8", "max"])
def test_rates_of_a_replay_are_those_of_the_capture(speed: str) -> None:
    """tcpdump counts 151 packets in 0.584 s; 35 calls."""
    capture = next(ROOT.glob("captures/three_brokers/capture.pcap*"))
    shown = live("-i", str(capture), "--speed", speed, "--lines").stdout
    assert "calls/s 59.9 " in shown


@pytest.mark.sample(1)
@pytest.mark.parametrize("chosen", [None, "mimalloc"])
def test_memory_that_threads_freed_can_be_given_back(chosen: str | None) -> None:
    """Not so with Arrow's own allocator, which keeps what is another thread's; who wants that one says so."""
    script = (
        "import sys; from kwsniff.cli.main import run; "
        f"status = run(['live', '-i', {str(ONE)!r}, '--json', '--speed', 'max']); "
        "import pyarrow; print(status, pyarrow.default_memory_pool().backend_name)"
    )
    given = {name: value for name, value in os.environ.items() if name != "ARROW_DEFAULT_MEMORY_POOL"}
    given |= {} if chosen is None else {"ARROW_DEFAULT_MEMORY_POOL": chosen}
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=given,
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE_S,
    )
    assert done.stdout.splitlines()[-1] == f"0 {chosen or 'system'}"
