"""Distance and loss: what lies beyond the capture is the network's time, to the nanosecond of the script."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.pipeline.compare import decoded
from tests.pipeline.test_latency import PARTS, exact, heartbeat, latencies
from tests.traffic import messages
from tests.traffic.files import Frame, frames, pcap
from tests.traffic.records import batch
from tests.traffic.tcp import MICROSECOND, MILLISECOND, Packet, Scene, Script

MS = MILLISECOND
WAY = 120 * MS
BIG = {"orders": {0: batch([b"v" * 250], base_offset=998)}}


def far(mss: int = 1448) -> tuple[Scene, Script]:
    """A capture at a client that is 120 ms away from its broker."""
    scene = Scene()
    script = scene.connection(mss=mss)
    script.open(round_trip_ns=WAY)
    return scene, script


def parts(row: dict[str, Any]) -> tuple[int, ...]:
    """Request transmission, network, queue, broker, deliberate wait, response transmission."""
    return tuple(row[part] for part in PARTS)


def moved(packets: Sequence[Packet], which: Packet, to_ns: int) -> list[Packet]:
    """One packet is seen later: the first copy was lost before the capture."""
    times = [replace(packet, time_ns=to_ns) if packet is which else packet for packet in packets]
    return sorted(times, key=lambda packet: packet.time_ns)


def again(packets: Sequence[Packet], which: Packet, *at_ns: int) -> list[Packet]:
    """One packet is seen more than once: it was lost behind the capture, or was thought to be."""
    return sorted(
        [*packets, *(replace(which, time_ns=time) for time in at_ns)], key=lambda packet: packet.time_ns
    )


def payloads(packets: Sequence[Packet], *, from_client: bool) -> list[Packet]:
    return [packet for packet in packets if packet.payload and packet.from_client == from_client]


def test_at_the_client_the_round_trip_is_the_networks(tmp_path: Path) -> None:
    scene, script = far()
    script.call(heartbeat(1), at=1000 * MS, answer_at=1000 * MS + WAY + 3 * MS)
    tables = exact(tmp_path, scene.packets())
    (row,) = tables["latencies"]
    assert parts(row) == (0, WAY, 0, 3 * MS, 0, 0)
    (connection,) = tables["connections"]
    assert connection["capture_point"] == "client"


def test_at_the_broker_no_round_trip_is_part_of_a_call(tmp_path: Path) -> None:
    scene = Scene()
    script = scene.connection()
    script._control(0, True, 2)
    script._control(10 * MICROSECOND, False, 2 | 16)
    script._control(10 * MICROSECOND + WAY, True, 16)
    script.call(heartbeat(1), at=1000 * MS, answer_at=1003 * MS)
    tables = exact(tmp_path, scene.packets())
    assert parts(tables["latencies"][0]) == (0, 0, 0, 3 * MS, 0, 0)
    assert tables["connections"][0]["capture_point"] == "broker"


def test_in_line_counts_at_the_broker_not_at_the_client(tmp_path: Path) -> None:
    """The broker works on the calls for 5, 3 and 2 ms; they reach it 0, 1 and 50 ms after the first."""
    scene, script = far()
    start = 1000 * MS
    script.call(heartbeat(1), at=start, answer_at=start + WAY + 5 * MS)
    script.call(heartbeat(2), at=start + 1 * MS, answer_at=start + WAY + 8 * MS)
    script.call(heartbeat(3), at=start + 50 * MS, answer_at=start + WAY + 52 * MS)
    rows = latencies(tmp_path, scene.packets())
    assert parts(rows[1]) == (0, WAY, 0, 5 * MS, 0, 0)
    assert parts(rows[2]) == (0, WAY, 4 * MS, 3 * MS, 0, 0)
    assert parts(rows[3]) == (0, WAY, 0, 2 * MS, 0, 0)
    assert (rows[2]["queued_behind"], rows[2]["queued_behind_wait"]) == (rows[1]["call_id"], "none")
    assert rows[1]["queued_behind"] is rows[3]["queued_behind"] is None


def test_the_way_near_the_call_counts(tmp_path: Path) -> None:
    """The path becomes 20 ms longer; sixteen prompt acknowledgements later nothing is left of the old one."""
    scene, script = far()
    longer = WAY + 20 * MS
    for number in range(1, 17):
        at = number * 1000 * MS
        script.call(heartbeat(number), at=at, answer_at=at + longer + 9 * MS)
        script.acknowledge(at + longer, from_client=False)
    script.call(heartbeat(17), at=20_000 * MS, answer_at=20_000 * MS + longer + 9 * MS)
    rows = latencies(tmp_path, scene.packets())
    assert parts(rows[1]) == (0, WAY, 0, 29 * MS, 0, 0)
    assert parts(rows[17]) == (0, longer, 0, 9 * MS, 0, 0)


def test_delayed_acknowledgements_and_answers_are_no_round_trip(tmp_path: Path) -> None:
    """No handshake; the broker acknowledges by itself only after 40 ms, or with an answer that took 30."""
    scene = Scene()
    script = scene.connection()
    for number in range(1, 6):
        at = number * 1000 * MS
        script.call(heartbeat(number), at=at, answer_at=at + 30 * MS)
    for number in range(6, 11):
        at = number * 1000 * MS
        script.call(heartbeat(number), at=at, answer_at=at + 60 * MS)
        script.acknowledge(at + 40 * MS, from_client=False)
    tables = exact(tmp_path, scene.packets())
    assert [row["network_ns"] for row in tables["latencies"]] == [0] * 10
    assert tables["connections"][0]["capture_point"] == "unknown"


def test_a_lost_request_waited_for_its_second_copy(tmp_path: Path) -> None:
    scene, script = far()
    start = 1000 * MS
    script.call(heartbeat(1), at=start, answer_at=start + 400 * MS + WAY + 3 * MS)
    script.call(heartbeat(2), at=start + 5 * MS, answer_at=start + 400 * MS + WAY + 4 * MS)
    packets = scene.packets()
    lost, _ = payloads(packets, from_client=True)
    begin = packets[0].time_ns
    rows = latencies(tmp_path, again(packets, lost, begin + start + 150 * MS, begin + start + 400 * MS))
    assert parts(rows[1]) == (0, 400 * MS + WAY, 0, 3 * MS, 0, 0)
    # the second one had arrived, but a stream is read in order
    assert parts(rows[2]) == (0, 395 * MS + WAY, 3 * MS, 1 * MS, 0, 0)


@pytest.mark.parametrize("later_ms", [15, 300], ids=["too soon to mean it", "too late to be answered"])
def test_a_second_copy_nobody_needed_costs_nothing(later_ms: int, tmp_path: Path) -> None:
    scene, script = far()
    start = 1000 * MS
    script.call(heartbeat(1), at=start, answer_at=start + 350 * MS)
    packets = scene.packets()
    (sent,) = payloads(packets, from_client=True)
    rows = latencies(tmp_path, again(packets, sent, packets[0].time_ns + start + later_ms * MS))
    assert parts(rows[1]) == (0, WAY, 0, 350 * MS - WAY, 0, 0)
    assert rows[1]["retransmissions"] == 1


def test_a_hole_in_the_response_is_the_networks_until_it_is_filled(tmp_path: Path) -> None:
    scene, script = far(mss=100)
    start = 1000 * MS
    call = messages.fetch(11, 1, BIG, max_wait_ms=0)
    script.call(call, at=start, answer_at=start + WAY + 3 * MS)
    script.call(heartbeat(2), at=2000 * MS, answer_at=2000 * MS + WAY + 1 * MS)
    packets = scene.packets()
    asked = payloads(packets, from_client=True)[0].time_ns
    sent = (len(payloads(packets, from_client=True)) - 2) * MICROSECOND
    answer = payloads(packets, from_client=False)[:-1]
    assert len(answer) >= 4
    whole = (len(answer) - 1) * MICROSECOND
    filled = answer[0].time_ns + 250 * MS
    rows = latencies(tmp_path, moved(packets, answer[1], filled))
    assert rows[1]["total_ns"] == filled - asked
    lost = filled - answer[2].time_ns
    assert parts(rows[1]) == (sent, WAY + lost, 0, 3 * MS - sent, 0, filled - answer[0].time_ns - lost)
    assert parts(rows[2]) == (0, WAY, 0, 1 * MS, 0, 0)
    # the first segment lost: the broker had answered when the second one came
    rows = latencies(tmp_path, moved(packets, answer[0], filled))
    lost = filled - answer[1].time_ns
    assert parts(rows[1]) == (sent, WAY + lost, 0, answer[1].time_ns - asked - sent - WAY, 0, 0)
    assert whole < 100 * MICROSECOND


@pytest.mark.parametrize(
    ("max_wait_ms", "next_ms", "broker_ms"),
    [
        (None, 3, 1),  # the next call was quick: the broker had been done with this one
        (None, 60, 80 + 60),  # it was not: both may have stood in the same queue
        (500, 3, 80 + 3),  # a fetch may have waited for records until then
    ],
    ids=["quick", "slow", "fetch"],
)
def test_a_lost_answer_whose_hole_the_next_one_shows_is_not_the_brokers(
    tmp_path: Path, max_wait_ms: int | None, next_ms: int, broker_ms: int
) -> None:
    """Nothing comes behind the answer until the next request is answered, which is sent 80 ms later."""
    scene, script = far()
    start = 1000 * MS
    call = messages.fetch(11, 1, BIG, max_wait_ms=max_wait_ms) if max_wait_ms else heartbeat(1)
    script.call(call, at=start, answer_at=start + WAY + 3 * MS)
    script.call(heartbeat(2), at=start + 80 * MS, answer_at=start + 80 * MS + WAY + next_ms * MS)
    packets = scene.packets()
    lost, shows = payloads(packets, from_client=False)
    filled = shows.time_ns + 130 * MS
    row = latencies(tmp_path, moved(packets, lost, filled))[1]
    assert row["total_ns"] == 80 * MS + WAY + next_ms * MS + 130 * MS
    assert row["broker_ns"] + row["deliberate_wait_ns"] == broker_ms * MS
    assert row["network_ns"] == row["total_ns"] - broker_ms * MS


def test_a_hole_in_the_requests_is_the_networks_until_it_is_filled(tmp_path: Path) -> None:
    """Seen at the broker: the first of two requests comes 250 ms after the second."""
    scene = Scene()
    script = scene.connection()
    script._control(0, True, 2)
    script._control(10 * MICROSECOND, False, 2 | 16)
    script._control(10 * MICROSECOND + WAY, True, 16)
    script.call(heartbeat(1), at=1000 * MS, answer_at=1260 * MS)
    script.call(heartbeat(2), at=1005 * MS, answer_at=1262 * MS)
    packets = scene.packets()
    lost, _ = payloads(packets, from_client=True)
    rows = latencies(tmp_path, moved(packets, lost, packets[0].time_ns + 1255 * MS))
    assert parts(rows[1]) == (0, 0, 0, 5 * MS, 0, 0)
    assert parts(rows[2]) == (0, 250 * MS, 5 * MS, 2 * MS, 0, 0)


def test_what_was_lost_before_an_answer_counts_from_when_its_question_was_whole(tmp_path: Path) -> None:
    """An answer that begins while the request still comes: its first part is sent again when the rest of the
    request is there for 80 ms."""
    scene = Scene()
    script = scene.connection()
    script.open(round_trip_ns=20 * MICROSECOND)
    call = messages.produce(9, 1, BIG, errors={("orders", 0): 10})
    assert call.response
    script.write(call.request[:30], 10 * MS, from_client=True)
    script.write(call.response[:12], 15 * MS, from_client=False)
    script.write(call.request[30:], 20 * MS, from_client=True)
    script.write(call.response[12:], 110 * MS, from_client=False)
    packets = scene.packets()
    asked, answered = payloads(packets, from_client=True), payloads(packets, from_client=False)
    packets[packets.index(asked[1])] = replace(asked[1], ack=asked[0].ack)  # it had not arrived
    row = latencies(tmp_path, again(packets, answered[0], asked[1].time_ns + 80 * MS))[1]
    assert (row["network_ns"], row["response_transmission_ns"]) == (80 * MS, 10 * MS)


@pytest.mark.parametrize(("calls", "capture_point"), [(3, "unknown"), (4, "client")])
def test_three_prompt_acknowledgements_tell_where_the_capture_was_taken(
    tmp_path: Path, calls: int, capture_point: str
) -> None:
    """docs/tables.md, latencies: neither a handshake nor three of them. The first call's do not count:
    whether the first segment of a capture is a stream's next one is not known."""
    scene = Scene()
    script = scene.connection()
    for number in range(1, calls + 1):
        at = number * 20 * MILLISECOND
        script.call(heartbeat(number), at=at, answer_at=at + 9 * MILLISECOND)
        script.acknowledge(at + 5 * MILLISECOND, from_client=False)
        script.acknowledge(at + 9 * MILLISECOND + 20 * MICROSECOND, from_client=True)
    (row,) = exact(tmp_path, scene.packets())["connections"]
    assert row["capture_point"] == capture_point


def stamped(
    packets: Sequence[Packet],
    folder: Path,
    *,
    per_second: int = 1000,
    late_ns: int = 0,
    wrong: int | None = None,
) -> Path:
    """The packets with timestamps (RFC 7323) of both sides' clocks; the last answer left so much earlier.
    That of answer `wrong` says a day later."""
    rows = []
    answers = payloads(packets, from_client=False)
    for packet, row in zip(packets, frames(packets), strict=True):
        way = WAY // 2 if not packet.from_client else 0
        sent = packet.time_ns - way - (late_ns if packet is answers[-1] else 0)
        stamp = sent * per_second // 10**9 + 77
        if wrong is not None and packet is answers[wrong]:
            stamp += 86_400 * per_second
        data = bytearray(row.data)
        if data[46] == 0x80:  # a header with room for them, and for nothing else
            data[54:66] = b"\1\1\x08\x0a" + (stamp & 0xFFFFFFFF).to_bytes(4, "big") + bytes(4)
        rows.append(Frame(row.time_ns, bytes(data), len(data)))
    path = folder / "stamped.pcap"
    path.write_bytes(pcap(rows, nanoseconds=True))
    return path


@pytest.mark.parametrize(
    ("per_second", "late_ms", "told_ms"),
    [
        (1000, 25, 25),
        (1000, 0, 0),
        (100, 25, 0),  # a clock of another speed tells nothing
        (10_000, 25, 0),
    ],
)
def test_an_answer_that_was_longer_on_its_way_says_so_by_its_stamp(
    tmp_path: Path, per_second: int, late_ms: int, told_ms: int
) -> None:
    """Nine answers in their usual time, and one that the broker gave 25 ms before it came. Stamps are whole
    milliseconds."""
    scene, script = far()
    for number in range(1, 11):
        at = number * 500 * MS
        script.call(
            heartbeat(number), at=at, answer_at=at + WAY + 3 * MS + (late_ms * MS if number == 10 else 0)
        )
    path = stamped(scene.packets(), tmp_path, per_second=per_second, late_ns=late_ms * MS)
    rows = decoded(path)["latencies"]
    assert {row["broker_ns"] for row in rows[:-1]} == {3 * MS}
    assert abs(rows[-1]["network_ns"] - WAY - told_ms * MS) <= 1 * MS
    assert abs(rows[-1]["broker_ns"] - (3 + late_ms - told_ms) * MS) <= 1 * MS


def test_one_stamp_that_is_wrong_makes_no_later_answer_late(tmp_path: Path) -> None:
    scene, script = far()
    for number in range(1, 11):
        at = number * 500 * MS
        script.call(heartbeat(number), at=at, answer_at=at + WAY + 3 * MS)
    rows = decoded(stamped(scene.packets(), tmp_path, wrong=4))["latencies"]
    assert {(row["network_ns"], row["broker_ns"]) for row in rows} == {(WAY, 3 * MS)}
