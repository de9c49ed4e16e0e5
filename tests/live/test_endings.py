"""However a live capture ends, its files are whole."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from kwsniff.sources.capture_tools import Recorder
from tests.record.mock import MockCluster

from .running import BEGUN, PATIENCE_S, Live, children_of, needs_capture, ports_of, table, talk

pytestmark = [pytest.mark.live, pytest.mark.slow]


@pytest.fixture(autouse=True)
def _capturing() -> None:
    needs_capture()


@pytest.fixture
def cluster() -> Iterator[MockCluster]:
    with MockCluster(relay="refusing") as running:
        yield running


def whole_files(directory: Path) -> list[Path]:
    """Every parquet file under a final name, each read to its end."""
    files = sorted(directory.glob("*/*.parquet"))
    for path in files:
        pq.ParquetFile(path).read()
    return files


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_completes_the_files(number: signal.Signals, cluster: MockCluster, tmp_path: Path) -> None:
    with Live("--port", ports_of(cluster), "--json", "-o", str(tmp_path)) as live:
        talk("rebalance", cluster)
        calls = live.await_all_calls(cluster)
        assert live.end(number) == 0
    assert whole_files(tmp_path)
    assert table(tmp_path, "api_calls").num_rows == calls == len(live.calls)
    assert table(tmp_path, "captures")["dropped_by_kernel"].to_pylist() == [0]
    assert not list(tmp_path.glob(".*"))
    assert f"{calls} calls in " in live.err[-2]
    assert live.err[-2].endswith("dropped by the kernel: 0, dropped by kwsniff: 0")


def test_kill_9_loses_the_open_files_and_no_others(cluster: MockCluster, tmp_path: Path) -> None:
    with Live("--port", ports_of(cluster), "--json", "-o", str(tmp_path), "--rotate", "0.2s") as live:
        talk("rebalance", cluster)
        calls = live.await_all_calls(cluster)
        await_files(tmp_path, "api_calls", calls)
        children = children_of(live.pid)
        os.kill(live.pid, signal.SIGKILL)
        assert live.ended() == -signal.SIGKILL
    assert whole_files(tmp_path)
    assert table(tmp_path, "api_calls").num_rows == calls
    assert children
    await_death(children)
    with Live("--port", ports_of(cluster), "-o", str(tmp_path)) as live:
        assert live.end() == 0
    assert not list(tmp_path.glob(".*")), "the next run removes what the killed one left"


def test_kill_9_in_the_middle_leaves_nothing_torn(cluster: MockCluster, tmp_path: Path) -> None:
    with Live("--port", ports_of(cluster), "--json", "-o", str(tmp_path)) as live:
        talk("rebalance", cluster)
        live.await_calls(1)
        os.kill(live.pid, signal.SIGKILL)
        live.ended()
    assert whole_files(tmp_path) == []


@pytest.fixture
def pair() -> Iterator[tuple[str, str]]:
    """Two interfaces that are one cable."""
    if shutil.which("ip") is None or os.geteuid() != 0:
        pytest.skip("making an interface needs root and the ip command")
    names = f"kwa{os.getpid() % 10_000}", f"kwb{os.getpid() % 10_000}"
    made = subprocess.run(
        ["ip", "link", "add", names[0], "type", "veth", "peer", "name", names[1]],
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode:
        pytest.skip(f"no pair of interfaces can be made here: {made.stderr.strip()}")
    for name in names:
        subprocess.run(["ip", "link", "set", name, "up"], check=True)
    yield names
    subprocess.run(["ip", "link", "del", names[0]], capture_output=True, check=False)


@pytest.mark.parametrize("tool", ["dumpcap", "tcpdump", "scapy"])
def test_a_vanished_interface_ends_it_cleanly(tool: str, pair: tuple[str, str], tmp_path: Path) -> None:
    if tool == "scapy":
        pytest.importorskip("scapy")
    elif shutil.which(tool) is None:
        pytest.skip(f"{tool} is not installed")
    with Live("--tool", tool, "-o", str(tmp_path), interface=pair[0]) as live:
        subprocess.run(["ip", "link", "del", pair[0]], check=True)
        assert live.ended() == 2
    assert any(f"the interface {pair[0]} vanished" in line for line in live.err), live.err
    assert whole_files(tmp_path)
    assert table(tmp_path, "api_calls").num_rows == 0


@pytest.mark.parametrize("tool", ["dumpcap", "tcpdump"])
def test_a_tool_that_is_killed_is_said_and_what_came_before_is_kept(
    tool: str, cluster: MockCluster, tmp_path: Path
) -> None:
    with Live("--tool", tool, "--port", ports_of(cluster), "--json", "-o", str(tmp_path)) as live:
        talk("rebalance", cluster)
        calls = live.await_all_calls(cluster)
        (child,) = children_of(live.pid)
        os.kill(child, signal.SIGKILL)
        assert live.ended() == 2
    assert any(f"{tool} was killed (SIGKILL)" in line for line in live.err), live.err
    assert whole_files(tmp_path)
    assert table(tmp_path, "api_calls").num_rows == calls


def test_an_output_that_is_full_ends_it_and_the_files_are_whole(cluster: MockCluster, tmp_path: Path) -> None:
    command = ["live", "-i", "lo", "--port", ports_of(cluster), "--json", "-o", str(tmp_path)]
    with Path("/dev/full").open("wb") as full:
        live = subprocess.Popen(
            [sys.executable, "-m", "kwsniff.cli.main", *command],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert live.stderr
        assert BEGUN in live.stderr.readline()
        talk("rebalance", cluster)
        said = live.communicate(timeout=PATIENCE_S)[1].splitlines()
    assert live.returncode == 2
    assert said == [
        "kwsniff: error: cannot write to standard output (No space left on device); the output is incomplete"
    ]
    assert table(tmp_path, "api_calls").num_rows > 0


def test_it_ends_after_a_time(tmp_path: Path) -> None:
    with Live("--duration", "300ms", "-o", str(tmp_path), "--port", "9") as live:
        assert live.ended() == 0
    assert whole_files(tmp_path)


def test_it_ends_after_so_many_calls(cluster: MockCluster) -> None:
    with Live("--port", ports_of(cluster), "--json", "--stop-after", "2") as live:
        talk("rebalance", cluster)
        assert live.ended() == 0
    assert len(live.calls) >= 2


def test_a_reader_that_has_enough_ends_it_and_the_files_are_whole(
    cluster: MockCluster, tmp_path: Path
) -> None:
    with Live("--port", ports_of(cluster), "--json", "-o", str(tmp_path), read=False) as live:
        talk("rebalance", cluster)
        assert live.ended() == 0
    assert table(tmp_path, "api_calls").num_rows > 0


def await_death(pids: list[int]) -> None:
    until = time.monotonic() + PATIENCE_S
    while any(_runs(pid) for pid in pids):
        assert time.monotonic() < until, "the tool outlived the one it captured for"
        time.sleep(0.01)


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def await_files(directory: Path, name: str, rows: int) -> None:
    """Until the complete files of a table have so many rows."""
    until = time.monotonic() + PATIENCE_S
    while not (directory / name).is_dir() or table(directory, name).num_rows < rows:
        assert time.monotonic() < until, f"the files of {name} never had {rows} rows"
        time.sleep(0.02)


@pytest.mark.parametrize("tool", ["dumpcap", "tcpdump"])
def test_what_came_just_before_the_end_is_read(tool: str) -> None:
    """The kernel keeps packets back, up to a second, and a tool that is told to end leaves them there."""
    program = shutil.which(tool)
    if program is None:
        pytest.skip(f"{tool} is not installed")
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as heard,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as speaks,
    ):
        heard.bind(("127.0.0.1", 0))
        chosen = f"udp port {heard.getsockname()[1]}"
        recorder = Recorder(tool, program, ["lo"], expression=chosen, snaplen=1000, buffer_mb=2)
        for number in range(5):
            speaks.sendto(b"said before the end %d" % number, heard.getsockname())
        recorder.stop()
        read = b""
        while part := os.read(recorder.fileno(), 1 << 16):
            read += part
        recorder.close()
    assert [number for number in range(5) if b"said before the end %d" % number in read] == [0, 1, 2, 3, 4]
