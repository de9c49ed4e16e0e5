"""Responses in which the client closed the connection: they are no missing responses."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from tests.core.hand import ACK, FIN, RST, Rows, Talk, ask, at_ms, names, request, tables_of
from tests.traffic.wire import sized

BODY = sized(struct.pack(">ihi", 2, 0, 50) + 50 * struct.pack(">hhh", 18, 0, 3))
"""The response to the second request: 4 + 10 + 300 bytes."""


def call_of(tables: Rows, number: int) -> dict[str, Any]:
    (row,) = (row for row in tables["api_calls"] if row["correlation_id"] == number)
    return row


def _begun(size: int) -> Talk:
    talk = Talk().open()
    ask(talk, 1)
    talk.send(True, request(2))
    talk.send(False, BODY[:size])
    return talk


@pytest.mark.parametrize("flags", [RST | ACK, RST, FIN | ACK])
@pytest.mark.parametrize("size", [8, 9, 100, len(BODY) - 1])
def test_the_client_closes_inside_a_response(size: int, flags: int) -> None:
    talk = _begun(size)
    talk.send(True, flags=flags)
    tables = tables_of(talk.packets)
    row = call_of(tables, 2)
    assert (row["status"], row["reason"]) == ("answered", "cut_off_by_client")
    assert (row["response_frame"], row["response_time"]) == (7, at_ms(6))
    assert row["response_bytes"] == len(BODY) == 314
    assert [row[name] for name in ("response_end_frame", "response_end_time", "latency_ns")] == [None] * 3
    assert names(tables) == []
    assert [each["call_id"] for each in tables["latencies"]] == [call_of(tables, 1)["call_id"]]


def test_too_little_of_it_names_no_call() -> None:
    talk = _begun(7)
    talk.send(True, flags=RST | ACK)
    assert call_of(tables_of(talk.packets), 2)["status"] == "unanswered"


@pytest.mark.parametrize("end", [RST | ACK, FIN | ACK, None])
def test_the_broker_closes_inside_it_or_the_capture_ends(end: int | None) -> None:
    talk = _begun(100)
    if end is not None:
        talk.send(False, flags=end)
    row = call_of(tables_of(talk.packets), 2)
    assert (row["status"], row["response_time"]) == ("unanswered", None)


def test_what_began_after_the_client_had_closed_is_no_answer_to_it() -> None:
    talk = Talk().open()
    ask(talk, 1)
    talk.send(True, request(2))
    talk.send(True, flags=FIN | ACK)
    talk.send(False, BODY[:100])
    talk.send(True, flags=RST)
    assert call_of(tables_of(talk.packets), 2)["status"] == "unanswered"


def test_a_whole_response_is_whole_whoever_closes_behind_it() -> None:
    talk = _begun(len(BODY))
    talk.send(True, flags=RST | ACK)
    row = call_of(tables_of(talk.packets), 2)
    assert (row["status"], row["reason"], row["response_end_frame"]) == ("answered", None, 7)


def test_calls_behind_it_have_no_response() -> None:
    talk = Talk().open()
    talk.send(True, request(2) + request(3))
    talk.send(False, BODY[:100])
    talk.send(True, flags=RST | ACK)
    tables = tables_of(talk.packets)
    assert call_of(tables, 2)["reason"] == "cut_off_by_client"
    assert (call_of(tables, 3)["status"], call_of(tables, 3)["reason"]) == ("unanswered", "connection_reset")


def test_bytes_that_are_missing_inside_it_leave_it_open() -> None:
    talk = _begun(100)
    talk.next[False] += 50
    talk.send(False, BODY[150:200])
    talk.send(True)
    talk.send(True, flags=RST | ACK)
    assert call_of(tables_of(talk.packets), 2)["status"] == "response_not_captured"


def test_the_hash_by_which_twins_are_known_is_of_whole_messages() -> None:
    """A place nearer to the broker may see more of it."""
    hashes = set()
    for size in (60, 100, 200):
        talk = _begun(size)
        talk.send(True, flags=RST | ACK)
        (row,) = tables_of(talk.packets)["connections"]
        hashes.add(row["messages_hash"])
    assert len(hashes) == 1
    assert None not in hashes
