"""Segments that come early, late, from nowhere, and what is made of the bytes between them."""

from __future__ import annotations

import struct

import pytest

from tests.core.hand import (
    ACK,
    FIN,
    RST,
    START_NS,
    Talk,
    ask,
    assert_answered,
    connection_of,
    names,
    request,
    response,
    tables_of,
)
from tests.traffic import messages
from tests.traffic.scenes import ORDERS
from tests.traffic.wire import sized

SECOND = 10**9
FAR = 2**30 + 1  # beyond the largest window (RFC 7323 2.3)


def test_a_segment_from_far_behind_is_not_one_sent_again() -> None:
    talk = Talk().open()
    ask(talk, 1)
    talk.send(True, request(9), seq=talk.next[True] - FAR)
    ask(talk, 2)
    tables = tables_of(talk.packets)
    assert_answered(tables, 1, 2)
    assert connection_of(tables)["client_retransmitted_bytes"] == 0
    assert names(tables) == ["segment_out_of_window"]


def test_of_two_early_segments_with_one_number_the_first_counts() -> None:
    """Also where others are held behind them."""
    talk = Talk().open()
    ask(talk, 1)
    start = talk.next[True]
    data = request(2)
    for at, part in ((14, data[14:17]), (17, data[17:]), (14, b"XXX")):
        talk.send(True, part, seq=start + at)
    talk.send(True, data[:14])
    talk.next[True] = start + len(data)
    talk.send(False, response(2))
    tables = tables_of(talk.packets)
    assert_answered(tables, 1, 2)
    assert names(tables) == ["conflicting_retransmission"]


def test_an_answer_counts_from_where_its_question_turns_out_to_begin() -> None:
    """No handshake; of two questions the second is recorded first, the first one after its own answer. The
    broker has said something before that the capture has not: its answer is not taken for its first word."""
    talk = Talk(1, 1)
    first = talk.send(True, request(1), keep=False)
    middle = talk.next[True]
    second = talk.send(True, request(2), keep=False)
    talk.next = {True: middle, False: 15}
    answer = talk.send(False, response(1), keep=False)
    talk.next[True] += len(request(2))
    talk.packets += [second, answer, first]
    talk.send(True)
    talk.send(False, response(2))
    ask(talk, 3)
    tables = tables_of(talk.packets)
    rows = {row["correlation_id"]: (row["status"], row["response_frame"]) for row in tables["api_calls"]}
    assert rows == {1: ("answered", 2), 2: ("answered", 5), 3: ("answered", 7)}


@pytest.mark.parametrize(("under_way", "end"), [(5, "reset"), (1, "open")])
def test_a_receiver_has_room_for_what_was_under_way_before(under_way: int, end: str) -> None:
    """A number 100,000 ahead is one that it takes only where as much was sent without acknowledgement."""
    talk = Talk().open()
    for number in range(under_way):
        talk.send(True, request(number, b"c" * 30_000))
    talk.send(False)
    talk.send(True, flags=RST, seq=talk.next[True] + 100_000)
    tables = tables_of(talk.packets)
    assert connection_of(tables)["ending"] == end
    assert ("reset_out_of_window" in names(tables)) == (end == "open")


@pytest.mark.parametrize(("later_s", "ends"), [(9, ["open"]), (11, ["reset", "open"])])
def test_a_doubtful_reset_is_believed_after_ten_seconds(later_s: int, ends: list[str]) -> None:
    """Two sides that took none have said more by then; who talks on later has a connection of its own."""
    talk = Talk().open()
    ask(talk, 1)
    talk.send(False, flags=RST, seq=talk.next[False] + 1_000)
    early = len(talk.packets)
    ask(talk, 2)
    talk.send(True)
    times = [START_NS + at * 1_000_000 + (later_s * SECOND if at >= early else 0) for at in range(early + 3)]
    assert [row["ending"] for row in tables_of(talk.packets, times_ns=times)["connections"]] == ends


def test_the_shortest_round_trip_is_told() -> None:
    talk = Talk(1, 1)
    times, at = [], START_NS
    for number, took_ms in enumerate((3, 1, 5), start=1):
        talk.send(True, request(number))
        talk.send(False)
        talk.send(False, response(number))
        talk.send(True)
        times += [at, at + took_ms * 1_000_000, at + 20_000_000, at + (20 + 2 * took_ms) * 1_000_000]
        at += SECOND
    row = connection_of(tables_of(talk.packets, times_ns=times))
    assert (row["broker_round_trip_ns"], row["client_round_trip_ns"]) == (1_000_000, 2_000_000)


@pytest.mark.parametrize("from_client", [True, False])
def test_segments_out_of_order_are_their_senders(from_client: bool) -> None:
    talk = Talk().open()
    if not from_client:
        talk.send(True, request(1))
    data = request(1) if from_client else response(1)
    parts = [talk.send(from_client, data[at : at + 6], keep=False) for at in range(0, len(data), 6)]
    talk.packets += [*reversed(parts)]
    if from_client:
        talk.send(False, response(1))
    tables = tables_of(talk.packets)
    assert_answered(tables, 1)
    row = connection_of(tables)
    early = len(parts) - 1
    assert (row["client_out_of_order"], row["broker_out_of_order"]) == (
        (early, 0) if from_client else (0, early)
    )


def test_a_connection_is_called_by_its_first_packet() -> None:
    """docs/tables.md: packets are counted from 1."""
    one, two = Talk().open(), Talk(1, 1)
    ask(one, 1)
    ask(two, 1)
    other = [packet.replace(b"\xc3\x50", b"\xc3\x51") for packet in two.packets]  # port 50001
    tables = tables_of([*one.packets, *other])
    assert [row["connection_id"] for row in tables["connections"]] == [1, len(one.packets) + 1]


# -- questions and answers around holes ----------------------------------------------------------------------


def test_what_was_answered_had_arrived_whatever_the_capture_lost() -> None:
    """The hole in the request was given up before the answer came: it is the capture's, not the net's."""
    talk = Talk().open()
    ask(talk, 1)
    data, start = request(2), talk.next[True]
    for at, end in ((0, 15), (17, 18), (18, 20)):
        talk.send(True, data[at:end], seq=start + at)
    talk.next[True] = start + len(data)
    talk.send(False, response(2))
    tables = tables_of(talk.packets, limits={"reorder_segments": 1})
    (row,) = (row for row in tables["api_calls"] if row["correlation_id"] == 2)
    assert (row["status"], row["reason"]) == ("answered", "segment_not_captured")
    assert "held_limit" in names(tables)


def test_an_answer_to_what_the_capture_lost_is_the_captures_loss() -> None:
    """The client's numbers jumped: what it asked meanwhile was answered, so it had arrived."""
    talk = Talk().open()
    ask(talk, 1)
    talk.next[True] += FAR
    for number in (2, 3, 4):
        talk.send(True, request(number))
    for number in (2, 3, 4):
        talk.send(False, response(number))
    tables = tables_of(talk.packets)
    rows = {row["correlation_id"]: (row["status"], row["reason"]) for row in tables["api_calls"]}
    assert rows == {
        1: ("answered", None),
        2: ("response_only", "segment_not_captured"),
        3: ("response_only", "segment_not_captured"),
        4: ("answered", None),
    }


def test_an_answer_without_a_question_has_no_excuse_where_all_was_captured() -> None:
    talk = Talk().open()
    ask(talk, 1)
    talk.send(False, response(99))
    ask(talk, 2)
    tables = tables_of(talk.packets)
    (row,) = (row for row in tables["api_calls"] if row["correlation_id"] == 99)
    assert (row["status"], row["reason"]) == ("response_only", None)
    assert names(tables) == ["unexpected_response"]


@pytest.mark.parametrize("answers", [1, 2])
def test_few_answers_without_questions_make_no_connection_kafka(answers: int) -> None:
    """The client's acknowledgements are there, its requests are not; three in a row would do."""
    talk = Talk().open()
    for number in range(7, 7 + answers):
        talk.send(True, request(1), keep=False)
        talk.send(False, response(number))
        talk.send(True, flags=ACK)
    tables = tables_of(talk.packets)
    assert tables["api_calls"] == []
    assert connection_of(tables)["protocol"] != "kafka"


def one_sided(*numbers: int, missing: tuple[int, ...] = ()) -> list[tuple[int, str]]:
    """Calls of a capture of answers alone, without their connection's beginning."""
    talk = Talk(1, 1)
    for number in numbers:
        talk.send(False, response(number), keep=number not in missing)
    return [(row["correlation_id"], row["status"]) for row in tables_of(talk.packets)["api_calls"]]


def test_answers_alone_confirm_each_other_by_ids_that_count_up() -> None:
    assert one_sided(7, 8, 9) == [(number, "response_only") for number in (7, 8, 9)]
    assert one_sided(7, 7, 7, 7) == []
    assert one_sided(9, 8, 7, 6) == []


def test_behind_a_hole_answers_alone_are_counted_anew() -> None:
    assert one_sided(7, 8, 20, 21, 22, missing=(8,)) == [(n, "response_only") for n in (20, 21, 22)]
    assert one_sided(7, 8, 9, 10, missing=(8,)) == []


@pytest.mark.parametrize(("others", "status"), [(10, "answered"), (20, "unanswered")])
def test_a_call_that_was_passed_over_for_long_is_not_answered_any_more(others: int, status: str) -> None:
    """Sixteen answers may pass a call; what comes then is an answer without a question."""
    talk = Talk().open()
    talk.send(True, request(1))
    for number in range(2, 2 + others):
        ask(talk, number)
    talk.send(False, response(1))
    tables = tables_of(talk.packets)
    found = sorted(row["status"] for row in tables["api_calls"] if row["correlation_id"] == 1)
    assert found == ([status] if status == "answered" else ["response_only", status])


def test_a_few_bytes_at_a_segments_end_are_no_answer() -> None:
    """Out of step, what breaks off must make some sense: here it has an id that is waited for, no more."""
    talk = Talk().open()
    ask(talk, 1)
    talk.send(False, b"\xff" * 40)
    talk.send(True, request(2))
    talk.send(False, b"\xff" * 20 + sized(b"\0\0\0\2" + bytes(96))[:10])
    talk.send(False, response(2))
    ask(talk, 3)
    tables = tables_of(talk.packets)
    assert_answered(tables, 1, 2, 3)
    assert names(tables) == ["framing_lost", "framing_resumed"]


def test_a_connection_that_was_closed_explains_a_silence() -> None:
    talk = Talk().open()
    ask(talk, 1)
    talk.send(True, request(2))
    talk.send(True, flags=FIN | ACK)
    talk.send(False, flags=FIN | ACK)
    talk.send(True)
    (row,) = (row for row in tables_of(talk.packets)["api_calls"] if row["correlation_id"] == 2)
    assert (row["status"], row["reason"]) == ("unanswered", "connection_closed")


def test_a_connection_that_was_given_up_explains_a_silence() -> None:
    talk = Talk().open()
    ask(talk, 1)
    talk.send(True, request(2))
    talk.send(False)
    times = [START_NS + at * 1_000_000 for at in range(len(talk.packets))]
    talk.send(True, request(3))
    tables = tables_of(talk.packets, times_ns=[*times, times[-1] + 100 * SECOND], limits={"idle_seconds": 50})
    (row,) = (row for row in tables["api_calls"] if row["correlation_id"] == 2)
    assert (row["status"], row["reason"]) == ("unanswered", "connection_evicted")


def test_batches_of_what_was_never_confirmed_leave_no_rows() -> None:
    """A Produce whose end is missing, and nothing else: its connection may be anything."""
    whole = messages.produce(7, 1, ORDERS).request
    for end in (len(whole) - 3, len(whole)):
        talk = Talk().open()
        talk.send(True, whole[:end])
        talk.next[True] += len(whole) - end
        talk.send(True, flags=FIN | ACK)
        tables = tables_of(talk.packets)
        is_whole = end == len(whole)
        assert (bool(tables["api_calls"]), bool(tables["record_batches"])) == (is_whole, is_whole)


def test_an_answer_behind_a_hole_that_is_given_up_ends_no_sooner_than_what_it_follows() -> None:
    """The second answer was not captured; the fourth came before the third, which was lost and sent again:
    whoever reads the stream has the fourth with the third, at 9 s, however late the second is given up."""
    talk = Talk().open()
    ask(talk, 1)
    for number in (2, 3, 4):
        talk.send(True, request(number))
    start = talk.next[False]
    size = len(response(1))
    talk.send(False, response(4), seq=start + 2 * size)
    talk.send(False, response(3), seq=start + size)
    talk.next[False] = start + 3 * size
    for _ in range(20):
        talk.send(True)
    times = [0, 0, 0, 0, 0, 1, 2, 3, 7, 9, *[9] * 20]
    tables = tables_of(talk.packets, times_ns=[START_NS + at * SECOND for at in times])
    took = {row["correlation_id"]: row["latency_ns"] for row in tables["api_calls"]}
    assert took == {1: 0, 2: None, 3: 7 * SECOND, 4: 6 * SECOND}
    (row,) = (row for row in tables["latencies"] if row["total_ns"] == 6 * SECOND)
    assert row["network_ns"] == 2 * SECOND  # from 7 s, when the fourth came, to 9 s


@pytest.mark.parametrize("order", [(1, 0, 2, 3), (1, 0, 3, 2), (0, 2, 3, 1), (1, 3, 0, 2), (3, 1, 0, 2)])
def test_a_capture_that_begins_with_an_answer_loses_nothing(order: tuple[int, ...]) -> None:
    """No handshake; of two calls the first packets were recorded in another order than they were sent."""
    talk = Talk()
    for number in range(1, 6):
        ask(talk, number)
    packets = [talk.packets[at] for at in order] + talk.packets[4:]
    tables = tables_of(packets)
    rows = tables["api_calls"]
    assert sorted((r["correlation_id"], r["status"]) for r in rows) == [(n, "answered") for n in range(1, 6)]
    assert connection_of(tables)["client_missing_bytes"] == 0


def test_zeroes_inside_a_segment_are_no_answer() -> None:
    """Out of step: size 6, id 0, no error. It could stand in any message."""
    talk = Talk().open()
    talk.send(True, struct.pack(">ihhih", 16, 12, 0, 0, 6) + b"client")
    talk.send(True, request(1))
    talk.send(False, sized(struct.pack(">ih", 0, 0)), keep=False)
    talk.send(False, b"\xff" * 20 + sized(struct.pack(">ih", 0, 0)) + b"\xff" * 6)
    talk.send(True, request(2))
    talk.send(False, response(2))
    ask(talk, 3)
    rows = tables_of(talk.packets)["api_calls"]
    found = {row["correlation_id"]: row["response_frame"] is not None for row in rows}
    assert found == {0: False, 1: False, 2: True, 3: True}
