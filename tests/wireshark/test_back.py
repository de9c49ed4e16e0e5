"""From Wireshark to kwsniff: numbers of packets and streams, and captures that it writes into a pipe."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import kwsniff
from kwsniff.cli.main import run
from tests.wireshark.seen import ALONE, needs_tshark, read_packets, run_tshark

CAPTURES = Path(__file__).parents[2] / "captures"
STEPS = CAPTURES / "first_steps" / "capture.pcap"
THIN = CAPTURES / "field" / "thin_link.pcap"


def shown(capsys: pytest.CaptureFixture[str], capture: Path, *words: str) -> list[int]:
    capsys.readouterr()
    status = run(["show", str(capture), *words])
    numbers = re.findall(r"^call (\d+):", capsys.readouterr().out, re.MULTILINE)
    assert status == (0 if numbers else 1)
    return sorted(map(int, numbers))


def longest_request(capture: Path) -> dict[str, Any]:
    calls = kwsniff.analyze(capture, tables=["api_calls"]).api_calls.to_pylist()
    return max(calls, key=lambda call: (call["request_end_frame"] or 0) - (call["request_frame"] or 0))


@needs_tshark
def test_any_packet_of_a_call_shows_it(capsys: pytest.CaptureFixture[str]) -> None:
    """Its first, its last, and one between that carries bytes of its sender."""
    call = longest_request(THIN)
    begin, end = call["request_frame"], call["request_end_frame"]
    sender = (call["client_address"], str(call["client_port"]))
    between = [
        frame
        for frame, packet in read_packets(THIN).items()
        if begin < frame < end and packet.sender == sender and packet.payload
    ]
    assert between
    for frame in (begin, between[0], end, call["response_frame"]):
        assert call["call_id"] in shown(capsys, THIN, "--frame", str(frame))
        assert call["call_id"] in shown(capsys, THIN, "--where", f"frame = {frame}")


@needs_tshark
@pytest.mark.parametrize("capture", [STEPS, THIN], ids=["first_steps", "thin_link"])
def test_a_stream_has_the_calls_of_its_packets(capture: Path, capsys: pytest.CaptureFixture[str]) -> None:
    streams = {
        frame: row[0][-1] for frame, row in run_tshark(capture, fields=["tcp.stream"]).items() if row[0]
    }
    expected: dict[str, list[int]] = {stream: [] for stream in streams.values()}
    for call in kwsniff.analyze(capture, tables=["api_calls"]).api_calls.to_pylist():
        expected[streams[call["request_frame"] or call["response_frame"]]].append(call["call_id"])
    for stream, calls in expected.items():
        assert shown(capsys, capture, "--stream", stream) == sorted(calls)
        assert shown(capsys, capture, "--where", f"stream = {stream}") == sorted(calls)


@needs_tshark
@pytest.mark.parametrize("form", ["pcapng", "pcap", "nsecpcap"])
@pytest.mark.parametrize("capture", [STEPS, THIN], ids=["first_steps", "thin_link"])
def test_analyze_reads_what_tshark_writes_into_a_pipe(capture: Path, form: str, tmp_path: Path) -> None:
    words = ["tshark", "-r", str(capture), "-F", form, "-w", "-"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=ALONE) as tshark:
        command = [sys.executable, "-m", "kwsniff", "analyze", "-", "-o", str(tmp_path / "tables"), "--json"]
        done = subprocess.run(command, stdin=tshark.stdout, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["captures"][0]["format"] == ("pcapng" if form == "pcapng" else "pcap")
    piped, read = kwsniff.open(tmp_path / "tables"), kwsniff.analyze(capture)
    for name in ("api_calls", "latencies"):
        rows = [getattr(each, name).drop_columns(["capture", "run_id"]).to_pylist() for each in (piped, read)]
        assert rows[0] == rows[1]


def test_calls_of_a_comparison_have_their_packets(capsys: pytest.CaptureFixture[str]) -> None:
    incident = CAPTURES / "incidents" / "broker_stalled" / "client.pcap"
    rows = kwsniff.analyze(incident, tables=["api_calls"]).api_calls.to_pylist()
    calls = {call["call_id"]: call for call in rows}
    assert run(["compare", str(STEPS), str(incident), "--json"]) == 0
    first = json.loads(capsys.readouterr().out)["differences"][0]
    assert [each["call_id"] for each in first["display_filters"]] == first["call_ids"]
    for each in first["display_filters"]:
        assert re.search(rf"[{{ ]{calls[each['call_id']]['request_frame']}\b", each["filter"])
    assert run(["compare", str(STEPS), str(incident)]) == 0
    lines = capsys.readouterr().out.splitlines()
    for each in first["display_filters"][:6]:
        assert f"  {each['call_id']}: {each['filter']}" in lines


def test_the_slowest_calls_of_why_have_their_packets(capsys: pytest.CaptureFixture[str]) -> None:
    rows = kwsniff.analyze(STEPS, tables=["api_calls"]).api_calls.to_pylist()
    calls = {str(call["call_id"]): call for call in rows}
    assert run(["why", str(STEPS)]) == 0
    named = re.findall(r"^  (\d+): frame.number in \{(.*)\}$", capsys.readouterr().out, re.MULTILINE)
    assert named
    for number, frames in named:
        call = calls[number]
        assert frames == f"{call['request_frame']}, {call['response_frame']}"
