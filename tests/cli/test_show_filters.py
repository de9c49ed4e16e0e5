"""``kwsniff show``: which calls the filters choose, from scripted and recorded captures."""

from pathlib import Path

import pytest

from kwsniff.cli.main import run
from kwsniff.filter.literals import read_duration
from tests.cli.shown import FIRST_STEPS, apis, headings, lines, written
from tests.traffic.scenes import two_clients


@pytest.fixture
def shop(tmp_path: Path) -> str:
    return written(tmp_path / "shop.pcap", two_clients().packets())


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--api", "fetch"], ["Fetch"]),
        (["--api", "0", "--api", "JoinGroup"], ["Produce"] * 3 + ["JoinGroup"]),
        (["--error", "any"], ["Produce", "Heartbeat"]),
        (["--error", "request_timed_out"], ["Produce"]),
        (["--error", "REBALANCE_IN_PROGRESS", "--error", "7"], ["Produce", "Heartbeat"]),
        (["--client", "SHOP-2"], ["FindCoordinator", "JoinGroup", "SyncGroup", "Fetch", "Heartbeat"]),
        (["--client", "10.1.0.7"], ["ApiVersions", "Metadata", "Produce", "Produce", "Produce"]),
        (["--client-is", "shop-2"], ["FindCoordinator", "JoinGroup", "SyncGroup", "Fetch", "Heartbeat"]),
        (["--client", "10.1.0.7:50000", "--api", "metadata"], ["Metadata"]),
        (["--connection", "10.1.0.8:50001", "--api", "12"], ["Heartbeat"]),
        (["--connection", "1", "--api", "metadata"], ["Metadata"]),
        (["--where", "latency >= 2ms"], ["ApiVersions", "Metadata", "Produce", "Produce"]),
        (["--where", "latency >= 1ms", "--api", "heartbeat"], ["Heartbeat"]),
        (["--where", "group_id = g", "--api", "sync_group"], ["SyncGroup"]),
        (["--topic", "orders"], ["Metadata", "Produce", "Produce", "Produce", "Fetch"]),
        (["--topic", "orders", "--where", "not api_name = Produce"], ["Metadata", "Fetch"]),
        (["-n", "2"], ["ApiVersions", "FindCoordinator"]),
        (["--call", "7000"], ["ApiVersions"]),
    ],
)
def test_filters_choose_calls(
    arguments: list[str], expected: list[str], shop: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sorted(apis(headings(capsys, shop, *arguments))) == sorted(expected)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--api", "77"],
        ["--error", "-1"],
        ["--topic", "nowhere"],
        ["--where", "group_id = h"],
        ["--client", "nobody"],
        ["--client-is", "shop"],
        ["--client-is", "SHOP-2"],
        ["--client-is", "10.1.0.7"],
        ["--connection", "99"],
        ["--where", "latency >= 1m"],
        ["--call", "1"],
        ["--api", "produce", "--where", "group_id = g"],
    ],
)
def test_nothing_that_fits_is_exit_status_1(
    arguments: list[str], shop: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["show", shop, *arguments]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "no call matches" in captured.err


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["--api", "fech"], "Fetch"),
        (["--error", "NOT_LEADER"], "NOT_LEADER_OR_FOLLOWER"),
        (["--connection", "there"], "ADDRESS:PORT"),
        (["-n", "0"], "at least 1"),
        (["--json", "--hexdump"], "cannot be combined"),
        (["--port", "x"], "9092"),
    ],
)
def test_bad_usage_is_one_line_that_says_what_to_try(
    arguments: list[str], hint: str, shop: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["show", shop, *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert len(captured.err.splitlines()) == 1
    assert hint in captured.err


def test_errors_of_a_recorded_capture(capsys: pytest.CaptureFixture[str]) -> None:
    refused = headings(capsys, FIRST_STEPS, "--error", "NOT_LEADER_OR_FOLLOWER")
    assert apis(refused) == ["Produce"]
    unknown = headings(capsys, FIRST_STEPS, "--error", "unknown_topic_or_partition")
    assert set(apis(unknown)) == {"Metadata"}
    assert len(unknown) >= 2


def test_topics_that_go_by_their_id_are_found_by_their_name(capsys: pytest.CaptureFixture[str]) -> None:
    # Fetch v16 has no names; the client learned the id from a Metadata response.
    assert "Fetch" in apis(headings(capsys, FIRST_STEPS, "--topic", "orders"))
    shown = lines(capsys, FIRST_STEPS, "--api", "fetch")
    ids = [line for line in shown if line.strip().startswith("topic_id: ")]
    assert ids
    assert all(line.endswith("'  'orders'") for line in ids)


@pytest.mark.parametrize(
    ("text", "nanoseconds"), [("10ms", 10_000_000), ("1.5 s", 1_500_000_000), ("250us", 250_000), ("7ns", 7)]
)
def test_durations(text: str, nanoseconds: int) -> None:
    assert read_duration(text) == nanoseconds


@pytest.mark.parametrize("text", ["", "10", "ms", "-1ms", "1e3s", "1y"])
def test_what_is_no_duration(text: str) -> None:
    assert read_duration(text) is None
