"""Display filters, as text and as JSON, find what they say: tshark applies them to the capture."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("kwsniff.core.analyzer", reason="the analyzer is not built")

import kwsniff
from kwsniff.cli.main import run
from kwsniff.findings.display_filters import frames_of
from tests.cli.shown import tshark
from tests.traffic.files import frames, pcap
from tests.traffic.scenes import one_by_one, vocabulary

CAPTURES = Path(__file__).parents[2] / "captures"
TOO_LARGE = CAPTURES / "incidents" / "message_too_large" / "broker.pcap"


def holds(capture: Path, said: str, row: dict[str, Any]) -> None:
    """The filter finds the packets of the call, from the first to the last one, and none of other clients."""
    seen = tshark(capture, "-Y", said, "-T", "fields", "-e", "frame.number", "-e", "tcp.port")
    numbers = [int(line.split("\t")[0]) for line in seen]
    assert numbers[0] == row["request_frame"]
    assert numbers[-1] == row["response_end_frame"]
    assert all(str(row["client_port"]) in line for line in seen)


def rows_of(*captures: Path) -> dict[int, dict[str, Any]]:
    return {row["call_id"]: row for row in kwsniff.analyze(captures).api_calls.to_pylist()}


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["show", "why"])
def test_display_filters_hold_on_the_file(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    rows = rows_of(TOO_LARGE)
    if verb == "show":
        assert run(["show", str(TOO_LARGE), "--error", "any"]) == 0
        found = re.findall(r"^call (\d+):.*\n  Wireshark: (.*)$", capsys.readouterr().out, re.M)
    else:
        assert run(["why", str(TOO_LARGE)]) in (0, 1)
        found = re.findall(r"^    (\d+): (frame\.number.*)$", capsys.readouterr().out, re.M)
    assert found
    for number, said in found[:3]:
        holds(TOO_LARGE, said, rows[int(number)])


@pytest.mark.slow
def test_those_of_show_stand_in_its_json(capsys: pytest.CaptureFixture[str]) -> None:
    rows = rows_of(TOO_LARGE)
    assert run(["show", str(TOO_LARGE), "--error", "any", "--json"]) == 0
    messages = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {message["direction"] for message in messages} == {"request", "response"}
    for message in messages:
        (one,) = message["display_filters"]
        assert one["capture"] == str(TOO_LARGE)
        holds(TOO_LARGE, one["filter"], rows[message["call_id"]])


def test_those_of_why_stand_in_its_json(capsys: pytest.CaptureFixture[str]) -> None:
    rows = rows_of(TOO_LARGE)
    assert run(["why", str(TOO_LARGE), "--json"]) == 1
    findings = json.loads(capsys.readouterr().out)["findings"]
    assert any(each["call_ids"] for each in findings)
    for finding in findings:
        assert [one["call_id"] for one in finding["display_filters"]] == finding["call_ids"]
        for one in finding["display_filters"][:3]:
            assert one["capture"] == str(TOO_LARGE)
            holds(TOO_LARGE, one["filter"], rows[one["call_id"]])


def test_packets_that_prove_without_calls_have_one_too(capsys: pytest.CaptureFixture[str]) -> None:
    """Of a refused connection there is no call: the filter finds the packets that say so."""
    capture = CAPTURES / "incidents" / "connection_refused" / "broker.pcap"
    assert run(["why", str(capture), "--json"]) == 1
    findings = json.loads(capsys.readouterr().out)["findings"]
    without = [each for each in findings if each["frames"] and not each["call_ids"]]
    assert without
    for finding in without:
        (one,) = finding["display_filters"]
        assert (one["call_id"], one["capture"]) == (None, str(capture))
        seen = tshark(capture, "-Y", one["filter"], "-T", "fields", "-e", "frame.number")
        assert sorted(map(int, seen)) == sorted(set(finding["frames"]))


def test_what_went_on_in_the_next_capture_has_a_filter_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The capture was rotated: the response's number belongs to the second file."""
    packets = frames(one_by_one(vocabulary()[:5]).packets())
    whole = tmp_path / "whole.pcap"
    whole.write_bytes(pcap(packets))
    cut = [row["response_frame"] for row in rows_of(whole).values()][3] - 1
    files = [tmp_path / "1.pcap", tmp_path / "2.pcap"]
    for path, part in zip(files, (packets[:cut], packets[cut:]), strict=True):
        path.write_bytes(pcap(part))
    (asked,) = [row for row in rows_of(*files).values() if row["response_frame"] == 1]
    assert run(["show", *map(str, files), "--call", str(asked["call_id"]), "--json", "--request-only"]) == 0
    message = json.loads(capsys.readouterr().out)
    first, second = message["display_filters"]
    assert first == {"capture": str(files[0]), "filter": f"frame.number in {{{asked['request_frame']}}}"}
    assert second == {"capture": str(files[1]), "filter": "frame.number in {1}"}


@pytest.mark.parametrize(
    ("frames", "spans"),
    [
        ((23, 23, 24, 24), [(23, 23), (24, 24)]),
        ((900, 903, 1, 4), [(900, 903)]),
        ((900, 2, 5, 5), [(900, 900)]),
        ((23, 23, 900, 2), [(23, 23), (900, 900)]),
        ((None, None, 5, 6), [(None, None), (5, 6)]),
        ((23, None, None, None), [(23, None)]),
    ],
    ids=[
        "whole",
        "answered in the next file",
        "asked across files",
        "said across files",
        "answer",
        "request",
    ],
)
def test_numbers_of_another_file_are_left_out(
    frames: tuple[int | None, ...], spans: list[tuple[int | None, int | None]]
) -> None:
    names = ("request_frame", "request_end_frame", "response_frame", "response_end_frame")
    assert frames_of(dict(zip(names, frames, strict=True))) == spans
