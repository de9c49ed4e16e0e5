"""What every limit does to the rows, one below it and one above."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from tests.core.hand import (
    FIN,
    Rows,
    Talk,
    ask,
    assert_answered,
    connection_of,
    names,
    request,
    response,
    tables_of,
)
from tests.core.test_protocol_heuristics import header
from tests.traffic import messages
from tests.traffic.wire import sized


def call_of(tables: Rows, number: int) -> dict[str, Any]:
    (row,) = (row for row in tables["api_calls"] if row["correlation_id"] == number)
    return row


@pytest.mark.parametrize(("limit", "told"), [(2, ["frame_torn", "held_limit", "segment_lost"]), (3, [])])
def test_so_many_segments_are_held_behind_a_hole(limit: int, told: list[str]) -> None:
    talk = Talk().open()
    ask(talk, 1)
    data, start = request(2), talk.next[True]
    for at, end in ((0, 14), (16, 17), (17, 18), (18, 19), (14, 16), (19, 20)):
        talk.send(True, data[at:end], seq=start + at)
    talk.next[True] = start + len(data)
    talk.send(False, response(2))
    tables = tables_of(talk.packets, limits={"reorder_segments": limit})
    assert names(tables) == told
    assert (call_of(tables, 2)["reason"] is None) == (not told)


@pytest.mark.parametrize(("limit", "reason"), [(2, "limit_reached"), (3, "open_at_end")])
def test_so_many_calls_wait_for_their_answers(limit: int, reason: str) -> None:
    """The oldest one makes room."""
    talk = Talk().open()
    ask(talk, 0)
    for number in (1, 2, 3):
        talk.send(True, request(number))
    tables = tables_of(talk.packets, limits={"in_flight_requests": limit})
    assert [(call_of(tables, number)["reason"]) for number in (1, 2, 3)] == [reason] + ["open_at_end"] * 2
    assert names(tables) == (["outstanding_limit"] if limit == 2 else [])


@pytest.mark.parametrize(("limit", "whole"), [(101, True), (100, False)])
def test_a_frame_has_so_many_bytes_at_most(limit: int, whole: bool) -> None:
    """Not counting the size before it."""
    talk = Talk().open()
    ask(talk, 1)
    talk.send(True, request(2))
    answer = struct.pack(">ihi", 2, 0, 15) + 15 * struct.pack(">hhh", 18, 0, 3) + b"\0"
    assert len(answer) == 101
    talk.send(False, sized(answer))
    tables = tables_of(talk.packets, limits={"frame_bytes": limit})
    assert call_of(tables, 2)["status"] == ("answered" if whole else "response_not_captured")
    assert names(tables) == (["trailing_bytes"] if whole else ["framing_lost"])


def test_an_answer_that_began_is_not_said_to_be_missing() -> None:
    """What is kept of it ends before the client closes, and the rest never came: the broker did answer."""
    talk = Talk().open()
    ask(talk, 1)
    talk.send(True, request(2))
    whole = sized(struct.pack(">ihi", 2, 0, 50) + 50 * struct.pack(">hhh", 18, 0, 3))
    for at in (0, 60, 120):
        talk.send(False, whole[at : at + 60])
    for from_client in (True, False):
        talk.send(from_client, flags=FIN | 16)
    talk.send(True)
    tables = tables_of(talk.packets, limits={"frame_kept_bytes": 100})
    found = call_of(tables, 2)
    assert (found["status"], found["reason"]) == ("answered", "cut_off_by_client")
    assert (found["response_bytes"], found["response_end_time"], found["latency_ns"]) == (
        len(whole),
        None,
        None,
    )


TOPICS = [f"a-topic-with-a-long-name-{number:02}" for number in range(20)]


@pytest.mark.parametrize("limit", [300, 65_536])
def test_so_much_is_kept_of_a_waiting_request(limit: int) -> None:
    call = messages.produce(7, 1, {topic: {0: b""} for topic in TOPICS})
    assert call.response
    talk = Talk().open()
    talk.send(True, call.request)
    talk.send(False, call.response)
    tables = tables_of(talk.packets, limits={"request_context_bytes": limit})
    found = call_of(tables, 1)["topics"]
    assert found == TOPICS[: len(found)]
    assert sum(map(len, found)) <= limit
    assert (len(found) == 20, names(tables)) == (
        (True, []) if limit > 1000 else (False, ["call_facts_limit"])
    )


@pytest.mark.parametrize(("limit", "count"), [(3, 3), (2, None)])
def test_so_many_partitions_of_a_fetch_session_are_followed(limit: int, count: int | None) -> None:
    """Of a larger one nobody knows what it asks for."""
    talk = Talk().open()
    for call in (
        messages.fetch(11, 1, {"a": {0: b"", 1: b"", 2: b""}}, session=(0, 0), opened=77),
        messages.fetch(11, 2, {}, session=(77, 1), opened=77),
    ):
        assert call.response
        talk.send(True, call.request)
        talk.send(False, call.response)
    tables = tables_of(talk.packets, limits={"session_partitions": limit})
    assert [call_of(tables, number)["partition_count"] for number in (1, 2)] == [3, count]


def test_a_session_that_a_broken_answer_opens_is_not_believed() -> None:
    talk = Talk().open()
    first = messages.fetch(11, 1, {"a": {0: b"", 1: b""}}, session=(0, 0), opened=77)
    then = messages.fetch(11, 2, {}, session=(77, 1), opened=77)
    assert first.response and then.response
    ask(talk, 0)
    for call, answer in ((first, sized(first.response[4:-9])), (then, then.response)):
        talk.send(True, call.request)
        talk.send(False, answer)
    tables = tables_of(talk.packets)
    assert call_of(tables, 1)["reason"] == "undecodable"
    assert call_of(tables, 2)["partition_count"] is None


@pytest.mark.parametrize(("limit", "numbers"), [(1_000, []), (10_000, [1, 2, 3])])
def test_the_beginning_of_a_request_is_looked_for_in_so_many_bytes(limit: int, numbers: list[int]) -> None:
    """Of a connection without a handshake, in each direction."""
    talk = Talk(1, 1)
    for _ in range(40):
        talk.send(True, b"#" * 50)
        talk.send(False, b"#" * 50)
    for number in (1, 2, 3):
        ask(talk, number)
    tables = tables_of(talk.packets, limits={"resync_bytes": limit})
    assert_answered(tables, *numbers)


@pytest.mark.parametrize(("limit", "protocol"), [(1_000, "other"), (3_000, "kafka")])
def test_a_first_request_that_no_layout_describes_is_believed_while_it_can_be_kept(
    limit: int, protocol: str
) -> None:
    talk = Talk().open()
    talk.send(True, sized(header(501, 0, 1) + bytes(2_000)))
    talk.send(False, sized(struct.pack(">i", 1) + bytes(6)))
    for number in (2, 3):
        ask(talk, number)
    tables = tables_of(talk.packets, limits={"frame_kept_bytes": limit})
    assert connection_of(tables)["protocol"] == protocol


def test_a_broken_answer_does_not_say_that_there_was_no_error() -> None:
    """What could not be read may hold one."""
    talk = Talk().open()
    ask(talk, 0)
    call = messages.produce(7, 1, {"a": {0: b"", 1: b""}})
    assert call.response
    talk.send(True, call.request)
    talk.send(False, sized(call.response[4:-9]))
    row = call_of(tables_of(talk.packets), 1)
    assert (row["reason"], row["error_code"], row["error_count"]) == ("undecodable", None, None)
