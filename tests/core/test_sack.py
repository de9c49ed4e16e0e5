"""Selective acknowledgements: what they say was on the wire, whatever the capture has (RFC 2018, 2883)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core.hand import (
    ACK,
    FIN,
    RST,
    SYN,
    Talk,
    ask,
    connection_of,
    names,
    request,
    response,
    sack,
    tables_of,
)

SIZE = len(response(1))
LOST = ("response_not_captured", "segment_lost")
MISSED = ("response_not_captured", "segment_not_captured")
SILENT = ("unanswered", "open_at_end")


class Hole:
    """Two requests and their answers. The client has the second answer and not the first, which was lost
    on its way from the capture to the client; the capture has not seen the second one."""

    def __init__(self, client_isn: int = 999, broker_isn: int = 4_999, *, first: bool = True) -> None:
        self.talk = Talk(client_isn, broker_isn).open()
        ask(self.talk, 1)
        self.talk.send(True)
        for number in (2, 3):
            self.talk.send(True, request(number))
        self.acked = self.talk.next[False]
        self.talk.send(False, response(2), keep=first)
        self.start = self.talk.next[False]
        self.talk.send(False, response(3), keep=False)
        self.end = self.talk.next[False]

    def acknowledge(self, *blocks: tuple[int, int], flags: int = ACK) -> Hole:
        self.talk.send(True, flags=flags, ack=self.acked, options=sack(*blocks) if blocks else b"")
        return self

    def verdicts(self, **options: Any) -> dict[int, tuple[str, str | None]]:
        rows = tables_of(self.talk.packets, **options)["api_calls"]
        return {
            row["correlation_id"]: (row["status"], row["reason"]) for row in rows if row["correlation_id"] > 1
        }


@pytest.mark.parametrize("broker_isn", [4_999, 2**32 - 40, 2**32 - 30, 2**31 - 30])
@pytest.mark.parametrize("flags", [ACK, FIN | ACK])
def test_what_was_received_behind_a_hole_was_on_the_wire(flags: int, broker_isn: int) -> None:
    hole = Hole(broker_isn=broker_isn)
    hole.acknowledge((hole.start, hole.end), flags=flags)
    assert hole.verdicts() == {2: ("answered", None), 3: MISSED}
    tables = tables_of(hole.talk.packets)
    row = connection_of(tables)
    assert (row["broker_missing_bytes"], row["client_missing_bytes"]) == (SIZE, 0)
    (found,) = (row for row in tables["anomalies"] if row["name"].startswith("segment_"))
    assert (found["name"], found["value"], found["direction"]) == ("segment_not_captured", SIZE, "broker")


def test_without_it_nothing_is_proven() -> None:
    assert Hole().acknowledge().verdicts() == {2: ("answered", None), 3: SILENT}


def test_a_request_that_the_broker_has_was_on_the_wire() -> None:
    """The first of two requests was lost behind the capture, the second one was not captured."""
    talk = Talk().open()
    ask(talk, 1)
    acked = talk.next[True]
    talk.send(True, request(2))
    start = talk.next[True]
    talk.send(True, request(3), keep=False)
    talk.send(False, ack=acked, options=sack((start, talk.next[True])))
    tables = tables_of(talk.packets)
    assert connection_of(tables)["client_missing_bytes"] == len(request(3))
    assert names(tables) == ["framing_lost", "segment_not_captured"]


@pytest.mark.parametrize("reset", [RST, RST | ACK])
def test_it_counts_at_a_reset(reset: int) -> None:
    hole = Hole()
    hole.acknowledge((hole.start, hole.end))
    hole.talk.send(True, flags=reset, ack=hole.acked)
    assert hole.verdicts()[3] == MISSED


def test_it_counts_where_more_follows() -> None:
    """The hole lies between what the capture has; the acknowledgement never passes it."""
    hole = Hole()
    hole.talk.send(True, request(4), ack=hole.acked, options=sack((hole.start, hole.end)))
    hole.talk.send(False, response(4))
    assert hole.verdicts() == {2: ("answered", None), 3: MISSED, 4: ("answered", None)}


def test_two_kinds_of_missing_bytes_are_told_apart() -> None:
    """The capture has neither answer: nobody says that the first one ever arrived, nor where it ends."""
    hole = Hole(first=False)
    hole.acknowledge((hole.start, hole.end))
    tables = tables_of(hole.talk.packets)
    found = [(r["name"], r["value"]) for r in tables["anomalies"] if r["name"].startswith("segment_")]
    assert found == [("segment_lost", SIZE), ("segment_not_captured", SIZE)]
    assert connection_of(tables)["broker_missing_bytes"] == 2 * SIZE
    assert hole.verdicts() == {2: LOST, 3: LOST}


def test_the_number_of_a_fin_is_no_byte() -> None:
    """The broker's FIN came behind the answer; the capture has neither."""
    hole = Hole()
    hole.acknowledge((hole.end, hole.end + 1))
    tables = tables_of(hole.talk.packets)
    assert connection_of(tables)["broker_missing_bytes"] == SIZE
    assert hole.verdicts()[3] == LOST


SAYING_NOTHING = {
    "twice, and acknowledged": lambda hole: [(hole.acked - SIZE, hole.acked)],
    "twice, the last byte": lambda hole: [(hole.acked - 1, hole.acked)],
    "up to the acknowledgement's own number": lambda hole: [(hole.acked, hole.acked)],
    "from the acknowledgement's own number on": lambda hole: [(hole.acked, hole.end)],
    "ends before it begins": lambda hole: [(hole.end, hole.start)],
    "further than any window": lambda hole: [(hole.start, hole.start + (1 << 30) + 100)],
    "before everything": lambda hole: [(hole.acked - (1 << 30), hole.acked - 5)],
    "what the capture has": lambda hole: [(hole.acked + 1, hole.start)],
}


@pytest.mark.parametrize("name", SAYING_NOTHING)
def test_blocks_that_say_nothing_new(name: str) -> None:
    hole = Hole()
    hole.acknowledge(*SAYING_NOTHING[name](hole))
    assert hole.verdicts() == {2: ("answered", None), 3: SILENT}


@pytest.mark.parametrize("inside", [True, False])
def test_what_came_twice_stands_first(inside: bool) -> None:
    """RFC 2883 4: below the acknowledgement, or inside of the block behind it."""
    hole = Hole()
    twice = (hole.start + 3, hole.start + 7) if inside else (hole.acked - 7, hole.acked)
    hole.acknowledge(twice, (hole.start, hole.end))
    tables = tables_of(hole.talk.packets)
    assert connection_of(tables)["broker_missing_bytes"] == SIZE
    assert [r["value"] for r in tables["anomalies"] if r["name"].startswith("segment_")] == [SIZE]
    assert hole.verdicts()[3] == MISSED


def test_parts_come_together() -> None:
    """Told in pieces, latest first, as receivers do."""
    hole = Hole()
    for middle in range(hole.start + 2, hole.end, 3):
        hole.acknowledge((middle, min(middle + 3, hole.end)), (hole.start, middle))
    tables = tables_of(hole.talk.packets)
    assert [r["value"] for r in tables["anomalies"] if r["name"].startswith("segment_")] == [SIZE]
    assert hole.verdicts()[3] == MISSED


def test_the_latest_eight_ranges_are_kept() -> None:
    """Of twenty single bytes with holes between them; what was told before may have been lost."""
    talk = Talk().open()
    ask(talk, 1)
    talk.send(True, request(2))
    acked = talk.next[False]
    for number in range(20):
        talk.send(True, ack=acked, options=sack((acked + 10 * number + 2, acked + 10 * number + 4)))
    tables = tables_of(talk.packets)
    found = [(r["name"], r["value"]) for r in tables["anomalies"] if r["name"].startswith("segment_")]
    assert (
        found
        == [("segment_lost", 122), ("segment_not_captured", 2)]
        + [
            ("segment_lost", 8),
            ("segment_not_captured", 2),
        ]
        * 7
    )
    assert connection_of(tables)["broker_missing_bytes"] == 194


@pytest.mark.parametrize(
    "options",
    [
        b"\5\x0a" + bytes(6),
        b"\1\1\5\0" + bytes(8),
        b"\1\1\5\1" + bytes(8),
        b"\0\0\5\x0a" + b"\xff" * 8,
        b"\1\1\5\x0a" + bytes(4) + b"\0\0\0",
        b"\x08\x00" + b"\5\x0a" + b"\xff" * 8,
        b"\5\xff" + b"\xee" * 38,
    ],
)
def test_broken_options_say_nothing(options: bytes) -> None:
    hole = Hole()
    hole.talk.send(True, ack=hole.acked, options=options + bytes(-len(options) % 4))
    assert hole.verdicts() == {2: ("answered", None), 3: SILENT}


def test_timestamps_stand_before_it() -> None:
    """As Linux writes them: two NOPs, timestamps, two NOPs, the blocks."""
    hole = Hole()
    options = b"\1\1\x08\x0a" + bytes(8) + sack((hole.start, hole.end))
    hole.talk.send(True, ack=hole.acked, options=options)
    assert hole.verdicts()[3] == MISSED


def test_it_is_forgotten_with_the_connection() -> None:
    hole = Hole()
    hole.acknowledge((hole.start, hole.end + 500))
    talk = hole.talk
    talk.next = {True: 70_000, False: hole.acked - 200}
    talk.send(True, flags=SYN)
    talk.send(False, flags=SYN | ACK)
    talk.send(True)
    talk.send(True, request(9))
    tables = tables_of(talk.packets)
    assert [row["broker_missing_bytes"] for row in tables["connections"]] == [SIZE + 500, 0]
