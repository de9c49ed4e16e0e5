"""What TCP had to do twice, or could not do: one row each, with the call that waited for it."""

from __future__ import annotations

from typing import Any

from tests.core.hand import (
    ACK,
    RST,
    START_NS,
    SYN,
    Rows,
    Talk,
    ask,
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
