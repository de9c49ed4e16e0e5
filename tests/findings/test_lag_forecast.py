"""When a group that falls behind catches up: rates of writing and reading, by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tests.findings.scripted import find

SECOND = 1_000_000


def _text(lags: Sequence[int], written: int, age_s: float | None = None, fetched: int | None = None) -> str:
    """A commit each second with these lags, while the log grows by `written` records each second. The member
    fetches until second `fetched`."""
    commits: list[dict[str, Any]] = []
    for second, lag in enumerate(lags):
        end = 1000 + written * second
        commits.append(
            {
                "call_id": second, "group_id": "billing", "topic": "orders", "partition": 0, "lag": lag,
                "high_watermark": end, "committed_offset": end - lag, "time": second * SECOND,
                "lag_ns": None if age_s is None else round(age_s * 1e9),
            }
        )  # fmt: skip
    calls = [
        {**each, "connection_id": 1, "client_id": "b-1", "client_address": "10.0.0.7", "caller": "client",
         "broker_address": "10.0.0.1", "broker_port": 9092, "api_name": "OffsetCommit", "status": "answered"}
        for each in commits
    ]  # fmt: skip
    if fetched is not None:
        fetch = {"call_id": 99, "api_name": "Fetch", "request_time": fetched * SECOND}
        calls.append({**calls[0], **fetch, "response_end_time": fetched * SECOND})
    connection = {"connection_id": 1, "client_address": "10.0.0.7", "protocol": "kafka", "first_time": 0}
    (found,) = find("lag_grows", {"commits": commits, "api_calls": calls, "connections": [connection]})
    return found.text


def test_a_group_that_reads_slower_than_others_write_never_catches_up() -> None:
    """100 records a second are written; the lag grows by 40 a second, so 60 are read."""
    text = _text([10, 50, 90, 130, 170, 210, 250], written=100)
    assert "write 100.0 records per second, and the group reads 60.0" in text
    assert text.endswith("at these rates it never catches up.")
    assert "old" not in text


def test_a_group_that_has_turned_says_when_it_has_caught_up() -> None:
    """In the last third the lag goes from 400 to 360 in 2 s: 20 a second, and 18 s for the rest."""
    text = _text([10, 20, 30, 300, 350, 400, 400, 380, 360], written=100, age_s=3.6)
    assert text.endswith("at the last rates it catches up in 18 s.")
    assert "360 offsets (the first unread record is 3.6 s old)" in text


@pytest.mark.parametrize(
    ("lags", "fetched", "stands"),
    [
        ([10, 110, 210, 310, 410, 510, 610, 710], 1, True),  # it commits offset 990 all the time
        ([10, 110, 210, 310, 410, 510, 610, 710], 3, False),  # 4 s ago
        ([10, 110, 210, 310, 410, 510, 610, 650], 1, False),  # it gets on
    ],
)
def test_a_member_that_commits_and_fetches_nothing_stands(
    lags: Sequence[int], fetched: int, stands: bool
) -> None:
    text = _text(lags, written=100, fetched=fetched)
    assert text.endswith("They commit the same offsets, and sent no fetch for 6.0 s.") == stands
