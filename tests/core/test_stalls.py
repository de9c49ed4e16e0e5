"""Stretches in which a direction stalled: one row each, with what it waited for."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from tests.core.hand import ACK, FIN, START_NS, SYN, Rows, Talk, at_ms, request, response, sack, tables_of

TRIP = 10.0  # ms from one side to the other and back
NEAR = 0.1  # ms that a side takes to answer
MSS = 1000

Stall = tuple[str, str, float, float, int | None]


def scaled(scale: int | None) -> bytes:
    """The options of a SYN: the largest segment, and the scale of windows."""
    return struct.pack(">BBH", 2, 4, MSS) + (b"" if scale is None else struct.pack(">BBBB", 1, 3, 3, scale))


class Line(Talk):
    """The same with the time of every segment, in milliseconds; both sides advertise one window, unscaled."""

    def __init__(self, window: int = 60_000) -> None:
        super().__init__()
        self.times: list[float] = []
        self.window = window

    def at(self, ms: float, from_client: bool, payload: bytes = b"", flags: int = ACK, **more: Any) -> None:
        self.times.append(ms)
        more.setdefault("window", self.window)
        self.send(from_client, payload, flags, **more)

    def opened(self, *, at_client: bool = True, scales: tuple[int | None, int | None] = (0, 0)) -> Line:
        """A handshake as seen at one side, and a call that shows that this is Kafka."""
        far, near = (TRIP, NEAR) if at_client else (NEAR, TRIP)
        self.at(0, True, flags=SYN, options=scaled(scales[0]))
        self.at(far, False, flags=SYN | ACK, options=scaled(scales[1]))
        self.at(far + near, True)
        return self.asked(near)

    def asked(self, near: float = NEAR) -> Line:
        self.at(30, True, request(1))
        self.at(50, False, response(1))
        self.at(50 + near, True)
        return self

    def answered(self, ms: float, number: int = 2) -> Line:
        self.at(ms, False, response(number))
        return self

    def tables(self) -> Rows:
        return tables_of(self.packets, times_ns=[START_NS + round(ms * 1_000_000) for ms in self.times])


def stalls_of(line: Line) -> list[Stall]:
    """Of the second call alone; start and duration in milliseconds."""
    tables = line.tables()
    second = next(row["call_id"] for row in tables["api_calls"] if row["correlation_id"] == 2)
    rows = tables["stalls"]
    assert {row["call_id"] for row in rows} <= {second}
    (connection,) = tables["connections"]
    assert {row["connection_id"] for row in rows} <= {connection["connection_id"]}
    latencies = {row["call_id"]: row for row in tables["latencies"]}
    if second in latencies:
        call = latencies[second]
        names = ("request_transmission_ns", "network_ns", "response_transmission_ns")
        assert sum(row["duration_ns"] for row in rows) <= sum(call[name] for name in names)
        longest: dict[str, int] = {}
        for row in rows:
            longest[row["cause"]] = longest.get(row["cause"], 0) + row["duration_ns"]
        assert call["transmission_stall"] == (max(longest, key=lambda name: longest[name]) if rows else None)
    return [
        (
            row["direction"],
            row["cause"],
            (row["start_time"] - at_ms(0)).total_seconds() * 1000,
            row["duration_ns"] / 1_000_000,
            row["bytes"],
        )
        for row in rows
    ]


def long_request(size: int) -> bytes:
    """Of so many bytes."""
    return request(2, b"n" * (size - len(request(2, b""))))


def long_response(size: int) -> bytes:
    """Error 35 is not in it: so many APIs that the whole has at least this size."""
    count = (size - 14) // 6
    body = struct.pack(">ihi", 2, 0, count) + b"".join(struct.pack(">hhh", key, 0, 0) for key in range(count))
    return struct.pack(">i", len(body)) + body


def halves(line: Line, released: float, size: int = 1000, *, ack_at: float) -> None:
    """A request of which the second half leaves when an acknowledgement of the first has come."""
    whole = long_request(2 * size)
    line.at(100, True, whole[:size])
    line.at(ack_at, False)
    line.at(released, True, whole[size:])


def test_a_small_segment_waits_for_a_delayed_acknowledgement() -> None:
    """Four bytes of size, then the rest: Nagle holds it until the delayed acknowledgement comes."""
    line = Line().opened()
    line.at(100, True, request(2)[:4])
    line.at(150, False)
    line.at(150.1, True, request(2)[4:])
    line.answered(162)
    assert stalls_of(line) == [("to_broker", "nagle_delayed_ack", 100.0, 50.1, 4)]
    row = line.tables()["stalls"][0]
    assert (row["first_frame"], row["last_frame"], row["capture"]) == (7, 9, "capture")


def test_so_it_does_where_the_capture_is_at_the_broker() -> None:
    """The acknowledgement passes a way before the segment that waited for it."""
    line = Line().opened(at_client=False)
    line.at(100, True, request(2)[:4])
    line.at(140, False)
    line.at(150.1, True, request(2)[4:])
    line.answered(152)
    assert stalls_of(line) == [("to_broker", "nagle_delayed_ack", 100.0, 50.1, 4)]


def test_a_window_without_room_for_the_next_segment() -> None:
    """1,000 bytes of room, 1,000 in flight: the next segment waits for the acknowledgement."""
    line = Line(window=1000).opened()
    halves(line, 110.2, ack_at=110)
    line.answered(122)
    assert stalls_of(line) == [("to_broker", "receiver_window", 100.0, 10.2, 1000)]


def test_a_response_that_its_client_cuts_off_stalled_as_well() -> None:
    """1,000 bytes for each round trip of 10 ms; the client closes before the rest of 6,000."""
    line = Line(window=1000).opened(at_client=False)
    whole = long_response(6000)
    line.at(100, True, request(2))
    for number in range(3):
        line.at(100.1 + 10.2 * number, False, whole[1000 * number : 1000 * (number + 1)])
        line.at(110.2 + 10.2 * number, True, flags=ACK if number < 2 else FIN | ACK)
    (call,) = (row for row in line.tables()["api_calls"] if row["correlation_id"] == 2)
    assert call["reason"] == "cut_off_by_client"
    direction, cause = "to_client", "receiver_window"
    told = [
        (way, why, round(since, 3), round(took, 3), size) for way, why, since, took, size in stalls_of(line)
    ]
    assert told == [(direction, cause, 100.1, 10.2, 1000), (direction, cause, 110.3, 10.2, 1000)]


def test_a_window_of_which_the_scale_is_not_known() -> None:
    """Without the handshake 1,000 may be any number: but never fewer than 1,000."""
    line = Line(window=1000).asked()
    line.at(60, True, request(3))
    line.answered(70, 3)
    line.at(70.1, True)
    halves(line, 120.2, ack_at=120)
    line.answered(132)
    assert stalls_of(line) == [("to_broker", "unknown", 100.0, 20.2, 1000)]


@pytest.mark.parametrize(
    ("scales", "cause"),
    [((2, 2), "congestion_window"), ((None, 2), "receiver_window"), ((2, None), "receiver_window")],
)
def test_a_window_is_scaled_where_both_syns_say_so(scales: tuple[int | None, int | None], cause: str) -> None:
    """4 * 1,000 bytes have room for what is in flight, and for as much again."""
    line = Line(window=1000).opened(scales=scales)
    halves(line, 110.2, ack_at=110)
    line.answered(122)
    assert stalls_of(line) == [("to_broker", cause, 100.0, 10.2, 1000)]


def test_a_closed_window() -> None:
    """Closed from 110 to 310 ms, of the 210 for which nothing was sent; all of it was acknowledged."""
    line = Line().opened()
    whole = long_request(2000)
    line.at(100, True, whole[:1000])
    line.at(110, False, window=0)
    line.at(310, False)
    line.at(310.1, True, whole[1000:])
    line.answered(322)
    assert stalls_of(line) == [("to_broker", "zero_window", 100.0, 210.1, 0)]


def test_an_application_that_writes_the_rest_later() -> None:
    """All is acknowledged, and there is room."""
    line = Line().opened()
    halves(line, 300, ack_at=110)
    line.answered(312)
    assert stalls_of(line) == [("to_broker", "sender_idle", 100.0, 200.0, 0)]


def test_a_request_that_the_timer_sends_again() -> None:
    """Nothing comes back: 250 ms later the same again, whose answer comes."""
    line = Line().opened()
    begin = line.next[True]
    line.at(100, True, request(2))
    line.at(350, True, request(2), seq=begin)
    line.answered(362)
    assert stalls_of(line) == [("to_broker", "retransmission_timeout", 100.0, 250.0, len(request(2)))]


def test_a_segment_that_the_receiver_asks_for() -> None:
    """The first of four is lost behind the capture: three acknowledgements ask for it."""
    line = Line().opened()
    whole, begin = long_request(4000), line.next[True]
    for number in range(4):
        line.at(100 + number / 10, True, whole[1000 * number : 1000 * (number + 1)])
    for number in range(1, 4):
        blocks = sack((begin + 1000, begin + 1000 * (number + 1)))
        line.at(110 + number / 10, False, ack=begin, options=blocks)
    line.at(110.4, True, whole[:1000], seq=begin)
    line.at(120.5, False)
    line.answered(121)
    assert stalls_of(line) == [("to_broker", "fast_retransmission", 100.3, 10.1, 4000)]


def test_a_segment_that_was_lost_before_it_came_here() -> None:
    """At the broker: from the segment that shows the hole to the one that fills it. Both are in flight."""
    line = Line().opened(at_client=False)
    whole, begin = long_request(3000), line.next[True]
    line.at(100, True, whole[:1000])
    line.at(100.2, True, whole[2000:], seq=begin + 2000)
    for number in range(3):
        line.at(100.3 + number / 10, False, ack=begin + 1000, options=sack((begin + 2000, begin + 3000)))
    line.at(111, True, whole[1000:2000], seq=begin + 1000)
    line.next[True] = begin + 3000
    line.answered(113)
    assert stalls_of(line) == [("to_broker", "fast_retransmission", 100.2, 10.8, 2000)]


def test_a_response_is_a_direction_too() -> None:
    """At the client: 1,000 bytes of room, acknowledged immediately, the next ones a round trip later."""
    line = Line(window=1000).opened()
    line.at(100, True, request(2))
    whole = long_response(2000)
    line.at(112, False, whole[:1000])
    line.at(112.1, True)
    line.at(122.3, False, whole[1000:])
    assert stalls_of(line) == [("to_client", "receiver_window", 112.0, 10.3, 1000)]


def test_slow_start_waits_for_acknowledgements() -> None:
    """Ten segments, and no more before the first of them is acknowledged, though the window has room."""
    line = Line().opened()
    whole = long_request(20_000)
    for number in range(10):
        line.at(100 + number / 100, True, whole[1000 * number : 1000 * (number + 1)])
    line.at(110, False, ack=line.next[True] - 8000)
    for number in range(10, 20):
        line.at(110.1 + number / 100, True, whole[1000 * number : 1000 * (number + 1)])
    line.answered(123)
    assert stalls_of(line) == [("to_broker", "congestion_window", 100.09, 10.11, 10_000)]


def test_a_round_trip_that_grows_with_what_is_in_flight() -> None:
    """The way takes 10 ms, and acknowledgements 60: what is in flight waits in a queue."""
    line = Line().opened()
    whole = long_request(6000)
    for number in range(4):
        line.at(100 + number / 10, True, whole[1000 * number : 1000 * (number + 1)])
    line.at(160, False, ack=line.next[True] - 3000)
    line.at(160.1, True, whole[4000:5000])
    line.at(160.2, True, whole[5000:])
    line.answered(223)
    assert stalls_of(line) == [("to_broker", "link_queue", 100.3, 59.8, 4000)]


def test_a_segment_that_does_not_fit_through_the_path() -> None:
    """1,200 bytes never arrive, 34 did: sent again twice, both waits are the path's."""
    line = Line().opened()
    whole, begin = long_request(1200), line.next[True]
    line.at(100, True, whole)
    line.at(320, True, whole, seq=begin)
    line.at(760, True, whole, seq=begin)
    assert stalls_of(line) == [
        ("to_broker", "path_mtu", 100.0, 220.0, 1200),
        ("to_broker", "path_mtu", 320.0, 440.0, 1200),
    ]


def test_no_stall_lies_between_messages() -> None:
    """A client that asks once a second is not stalled, nor is a broker that takes its time."""
    line = Line().opened()
    line.at(1030, True, request(2))
    line.answered(2040)
    assert stalls_of(line) == []


def test_a_request_that_never_becomes_whole_names_no_call() -> None:
    line = Line().opened()
    line.at(100, True, request(2)[:4])
    line.at(150, False)
    line.at(150.1, True, request(2)[4:10])
    (row,) = line.tables()["stalls"]
    assert (row["call_id"], row["cause"]) == (None, "nagle_delayed_ack")
