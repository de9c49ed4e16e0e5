"""Calls that prove a finding, as the page says them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kwsniff.findings.finding import Finding
from kwsniff.report import proof
from kwsniff.report.proof import Commands, _format_frames, _outcome, _proof_table, _row, _select_rows, _where
from kwsniff.zones import UTC_ZONE

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
MS = 1_000_000
FOUND = Finding(
    "broker_stalled", "problem", "certain", "broker", "broker", "b", NOON, NOON + timedelta(seconds=10), 1.0,
    None, "s", 5, None, [1], [], None, "text", "advice", "command",
)  # fmt: skip
ROW: dict[str, Any] = {
    "call_id": 7, "capture": "c.pcap", "client": "shop", "client_address": "10.0.0.1", "client_port": 4711,
    "broker": "b:9092", "api_name": "Fetch", "api_key": 1, "api_version": 12, "request_time": NOON,
    "response_end_time": NOON, "status": "answered", "reason": None, "error_name": None, "error_code": 0,
    "request_frame": 5, "request_end_frame": 5, "response_frame": 9, "response_end_frame": 12,
    "topics": ["a", "b", "c", "d"], "group_id": "g", "took_ns": 100 * MS, "wait": "long_poll",
    "broker_ns": 60 * MS, "network_ns": 5 * MS, "queue_wait_ns": 0, "deliberate_wait_ns": 29 * MS,
    "request_transmission_ns": 0, "response_transmission_ns": 6 * MS,
}  # fmt: skip


def at(seconds: float) -> dict[str, Any]:
    return {**ROW, "request_time": NOON + timedelta(seconds=seconds)}


def test_of_several_runs_the_calls_within_a_second_of_the_finding_prove_it() -> None:
    rows = [at(each) for each in (-1.1, -1, 0, 10, 11, 11.1)]
    assert [*_select_rows(FOUND, rows)] == rows[1:5]
    assert [*_select_rows(FOUND, rows[:1])] == rows[:1]  # of one run there is nothing to choose
    assert [*_select_rows(replace(FOUND, first_time=None), rows)] == rows


def test_where_the_time_went_are_the_longest_parts_above_a_twentieth() -> None:
    assert _where(ROW) == "broker 60 ms, waited 29 ms (long poll), response transmission 6 ms"
    assert _where({**ROW, "response_transmission_ns": 5 * MS}) == "broker 60 ms, waited 29 ms (long poll)"
    assert _where({**ROW, "broker_ns": None}) == ""
    assert _where({**ROW, "took_ns": None}) == ""


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({}, "answered"),
        ({"error_code": 6, "error_name": "NOT_LEADER_OR_FOLLOWER"}, "NOT_LEADER_OR_FOLLOWER"),
        ({"error_code": 999}, "999"),
        (
            {"status": "response_not_captured", "reason": "segment_lost"},
            "response not captured: segment lost",
        ),
    ],
)
def test_how_a_call_ended(changed: dict[str, Any], said: str) -> None:
    assert _outcome({**ROW, **changed}) == said


def test_packets_are_numbers_and_ranges() -> None:
    assert _format_frames([(5, 5), (9, 12), (None, None), (20, None)]) == "5, 9 to 12, 20"


def test_a_row_names_client_and_address_once() -> None:
    cells = [cell.text for cell in _row(ROW, Commands("c.pcap"), UTC_ZONE)]
    assert cells[2] == "shop (10.0.0.1:4711)"
    assert cells[5] == "a, b, c and 2 more"
    assert cells[9] == "5, 9 to 12"
    nameless = [cell.text for cell in _row({**ROW, "client": "10.0.0.1"}, Commands("c.pcap"), UTC_ZONE)]
    assert nameless[2] == "10.0.0.1:4711"


@pytest.mark.parametrize(("calls", "caption"), [(1, "(1)"), (2, "(1 of 2)"), (1234, "(1 of 1,234)")])
def test_a_proof_says_how_many_calls_there_are(calls: int, caption: str) -> None:
    table = _proof_table(replace(FOUND, calls=calls), [ROW], Commands("c.pcap"), UTC_ZONE)
    assert table is not None
    assert table.caption.endswith(caption)


def test_packets_prove_where_no_call_does() -> None:
    table = _proof_table(replace(FOUND, frames=[3, 8]), [], Commands("c.pcap"), UTC_ZONE)
    assert table is not None
    assert [row[1].text for row in table.rows] == ["frame.number == 3", "frame.number == 8"]
    assert _proof_table(FOUND, [], Commands("c.pcap"), UTC_ZONE) is None


def test_findings_behind_the_first_ones_show_one_call_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twenty calls prove each of them: ten findings show all that a page has rows for."""
    numbers = list(range(20))
    monkeypatch.setattr(
        proof, "read_calls", lambda *_: {each: [{**ROW, "call_id": each}] for each in numbers}
    )
    findings = [replace(FOUND, calls=20, call_ids=numbers)] * 13
    section = proof.make_findings(None, findings, Commands("c.pcap"), UTC_ZONE)  # type: ignore[arg-type]
    assert proof.MOST_CALLS == 200
    shown = [0 if item.proof is None else len(item.proof.rows) for item in section.items]
    assert shown == [20] * 10 + [1] * 3
