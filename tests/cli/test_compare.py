"""``kwsniff compare``: of recordings with a known cause the culprit comes first; of healthy ones, nothing."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

import kwsniff
from kwsniff.cli.compare import NOTHING_TO_COMPARE
from kwsniff.cli.main import DONE, FAILED, run
from tests.cli.shown import CAPTURES, FIRST_STEPS, ROOT, page

pytestmark = pytest.mark.sample_tests(4)

CLOCKS = CAPTURES / "clocks"


def clock(name: str, side: str = "broker") -> str:
    return str(CLOCKS / name / f"{side}.pcap")


def compared(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, Any]]:
    assert run(["compare", *arguments, "--json"]) == DONE
    answer = json.loads(capsys.readouterr().out)
    assert answer["version"] == 1
    rows: list[dict[str, Any]] = answer["differences"]
    return rows


def named(row: dict[str, Any]) -> tuple[str, str, str]:
    return row["subject_kind"], row["subject"], row["what"]


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("pair", "culprits", "what"),
    [
        # What was done stands in the recordings' about.toml; the relay's client machine has two of them.
        ((clock("near"), clock("quota")), {"shop"}, "throttle_ms"),
        ((clock("near_3_9"), clock("quota_3_9")), {"shop"}, "throttle_ms"),
        ((clock("near", "client"), clock("loss_2", "client")), {"billing-1", "shop"}, "network_ms"),
        ((clock("near", "client"), clock("far_120", "client")), {"billing-1", "shop"}, "network_ms"),
    ],
)
def test_the_culprit_comes_first(
    pair: tuple[str, str], culprits: set[str], what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    first, *_ = compared(capsys, *pair)
    assert (first["subject_kind"], first["what"]) == ("client", what)
    assert first["subject"] in culprits
    assert first["bad"] > first["good"]
    assert first["call_ids"]


@pytest.mark.sample(1)
@pytest.mark.parametrize("side", ["broker", "client"])
def test_who_stands_in_line_at_a_stopped_broker_waits_for_the_broker(
    side: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The only broker was stopped for 3 s; most calls of the producer were behind the first that waited."""
    capture = CAPTURES / "incidents" / "broker_stalled" / f"{side}.pcap"
    first, *rest = compared(capsys, str(capture), "--at", "2026-11-22T00:48:46.383")
    assert named(first) == ("broker", "10.88.0.1:9092", "broker_ms")
    assert first["call_ids"]
    assert "queue_ms" not in {row["what"] for row in rest}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "broker", "moments"),
    [
        # A capture begins before its broker stops; the calls that wait then are few among many quick ones.
        ("stalled_golang", "10.88.0.1:9092", ("+5s", "+7s", "+9s")),
        ("stalled_zookeeper", "10.88.0.2:9093", ("+6s", "+8s", "+10s")),
    ],
)
def test_a_broker_that_stood_still_comes_before_what_was_asked_less_often_for_it(
    name: str, broker: str, moments: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    """Moments before it stopped, and while it stood still: what was under way then belongs to BAD."""
    capture = str(CAPTURES / "incidents" / name / "broker.pcap")
    for moment in moments:
        rows = compared(capsys, capture, "--at", moment)
        first = rows[0]
        assert named(first) == ("broker", broker, "longest_broker_ms")
        assert first["bad"] > 2000
        assert first["good"] < 1000
        assert len(first["call_ids"]) >= 2
        assert "calls_per_second" in [row["what"] for row in rows[1:]]


@pytest.mark.slow
@pytest.mark.parametrize("version", ["", "_3_9"])
@pytest.mark.parametrize("side", ["broker", "client"])
def test_a_follower_that_stands_still_shows_in_what_waits_for_replicas(
    version: str, side: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """No single call proves what a Produce with acks=-1 waits for; what that broker takes for others does."""
    first, *rest = compared(capsys, clock(f"near{version}", side), clock(f"follower_stopped{version}", side))
    assert named(first) == ("acks", "-1", "replicas_ms")
    assert first["call_ids"]
    assert ("client", "shop") in {named(row)[:2] for row in rest}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("good", "bad"),
    [("near", "near_3_9"), ("near_3_9", "near"), ("near", "near"), ("members_slow", "members_slow")],
)
def test_two_runs_of_the_same_traffic_give_nothing(
    good: str, bad: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert compared(capsys, clock(good), clock(bad)) == []
    assert run(["compare", clock(good), clock(bad)]) == DONE
    assert capsys.readouterr().out.startswith("No significant difference")


@pytest.mark.sample(1)
@pytest.mark.parametrize("empty", ["good", "bad"])
def test_where_one_has_no_calls_nothing_is_said_of_the_other(
    empty: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nothing = tmp_path / "nothing.pcap"
    nothing.write_bytes(Path(clock("near")).read_bytes()[:24])
    both = [str(nothing), clock("near")] if empty == "good" else [clock("near"), str(nothing)]
    assert run(["compare", *both]) == NOTHING_TO_COMPARE
    assert capsys.readouterr().out.startswith("Nothing to compare: ")
    assert run(["compare", *both, "--json"]) == NOTHING_TO_COMPARE
    assert json.loads(capsys.readouterr().out)["differences"] == []


def test_calls_that_fail_are_a_difference(capsys: pytest.CaptureFixture[str]) -> None:
    """message_too_large: shop sends what the broker refuses, till does not."""
    incidents = CAPTURES / "incidents"
    good, bad = (str(incidents / name / "broker.pcap") for name in ("healthy_bursts", "message_too_large"))
    first, *_ = compared(capsys, good, bad)
    assert named(first) == ("client", "shop", "errors")
    assert 0 < first["bad"] <= 1


def copied(folder: Path, *names: str) -> str:
    for name in names:
        shutil.copy(clock(name), folder / f"{name}.pcap")
    return str(folder)


@pytest.mark.sample(1)
@pytest.mark.parametrize("moment", ["2026-11-22T23:35:00", "23:35:00", "+1m"])
def test_before_and_after_a_moment(moment: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """near was recorded at 23:27:02, quota at 23:40:03."""
    first, *_ = compared(capsys, copied(tmp_path, "near", "quota"), "--at", moment)
    assert named(first) == ("client", "shop", "throttle_ms")


def test_the_slowest_calls_are_those_of_the_throttled_client(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = copied(tmp_path, "near", "quota", "near_3_9", "loss_2", "far_40")
    rows = compared(capsys, folder, "--slowest")
    assert named(rows[0]) == ("client", "shop", "throttle_ms")
    assert {row["what"] for row in rows} & {"calls_per_second", "retransmitted"} == set()


@pytest.mark.slow
def test_folders_of_tables_tell_the_same_as_captures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kwsniff.analyze(clock("quota"), output=tmp_path)
    assert compared(capsys, clock("near"), str(tmp_path)) == compared(capsys, clock("near"), clock("quota"))


@pytest.mark.slow
@pytest.mark.parametrize("columns", [60, 80])
@pytest.mark.parametrize("folder", ["a", "a_folder_whose_name_needs_most_of_a_line_here"])
def test_no_line_is_wider_than_the_screen_but_for_a_longer_path(
    folder: str,
    columns: int,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Paths are given from the current folder: how long the checkout's own path is makes no difference.
    Wireshark's filters are to be copied, and stay whole."""
    monkeypatch.chdir(tmp_path)
    Path(folder).mkdir()
    good, bad = (shutil.copy(clock(name), Path(folder) / f"{name}.pcap") for name in ("near", "quota"))
    monkeypatch.setenv("COLUMNS", str(columns))
    assert run(["compare", str(good), str(bad)]) == DONE
    out = capsys.readouterr().out
    lines = [line for line in out.splitlines() if not re.match(r"  \d+: frame\.number in \{", line)]
    assert max(map(len, lines)) <= columns
    assert len(lines) < len(out.splitlines())
    assert "client shop" in out
    assert "throttle_ms" in out


@pytest.mark.parametrize(
    "arguments",
    [
        [FIRST_STEPS],
        [FIRST_STEPS, FIRST_STEPS, "--slowest"],
        [FIRST_STEPS, "--slowest", "--at", "+1s"],
        [FIRST_STEPS, "--at", "noon"],
        [FIRST_STEPS, "--at", "+9999s"],
        ["no such file", FIRST_STEPS],
    ],
)
def test_bad_usage_is_one_line(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["compare", *arguments]) == FAILED
    assert len(capsys.readouterr().err.splitlines()) == 1


@pytest.mark.sample(1)
@pytest.mark.parametrize("how", ["two inputs", "--at"])
def test_the_stall_is_a_finding_of_bad_alone(how: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The only broker was stopped at 00:48:46.4 (about.toml of the recording)."""
    stalled = str(CAPTURES / "incidents" / "broker_stalled" / "broker.pcap")
    given = [str(CAPTURES / "incidents" / "healthy_bursts" / "broker.pcap"), stalled]
    assert (
        run(
            ["compare", *([stalled, "--at", "2026-11-22T00:48:46.383"] if how == "--at" else given), "--json"]
        )
        == DONE
    )
    answer = json.loads(capsys.readouterr().out)
    assert answer["good"]["findings"] == []
    (found,) = answer["bad"]["findings"]
    assert (found["finding"], found["blames"], found["subject"]) == (
        "broker_stalled",
        "broker",
        "10.88.0.1:9092",
    )
    if how != "--at":
        why = json.loads(said(capsys, "why", stalled, "--json"))["account"]
        assert answer["bad"]["calls"] == why["calls"]
        assert answer["bad"]["harmed"] == sum(why["explained"].values()) + why["unexplained"]
        assert answer["good"]["harmed"] == 0


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    run([*arguments])
    return capsys.readouterr().out


@pytest.mark.slow
def test_the_page_shows_what_the_verb_says() -> None:
    path = ROOT / "docs" / "compare.md"
    assert page(path) == path.read_text("utf-8"), "run: python -m tests.cli.shown"
