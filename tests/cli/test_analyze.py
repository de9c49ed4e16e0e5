"""``kwsniff analyze``: what is on the screen, in the pipe, on disk."""

import gzip
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from kwsniff.analysis.rollups.events import Trouble
from kwsniff.cli.main import run
from kwsniff.cli.summary.summary import show_summary
from kwsniff.tables.enums import WORDS
from kwsniff.tables.folder import Folder
from kwsniff.tables.schema import TABLES
from kwsniff.texts import clean, in_bytes, in_percent, in_time, plural
from tests.cli.terminal import run_on_terminal
from tests.house.tree import ROOT
from tests.traffic.files import frames, pcap
from tests.traffic.scenes import two_clients

pytestmark = pytest.mark.sample_tests(10)


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    path = tmp_path / "shop.pcap"
    path.write_bytes(pcap(frames(two_clients().packets())))
    return path


def lines_of(capsys: pytest.CaptureFixture[str]) -> list[str]:
    captured = capsys.readouterr()
    assert captured.err == ""
    return captured.out.splitlines()


def cells(lines: list[str], first: str) -> list[str]:
    return next(line.split() for line in lines if line.split()[:1] == [first])


def test_the_summary_says_what_the_capture_shows(capture: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["analyze", str(capture)]) == 0
    lines = lines_of(capsys)
    packets = two_clients().packets()
    assert lines[0].startswith(f"{capture}: {len(packets)} packets, ")
    assert lines[2] == "10 calls on 2 connections (2 kafka)"
    header = ["api", "version", "calls", "errors", "unanswered", "p50", "p95", "p99", "max"]
    assert cells(lines, "api") == header
    slowest = [line.split() for line in lines if line.split()[:1] in (["API"], ["client"], ["topic"])]
    # the broker is 200 us away
    assert slowest[0][2:] == ["1", "3", "ms", "3", "ms", "93", "%", "broker"]
    # one of four timed out waiting for replicas: 1.8 ms of it
    assert ["client", "shop-1", "4", "2.55", "ms", "3", "ms", "78", "%", "broker"] in slowest
    # Metadata and two answered Produce in 3 ms, less 1.8, one Fetch in 1 ms and the segments of its answer
    assert ["topic", "orders", "4", "2.05", "ms", "3", "ms"] in [line[:7] for line in slowest]
    assert cells(lines, "Produce")[:5] == ["Produce", "9", "3", "1", "0"]
    # the scene answers the producer's calls after 3 ms
    assert cells(lines, "Produce")[5:] == ["3", "ms"] * 4
    assert any(line.split() == ["1", "REQUEST_TIMED_OUT", "(7)", "Produce", "orders", "0"] for line in lines)
    assert any(line.split() == ["1", "REBALANCE_IN_PROGRESS", "(27)", "Heartbeat"] for line in lines)
    assert any("shop-2" in line for line in lines)
    assert not any(" written to " in line for line in lines)
    assert not any("\x1b" in line for line in lines)


def test_tables_are_written_and_counted(
    capture: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "out"
    assert run(["analyze", str(capture), "-o", str(output)]) == 0
    lines = capsys.readouterr().out.splitlines()
    rows = sum(pq.read_metadata(output / f"{name}.parquet").num_rows for name in TABLES)
    assert f"{len(TABLES)} tables with {rows} rows written to {output}" in lines


def test_the_findings_come_last(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    incident = ROOT / "captures" / "incidents" / "broker_stalled" / "broker.pcap"
    for more in ([], ["-o", str(tmp_path / "out")]):
        assert run(["analyze", str(incident), *more]) == 0
        last = capsys.readouterr().out.split("\n\n")[-1]
        assert last.startswith("Findings; ")
        assert "  problem   broker_stalled  broker  10.88.0.1:9092" in last
        assert "  When: 2026-11-22 00:48:46.353 UTC to 00:48:49.387\n" in last


def test_json_is_one_document(capture: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["analyze", str(capture), "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    produce = next(item for item in summary["calls"] if item["api_name"] == "Produce")
    assert produce["calls"] == 3
    assert produce["statuses"] == {"answered": 2, "no_response_expected": 1}
    assert produce["max_ns"] == 3_000_000
    assert summary["captures"][0]["packets"] == len(two_clients().packets())


@pytest.mark.parametrize("verb", ["analyze", "show"])
def test_files_that_cannot_be_read_are_named_and_the_rest_is_read(
    verb: str, capture: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = capture.parent
    (folder / "broken.pcap.gz").write_bytes(b"\x1f\x8b" + b"\xff" * 40)
    (folder / "short.pcap").write_bytes(capture.read_bytes()[:12])
    (folder / "deeper").mkdir()
    said = []
    for given in ([folder], [capture, folder / "short.pcap", folder / "broken.pcap.gz"]):
        assert run([verb, *map(str, given)]) == 0
        captured = capsys.readouterr()
        assert "shop-1" in captured.out
        said.append(captured.err.splitlines())
    for lines in said:
        for name, why in (
            ("broken.pcap.gz", "it cannot be decompressed"),
            ("short.pcap", "ends before its first packet"),
        ):
            assert sum(line.startswith(f"kwsniff: note: {folder / name}: {why}") for line in lines) == 1
    assert any(
        line.startswith(f"kwsniff: note: {folder / 'deeper'}: is a nested directory") for line in said[0]
    )
    assert [lines[-1] for lines in said] == [
        "kwsniff: note: 1 of 4 files read",
        "kwsniff: note: 1 of 3 files read",
    ]
    capture.unlink()
    assert run([verb, str(folder)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_json_names_what_could_not_be_read(capture: Path, capsys: pytest.CaptureFixture[str]) -> None:
    empty = capture.with_name("empty.pcap")
    empty.touch()
    assert run(["analyze", str(capture), str(empty), "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert [each["capture"] for each in summary["unread"]] == [str(empty)]
    assert [row["capture"] for row in summary["captures"]] == [str(capture), str(empty)]
    assert summary["captures"][1]["notes"] == [summary["unread"][0]["reason"]]


def test_a_capture_comes_from_standard_input(capture: Path) -> None:
    command = [sys.executable, "-m", "kwsniff.cli.main", "analyze", "-"]
    data = gzip.compress(capture.read_bytes())
    done = subprocess.run(command, input=data, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"10 calls on 2 connections (2 kafka)" in done.stdout


def on_a_terminal(*arguments: str | Path) -> tuple[int, str]:
    """Exit status and everything shown on a terminal."""
    size = {"TERM": "xterm", "COLUMNS": "160"}
    return run_on_terminal(*arguments, environment=size, progress=True)


def test_a_terminal_gets_tables_and_progress(capture: Path) -> None:
    status, shown = on_a_terminal("analyze", capture)
    assert status == 0
    assert "\x1b[" in shown
    assert "10 calls on 2 connections" in shown
    assert "REBALANCE_IN_PROGRESS (27)" in shown
    assert "─" in shown


def test_a_terminal_as_standard_input_is_told_what_to_do() -> None:
    status, shown = on_a_terminal("analyze", "-")
    assert status == 2
    assert "kwsniff: error: standard input is a terminal; pipe a capture in" in shown


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--port", "0"], "--port 0: give a number from 1 to 65535"),
        (["--port", "9092,x"], "--port x: give a number from 1 to 65535"),
        (["--limit", "connections"], "--limit connections: give a name and a whole number"),
        (["--limit", "speed=1"], "unknown limit 'speed'"),
        (["--top", "0"], "--top must be at least 1"),
    ],
)
def test_wrong_options_are_said_in_one_line(
    capture: Path, options: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["analyze", str(capture), *options]) == 2
    text = capsys.readouterr().err
    assert text.startswith(f"kwsniff: error: {says}")
    assert text.count("\n") == 1


def test_ports_and_limits_are_taken(capture: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--port", "9092,9093", "--port", "9094", "--limit", "connections=100"]
    assert run(["analyze", str(capture), *options]) == 0
    captured = capsys.readouterr()
    assert "10 calls on 2 connections (2 kafka)" in captured.out.splitlines()
    assert captured.err == "kwsniff: note: no TCP packets on port 9093, 9094; found Kafka on port 9092\n"


def test_an_output_that_cannot_be_written_is_one_line(
    capture: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    assert run(["analyze", str(capture), "-o", str(tmp_path / "file")]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    told = f"kwsniff: error: {tmp_path / 'file'}: cannot write (not a folder); "
    assert captured.err.startswith(told)
    assert captured.err.count("\n") == 1


EMPTY: dict[str, Any] = {
    "captures": [],
    "unread": [],
    "rows": {},
    "calls": [],
    "ports": [],
    "tls": [],
    "servers": [],
    "tls_not_opened": [],
    "unanswered_hellos": [],
    "statuses": [],
    "errors": [],
    "errors_by_client": [],
    "errors_by_broker": [],
    "clients": [],
    "connections": [],
    "anomalies": [],
    "tables": {},
    "latency": {"apis": [], "clients": [], "brokers": [], "topics": []},
    "groups": [],
    "transactions": [],
    "throttling": [],
    "no_packets": None,
    "twins": {"left_out": 0, "counted": 0},
    "transport": Trouble().as_dict()["transport"],
}


def test_how_far_away_clients_are_is_told() -> None:
    far = {**EMPTY["transport"], "farthest_client": "10.0.0.9", "max_round_trip_ns": 120_000_000}
    assert "network: highest RTT 120 ms, client 10.0.0.9" in shown({"transport": far})
    near = {**far, "max_round_trip_ns": 900_000}
    assert "away" not in shown({"transport": near})


def shown(summary: dict[str, Any], top: int = 20) -> str:
    out = io.StringIO()
    show_summary({**EMPTY, **summary}, out, top=top)
    return out.getvalue()


def test_without_kafka_the_summary_says_what_to_try() -> None:
    assert "interface and filter" in shown({})
    plain = {"rows": {"connections": 2}, "connections": [{"protocol": "other", "count": 2}]}
    assert (
        "No Kafka calls on 2 connections (2 other); if brokers use an unusual port, give it with --port"
        in shown(plain)
    )
    secret = {"rows": {"connections": 1}, "connections": [{"protocol": "tls", "count": 1}]}
    assert "capture on a plaintext listener" in shown(secret)
    refused = {"rows": {"connections": 2}, "connections": [{"protocol": "empty", "count": 2}]}
    assert "--port" not in shown(refused)


def test_what_the_capture_lacks_is_said() -> None:
    capture = {
        "capture": "x.pcap",
        "packets": 5,
        "bytes": 1234,
        "first_time": None,
        "last_time": None,
        "skipped_not_ip": 1,
        "skipped_not_tcp": 126,
        "skipped_fragment": 0,
        "skipped_malformed": 2,
        "skipped_unknown_link_type": 0,
        "skipped_other_time": 0,
        "not_read": ["ESP=123", "UDP=3"],
        "encapsulations": ["vxlan=46", "gre=1"],
        "dropped_by_kernel": 3,
        "damaged": False,
        "truncated": True,
        "notes": [],
        "tcp_payload_bytes": 3000,
        **{f"{name}_bytes": 0 for name in WORDS["bin"]},
        "answered_bytes": 2996,
        "torn_frames_bytes": 4,
    }
    assert shown({"captures": [capture]}).splitlines()[:6] == [
        "x.pcap: 5 packets, 1.2 kB",
        "  skipped: 123 packets of ESP, 3 packets of UDP, 1 other packet, 2 malformed headers",
        "  inside tunnels: 46 vxlan, 1 gre",
        "  payload: 100 % in answered calls, 0.13 % torn_frames",
        "  note: the kernel dropped 3 packets",
        "  note: the file ends inside a packet",
    ]


def test_long_lists_are_cut_and_say_so() -> None:
    clients = [
        {
            "client_id": f"c{n}",
            "client_software_name": None,
            "client_software_version": None,
            "connections": 1,
        }
        for n in range(9)
    ]
    text = shown({"clients": clients}, top=4)
    assert "Clients (first 4 of 9)" in text
    assert "c3" in text
    assert "c4" not in text


def test_names_from_the_wire_cannot_steer_the_terminal() -> None:
    client = {"client_software_name": None, "client_software_version": None, "connections": 1}
    text = shown({"clients": [{"client_id": "\x1b[2Jevil\nline", **client}]})
    assert "\x1b" not in text
    assert r"\x1b[2Jevil\nline" in text


def test_numbers_are_written_for_people() -> None:
    assert [in_time(ns) for ns in (None, 0, 7, 84_000, 999_600, 1_500_000_000)] == [
        "",
        "0 ns",
        "7 ns",
        "84 us",
        "1000 us",
        "1.5 s",
    ]
    assert in_time(84_000.4) == "84 us"
    assert [in_percent(share) for share in (None, 0, 0.0042, 0.12, 1)] == [
        "",
        "0 %",
        "0.42 %",
        "12 %",
        "100 %",
    ]
    assert in_percent(1, 8) == in_percent(0.125)
    assert [in_bytes(size) for size in (12, 12_200, 5_000_000_000)] == ["12 bytes", "12.2 kB", "5.0 GB"]
    assert [plural(number, "call") for number in (1, 1200)] == ["1 call", "1,200 calls"]
    assert clean("Bücher\u202e") == "Bücher\\u202e"


def test_a_folder_that_another_writes_into_is_one_line(
    capture: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    with Folder(out):
        assert run(["analyze", str(capture), "-o", str(out)]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert (
        f"{out}: another kwsniff is writing there; wait for it or choose another folder with -o" in said.err
    )
    assert run(["analyze", str(capture), "-o", str(out)]) == 0
