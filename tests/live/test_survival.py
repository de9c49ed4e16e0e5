"""What goes on for weeks needs: room that is given back, and those who watch over it."""

from __future__ import annotations

import gzip
import os
import shutil
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import kwsniff
from kwsniff.cli.live.service import Service
from kwsniff.live.metrics import Metrics
from kwsniff.live.metrics_port import MetricsServer
from kwsniff.live.prometheus import IDLE_S, MOST_SERIES, OTHER, Series
from kwsniff.live.retention import Retention

from .running import ROOT


def files(directory: Path, *ages: float) -> list[Path]:
    """A file of 1,000 bytes for each age, oldest first, in two tables; and one that is nobody's."""
    made = []
    for number, age in enumerate(ages, 1):
        for table in ("api_calls", "latencies"):
            path = directory / table / f"20261120T191500.123456Z-{number:06}.parquet"
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(bytes(1_000))
            os.utime(path, (10_000 - age, 10_000 - age))
            made.append(path)
    (directory / "api_calls" / "mine.parquet").write_bytes(bytes(1_000_000))
    return made


def test_files_go_after_their_time_and_no_others(tmp_path: Path) -> None:
    made = files(tmp_path, 500, 200, 100)
    assert Retention(seconds=150).apply(tmp_path, 10_000) == 4
    assert [path.exists() for path in made] == [False] * 4 + [True] * 2
    assert (tmp_path / "api_calls" / "mine.parquet").exists()


def test_files_go_beyond_their_size_the_oldest_first(tmp_path: Path) -> None:
    made = files(tmp_path, 500, 200, 100)
    Retention(most_bytes=3_500).apply(tmp_path, 10_000)
    assert [path.exists() for path in made] == [False] * 3 + [True] * 3
    assert not Retention()


def test_labels_are_given_back_when_they_are_silent() -> None:
    moment = [0.0]
    series = Series(lambda: moment[0])
    series.declare("calls", "counter", "Calls.", "client")
    for number in range(MOST_SERIES):
        series.count("calls", 1, f"old-{number}")
    series.count("calls", 1, "late")
    assert series.families["calls"].values[(OTHER,)] == 1
    moment[0] = IDLE_S + 1
    series.count("calls", 1, "old-7")
    series.count("calls", 1, "new")
    assert series.families["calls"].values == {("old-7",): 2, ("new",): 1, (OTHER,): 1}


def test_a_label_that_speaks_is_never_given_back() -> None:
    moment = [0.0]
    series = Series(lambda: moment[0])
    series.declare("calls", "counter", "Calls.", "client")
    for second in range(0, 3 * int(IDLE_S), 60):
        moment[0] = float(second)
        series.count("calls", 1, "steady")
        for number in range(MOST_SERIES):
            series.count("calls", 1, f"{second}-{number}")
    assert series.families["calls"].values[("steady",)] == 3 * int(IDLE_S) / 60
    assert len(series.families["calls"].values) <= MOST_SERIES + 1


@pytest.fixture
def port() -> object:
    wrong: list[str | None] = [None]
    metrics = Metrics("dumpcap")
    with MetricsServer(metrics, "127.0.0.1", 0, lambda: wrong[0]) as server:
        yield server.address, wrong


def ask(address: str, method: str, path: str, **headers: str) -> tuple[int, dict[str, str], bytes]:
    host, _, number = address.partition(":")
    connection = HTTPConnection(host, int(number), timeout=20)
    connection.request(method, path, headers={name.replace("_", "-"): text for name, text in headers.items()})
    answer = connection.getresponse()
    return answer.status, dict(answer.headers), answer.read()


def test_health_says_what_is_wrong(port: tuple[str, list[str | None]]) -> None:
    address, wrong = port
    assert ask(address, "GET", "/healthz")[::2] == (200, b"ok\n")
    wrong[0] = "out: no space left"
    assert ask(address, "GET", "/healthz")[::2] == (503, b"out: no space left\n")


def test_head_and_options_are_answered(port: tuple[str, list[str | None]]) -> None:
    address, _ = port
    status, headers, body = ask(address, "HEAD", "/metrics")
    assert (status, body) == (200, b"")
    assert int(headers["Content-Length"]) > 100
    status, headers, body = ask(address, "OPTIONS", "/metrics")
    assert (status, headers["Allow"], body) == (204, "GET, HEAD, OPTIONS", b"")
    assert ask(address, "OPTIONS", "/metrics", Host="evil.example")[0] == 421


def test_gzip_is_what_was_asked_for(port: tuple[str, list[str | None]]) -> None:
    address, _ = port
    _, headers, packed = ask(address, "GET", "/metrics", Accept_Encoding="gzip, deflate")
    assert headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(packed).startswith(b"# HELP kwsniff_")
    assert "Content-Encoding" not in ask(address, "GET", "/metrics", Accept_Encoding="gzip;q=0")[1]
    assert "Content-Encoding" not in ask(address, "GET", "/metrics")[1]


def test_openmetrics_is_read_by_its_own_parser(port: tuple[str, list[str | None]]) -> None:
    parser = pytest.importorskip("prometheus_client.openmetrics.parser")
    address, _ = port
    _, headers, body = ask(address, "GET", "/metrics", Accept="application/openmetrics-text; version=1.0.0")
    assert headers["Content-Type"].startswith("application/openmetrics-text; version=1.0.0")
    families = {each.name: each for each in parser.text_string_to_metric_families(body.decode())}
    assert families["kwsniff_build"].type == "info"
    assert families["kwsniff_packets"].type == "counter"
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=20) as plain:
        assert plain.headers["Content-Type"].startswith("text/plain; version=0.0.4")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system with hardly any room."""
    place = tmp_path / "disk"
    place.mkdir()
    if shutil.which("mount") is None or os.geteuid() != 0:
        pytest.skip("a file system of its own needs root")
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=60k", "none", str(place)], capture_output=True, check=False
    )
    if made.returncode:
        pytest.skip("no file system can be mounted here")
    yield place
    subprocess.run(["umount", str(place)], check=True)


@pytest.mark.slow
def test_a_full_disk_ends_the_tables_and_nothing_else(small_disk: Path) -> None:
    """Every call is printed all the same, what has a name is whole, and the exit status tells."""
    capture = next(ROOT.glob("captures/incidents/rebalance_storm/broker.pcap"))
    done = subprocess.run(
        [
            *(sys.executable, "-m", "kwsniff", "live", "-i", str(capture), "--speed", "50", "--json"),
            *("-o", str(small_disk), "--rotate", "100ms"),
        ],
        cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 2, done.stderr
    assert "kwsniff has stopped writing tables" in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stdout.splitlines()) == kwsniff.analyze(capture).api_calls.num_rows
    for path in small_disk.glob("*/*.parquet"):
        pq.ParquetFile(path).read()
    assert not list(small_disk.glob(".kwsniff-*"))


def test_a_service_manager_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    address = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(address)
        manager.settimeout(20)
        monkeypatch.setenv("NOTIFY_SOCKET", address)
        monkeypatch.setenv("WATCHDOG_USEC", "30000000")
        monkeypatch.delenv("WATCHDOG_PID", raising=False)
        moment = [100.0]
        monkeypatch.setattr("kwsniff.cli.live.service.time.monotonic", lambda: moment[0])
        service = Service()
        service.ready("capturing on lo")
        assert manager.recv(1_000) == b"READY=1\nSTATUS=capturing on lo\n"
        for seconds in (0, 1, 9, 11):  # a third of the watchdog's time
            moment[0] = 100.0 + seconds
            service.turn(f"turn {seconds}")
        assert manager.recv(1_000) == b"WATCHDOG=1\nSTATUS=turn 0\n"
        assert manager.recv(1_000) == b"WATCHDOG=1\nSTATUS=turn 11\n"
        service.stopping()
        assert manager.recv(1_000) == b"STOPPING=1\n"


def test_without_a_service_manager_nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    service = Service()
    service.ready("x")
    service.turn("x")
    service.stopping()
