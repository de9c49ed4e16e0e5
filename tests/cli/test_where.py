"""``--where`` chooses the same calls in every verb and in Python, and says what is wrong with it."""

from __future__ import annotations

import gzip
import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import kwsniff
from kwsniff.cli import main
from tests.traffic import messages
from tests.traffic.tcp import MILLISECOND, Endpoint, Scene

from .shown import CAPTURES, FIRST_STEPS, written

pytestmark = pytest.mark.sample_tests(5)

FILTERS = {
    "api_name = 'Produce' and latency > 1ms and topic in (orders, carts)": 3,
    "error in (NOT_LEADER_OR_FOLLOWER, UNKNOWN_TOPIC_OR_PARTITION) and client_id ~ SHOP": 5,
    "request_time > +2s and request_time <= +3s and group_id is not null": None,
    "not (client_address = 127.0.0.1 and broker_port = 9092) or acks = -1": None,
    "client_id like 'billing%' and api_name not in (Fetch, Metadata)": None,
}


def calls_of(capsys: pytest.CaptureFixture[str], *words: str) -> list[int]:
    assert main.run([*words]) in {0, 1}
    lines = capsys.readouterr().out.splitlines()
    return sorted({json.loads(line)["call_id"] for line in lines})


@pytest.mark.sample(1)
@pytest.mark.parametrize("where", FILTERS)
def test_every_verb_chooses_the_same_calls(
    where: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole, some = str(tmp_path / "whole"), str(tmp_path / "some")
    kwsniff.analyze(FIRST_STEPS, output=whole)
    wanted = calls_of(capsys, "show", FIRST_STEPS, "--json", "--where", where)
    assert 0 < len(wanted) < kwsniff.open(whole).rows("api_calls")
    assert FILTERS[where] in {None, len(wanted)}
    assert calls_of(capsys, "show", FIRST_STEPS, "--json", "--where", where, "--tables", whole) == wanted
    assert calls_of(capsys, "sql", whole, "--where", where, "--format", "jsonl") == wanted
    counted = "select call_id from latencies union select call_id from api_calls"
    assert calls_of(capsys, "sql", whole, counted, "--where", where, "--format", "jsonl") == wanted
    assert main.run(["analyze", FIRST_STEPS, "-o", some, "--where", where]) == 0
    assert sorted(kwsniff.open(some).api_calls["call_id"].to_pylist()) == wanted
    output = str(tmp_path / "some.pcapng")
    capsys.readouterr()
    assert main.run(["slice", FIRST_STEPS, "-o", output, "--json", "--where", where]) == 0
    sliced = json.loads(capsys.readouterr().out)
    assert sliced["calls"] == len(wanted)
    told = {text.partition(":")[0] for each in sliced["comments"] for text in each["comments"]}
    assert told == {f"call {number}" for number in wanted}
    assert main.run(["why", whole, "--json", "--where", where]) in {0, 1}
    of_folder = json.loads(capsys.readouterr().out)
    assert main.run(["why", FIRST_STEPS, "--json", "--where", where]) in {0, 1}
    of_capture = json.loads(capsys.readouterr().out)
    assert of_folder["errors_by_client"] == of_capture["errors_by_client"]


@pytest.mark.sample(2)
@pytest.mark.parametrize("where", FILTERS)
def test_python_chooses_the_same_calls(where: str, tmp_path: Path) -> None:
    kwsniff.analyze(FIRST_STEPS, output=tmp_path)
    chosen = kwsniff.open(tmp_path, where=where)
    wanted = chosen.api_calls["call_id"].to_pylist()
    assert wanted
    assert chosen.rows("api_calls") == len(wanted)
    assert kwsniff.analyze(FIRST_STEPS, where=where).api_calls["call_id"].to_pylist() == wanted
    batches = [*kwsniff.calls(FIRST_STEPS, where=where)]
    assert [number for batch in batches for number in batch["call_id"].to_pylist()] == wanted
    for name in ("latencies", "error_codes", "partitions", "commits"):
        assert set(chosen.table(name)["call_id"].to_pylist()) <= set(wanted)
    for name in ("groups", "members", "transactions"):
        for calls in chosen.table(name)["call_ids"].to_pylist():
            assert not set(wanted).isdisjoint(calls)


@pytest.mark.sample(1)
@pytest.mark.parametrize("where", FILTERS)
def test_live_chooses_the_same_calls(where: str, capsys: pytest.CaptureFixture[str]) -> None:
    wanted = calls_of(capsys, "show", FIRST_STEPS, "--json", "--where", where)
    words = [sys.executable, "-m", "kwsniff", "live", "-i", FIRST_STEPS, "--speed", "max", "--json"]
    done = subprocess.run([*words, "--where", where], capture_output=True, text=True, check=True)
    assert sorted(json.loads(line)["call_id"] for line in done.stdout.splitlines()) == wanted


def test_why_counts_chosen_calls_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The errors of one client are those that SQL counts."""
    kwsniff.analyze(FIRST_STEPS, output=tmp_path)
    assert main.run(["why", str(tmp_path), "--json", "--where", "client_id = 'shop-producer'"]) in {0, 1}
    found = json.loads(capsys.readouterr().out)["errors_by_client"]
    query = "select error_name, count(*) as n from error_codes where client_id = 'shop-producer' group by all"
    assert main.run(["sql", str(tmp_path), query, "--format", "json"]) == 0
    counted = {row["error_name"]: row["n"] for row in json.loads(capsys.readouterr().out)["rows"]}
    assert {each["client_id"] for each in found} == {"shop-producer"}
    assert {each["error_name"]: each["count"] for each in found} == counted


def test_short_forms_are_filters_of_the_same_language(capsys: pytest.CaptureFixture[str]) -> None:
    for short, where in {
        "--error any --api produce --api 1": "error_count > 0 and api_name in (Produce, Fetch)",
        "--error any --error 6": "error_count > 0 or error = 6",
        "--error 0 --status answered": "error = 0 and status = answered",
        "--client BILL": "client_id ~ bill",
        "--client 127.0.0.1:43882": "client_address = 127.0.0.1 and client_port = 43882",
        "--client-is billing-1": "client_id = billing-1",
        "--connection 11 --topic orders": "connection_id = 11 and topic = orders",
        "--connection 127.0.0.1:9093": "broker_address = 127.0.0.1 and broker_port = 9093",
    }.items():
        wanted = calls_of(capsys, "show", FIRST_STEPS, "--json", *shlex.split(short))
        assert wanted, short
        assert calls_of(capsys, "show", FIRST_STEPS, "--json", "--where", where) == wanted, short


def test_a_topic_that_is_named_later_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scene = Scene()
    script = scene.connection(Endpoint("10.1.0.7", 50_000), Endpoint("10.1.1.1", 9092))
    script.open()
    for number in range(3):
        exchange = messages.fetch(16, number, {"orders": {0: b""}}, client_id="reader")
        script.call(exchange, at=(2 + 4 * number) * MILLISECOND, answer_at=(3 + 4 * number) * MILLISECOND)
    script.call(
        messages.metadata(12, 9, ["orders"], client_id="reader"),
        at=20 * MILLISECOND,
        answer_at=21 * MILLISECOND,
    )
    capture = written(tmp_path / "late.pcap", scene.packets())
    rows = kwsniff.analyze(capture).api_calls.to_pylist()
    assert [row["topics"] for row in rows] == [["orders"]] * 4
    everything = sorted(row["call_id"] for row in rows)
    assert calls_of(capsys, "show", capture, "--json", "--topic", "orders") == everything
    fetches = sorted(row["call_id"] for row in rows if row["api_name"] == "Fetch")
    where = "topic like 'ord%' and not api_name = Metadata"
    assert calls_of(capsys, "show", capture, "--json", "--where", where) == fetches
    assert calls_of(capsys, "show", capture, "--json", "--where", "topic != orders") == []
    assert main.run(["analyze", capture, "-o", str(tmp_path / "out"), "--where", where]) == 0
    assert sorted(kwsniff.open(tmp_path / "out").api_calls["call_id"].to_pylist()) == fetches
    small = ["--limit", "in_flight_bytes_total=100"]
    capsys.readouterr()
    assert main.run(["show", capture, "--json", "--topic", "orders", *small]) == 0
    assert "some calls have topic ids that no earlier message names" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ["show", FIRST_STEPS],
        ["slice", FIRST_STEPS, "-o", "x.pcapng"],
        ["analyze", FIRST_STEPS],
        ["why", FIRST_STEPS],
        ["live", "-i", FIRST_STEPS],
        ["sql", str(CAPTURES)],
    ],
    ids=lambda words: words[0],
)
def test_an_invalid_filter_is_one_message(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run([*words, "--where", "latency > 1s and api_nam = Fetch"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.splitlines() == [
        "kwsniff: error: unknown column 'api_nam'; did you mean api_name?",
        "  latency > 1s and api_nam = Fetch",
        "                   ^^^^^^^",
    ]


def test_live_knows_no_last_packet(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["live", "-i", FIRST_STEPS, "--where", "request_time > -5s"]) == 2
    assert "count from the first: +30s" in capsys.readouterr().err


@pytest.mark.parametrize("packed", [False, True])
def test_a_relative_time_counts_from_the_capture_in_a_time_range_too(
    packed: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capture = FIRST_STEPS
    if packed:
        capture = str(tmp_path / "capture.pcap.gz")
        Path(capture).write_bytes(gzip.compress(Path(FIRST_STEPS).read_bytes()))
    wanted = calls_of(
        capsys, "show", capture, "--json", "--where", "request_time > +1s and request_time < +2500ms"
    )
    words = ["--since", "+1s", "--where", "request_time < +2500ms"]
    found = calls_of(capsys, "show", capture, "--json", *words)
    assert len(found) == len(wanted) > 0
    assert found[1:] == wanted[1:]  # the first one's connection is seen from its middle on
    assert main.run(["analyze", capture, "-o", str(tmp_path / "out"), *words]) == 0
    assert sorted(kwsniff.open(tmp_path / "out").api_calls["call_id"].to_pylist()) == found


def test_times_before_the_last_packet(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kwsniff.analyze(FIRST_STEPS, output=tmp_path)
    wanted = calls_of(capsys, "show", FIRST_STEPS, "--json", "--where", "request_time >= -1s")
    rows = kwsniff.open(tmp_path)
    last = max(row["last_time"] for row in rows.captures.to_pylist())
    found = [
        row["call_id"]
        for row in rows.api_calls.to_pylist()
        if (last - row["request_time"]).total_seconds() <= 1
    ]
    assert sorted(found) == wanted != []
    assert (
        calls_of(capsys, "sql", str(tmp_path), "--where", "request_time >= -1s", "--format", "jsonl")
        == wanted
    )
