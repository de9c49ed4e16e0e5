"""Bytes that never arrived, as their receiver acknowledges: the network lost them, not the capture."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core.hand import (
    ACK,
    FIN,
    START_NS,
    Talk,
    ask,
    connection_of,
    names,
    request,
    response,
    sack,
    tables_of,
)

MS = 1_000_000
SIZE = len(response(1))
COLUMNS = tuple(
    f"{side}_{what}"
    for side in ("client", "broker")
    for what in (
        "missing_bytes",
        "lost_bytes",
        "lost_before_bytes",
        "unacknowledged_bytes",
        "largest_acknowledged",
    )
)


def _row(talk: Talk, **options: Any) -> dict[str, Any]:
    return connection_of(tables_of(talk.packets, **options))


def _with_hole() -> tuple[Talk, int, int, int]:
    """Beside the client: the answer to the second request never comes, the one to the third does; the numbers
    where the hole begins, where it ends, and where what came behind it ends."""
    talk = Talk().open()
    ask(talk, 1)
    talk.send(True)
    for number in (2, 3):
        talk.send(True, request(number))
    begin = talk.next[False]
    talk.send(False, response(2), keep=False)
    end = talk.next[False]
    talk.send(False, response(3))
    return talk, begin, end, talk.next[False]


def test_bytes_that_the_receiver_asks_for_in_vain_are_lost() -> None:
    talk, begin, end, last = _with_hole()
    for _ in range(3):
        talk.send(True, ack=begin, options=sack((end, last)))
    talk.send(True, flags=FIN | ACK, ack=begin, options=sack((end, last)))
    row = _row(talk)
    assert (row["broker_missing_bytes"], row["broker_lost_bytes"]) == (SIZE, SIZE)
    assert (row["client_missing_bytes"], row["client_lost_bytes"]) == (0, 0)


def test_a_receiver_that_closes_without_them_never_had_them() -> None:
    """Without selective acknowledgements: the number that the FIN acknowledges is the proof."""
    talk, begin, _, _ = _with_hole()
    talk.send(True, flags=FIN | ACK, ack=begin)
    assert _row(talk)["broker_lost_bytes"] == SIZE


def test_bytes_that_were_acknowledged_are_missing_in_the_capture_and_not_lost() -> None:
    talk, _, _, last = _with_hole()
    talk.send(True, ack=last)
    talk.send(True, flags=FIN | ACK, ack=last)
    row = _row(talk)
    assert (row["broker_missing_bytes"], row["broker_lost_bytes"]) == (SIZE, 0)


def test_bytes_of_which_the_receiver_says_nothing_are_not_said_to_be_lost() -> None:
    """It may have them: the capture ends before it tells."""
    talk, _, _, _ = _with_hole()
    assert _row(talk)["broker_lost_bytes"] == 0


def test_bytes_that_come_again_are_not_missing() -> None:
    """Lost before they were captured: what is seen is the second copy."""
    talk, begin, end, last = _with_hole()
    for _ in range(3):
        talk.send(True, ack=begin, options=sack((end, last)))
    talk.send(False, response(2), seq=begin)
    talk.send(True, ack=last)
    row = _row(talk)
    assert (row["broker_missing_bytes"], row["broker_lost_bytes"]) == (0, 0)
    assert (row["broker_lost_before_bytes"], row["broker_retransmitted_bytes"]) == (SIZE, SIZE)


def test_a_copy_of_what_is_there_was_not_lost_before_the_capture() -> None:
    talk = Talk().open()
    ask(talk, 1)
    talk.packets.append(talk.packets[-1])
    times = [START_NS + number * 300 * MS for number in range(len(talk.packets))]
    row = _row(talk, times_ns=times)
    assert (row["broker_retransmitted_bytes"], row["broker_lost_before_bytes"]) == (SIZE, 0)


@pytest.mark.parametrize("acknowledged", [0, 1, 2])
def test_what_was_not_acknowledged_is_counted(acknowledged: int) -> None:
    """Two requests, of which the broker acknowledges `acknowledged`."""
    talk = Talk().open()
    begin = talk.next[True]
    talk.send(True, request(1))
    talk.send(True, request(2))
    talk.send(False, ack=begin + acknowledged * len(request(1)))
    row = _row(talk)
    assert row["client_unacknowledged_bytes"] == (2 - acknowledged) * len(request(1))
    assert row["broker_unacknowledged_bytes"] == 0


def test_the_largest_packet_that_arrived_is_one_of_those_that_were_acknowledged() -> None:
    """The third request is larger, and only sent."""
    talk = Talk().open()
    ask(talk, 1)
    ask(talk, 2)
    talk.send(True, request(3, b"client" * 100))
    row = _row(talk)
    assert row["client_largest_acknowledged"] == len(request(1))
    talk.send(False)
    assert _row(talk)["client_largest_acknowledged"] == len(request(3, b"client" * 100))


def test_the_columns_add_up() -> None:
    """A lost byte is a missing one; one lost before the capture was sent again."""
    talk, begin, end, last = _with_hole()
    talk.send(True, flags=FIN | ACK, ack=begin, options=sack((end, last)))
    row = _row(talk)
    assert set(COLUMNS) <= row.keys()
    for side in ("client", "broker"):
        assert 0 <= row[f"{side}_lost_bytes"] <= row[f"{side}_missing_bytes"]
        assert 0 <= row[f"{side}_lost_before_bytes"] <= row[f"{side}_retransmitted_bytes"]


@pytest.mark.parametrize("times", [1, 3])
def test_a_call_of_which_the_only_segment_was_sent_again_tells_it(times: int) -> None:
    talk = Talk().open()
    lost = talk.send(True, request(1))
    talk.packets += [lost] * times
    talk.send(False, response(1))
    at = [START_NS + number * 300 * MS for number in range(len(talk.packets))]
    (latency,) = tables_of(talk.packets, times_ns=at)["latencies"]
    assert latency["retransmissions"] == times


def test_what_was_sent_again_before_a_call_is_not_its_own() -> None:
    talk = Talk().open()
    lost = talk.send(True, request(1))
    talk.packets.append(lost)
    talk.send(False, response(1))
    ask(talk, 2)
    at = [START_NS + number * 300 * MS for number in range(len(talk.packets))]
    first, second = tables_of(talk.packets, times_ns=at)["latencies"]
    assert (first["retransmissions"], second["retransmissions"]) == (1, 0)


def test_a_request_that_was_lost_before_the_capture_and_came_again_tells_it() -> None:
    """Beside the broker: it asks for the second request again and again, the third one is there."""
    talk = Talk().open()
    ask(talk, 1)
    begin = talk.next[True]
    talk.send(True, request(2), keep=False)
    end = talk.next[True]
    talk.send(True, request(3))
    for _ in range(4):
        talk.send(False, ack=begin, options=sack((end, talk.next[True])))
    talk.send(True, request(2), seq=begin)
    talk.send(False, response(2))
    talk.send(False, response(3))
    tables = tables_of(talk.packets)
    rows = {row["call_id"]: row for row in tables["latencies"]}
    again = {row["correlation_id"]: rows[row["call_id"]]["retransmissions"] for row in tables["api_calls"]}
    assert (again[1], again[2]) == (0, 1)
    assert connection_of(tables)["client_lost_before_bytes"] == len(request(2))
    assert names(tables) == []
