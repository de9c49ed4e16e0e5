"""kwsniff verify: tshark on the same capture; what brokers logged says whether all messages were compared."""

import json
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kwsniff.cli import main
from kwsniff.verify import comparison, tshark
from kwsniff.verify.comparison import REASONS, compare_with_tshark
from kwsniff.verify.tshark import TsharkMessage

pytestmark = pytest.mark.sample_tests(5)

CAPTURES = Path(__file__).parents[2] / "captures"
FIRST_STEPS = CAPTURES / "first_steps" / "capture.pcap"
needs_tshark = pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")

# One of each kind: plain, another client, a group, without answers, an interface of any kind.
RECORDED = ["first_steps", "kafka_python", "transaction", "group_classic", "no_acks", "any_interface"]


@pytest.mark.sample(2)
@needs_tshark
@pytest.mark.parametrize("name", RECORDED)
def test_every_request_that_brokers_counted_is_compared_and_the_same(name: str) -> None:
    about = tomllib.loads((CAPTURES / name / "about.toml").read_text("utf-8"))
    found = compare_with_tshark(str(CAPTURES / name / about["file"]))
    assert found.agree
    assert found.both["requests"] == sum(about["requests"].values())
    assert not found.ours_alone
    assert found.compared["client id"] == found.both["requests"]
    assert found.compared["size"] == sum(found.both.values())


@pytest.mark.slow
@needs_tshark
def test_after_losses_what_one_of_them_sees_is_explained() -> None:
    found = compare_with_tshark(str(CAPTURES / "clocks" / "loss_2_3_9" / "client.pcap"))
    assert found.agree
    assert found.elsewhere
    assert {*found.elsewhere, *found.theirs_alone, *found.ours_alone} <= set(REASONS)


@needs_tshark
def test_a_version_that_this_tshark_does_not_know_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["verify", str(FIRST_STEPS), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["version"] == 1
    assert told["witness"].startswith("tshark ")
    (one,) = told["captures"]
    assert one["agree"] is True
    assert one["both"] == {"requests": 34, "responses": 34}
    for each in one["header_alone"]:
        assert each["why"].startswith("it supports ")


def told(changes: dict[str, Any] | None = None, *, at: int = 4, drop: bool = False) -> Any:
    """What tshark might say of first_steps' first call, with one thing changed."""

    def messages(path: str, ports: Sequence[int]) -> Iterator[list[TsharkMessage]]:
        client, broker = ("127.0.0.1", 43882), ("127.0.0.1", 9093)
        request = TsharkMessage(4, client, broker, True, 18, 3, 1, "shop-producer", 70, None, (), None, False)
        answer = TsharkMessage(6, broker, client, False, 18, 3, 1, None, 720, 4, (), None, False)
        for seen in (request, answer):
            if seen.frame == at and drop:
                continue
            yield [replace(seen, **(changes or {})) if seen.frame == at else seen]

    return messages


def first_call(comparison: Any, messages: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The comparison of that call alone."""
    ours = comparison._OURS
    only = ours.replace("is not null", "is not null and call_id = 4000")
    monkeypatch.setattr(comparison, "_OURS", only)
    monkeypatch.setattr(comparison, "messages", messages)
    return comparison.compare_with_tshark(str(FIRST_STEPS))


def test_the_same_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    found = first_call(comparison, told(), monkeypatch)
    assert found.agree
    assert found.both == {"requests": 1, "responses": 1}


@pytest.mark.parametrize(
    ("changes", "at", "what"),
    [
        ({"api_key": 3}, 4, "API"),
        ({"api_version": 2}, 4, "version"),
        ({"client_id": "shop"}, 4, "client id"),
        ({"size": 71}, 6, "size"),
        ({"request_frame": 3}, 6, "packet of the request"),
        ({"errors": (35,)}, 6, "first error"),
    ],
)
def test_each_fact_that_differs_is_a_difference(
    changes: dict[str, Any], at: int, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = first_call(comparison, told(changes, at=at), monkeypatch)
    assert not found.agree
    assert [(each.what, each.frame, each.call_id) for each in found.differences] == [(what, at, 4000)]


def test_a_message_that_nobody_explains_is_a_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    found = first_call(comparison, told(at=6, drop=True), monkeypatch)
    assert [each.what for each in found.differences] == ["only kwsniff sees it"]


def test_one_of_another_correlation_id_is_two_differences(monkeypatch: pytest.MonkeyPatch) -> None:
    found = first_call(comparison, told({"correlation_id": 9}, at=6), monkeypatch)
    assert {each.what for each in found.differences} == {"only kwsniff sees it", "only tshark sees it"}


def test_differences_are_exit_status_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tshark, "witness_version", lambda: "tshark 4.0")
    monkeypatch.setattr(comparison, "messages", told())
    assert main.run(["verify", str(FIRST_STEPS)]) == 1
    out = capsys.readouterr().out
    assert "Unexplained differences (first 10 of 66)" in out
    assert "both see 1 request and 1 response" in out


def test_without_tshark_one_line_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "")
    assert main.run(["verify", str(FIRST_STEPS)]) == 2
    error = capsys.readouterr().err
    assert error == "kwsniff: error: verify needs tshark: apt-get install tshark\n"


@pytest.mark.slow
@needs_tshark
def test_a_capture_that_ends_in_a_packet_is_told(tmp_path: Path) -> None:
    cut = tmp_path / "cut.pcap"
    cut.write_bytes(FIRST_STEPS.read_bytes()[:2000])
    command = [sys.executable, "-m", "kwsniff", "verify", str(FIRST_STEPS), str(cut)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, f"kwsniff: note: {cut}: ends inside a packet\n")


@needs_tshark
def test_standard_input_is_compared_like_a_file() -> None:
    with FIRST_STEPS.open("rb") as capture:
        done = subprocess.run(
            [sys.executable, "-m", "kwsniff", "verify", "-"],
            stdin=capture,
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("-: kwsniff and tshark")
    assert "both see 34 requests and 34 responses" in done.stdout  # as the capture's about.toml counts
