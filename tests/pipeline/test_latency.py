"""Where the time of a call went: scripted delays must come back as they were scripted, to the nanosecond."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.pipeline.compare import decoded
from tests.pipeline.test_recorded import CAPTURES, about
from tests.traffic import groups, messages
from tests.traffic.exchange import Exchange
from tests.traffic.files import frames, pcap
from tests.traffic.records import batch
from tests.traffic.tcp import MICROSECOND, MILLISECOND, Packet, Scene, Script

Row = dict[str, Any]
PARTS = (
    "request_transmission_ns",
    "network_ns",
    "queue_wait_ns",
    "broker_ns",
    "deliberate_wait_ns",
    "response_transmission_ns",
)
EMPTY = {"orders": {0: b""}}
DATA = {"orders": {0: batch([b"one", b"two"], base_offset=997)}}  # the end of the log


def exact(folder: Path, packets: list[Packet]) -> dict[str, list[Row]]:
    path = folder / "capture.pcap"
    path.write_bytes(pcap(frames(packets), nanoseconds=True))
    return dict(decoded(path))


def latencies(folder: Path, packets: list[Packet]) -> dict[int, Row]:
    """Correlation id -> row of latencies, for captures of nanoseconds."""
    tables = exact(folder, packets)
    numbers = {row["call_id"]: row["correlation_id"] for row in tables["api_calls"]}
    rows = {numbers[row["call_id"]]: row for row in tables["latencies"]}
    assert all(sum(row[part] for part in PARTS) == row["total_ns"] for row in rows.values())
    return rows


def parts(row: Row) -> tuple[int, ...]:
    """Request transmission, queue, broker, deliberate wait, response transmission; no network."""
    assert row["network_ns"] == 0
    return tuple(row[part] for part in PARTS if part != "network_ns")


def talk(mss: int = 1448) -> tuple[Scene, Script]:
    """Client and broker on one machine."""
    scene = Scene()
    script = scene.connection(mss=mss)
    script.open(round_trip_ns=20 * MICROSECOND)
    return scene, script


def heartbeat(number: int) -> Exchange:
    return groups.heartbeat(3, number, "g")


def test_a_small_call_is_all_broker(tmp_path: Path) -> None:
    scene, script = talk()
    script.call(heartbeat(1), at=MILLISECOND, answer_at=4 * MILLISECOND + 123)
    row = latencies(tmp_path, scene.packets())[1]
    assert parts(row) == (0, 0, 3 * MILLISECOND + 123, 0, 0)
    assert row["wait"] == "none"
    assert row["retransmissions"] == row["zero_window_ns"] == 0
    assert row["round_trip_ns"] == 21 * MICROSECOND  # the scene's handshake


def test_a_request_that_comes_slowly_is_request_transmission(tmp_path: Path) -> None:
    scene, script = talk()
    call = messages.produce(9, 1, DATA)
    script.write(call.request[:20], MILLISECOND, from_client=True)
    script.write(call.request[20:33], 5 * MILLISECOND, from_client=True)
    script.write(call.request[33:], 9 * MILLISECOND + 7, from_client=True)
    assert call.response
    script.write(call.response, 11 * MILLISECOND + 7, from_client=False)
    assert parts(latencies(tmp_path, scene.packets())[1]) == (8 * MILLISECOND + 7, 0, 2 * MILLISECOND, 0, 0)


def test_a_response_of_many_segments_is_response_transmission(tmp_path: Path) -> None:
    scene, script = talk(mss=100)
    call = messages.fetch(11, 1, {"orders": {0: batch([b"v" * 900] * 9)}}, max_wait_ms=0)
    assert call.response
    segments = -(-len(call.response) // 100)
    asked = -(-len(call.request) // 100)
    script.call(call, at=MILLISECOND, answer_at=3 * MILLISECOND)
    row = latencies(tmp_path, scene.packets())[1]
    sent = (asked - 1) * MICROSECOND
    assert parts(row) == (sent, 0, 2 * MILLISECOND - sent, 0, (segments - 1) * MICROSECOND)
    assert row["wait"] == "none"  # max_wait_ms is 0


def test_pipelined_calls_wait_for_those_before_them(tmp_path: Path) -> None:
    scene, script = talk()
    for number, answer in ((1, 5), (2, 7), (3, 20)):
        script.call(heartbeat(number), at=MILLISECOND, answer_at=answer * MILLISECOND)
    script.call(heartbeat(4), at=8 * MILLISECOND, answer_at=21 * MILLISECOND)
    script.call(heartbeat(5), at=30 * MILLISECOND, answer_at=31 * MILLISECOND)
    rows = latencies(tmp_path, scene.packets())
    ms = MILLISECOND
    assert parts(rows[1]) == (0, 0, 4 * ms, 0, 0)
    assert parts(rows[2]) == (0, 4 * ms, 2 * ms, 0, 0)
    assert parts(rows[3]) == (0, 6 * ms, 13 * ms, 0, 0)
    assert parts(rows[4]) == (0, 12 * ms, 1 * ms, 0, 0)
    assert parts(rows[5]) == (0, 0, 1 * ms, 0, 0)


def test_answers_that_share_a_segment_are_all_queue_but_the_first(tmp_path: Path) -> None:
    scene, script = talk()
    for number in (1, 2, 3):
        script.call(heartbeat(number), at=MILLISECOND, answer_at=6 * MILLISECOND)
    rows = latencies(tmp_path, scene.packets())
    assert parts(rows[1]) == (0, 0, 5 * MILLISECOND, 0, 0)
    assert parts(rows[2]) == parts(rows[3]) == (0, 5 * MILLISECOND, 0, 0, 0)


@pytest.mark.parametrize("version", [4, 11, 13, 16])
@pytest.mark.parametrize(
    ("answer_us", "broker_us"),
    [(500_000, 0), (500_600, 600), (503_250, 1_000), (506_000, 1_000), (512_000, 7_000), (700_000, 195_000)],
)
def test_an_empty_long_poll_waited_max_wait_and_for_a_timer_that_was_late(
    tmp_path: Path, version: int, answer_us: int, broker_us: int
) -> None:
    """Brokers' own clocks: their timers end up to 5 ms late. What is more is a broker that was slow."""
    scene, script = talk()
    fetch = messages.fetch(version, 1, EMPTY, max_wait_ms=500)
    script.call(fetch, at=MILLISECOND, answer_at=MILLISECOND + answer_us * MICROSECOND)
    row = latencies(tmp_path, scene.packets())[1]
    assert parts(row) == (0, 0, broker_us * MICROSECOND, (answer_us - broker_us) * MICROSECOND, 0)
    assert row["wait"] == "long_poll"


def test_a_long_poll_that_fills_too_little_waited_too(tmp_path: Path) -> None:
    scene, script = talk()
    size = len(DATA["orders"][0])
    script.call(
        messages.fetch(11, 1, DATA, max_wait_ms=100, min_bytes=size + 1),
        at=MILLISECOND, answer_at=102 * MILLISECOND,
    )  # fmt: skip
    script.call(
        messages.fetch(11, 2, DATA, max_wait_ms=100, min_bytes=size),
        at=200 * MILLISECOND, answer_at=301 * MILLISECOND,
    )  # fmt: skip
    rows = latencies(tmp_path, scene.packets())
    assert (rows[1]["wait"], parts(rows[1])) == ("long_poll", (0, 0, MILLISECOND, 100 * MILLISECOND, 0))
    assert (rows[2]["wait"], parts(rows[2])) == ("data_possible", (0, 0, MILLISECOND, 100 * MILLISECOND, 0))


@pytest.mark.parametrize(
    ("fetch", "answer_us", "wait", "broker_us"),
    [
        (messages.fetch(11, 1, EMPTY), 1_000, "none", 1_000),
        (messages.fetch(11, 1, EMPTY), 499_999, "long_poll_possible", 1_000),  # something else made it answer
        (messages.fetch(11, 1, EMPTY, errors={("orders", 0): 1}), 600_000, "none", 600_000),
        (messages.fetch(11, 1, EMPTY, error=70), 600_000, "none", 600_000),
        # the partition went to another leader, or was deleted, while the fetch waited
        (messages.fetch(11, 1, EMPTY, errors={("orders", 0): 6}), 400_000, "long_poll_possible", 1_000),
        (messages.fetch(11, 1, EMPTY, errors={("orders", 0): 3}), 400_000, "long_poll_possible", 1_000),
        (messages.fetch(11, 1, EMPTY, errors={("orders", 0): 6}), 4_000, "none", 4_000),
        (messages.fetch(11, 1, DATA), 1_000, "none", 1_000),
        (messages.fetch(11, 1, DATA), 5_000, "none", 5_000),  # brokers' own clocks: so short is no wait
        (messages.fetch(11, 1, DATA), 5_001, "data_possible", 1_000),
        (messages.fetch(11, 1, EMPTY), 5_000, "none", 5_000),
        (messages.fetch(11, 1, EMPTY), 5_001, "long_poll_possible", 1_000),
        (messages.fetch(11, 1, DATA), 600_000, "data_possible", 100_000),  # never more than max_wait
        (messages.fetch(11, 1, DATA, max_wait_ms=0), 600_000, "none", 600_000),
    ],
)
def test_what_a_fetch_may_have_waited_for_is_not_the_brokers_time(
    tmp_path: Path, fetch: Exchange, answer_us: int, wait: str, broker_us: int
) -> None:
    scene, script = talk()
    took = answer_us * MICROSECOND
    script.call(fetch, at=MILLISECOND, answer_at=MILLISECOND + took)
    row = latencies(tmp_path, scene.packets())[1]
    broker = broker_us * MICROSECOND
    assert (row["wait"], parts(row)) == (wait, (0, 0, broker, took - broker, 0))


def test_a_long_poll_behind_another_call_waits_from_when_its_turn_came(tmp_path: Path) -> None:
    scene, script = talk()
    script.call(heartbeat(1), at=MILLISECOND, answer_at=11 * MILLISECOND)
    script.call(
        messages.fetch(11, 2, EMPTY, max_wait_ms=100), at=2 * MILLISECOND, answer_at=113 * MILLISECOND
    )
    script.call(
        messages.fetch(11, 3, EMPTY, max_wait_ms=100), at=2 * MILLISECOND, answer_at=214 * MILLISECOND
    )
    rows = latencies(tmp_path, scene.packets())
    assert parts(rows[2]) == (0, 9 * MILLISECOND, MILLISECOND, 101 * MILLISECOND, 0)
    assert parts(rows[3]) == (0, 111 * MILLISECOND, MILLISECOND, 100 * MILLISECOND, 0)


@pytest.mark.parametrize("version", [3, 5])
def test_before_kip_219_the_answer_itself_is_held_back(tmp_path: Path, version: int) -> None:
    scene, script = talk()
    script.call(
        messages.produce(version, 1, DATA, throttle_ms=100), at=MILLISECOND, answer_at=131 * MILLISECOND
    )
    script.call(heartbeat(2), at=132 * MILLISECOND, answer_at=133 * MILLISECOND)
    script.call(
        messages.produce(version, 3, DATA, throttle_ms=100), at=200 * MILLISECOND, answer_at=299 * MILLISECOND
    )
    rows = latencies(tmp_path, scene.packets())
    assert (rows[1]["wait"], parts(rows[1])) == ("throttle", (0, 0, 30 * MILLISECOND, 100 * MILLISECOND, 0))
    assert (rows[2]["wait"], parts(rows[2])) == ("none", (0, 0, MILLISECOND, 0, 0))
    # it came back earlier than it says: then what it says is not what happened
    assert (rows[3]["wait"], parts(rows[3])) == ("replicas_possible", (0, 0, 99 * MILLISECOND, 0, 0))


@pytest.mark.parametrize(
    "throttled", [messages.produce(6, 1, DATA, throttle_ms=100), messages.fetch(8, 1, DATA, throttle_ms=100)]
)
def test_since_kip_219_the_next_call_waits_for_the_muted_connection(
    tmp_path: Path, throttled: Exchange
) -> None:
    scene, script = talk()
    ms = MILLISECOND
    script.call(throttled, at=10 * ms, answer_at=11 * ms)
    script.call(heartbeat(2), at=20 * ms, answer_at=113 * ms)  # muted until 111
    script.call(heartbeat(3), at=120 * ms, answer_at=121 * ms)
    rows = latencies(tmp_path, scene.packets())
    assert parts(rows[1]) == (0, 0, 1 * ms, 0, 0)
    assert (rows[2]["wait"], parts(rows[2])) == ("throttle", (0, 0, 2 * ms, 91 * ms, 0))
    assert (rows[3]["wait"], parts(rows[3])) == ("none", (0, 0, 1 * ms, 0, 0))


def test_a_pipelined_call_waits_for_its_turn_and_then_for_the_muted_connection(tmp_path: Path) -> None:
    scene, script = talk()
    ms = MILLISECOND
    script.call(messages.produce(9, 1, DATA, throttle_ms=50), at=10 * ms, answer_at=15 * ms)
    script.call(heartbeat(2), at=11 * ms, answer_at=68 * ms)  # its turn 15, muted until 65
    script.call(heartbeat(3), at=100 * ms, answer_at=101 * ms)
    rows = latencies(tmp_path, scene.packets())
    assert (rows[2]["wait"], parts(rows[2])) == ("throttle", (0, 4 * ms, 3 * ms, 50 * ms, 0))
    assert rows[3]["wait"] == "none"


def test_a_call_answered_while_muted_did_not_wait_longer_than_it_took(tmp_path: Path) -> None:
    scene, script = talk()
    script.call(
        messages.produce(9, 1, DATA, throttle_ms=1000), at=10 * MILLISECOND, answer_at=11 * MILLISECOND
    )
    script.call(heartbeat(2), at=20 * MILLISECOND, answer_at=25 * MILLISECOND)
    rows = latencies(tmp_path, scene.packets())
    assert (rows[2]["wait"], parts(rows[2])) == ("throttle", (0, 0, 0, 5 * MILLISECOND, 0))


def test_an_answer_that_begins_before_its_request_ended_overlaps_with_it(tmp_path: Path) -> None:
    scene, script = talk()
    call = messages.produce(9, 1, DATA, errors={("orders", 0): 10})
    assert call.response
    script.write(call.request[:30], 10 * MILLISECOND, from_client=True)
    script.write(call.response[:12], 15 * MILLISECOND, from_client=False)
    script.write(call.request[30:], 20 * MILLISECOND, from_client=True)
    script.write(call.response[12:], 25 * MILLISECOND, from_client=False)
    rows = latencies(tmp_path, scene.packets())
    assert parts(rows[1]) == (10 * MILLISECOND, 0, 0, 0, 5 * MILLISECOND)


def test_segments_sent_again_during_a_call_are_counted(tmp_path: Path) -> None:
    scene, script = talk(mss=40)
    script.call(heartbeat(1), at=MILLISECOND, answer_at=3 * MILLISECOND)
    call = messages.produce(9, 2, DATA)
    script.call(call, at=10 * MILLISECOND, answer_at=30 * MILLISECOND)
    script.call(heartbeat(3), at=40 * MILLISECOND, answer_at=41 * MILLISECOND)
    packets = scene.packets()
    asked = [packet for packet in packets if packet.from_client and packet.payload]
    first = next(packet for packet in asked if packet.time_ns >= packets[0].time_ns + 10 * MILLISECOND)
    # A retransmission takes its time: what comes again at once is the same packet, captured twice.
    later = replace(first, time_ns=first.time_ns + 2 * MILLISECOND)
    again = sorted([*packets, later], key=lambda packet: packet.time_ns)
    rows = latencies(tmp_path, again)
    assert [rows[number]["retransmissions"] for number in (1, 2, 3)] == [0, 1, 0]
    whole = latencies(tmp_path, packets)
    assert rows[1] == whole[1]
    assert parts(rows[2])[1:] == parts(whole[2])[1:]  # nobody waited for it: it had arrived


def test_the_time_without_room_during_a_call_is_counted(tmp_path: Path) -> None:
    scene, script = talk(mss=100)
    ms = MILLISECOND
    call = messages.fetch(11, 2, {"orders": {0: batch([b"v" * 500])}}, max_wait_ms=0)
    assert call.response
    script.call(heartbeat(1), at=1 * ms, answer_at=2 * ms)
    script.write(call.request, 10 * ms, from_client=True)
    script.write(call.response[:300], 20 * ms, from_client=False)
    script.acknowledge(21 * ms, from_client=True, window=0)
    script.acknowledge(41 * ms + 5, from_client=True)
    script.write(call.response[300:], 42 * ms, from_client=False)
    script.call(heartbeat(3), at=50 * ms, answer_at=51 * ms)
    tables = exact(tmp_path, scene.packets())
    rows = sorted(tables["latencies"], key=lambda row: row["request_time"])
    assert [row["zero_window_ns"] for row in rows] == [0, 20 * ms + 5, 0]
    (connection,) = tables["connections"]
    assert (connection["client_zero_window_ns"], connection["broker_zero_window_ns"]) == (20 * ms + 5, 0)


@pytest.mark.parametrize(
    ("client_us", "broker_us", "capture_point"),
    [
        (20, 5000, "client"),
        (5000, 20, "broker"),
        (3000, 3000, "between"),
        (20, 30, "same_machine"),
        (1000, 4100, "client"),  # more than four times as near: docs/tables.md, capture_point
        (1000, 3900, "between"),
        (3900, 1000, "between"),
        (4100, 1000, "broker"),
        (99, 101, "between"),  # microseconds; both below 100: one machine
        (101, 99, "between"),
    ],
)
def test_acknowledgements_tell_where_the_capture_was_taken(
    tmp_path: Path, client_us: int, broker_us: int, capture_point: str
) -> None:
    scene = Scene()
    script = scene.connection()  # without handshake: its acknowledgements would count
    for number in range(1, 6):
        at = number * 20 * MILLISECOND
        answer = at + 9 * MILLISECOND
        script.call(heartbeat(number), at=at, answer_at=answer)
        script.acknowledge(at + broker_us * MICROSECOND, from_client=False)
        script.acknowledge(answer + client_us * MICROSECOND, from_client=True)
    (row,) = exact(tmp_path, scene.packets())["connections"]
    assert row["client_round_trip_ns"] == client_us * MICROSECOND
    assert row["broker_round_trip_ns"] == broker_us * MICROSECOND
    assert row["capture_point"] == capture_point


def test_a_call_of_unknown_layout_is_one_to_wait_for(tmp_path: Path) -> None:
    """It was answered 20 ms after it was asked; the heartbeat came 5 ms later and waited for the rest."""
    scene, script = talk()
    known = heartbeat(2)
    vendor = replace(known, request=known.request[:4] + b"\x01\xf5" + known.request[6:])  # API 501
    script.call(heartbeat(1), at=1 * MILLISECOND, answer_at=2 * MILLISECOND)
    script.call(vendor, at=10 * MILLISECOND, answer_at=30 * MILLISECOND)
    script.call(heartbeat(3), at=15 * MILLISECOND, answer_at=31 * MILLISECOND)
    rows = latencies(tmp_path, scene.packets())
    assert parts(rows[3]) == (0, 15 * MILLISECOND, 1 * MILLISECOND, 0, 0)
    calls = {row["correlation_id"]: row["call_id"] for row in exact(tmp_path, scene.packets())["api_calls"]}
    assert rows[3]["queued_behind"] == calls[2]


def assert_sums(tables: dict[str, list[Row]]) -> None:
    calls = {row["call_id"]: row for row in tables["api_calls"]}
    for row in tables["latencies"]:
        each = [row[part] for part in PARTS]
        assert min(each) >= 0, row
        assert sum(each) == row["total_ns"], row
        call = calls[row["call_id"]]
        assert call["status"] == "answered"
        assert call["latency_ns"] in (row["total_ns"], None)
        if row["wait"] == "long_poll" and not call["throttle_time_ms"]:
            assert row["deliberate_wait_ns"] >= call["max_wait_ms"] * MILLISECOND
        assert (row["deliberate_wait_ns"] > 0) == (row["wait"] not in ("none", "replicas_possible")), row
        assert (row["queue_wait_ns"] > 0) == (row["queued_behind"] is not None), row
        if row["queued_behind"] in calls:
            assert calls[row["queued_behind"]]["connection_id"] == row["connection_id"]
    timed = {call_id for call_id, call in calls.items() if call["latency_ns"] is not None}
    assert {row["call_id"] for row in tables["latencies"]} <= timed


@pytest.mark.sample(12)
@pytest.mark.parametrize("name", sorted(path.parent.name for path in CAPTURES.glob("*/about.toml")))
def test_parts_of_recorded_calls_add_up(name: str) -> None:
    tables = dict(decoded(CAPTURES / name / about(name)["file"]))
    assert_sums(tables)
    timed = [row for row in tables["api_calls"] if row["latency_ns"] is not None]
    assert bool(tables["latencies"]) == bool(timed)  # none at all: the talk is encrypted


@pytest.mark.slow
def test_parts_of_other_peoples_calls_add_up(shared: Path) -> None:
    files = [path for path in (shared / "captures").rglob("*") if path.suffix in (".pcap", ".pcapng", ".cap")]
    assert len(files) >= 10
    rows = 0
    for path in sorted(files):
        tables = dict(decoded(path))
        assert_sums(tables)
        rows += len(tables["latencies"])
    assert rows >= 100
