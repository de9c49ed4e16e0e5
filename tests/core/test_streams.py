"""TCP as RFC 9293 and 7323 allow it, and worse: which bytes a stream has, and in what order."""

from __future__ import annotations

import pytest

from tests.core.hand import (
    ACK,
    FIN,
    PSH,
    START_NS,
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

WRAP = 2**32


def split_call(talk: Talk, asked: int, answered: int) -> Rows:
    """A call whose request and response are each cut in two, and a whole one after it."""
    talk.send(True, request(1)[:asked])
    talk.send(True, request(1)[asked:])
    talk.send(False, response(1)[:answered])
    talk.send(False, response(1)[answered:])
    ask(talk, 2)
    return tables_of(talk.packets)


def test_frames_split_at_every_point() -> None:
    """Also inside the size before them; a second pair of frames must be found where the first ends."""
    for asked in range(1, len(request(1))):
        for answered in range(1, len(response(1))):
            assert_answered(split_call(Talk().open(), asked, answered), 1, 2)


def test_frames_split_at_every_point_without_a_handshake() -> None:
    """The first answer is looked for; eight bytes of it (size and correlation id) are needed to know it."""
    for asked in range(1, len(request(1))):
        for answered in range(8, len(response(1))):
            assert_answered(split_call(Talk(1, 1), asked, answered), 1, 2)


@pytest.mark.parametrize("answered", range(1, 8))
def test_answer_that_was_passed_over_in_a_search_is_not_blamed_on_the_broker(answered: int) -> None:
    tables = split_call(Talk(1, 1), 10, answered)
    assert [row["status"] for row in tables["api_calls"] if row["correlation_id"] == 2] == ["answered"]
    assert "unanswered" not in [row["status"] for row in tables["api_calls"]]


def test_one_byte_per_segment() -> None:
    talk = Talk().open()
    for number in (1, 2):
        for byte in request(number):
            talk.send(True, bytes([byte]))
        for byte in response(number):
            talk.send(False, bytes([byte]))
    tables = tables_of(talk.packets)
    assert_answered(tables, 1, 2)
    assert connection_of(tables)["client_packets"] == 2 + 2 * len(request(1))


@pytest.mark.parametrize("before", range(30))
def test_numbers_wrap_at_every_byte(before: int) -> None:
    """2^32-1 is a number like any other, of a SYN, of a byte, of a FIN."""
    isn = WRAP - 1 - before
    talk = Talk(isn, (isn + 7) % WRAP).open()
    ask(talk, 1)
    second = talk.send(True, request(2)[:5], keep=False)
    third = talk.send(True, request(2)[5:], keep=False)
    talk.packets += [third, second]
    talk.send(False, response(2))
    talk.send(True, flags=FIN | ACK)
    talk.send(False, flags=FIN | ACK)
    talk.send(True)
    tables = tables_of(talk.packets)
    assert_answered(tables, 1, 2)
    row = connection_of(tables)
    assert (row["ending"], row["client_bytes"], row["broker_bytes"]) == (
        "fin",
        2 * len(request(1)),
        2 * len(response(1)),
    )
    assert (row["client_missing_bytes"], row["client_out_of_order"], names(tables)) == (0, 1, [])


def test_window_probes_bring_their_byte_once() -> None:
    """RFC 9293 3.8.6.1: one byte of new data into a closed window, and again with the rest when it opens."""
    talk = Talk().open()
    ask(talk, 1)
    data = request(2)
    for _ in range(3):
        talk.send(True, data[:1], seq=talk.next[True])
        talk.send(False)
    talk.send(True, data)
    talk.send(False, response(2))
    tables = tables_of(talk.packets)
    assert_answered(tables, 1, 2)
    assert connection_of(tables)["client_retransmitted_bytes"] == 3
    assert names(tables) == ["segments_overlap"]


@pytest.mark.parametrize(("later_ns", "sent_again"), [(0, False), (900_000, False), (1_000_000, True)])
def test_every_packet_twice(later_ns: int, sent_again: bool) -> None:
    """Two interfaces, or a peer in a hurry: what comes again brings nothing, no anomaly. IP's identification
    is always the same here: below a millisecond it is a copy."""
    talk = Talk().open()
    ask(talk, 1)
    ask(talk, 2)
    talk.send(True, flags=FIN | ACK)
    talk.send(False, flags=FIN | ACK)
    talk.send(True)
    times = [START_NS + number * 2_000_000 for number in range(len(talk.packets))]
    tables = tables_of(
        [packet for packet in talk.packets for _ in range(2)],
        times_ns=[time + later for time in times for later in (0, later_ns)],
    )
    assert_answered(tables, 1, 2)
    row = connection_of(tables)
    assert (row["ending"], row["client_bytes"], row["broker_bytes"]) == ("fin", 40, 28)
    assert (row["client_retransmitted_bytes"], row["broker_retransmitted_bytes"]) == (
        (40, 28) if sent_again else (0, 0)
    )
    # The row was written at the last packet, before it came again. Nobody sends a SYN again so soon.
    assert row["duplicate_packets"] == (2 if sent_again else len(talk.packets) - 1)
    assert names(tables) == []


def test_conflicting_retransmission() -> None:
    """The same numbers with other bytes: the first ones count, and an anomaly says so."""
    talk = Talk().open()
    start = talk.next[True]
    talk.send(True, request(1))
    talk.send(True, request(1, b"CLIENT"), seq=start)
    talk.send(True, request(1), seq=start)
    talk.send(False, response(1))
    tables = tables_of(talk.packets)
    assert_answered(tables, 1)
    assert names(tables) == ["conflicting_retransmission"]
    (row,) = tables["anomalies"]
    assert (row["frame"], row["direction"], row["value"]) == (5, "client", len(request(1)))


def test_conflicting_retransmission_of_a_segment_that_was_early() -> None:
    talk = Talk().open()
    start = talk.next[True]
    data = request(1)
    talk.next[True] += len(data)
    talk.send(True, data[14:], seq=start + 14)
    talk.send(True, data[:14], seq=start)
    talk.send(True, b"CLIENT", seq=start + 14)
    talk.send(False, response(1))
    tables = tables_of(talk.packets)
    assert_answered(tables, 1)
    assert names(tables) == ["conflicting_retransmission"]


@pytest.mark.parametrize("others", [b"", b"CLIENT"])
@pytest.mark.parametrize("more", [b"", request(2)])
def test_conflict_in_a_retransmission_of_several_segments(others: bytes, more: bytes) -> None:
    """TCP sends lost segments again as one, perhaps with new data behind them: each is compared."""
    talk = Talk().open()
    start = talk.next[True]
    data = request(1)
    talk.send(True, data[:14])
    talk.send(True, data[14:])
    talk.next[True] += len(more)
    talk.send(True, data[: len(data) - len(others)] + others + more, seq=start)
    talk.send(False, response(1) + (response(2) if more else b""))
    tables = tables_of(talk.packets)
    assert_answered(tables, *((1, 2) if more else (1,)))
    expected = ["conflicting_retransmission"] * bool(others) + ["segments_overlap"] * bool(more)
    assert names(tables) == expected


def test_a_segment_of_several_that_were_early_gives_none_of_them_another_time() -> None:
    """Behind a hole, the second and third request come, then both again as one segment that begins earlier
    than the third: the first copy of each counts."""
    talk = Talk().open()
    talk.send(True, request(1), keep=False)
    at = talk.next[True]
    talk.send(True, request(2))
    talk.send(True, request(3))
    talk.send(True, request(2) + request(3), seq=at)
    talk.send(False, response(1) + response(2) + response(3))
    tables = tables_of(talk.packets)
    asked = {row["correlation_id"]: row["request_frame"] for row in tables["api_calls"]}
    assert asked == {1: None, 2: 4, 3: 5}
    row = connection_of(tables)
    assert (row["client_bytes"], row["client_missing_bytes"], row["client_retransmitted_bytes"]) == (
        2 * len(request(1)),
        len(request(1)),
        2 * len(request(1)),
    )


def test_a_segment_around_early_ones_brings_what_they_leave_open() -> None:
    """It begins before one early segment and ends behind another: a part before, between and behind them."""
    talk = Talk().open()
    start = talk.next[True]
    data = request(1) + request(2) + request(3)
    for first, last in ((30, 40), (10, 20)):
        talk.send(True, data[first:last], seq=start + first)
    talk.send(True, data[5:], seq=start + 5)
    talk.send(True, data[:5], seq=start)
    talk.next[True] = start + len(data)
    for number in (1, 2, 3):
        talk.send(False, response(number))
    tables = tables_of(talk.packets)
    asked = {row["correlation_id"]: row["request_frame"] for row in tables["api_calls"]}
    assert (asked, [row["status"] for row in tables["api_calls"]]) == ({1: 7, 2: 6, 3: 6}, ["answered"] * 3)
    row = connection_of(tables)
    assert (row["client_bytes"], row["client_missing_bytes"], row["client_retransmitted_bytes"]) == (
        len(data),
        0,
        20,
    )


def test_time_that_runs_backwards_gives_no_latency() -> None:
    talk = Talk().open()
    ask(talk, 1)
    ask(talk, 2)
    times = [START_NS + number * 1_000 for number in range(len(talk.packets))]
    times[4] = times[3] - 1  # the first answer was stamped before its question
    tables = tables_of(talk.packets, times_ns=times)
    assert_answered(tables, 1, 2)
    found = {row["correlation_id"]: row["latency_ns"] for row in tables["api_calls"]}
    assert found == {1: None, 2: 1_000}
    assert names(tables) == ["time_backwards"]
    assert [row["call_id"] for row in tables["latencies"]] == [
        row["call_id"] for row in tables["api_calls"] if row["correlation_id"] == 2
    ]


@pytest.mark.parametrize("zeros", [1, 3])
def test_frames_of_length_nothing_make_no_calls(zeros: int) -> None:
    """No Kafka message is empty; what comes before and behind is found all the same."""
    talk = Talk().open()
    ask(talk, 1)
    talk.send(True, bytes(4 * zeros))
    for number in range(2, 6):
        ask(talk, number)
    tables = tables_of(talk.packets)
    assert_answered(tables, 1, 2, 3, 4, 5)
    assert "framing_lost" in names(tables)


def test_empty_segments_are_only_packets() -> None:
    talk = Talk().open()
    for side in (True, False, False, True):
        talk.send(side)
        talk.send(side, flags=ACK | PSH)
    ask(talk, 1)
    tables = tables_of(talk.packets)
    assert_answered(tables, 1)
    row = connection_of(tables)
    assert (row["client_packets"], row["broker_packets"], names(tables)) == (7, 6, [])


def test_an_answer_that_was_recorded_early_may_acknowledge_more_than_its_request() -> None:
    """Both requests were sent before the first was answered; the capture has the answer before either."""
    talk = Talk().open()
    ask(talk, 1)
    talk.send(True, request(2))
    talk.send(True, request(3))
    talk.send(False, response(2))
    talk.send(False, response(3))
    *before, second, third, answer, last = talk.packets
    for order in (
        [answer, second, third, last],
        [second, third, answer, last],
        [answer, last, second, third],
    ):
        tables = tables_of([*before, *order])
        assert_answered(tables, 1, 2, 3)


def test_an_answer_whose_sender_had_not_received_the_request_is_not_its_answer() -> None:
    """What was sent before the request had arrived answers something else, whatever number it has."""
    talk = Talk().open()
    ask(talk, 1)
    talk.send(False, response(2))
    talk.send(True, request(2))
    talk.send(False, response(2))
    tables = tables_of(talk.packets)
    calls = {row["status"]: row for row in tables["api_calls"] if row["correlation_id"] == 2}
    assert set(calls) == {"answered", "response_only"}
    assert calls["response_only"]["response_frame"] == len(talk.packets) - 2
    assert (calls["answered"]["request_frame"], calls["answered"]["response_frame"]) == (
        len(talk.packets) - 1, len(talk.packets),
    )  # fmt: skip


@pytest.mark.parametrize("from_client", [True, False])
def test_a_fin_is_no_byte_while_the_other_side_goes_on(from_client: bool) -> None:
    """RFC 9293 3.4: it takes a number. Its acknowledgement leaves no hole, however long it goes on."""
    talk = Talk().open()
    ask(talk, 1)
    talk.send(True, request(2))
    talk.send(from_client, flags=FIN | ACK)
    for _ in range(40):
        talk.send(not from_client)
    if from_client:
        talk.send(False, response(2))
    tables = tables_of(talk.packets)
    row = connection_of(tables)
    assert (row["client_missing_bytes"], row["broker_missing_bytes"], names(tables)) == (0, 0, [])
    assert [call["correlation_id"] for call in tables["api_calls"] if call["status"] == "answered"] == (
        [1, 2] if from_client else [1]
    )


FAR = 2**30 + 1  # beyond the largest window (RFC 7323 2.3)


@pytest.mark.parametrize("strange", [1, 2])
def test_a_few_segments_outside_the_window_move_no_stream(strange: int) -> None:
    talk = Talk().open()
    ask(talk, 1)
    for number in range(strange):
        talk.send(True, request(50 + number), seq=talk.next[True] + FAR + 100 * number)
    ask(talk, 2)
    for number in range(strange):  # not in a row
        talk.send(True, request(60 + number), seq=talk.next[True] + FAR + 100 * number)
    ask(talk, 3)
    tables = tables_of(talk.packets)
    assert_answered(tables, 1, 2, 3)
    assert names(tables) == ["segment_out_of_window"] * 2 * strange


def test_three_segments_in_a_row_outside_the_window_are_the_stream() -> None:
    talk = Talk().open()
    ask(talk, 1)
    talk.next[True] += FAR
    for number in (2, 3, 4):
        talk.send(True, request(number))
    talk.send(False, response(4))
    ask(talk, 5)
    tables = tables_of(talk.packets)
    assert_answered(tables, 1, 4, 5)
    assert names(tables).count("segment_out_of_window") == 3
    assert "segment_lost" in names(tables)
