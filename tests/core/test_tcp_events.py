"""What TCP had to do twice, or could not do: one row each, with the call that waited for it."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from tests.core.hand import (
    ACK,
    RST,
    START_NS,
    SYN,
    Rows,
    Talk,
    ask,
    connection_of,
    ipv4,
    names,
    request,
    response,
    tables_of,
    tcp,
)


def spaced(talk: Talk, **options: Any) -> Rows:
    """A packet every 20 ms: nothing is a copy of another."""
    times = [START_NS + number * 20_000_000 for number in range(len(talk.packets))]
    return tables_of(talk.packets, times_ns=times, **options)


def events_of(tables: Rows) -> list[tuple[Any, ...]]:
    keys = ("kind", "sender", "frame", "stream_offset", "bytes", "count")
    return [tuple(row[key] for key in keys) for row in tables["tcp_events"]]


def call_numbers(tables: Rows) -> list[int | None]:
    """Correlation ids of the delayed calls."""
    numbers = {row["call_id"]: row["correlation_id"] for row in tables["api_calls"]}
    return [numbers.get(row["call_id"]) for row in tables["tcp_events"]]


def test_a_request_sent_again_and_again_names_its_call() -> None:
    """The same place three times, and silence: the path is dead."""
    talk = Talk().open()
    ask(talk, 1)
    begin = talk.next[True]
    for _ in range(4):
        talk.next[True] = begin
        talk.send(True, request(2))
    tables = spaced(talk)
    size = len(request(2))
    assert events_of(tables) == [
        ("retransmission", "client", frame, len(request(1)), size, None) for frame in (7, 8, 9)
    ]
    assert call_numbers(tables) == [2, 2, 2]


def test_a_response_sent_again_after_its_call_is_over() -> None:
    talk = Talk().open()
    ask(talk, 1)
    talk.next[False] -= len(response(1))
    talk.send(False, response(1))
    ask(talk, 2)
    tables = spaced(talk)
    assert events_of(tables) == [("retransmission", "broker", 6, 0, len(response(1)), None)]
    assert call_numbers(tables) == [1]


def test_a_closed_window_begins_and_ends() -> None:
    talk = Talk().open()
    ask(talk, 1)
    talk.send(True, request(2))
    whole = talk.send(True)
    closed = whole[:34] + b"\x00\x00" + whole[36:]
    talk.packets[-1] = closed
    talk.send(True)
    talk.send(False, response(2))
    tables = spaced(talk)
    assert events_of(tables) == [
        ("zero_window", "client", 7, len(response(1)), None, None),
        ("zero_window_end", "client", 8, len(response(1)), None, None),
    ]
    assert call_numbers(tables) == [2, 2]


def test_acknowledgements_that_repeat_are_one_row() -> None:
    """Three more of the same: the receiver misses a segment (RFC 5681 3.2)."""
    talk = Talk().open()
    talk.send(True, request(1))
    first = talk.send(False, response(1)[:5])
    assert first
    missing = talk.next[False]
    for _ in range(4):
        talk.packets.append(ipv4(tcp(b"", talk.next[True], missing, ACK)))
        talk.send(False, b"", keep=False)
    talk.next[False] = missing
    before = talk.packets[-4:]
    del talk.packets[-4:]
    talk.send(False, response(1)[5:])
    talk.packets += before
    talk.send(True)
    tables = spaced(talk)
    assert [row[:2] + row[5:] for row in events_of(tables)] == [("duplicate_acks", "client", 3)]
    assert call_numbers(tables) == [1]


def test_a_refused_connection_and_its_repeated_syn() -> None:
    talk = Talk(70_000, 0)
    talk.send(True, flags=SYN)
    talk.send(True, flags=SYN, seq=70_000)
    talk.send(False, flags=RST | ACK)
    assert events_of(spaced(talk)) == [
        ("syn_again", "client", 2, None, None, None),
        ("refused", "broker", 3, None, None, None),
    ]


@pytest.mark.parametrize("taps", [1, 2])
def test_each_attempt_that_was_refused_counts(taps: int) -> None:
    """Windows asks three times, 500 ms apart, with the same number; IP counts its packets."""
    times, packets = [], []
    for attempt in range(3):
        talk = Talk(70_000, 0)
        talk.send(True, flags=SYN)
        talk.send(False, flags=RST | ACK)
        for number, packet in enumerate(talk.packets * taps):
            numbered = packet[:4] + bytes([9, attempt]) + packet[6:]
            packets.append(numbered)
            times.append(START_NS + attempt * 500_000_000 + number * 250_000)
    tables = tables_of(packets, times_ns=times)
    assert [row["refused"] for row in tables["connections"]] == [True] * 3
    assert [(row["kind"], row["frame"]) for row in tables["tcp_events"]] == [
        ("refused", 2 + 2 * taps * attempt) for attempt in range(3)
    ]


def test_a_reset_names_the_call_that_waited() -> None:
    talk = Talk().open()
    ask(talk, 1)
    talk.send(True, request(2))
    talk.send(False, flags=RST)
    tables = spaced(talk)
    assert events_of(tables) == [("reset", "broker", 7, None, None, None)]
    assert call_numbers(tables) == [2]


def test_other_protocols_have_no_events() -> None:
    talk = Talk().open()
    talk.send(True, b"SSH-2.0-client\r\n")
    talk.next[True] -= 16
    talk.send(True, b"SSH-2.0-client\r\n")
    assert spaced(talk)["tcp_events"] == []


def test_a_connection_has_so_many_events_and_no_more() -> None:
    talk = Talk().open()
    ask(talk, 1)
    begin = talk.next[True]
    for _ in range(6):
        talk.next[True] = begin
        talk.send(True, request(2))
    tables = spaced(talk, limits={"tcp_events": 3})
    assert len(tables["tcp_events"]) == 3
    assert [row["value"] for row in tables["anomalies"] if row["name"] == "tcp_events_limit"] == [2]
    assert names(tables) == ["tcp_events_limit"]


def stamp(number: int) -> bytes:
    """TCP's option with this time of the sender (RFC 7323 3.2)."""
    return struct.pack(">BBBBII", 1, 1, 8, 10, number, 0)


def filled(late: int, *, stamped: bool = True, asked: int = 3, after_ms: int = 20) -> Rows:
    """The first half of a response comes behind the second one, `late` ticks of its sender's clock later, and
    `after_ms` behind the first of the acknowledgements that ask for it. There and back takes 20 ms."""
    talk = Talk().open()
    ask(talk, 1)
    talk.send(True, request(2))
    missing = talk.next[False]
    talk.next[False] += 5
    talk.send(False, response(2)[5:], options=stamp(100) if stamped else b"")
    for _ in range(asked):
        talk.send(True, ack=missing)
    talk.send(False, response(2)[:5], seq=missing, options=stamp(100 + late) if stamped else b"")
    talk.send(True)
    first = len(talk.packets) - 2 - asked
    moments = [20 * number for number in range(first)]
    moments += [20 * first + 6 * number for number in range(asked)]  # nearer ones would be copies
    moments += [20 * first + after_ms, 20 * first + 1_000]
    times = [START_NS + moment * 1_000_000 for moment in moments]
    return tables_of(talk.packets, times_ns=times)


def sent_again(tables: Rows) -> tuple[list[Any], int, list[int]]:
    (row,) = tables["connections"]
    rows = [(*event[1:2], *event[3:5]) for event in events_of(tables) if event[0] == "retransmission"]
    return rows, row["broker_retransmitted_bytes"], [call["retransmissions"] for call in tables["latencies"]]


LOST = [("broker", len(response(1)), 5)], 5, [0, 1]
OVERTAKEN: tuple[list[Any], int, list[int]] = [], 0, [0, 0]


@pytest.mark.parametrize(("late", "expected"), [(1, LOST), (0, OVERTAKEN), (-1, OVERTAKEN)])
def test_what_fills_a_hole_with_a_later_stamp_was_sent_again(
    late: int, expected: tuple[list[Any], int, list[int]]
) -> None:
    """Nobody stamps what comes first in a stream later than what comes behind it (RFC 7323 3)."""
    tables = filled(late, asked=0)
    assert sent_again(tables) == expected
    assert connection_of(tables)["broker_out_of_order"] == 1
    assert call_numbers(tables) == [2] * len(expected[0])


@pytest.mark.parametrize(
    ("asked", "after_ms", "expected"), [(3, 20, LOST), (3, 19, OVERTAKEN), (2, 20, OVERTAKEN)]
)
def test_what_was_asked_for_three_times_was_sent_again(
    asked: int, after_ms: int, expected: tuple[list[Any], int, list[int]]
) -> None:
    """Where nothing is stamped; but not what comes before its sender can have heard of it."""
    assert sent_again(filled(0, stamped=False, asked=asked, after_ms=after_ms)) == expected


@pytest.mark.parametrize(("late", "again"), [(1, 1), (0, 0)])
def test_an_acknowledgement_tells_that_an_answer_was_sent_before(late: int, again: int) -> None:
    """The broker's numbers had passed the answer before it came."""
    talk = Talk().open()
    ask(talk, 1)
    talk.send(True, request(2))
    answer = response(2)
    talk.send(False, seq=talk.next[False] + len(answer), options=stamp(100))
    talk.send(False, answer, options=stamp(100 + late))
    talk.send(True)
    assert len(sent_again(spaced(talk))[0]) == again
