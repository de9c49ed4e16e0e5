"""Numbers far ahead that their sender never came to."""

from __future__ import annotations

import pytest

from tests.core.hand import (
    ACK,
    FIN,
    Talk,
    ask,
    assert_answered,
    connection_of,
    names,
    request,
    response,
    sack,
    tables_of,
)  # fmt: skip


@pytest.mark.parametrize("flags", [FIN | ACK, ACK])
@pytest.mark.parametrize("ahead", [70_000, 2**28])
@pytest.mark.parametrize("from_client", [True, False])
def test_a_number_that_its_sender_never_came_to_ends_nothing(
    from_client: bool, ahead: int, flags: int
) -> None:
    talk = Talk().open()
    ask(talk, 1)
    talk.send(from_client, flags=flags, seq=talk.next[from_client] + ahead)
    ask(talk, 2)
    talk.send(True, flags=FIN | ACK)
    talk.send(False, flags=FIN | ACK)
    talk.send(True)
    tables = tables_of(talk.packets)
    assert_answered(tables, 1, 2)
    (row,) = tables["anomalies"]
    assert (row["name"], row["frame"]) == ("segment_out_of_window", 6)
    row = connection_of(tables)
    assert (row["ending"], row["closed_by"], row["close_frame"]) == ("fin", "client", 9)
    assert (row["client_missing_bytes"], row["broker_missing_bytes"]) == (0, 0)


def test_a_fin_behind_many_lost_bytes_ends_the_stream() -> None:
    talk = Talk().open()
    ask(talk, 1)
    talk.next[False] += 200_000
    talk.send(False, flags=FIN | ACK)
    talk.send(True, flags=FIN | ACK)
    talk.send(False)
    row = connection_of(tables_of(talk.packets))
    assert (row["ending"], row["closed_by"], row["broker_missing_bytes"]) == ("fin", "broker", 200_000)


@pytest.mark.parametrize("asked_before", [1, 4])
@pytest.mark.parametrize("ahead", [3_000, 70_000, 2**20 + 5_000, 2**28, 2**30 - 5_000])
@pytest.mark.parametrize("from_client", [True, False])
def test_payload_that_its_sender_never_came_to_is_passed_over(
    from_client: bool, ahead: int, asked_before: int
) -> None:
    talk = Talk().open()
    for number in range(asked_before):
        ask(talk, number)
    frame = len(talk.packets) + 1
    talk.send(from_client, b"\0\0\0\x50" + bytes(196), seq=talk.next[from_client] + ahead)
    for number in range(asked_before, 8):
        ask(talk, number)
    talk.send(True, flags=FIN | ACK)
    talk.send(False, flags=FIN | ACK)
    talk.send(True)
    tables = tables_of(talk.packets)
    assert_answered(tables, *range(8))
    (row,) = tables["anomalies"]
    assert (row["name"], row["frame"]) == ("segment_out_of_window", frame)
    row = connection_of(tables)
    assert (row["ending"], row["client_missing_bytes"], row["broker_missing_bytes"]) == ("fin", 0, 0)
    assert (row["client_out_of_order"], row["broker_out_of_order"]) == (0, 0)
    assert tables["tcp_events"] == []


def test_payload_far_beyond_what_is_ever_under_way_waits_for_no_end() -> None:
    """Every segment that follows has payload, and nobody closes the connection."""
    talk = Talk().open()
    ask(talk, 1)
    talk.send(False, bytes(100), seq=talk.next[False] + 2**21)
    for number in range(2, 6):
        ask(talk, number)
    tables = tables_of(talk.packets)
    assert_answered(tables, 1, 2, 3, 4, 5)
    assert connection_of(tables)["broker_missing_bytes"] == 0


@pytest.mark.parametrize("ahead", [3_000, 70_000, 2**20, 2**28, 2**30 + 7])
@pytest.mark.parametrize("own", [0, 2**27])
@pytest.mark.parametrize("from_client", [True, False])
def test_an_acknowledgement_whose_sender_goes_on_below_is_passed_over(
    from_client: bool, own: int, ahead: int
) -> None:
    talk = Talk().open()
    ask(talk, 1)
    talk.send(from_client, seq=talk.next[from_client] + own, ack=talk.next[not from_client] + ahead)
    for number in range(2, 202):
        ask(talk, number)
    tables = tables_of(talk.packets)
    assert_answered(tables, *range(1, 202))
    assert {(row["name"], row["frame"]) for row in tables["anomalies"]} == {("segment_out_of_window", 6)}
    row = connection_of(tables)
    assert (row["client_missing_bytes"], row["broker_missing_bytes"]) == (0, 0)


def test_acknowledgements_that_overtook_one_another_still_prove_what_is_missing() -> None:
    """The capture missed 3,000 bytes; of the acknowledgements of them the last two came in swapped order."""
    talk = Talk().open()
    ask(talk, 1)
    before = talk.next[False]
    talk.next[False] += 3_000
    talk.send(True)
    talk.send(True, ack=before + 1_460)
    talk.send(True, ack=before + 2_920)
    for number in range(2, 80):
        ask(talk, number)
    tables = tables_of(talk.packets)
    assert connection_of(tables)["broker_missing_bytes"] == 3_000
    assert names(tables).count("segment_not_captured") == 1
    assert "segment_out_of_window" not in names(tables)


@pytest.mark.parametrize("lost", [200_000, 2**21])
def test_payload_behind_many_bytes_that_the_capture_missed_is_no_stray(lost: int) -> None:
    talk = Talk().open()
    ask(talk, 1)
    talk.next[False] += lost
    for number in range(2, 80):
        ask(talk, number)
    tables = tables_of(talk.packets)
    assert connection_of(tables)["broker_missing_bytes"] == lost
    assert "segment_out_of_window" not in names(tables)


def test_payload_that_was_acknowledged_selectively_waits_for_a_long_loss_to_be_mended() -> None:
    """Two megabytes of one answer are lost but its end, and come again in order."""
    talk = Talk().open()
    ask(talk, 1)
    talk.send(True, request(2))
    body = response(2)[4:] + bytes(2**21)
    answer = (len(body)).to_bytes(4, "big") + body
    start = talk.next[False]
    talk.send(False, answer[:4_000])
    talk.send(True)
    talk.send(False, answer[-1_000:], seq=start + len(answer) - 1_000)
    end = start + len(answer)
    talk.send(True, options=sack((end - 1_000, end)))
    for at in range(4_000, len(answer) - 1_000, 40_000):
        talk.send(False, answer[at : min(at + 40_000, len(answer) - 1_000)], seq=start + at)
    talk.next[False] = end
    talk.send(True)
    ask(talk, 3)
    tables = tables_of(talk.packets)
    assert connection_of(tables)["broker_missing_bytes"] == 0
    assert "segment_out_of_window" not in names(tables)
    (row,) = (row for row in tables["api_calls"] if row["correlation_id"] == 2)
    assert (row["status"], row["response_bytes"]) == ("answered", len(answer))
