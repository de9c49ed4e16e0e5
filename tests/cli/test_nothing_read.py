"""A run that read nothing of what was asked for says so, and does not end with 0."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

pytest.importorskip("kwsniff.core.analyzer", reason="the analyzer is not built")

import kwsniff
from kwsniff.cli.main import run
from tests.house.tree import ROOT
from tests.traffic.files import frames, pcap
from tests.traffic.scenes import two_clients

CAPTURE = str(ROOT / "captures" / "first_steps" / "capture.pcap")
OTHER_TIME = "no packets from 20:00 on; the captures cover 2026-11-20 19:36:05.357 UTC to 19:36:08.519"
VERBS = (
    ["analyze"], ["analyze", "--json"], ["why"], ["why", "--json"], ["show"], ["show", "--json"],
    ["show", "--error", "any"], ["upgrade", "4.3.1"], ["compare", CAPTURE], ["live", "--speed", "max", "-i"],
    ["live", "--speed", "max", "--json", "-i"], ["slice", "--error", "any", "-o", "{}/x.pcapng"],
    ["slice", "--finding", "unknown_topic", "-o", "{}/x.pcapng"],
)  # fmt: skip


def said(
    verb: Sequence[str], capture: str, folder: Path, capsys: pytest.CaptureFixture[str], *more: str
) -> tuple[int, list[str]]:
    status = run([*(word.format(folder) for word in verb), capture, *more])
    assert not (folder / "x.pcapng").exists() or status == 0
    return status, capsys.readouterr().err.splitlines()


@pytest.mark.sample(2)
@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
def test_a_time_outside_of_the_captures(
    verb: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, err = said(verb, CAPTURE, tmp_path, capsys, "--since", "20:00")
    assert status == 1
    told = [line for line in err if "no packet" in line]
    assert set(told) == {f"kwsniff: note: {OTHER_TIME}"}
    assert len(told) == 1 + (verb[0] == "compare")  # of each side


@pytest.mark.sample(2)
@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
def test_a_port_that_no_packet_has(
    verb: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, err = said(verb, CAPTURE, tmp_path, capsys, "--port", "7777")
    assert status == 1
    told = [line for line in err if "no TCP packets on port 7777" in line]
    assert len(told) == 1 + (verb[0] == "compare")


@pytest.mark.sample(1)
@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
def test_one_port_of_several_is_told_and_no_bad_news(
    verb: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if verb[:2] == ["slice", "--finding"]:
        verb = ["slice", "--error", "any", "-o", "{}/x.pcapng"]  # of which there may be none
    status, err = said(verb, CAPTURE, tmp_path, capsys, "--port", "7777,9092")
    assert status == 0
    assert any("no TCP packets on port 7777" in line for line in err)
    status, err = said(verb, CAPTURE, tmp_path, capsys, "--port", "9092,9093")
    assert (status, [line for line in err if "note" in line]) == (0, [])


@pytest.mark.sample(3)
@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
def test_a_capture_without_a_packet(
    verb: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    empty = tmp_path / "empty.pcap"
    empty.write_bytes(Path(CAPTURE).read_bytes()[:24])
    status, err = said(verb, str(empty), tmp_path, capsys)
    assert status == 1
    assert any("the captures have no packets" in line for line in err)


def test_where_kafka_is_instead_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """tshark: ports 9092 and 9093, and those of clients."""
    _, err = said(["why"], CAPTURE, tmp_path, capsys, "--port", "7777")
    assert err == ["kwsniff: note: no TCP packets on port 7777; found Kafka on port 9092, 9093"]


def test_a_port_counts_on_either_side_and_whatever_its_connection_carries(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Those of clients, and of connections of which no call fits the filters."""
    clients = {row["client_port"] for row in kwsniff.analyze(CAPTURE).connections.to_pylist()}
    for port in (min(clients), max(clients)):
        status, err = said(["analyze", "--error", "79"], CAPTURE, tmp_path, capsys, "--port", f"{port}")
        assert (status, err) == (0, [])


def test_the_summary_has_the_ports_for_scripts(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["analyze", CAPTURE, "--json", "--port", "7777,9092,1"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["ports"], found["absent_ports"]) == ([7777, 9092, 1], [1, 7777])


def test_an_empty_file_of_several_is_no_bad_news(tmp_path: Path) -> None:
    (tmp_path / "a.pcap").write_bytes(Path(CAPTURE).read_bytes()[:24])
    (tmp_path / "b.pcap").write_bytes(pcap(frames(two_clients().packets())))
    assert run(["analyze", str(tmp_path)]) == 0


def test_after_the_first_calls_nothing_is_said_of_what_was_not_read(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["show", CAPTURE, "--call", "20000", "--port", "9093"]) == 0
    assert capsys.readouterr().err == ""
