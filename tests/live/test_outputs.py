"""What `kwsniff live` gives to other programs: JSON per call, lines, metrics, raw packets; and
`kwsniff.sniff`."""

from __future__ import annotations

import json
import shutil
import socket
import struct
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import kwsniff
from kwsniff.errors import UsageError
from kwsniff.live.lines import call_lines
from kwsniff.live.metrics import Metrics
from kwsniff.live.metrics_port import MetricsServer
from kwsniff.live.sniff import Sniffer
from tests.record.mock import MockCluster
from tests.tables.runs import inside, of_any_run
from tests.traffic.wire import API_NAMES

from .running import ROOT, Live, needs_capture, ports_of, talk


@pytest.fixture
def cluster() -> Iterator[MockCluster]:
    needs_capture()
    with MockCluster(relay="refusing") as running:
        yield running


def by_api(cluster: MockCluster) -> Counter[str]:
    return Counter({API_NAMES[key]: number for key, number in cluster.requests().items()})


@pytest.mark.parametrize("name", ["first_steps", "group_classic", "begun_late"])
def test_a_line_is_a_row_without_its_nulls(name: str) -> None:
    (path,) = (ROOT / "captures" / name).glob("capture.pcap*")
    rows = of_any_run(kwsniff.analyze(path).api_calls)
    (batch,) = inside("api_calls", rows).combine_chunks().to_batches()
    lines = [json.loads(line) for line in call_lines(batch)]
    assert len(lines) == rows.num_rows > 0
    for line, row in zip(lines, rows.to_pylist(), strict=True):
        times = {
            key: f"{value:%Y-%m-%dT%H:%M:%S.%f}Z"
            for key, value in row.items()
            if key.endswith("_time") and value
        }
        told = {key: value for key, value in {**row, **times}.items() if value is not None}
        assert line == {"version": 1, **told}


@pytest.mark.live
def test_every_call_is_a_line_of_json_as_soon_as_it_is_answered(cluster: MockCluster) -> None:
    with Live("--port", ports_of(cluster), "--json") as live:
        talk("codecs", cluster)
        live.await_all_calls(cluster)
        assert Counter(call["api_name"] for call in live.calls) == by_api(cluster)
        assert live.end() == 0


@pytest.mark.live
@pytest.mark.slow
def test_piped_it_writes_a_line_per_interval(cluster: MockCluster) -> None:
    with Live("--port", ports_of(cluster), "--interval", "300ms") as live:
        talk("rebalance", cluster)
        live.await_text(" UNSUPPORTED_VERSION ApiVersions")
        live.await_text("slowest ")
        assert live.end() == 0
    assert all(" calls/s " in line and " waiting " in line for line in live.out)


@pytest.mark.live
@pytest.mark.slow
def test_intervals_as_json_say_which_client_is_told_errors(cluster: MockCluster) -> None:
    with Live("--port", ports_of(cluster), "--json", "--lines", "--interval", "300ms") as live:
        talk("rebalance", cluster)
        live.await_text("REBALANCE_IN_PROGRESS")
        assert live.end() == 0
    told = [each for line in live.out for each in json.loads(line)["errors_by_client"]]
    assert {each["client_id"] for each in told if each["error_code"] == 27} == {"billing-1"}
    assert all(0 < each["share"] <= 1 for each in told)


@pytest.mark.live
@pytest.mark.slow
def test_metrics_are_served_on_loopback_alone(cluster: MockCluster) -> None:
    with Live("--port", ports_of(cluster), "--json", "--metrics", "0") as live:
        address = live.await_line("metrics at ").rpartition(" ")[2]
        assert address.startswith("http://127.0.0.1:")
        talk("rebalance", cluster)
        calls = live.await_all_calls(cluster)
        with urllib.request.urlopen(address, timeout=30) as answer:  # noqa: S310
            assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
            text = answer.read().decode()
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(address.replace("/metrics", "/other"), timeout=30)  # noqa: S310
        assert live.end() == 0
    counted = [line.rpartition(" ") for line in text.splitlines() if line.startswith("kwsniff_calls_total")]
    assert sum(int(number) for _, _, number in counted) == calls
    assert 'error_codes_total{error="REBALANCE_IN_PROGRESS",api="OffsetCommit"} 1' in text


def test_a_scraper_that_hangs_up_is_not_talked_about(capfd: pytest.CaptureFixture[str]) -> None:
    class Large(Metrics):
        def text(self, *, openmetrics: bool = False) -> str:
            asked.set()
            return "x" * (64 << 20)

    asked = threading.Event()
    with MetricsServer(Large(), "127.0.0.1", 0) as server:
        host, port = server.address.split(":")
        for request in (b"GET /metrics HTTP/1.0\r\n\r\n", b"GET /met", b""):
            with socket.create_connection((host, int(port))) as scraper:
                scraper.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                scraper.sendall(request)
                if request.endswith(b"\n"):
                    assert asked.wait(30)
        until = time.monotonic() + 30
        while any("process_request_thread" in thread.name for thread in threading.enumerate()):
            assert time.monotonic() < until
            time.sleep(0.01)
    assert capfd.readouterr() == ("", "")


@pytest.mark.live
def test_a_metrics_port_that_is_taken_is_said(cluster: MockCluster) -> None:
    live = Live("--metrics", str(cluster.ports[0]))
    assert live.ended() == 2
    assert any("cannot listen on" in line for line in live.err)


@pytest.mark.live
@pytest.mark.slow
@pytest.mark.parametrize("tool", ["dumpcap", "tcpdump"])
def test_ring_files_are_captures(tool: str, cluster: MockCluster, tmp_path: Path) -> None:
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is not installed")
    options = ["--tool", tool, "--port", ports_of(cluster), "--json", "-o", str(tmp_path), "--ring", "50/4kB"]
    with Live(*options) as live:
        for name in ("codecs", "transaction"):
            talk(name, cluster)
            calls = live.await_all_calls(cluster)
        assert live.end() == 0
    files = sorted((tmp_path / "packets").iterdir())
    assert len(files) > 1
    assert kwsniff.analyze(files, ports=cluster.ports).api_calls.num_rows == calls
    tshark = shutil.which("tshark")
    if tshark is None:
        pytest.skip("tshark is not installed: that others open the files was not looked at")
    for path in (files[0], files[-1]):
        done = subprocess.run(
            [tshark, "-r", str(path), "-T", "fields", "-e", "frame.number"], capture_output=True, check=False
        )
        assert done.returncode == 0
        assert b"cut short" not in done.stderr
        assert done.stdout.count(b"\n") == kwsniff.analyze(path).captures["packets"][0].as_py()


@pytest.mark.live
def test_sniff_gives_rows_while_it_runs(cluster: MockCluster) -> None:
    found: Counter[str] = Counter()
    errors: Counter[str] = Counter()
    with kwsniff.sniff("lo", ports=cluster.ports, interval=0.05) as live:
        client = threading.Thread(target=talk, args=("rebalance", cluster))
        client.start()
        for tables in live:
            assert all(rows.num_rows for rows in tables.values())
            if "api_calls" in tables:
                found.update(tables["api_calls"]["api_name"].to_pylist())
            if "error_codes" in tables:
                errors.update(tables["error_codes"]["error_name"].to_pylist())
            if not client.is_alive() and found.total() >= cluster.requests().total():
                live.stop()
    client.join()
    assert found == by_api(cluster)
    assert errors["REBALANCE_IN_PROGRESS"] == 1
    assert live.progress().dropped_here == 0
    assert live.ending is None


@pytest.mark.live
@pytest.mark.slow
def test_the_result_of_sniff_is_an_analysis(cluster: MockCluster) -> None:
    live = kwsniff.sniff("lo", ports=cluster.ports, stop_after=20, interval=0.05)
    client = threading.Thread(target=talk, args=("rebalance", cluster))
    client.start()
    result = live.result()
    client.join()
    assert result.api_calls.num_rows >= 20
    assert result.summary["rows"]["api_calls"] == result.api_calls.num_rows
    assert result.captures["capture"].to_pylist() == ["lo"]
    with pytest.raises(UsageError, match="already taken"):
        live.result()


@pytest.mark.live
def test_sniff_ends_after_its_time() -> None:
    needs_capture()
    result = kwsniff.sniff("lo", bpf="tcp port 9", duration=0.2, tables=["api_calls"]).result()
    assert result.api_calls.num_rows == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"interval": 0}, "interval must be more than 0"),
        ({"tables": ["calls"]}, "unknown table 'calls'"),
        ({"tables": []}, "tables must not be empty"),
        ({"ports": [0]}, "port 0 is outside"),
        ({"tool": "wireshark"}, "unknown capture tool 'wireshark'"),
    ],
)
def test_sniff_refuses_what_makes_no_sense(options: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        kwsniff.sniff("lo", **options)


@pytest.mark.live
@pytest.mark.slow
def test_sniff_outlives_the_thread_that_began_it(cluster: MockCluster) -> None:
    begun: list[Sniffer] = []
    thread = threading.Thread(
        target=lambda: begun.append(kwsniff.sniff("lo", ports=cluster.ports, stop_after=10))
    )
    thread.start()
    thread.join()
    talk("rebalance", cluster)
    assert begun[0].result().api_calls.num_rows >= 10
    assert begun[0].ending is None
