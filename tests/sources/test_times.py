"""Times as people give them. What they stand for is worked out by `date -u -d` and by hand."""

from __future__ import annotations

import gzip
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from kwsniff.errors import UsageError
from kwsniff.sources.files import CaptureFile
from kwsniff.sources.order import first_time, first_time_in, last_time
from kwsniff.sources.times import Given, TimeRange, parse_moment
from tests.traffic.files import Resolution, frames, pcap, pcapng
from tests.traffic.scenes import pipelined

SECOND = 10**9
AT = 1_795_212_413 * SECOND
"""2026-11-20T22:06:53Z"""
FIRST, LAST = AT - 40 * SECOND, AT + 3600 * SECOND


@pytest.mark.parametrize(
    ("given", "time"),
    [
        ("2026-11-20T22:06:53Z", AT),
        ("2026-11-20T22:06:53", AT),
        (" 2026-11-20 22:06:53 ", AT),
        ("2026-11-20 22:06:53 UTC", AT),
        ("2026-11-20T23:06:53+01:00", AT),
        ("2026-11-20T16:36:53.5-05:30", AT + SECOND // 2),
        ("2026-11-20 22:06:53,123", AT + 123_000_000),
        ("2026-11-20T22:06:53.123456789Z", AT + 123_456_789),
        ("2026-11-20T22:07", AT + 7 * SECOND),
        ("2026-11-20", AT - 79_613 * SECOND),
        ("20261120", AT - 79_613 * SECOND),
        ("22:06:53", AT),
        ("22:06:53.25", AT + SECOND // 4),
        ("22:06", AT - 53 * SECOND),
        ("9:06:53", AT - 13 * 3600 * SECOND),
        ("1795212413", AT),
        ("1795212413.000000001", AT + 1),
        ("1795212413250", AT + SECOND // 4),
        ("1795212413000001", AT + 1000),
        ("1795212413000000001", AT + 1),
        ("+40s", AT),
        ("+40", AT),
        ("+0.5", FIRST + SECOND // 2),
        ("+250ms", FIRST + SECOND // 4),
        ("+1h30m", FIRST + 5400 * SECOND),
        ("+1h 30min", FIRST + 5400 * SECOND),
        ("+1d", FIRST + 86_400 * SECOND),
        ("+7ns", FIRST + 7),
        ("-1h", AT),
        ("-1.5s", LAST - 3 * SECOND // 2),
        (datetime(2026, 11, 20, 22, 6, 53, tzinfo=UTC), AT),
        (datetime(2026, 11, 20, 22, 6, 53), AT),
        (datetime(2026, 11, 20, 23, 6, 53, 5, timezone(timedelta(hours=1))), AT + 5000),
        (timedelta(seconds=40), AT),
        (timedelta(hours=-1), AT),
        ("1969-12-31", 0),
        ("9999-12-31", 2**63 - 1),
    ],
)
def test_a_time_is_what_people_mean(given: str | datetime | timedelta, time: int) -> None:
    assert parse_moment(given, "--since").resolve(FIRST, LAST) == time


def test_pandas_times_keep_their_nanoseconds() -> None:
    pandas = pytest.importorskip("pandas")
    given = pandas.Timestamp("2026-11-20T22:06:53.123456789Z")
    assert parse_moment(given, "since").resolve(None) == AT + 123_456_789


@pytest.mark.parametrize(
    "given",
    ["", " ", "noon", "30", "+", "-", "+5x", "5m", "+-5s", "25:00", "22:6", "2026-13-01", "+" + "9" * 5000,
     "\u0663" * 10,      "2026-11-20T22:06:53.", "17952124130", 5, 1.5, b"+5s"],
)  # fmt: skip
def test_what_is_no_time_is_one_line(given: str) -> None:
    with pytest.raises(UsageError, match=r"^--since[: ]") as caught:
        parse_moment(given, "--since")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("since", "until"),
    [("+5s", "+5s"), ("+1m", "+5s"), ("-5s", "-5m"), ("2026-11-20", "2026-11-20"), (timedelta(9), "+1s")],
)
def test_a_range_that_holds_nothing_is_refused_before_captures_are_read(since: Given, until: Given) -> None:
    with pytest.raises(UsageError, match="is not before until"):
        TimeRange(since, until)


def captured(path: Path, data: bytes) -> str:
    path.write_bytes(data)
    return str(path)


ROWS = frames(pipelined(4, 30, 300).packets())


@pytest.mark.parametrize(
    "data",
    [
        pcap(ROWS, nanoseconds=True),
        pcapng(ROWS, resolutions=[Resolution(9), Resolution(9)], noise=True),
        pcapng(ROWS[:50], resolutions=[Resolution(9)])
        + pcapng(ROWS[50:], big=True, resolutions=[Resolution(9)]),
        gzip.compress(pcap(ROWS, nanoseconds=True)),
        pcap(ROWS, nanoseconds=True) + b"\0" * 7,
    ],
    ids=["pcap", "pcapng", "two sections", "gzip", "cut"],
)
def test_first_and_last_times(tmp_path: Path, data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kwsniff.sources.files.BUFFER_BYTES", 1999)
    name = captured(tmp_path / "x", data)
    assert first_time(name) == min(row.time_ns for row in ROWS)
    assert last_time(name) == max(row.time_ns for row in ROWS)


def test_a_capture_without_packets_has_no_times(tmp_path: Path) -> None:
    name = captured(tmp_path / "x", pcap([]))
    assert (first_time(name), last_time(name)) == (None, None)
    with (
        CaptureFile(name) as capture,
        pytest.raises(UsageError, match=r"\+5s: the capture has no packet time"),
    ):
        TimeRange("+5s").resolve([name], capture)


def test_what_was_looked_at_ahead_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kwsniff.sources.files.BUFFER_BYTES", 10)
    data = pcap(ROWS)
    with CaptureFile(captured(tmp_path / "x", data)) as capture:
        assert first_time_in(capture) is not None
        assert capture.consumed < 200
        assert b"".join(map(bytes, capture.readable())) == data
