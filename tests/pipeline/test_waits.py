"""What calls waited for: scripted waits must come back under their name, to the nanosecond of the script."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pipeline.test_latency import DATA, EMPTY, exact, heartbeat, latencies, parts, talk
from tests.pipeline.test_network import WAY, far
from tests.pipeline.test_network import parts as all_parts
from tests.traffic import groups, messages
from tests.traffic.exchange import Exchange
from tests.traffic.records import batch
from tests.traffic.tcp import MILLISECOND

MS = MILLISECOND
EPOCH_MS = 1_700_000_000_000  # of the scripts


def records(*made_ms: int, first: int = 0) -> dict[str, dict[int, bytes]]:
    """A partition for each: the last record of its log, made so many milliseconds after the beginning."""
    made = (batch([b"v"], base_offset=998, time_ms=EPOCH_MS + at) for at in made_ms)
    return {"orders": dict(enumerate(made, first))}


def test_a_fetch_waited_for_records_that_were_made_meanwhile(tmp_path: Path) -> None:
    scene, script = talk()
    script.call(messages.fetch(11, 1, records(90)), at=10 * MS, answer_at=100 * MS)
    row = latencies(tmp_path, scene.packets())[1]
    assert (row["wait"], parts(row)) == ("data", (0, 0, 1 * MS, 89 * MS, 0))


@pytest.mark.parametrize(
    ("made_ms", "wait"),
    [
        ((10,), "data_possible"),  # no later than the request
        ((11,), "data"),
        ((100,), "data"),
        ((101,), "data_possible"),  # after the answer: the clocks differ
        ((5, 90), "data_possible"),  # one byte is enough: the older one may have been there
        ((80, 90), "data"),
    ],
)
def test_timestamps_prove_a_wait_when_they_lie_in_it(
    made_ms: tuple[int, ...], wait: str, tmp_path: Path
) -> None:
    scene, script = talk()
    script.call(messages.fetch(11, 1, records(*made_ms)), at=10 * MS, answer_at=100 * MS)
    row = latencies(tmp_path, scene.packets())[1]
    assert (row["wait"], parts(row)) == (wait, (0, 0, 1 * MS, 89 * MS, 0))


def test_a_fetch_that_wants_more_waits_for_the_last_of_it(tmp_path: Path) -> None:
    scene, script = talk()
    size = sum(map(len, records(5, 90)["orders"].values()))
    call = messages.fetch(11, 1, records(5, 90), min_bytes=size)
    script.call(call, at=10 * MS, answer_at=100 * MS)
    assert latencies(tmp_path, scene.packets())[1]["wait"] == "data"


def test_who_got_records_from_the_future_proves_nothing_by_their_time(tmp_path: Path) -> None:
    scene, script = talk()
    script.call(messages.fetch(11, 1, records(5000)), at=10 * MS, answer_at=100 * MS)
    script.call(messages.fetch(11, 2, records(180)), at=110 * MS, answer_at=200 * MS)
    assert latencies(tmp_path, scene.packets())[2]["wait"] == "data_possible"


def test_records_that_leave_more_behind_had_been_there(tmp_path: Path) -> None:
    scene, script = talk()
    script.call(messages.fetch(11, 1, records(90), high_watermark=2000), at=10 * MS, answer_at=100 * MS)
    row = latencies(tmp_path, scene.packets())[1]
    assert (row["wait"], parts(row)) == ("none", (0, 0, 90 * MS, 0, 0))


def test_less_than_was_asked_for_had_not_been_there(tmp_path: Path) -> None:
    """A broker answers at once, with less than min_bytes, when it begins another segment."""
    scene, script = talk()
    call = messages.fetch(11, 1, records(5), high_watermark=2000, min_bytes=20_000)
    script.call(call, at=10 * MS, answer_at=100 * MS)
    row = latencies(tmp_path, scene.packets())[1]
    assert (row["wait"], parts(row)) == ("long_poll_possible", (0, 0, 1 * MS, 89 * MS, 0))


TRANSACTIONAL, CONTROL = 16, 32


def transaction(data_ms: int, marker_ms: int | None, *, last: int = 998) -> dict[str, dict[int, bytes]]:
    """Records of a transaction and the marker of its end, the last one before the last stable offset."""
    data = batch([b"v"], base_offset=last - 1, time_ms=EPOCH_MS + data_ms, flags=TRANSACTIONAL)
    if marker_ms is None:
        return {"orders": {0: data}}
    end = batch([b""], base_offset=last, time_ms=EPOCH_MS + marker_ms, flags=TRANSACTIONAL | CONTROL)
    return {"orders": {0: data + end}}


@pytest.mark.parametrize(
    ("isolation", "brought", "wait"),
    [
        (1, transaction(5, 90), "transaction"),
        (1, transaction(80, 90), "transaction"),
        (1, transaction(5, 10), "transaction_possible"),  # the marker is no later than the request
        (1, transaction(5, 101), "transaction_possible"),  # the clocks differ
        (1, transaction(5, None, last=999), "transaction_possible"),  # another one began before it ended
        (1, transaction(80, None, last=999), "data"),  # the records came within the wait
        (1, records(5), "data_possible"),  # of no transaction
        (1, transaction(5, 90, last=900), "transaction"),  # the response was full
        (1, transaction(5, None, last=900), "transaction_possible"),
        (0, transaction(5, None, last=999), "data_possible"),
    ],
)
def test_a_fetch_with_read_committed_waits_for_the_end_of_a_transaction(
    isolation: int, brought: dict[str, dict[int, bytes]], wait: str, tmp_path: Path
) -> None:
    scene, script = talk()
    script.call(messages.fetch(11, 1, brought, isolation=isolation), at=10 * MS, answer_at=100 * MS)
    row = latencies(tmp_path, scene.packets())[1]
    assert (row["wait"], parts(row)) == (wait, (0, 0, 1 * MS, 89 * MS, 0))


@pytest.mark.parametrize(
    ("isolation", "brought"), [(0, transaction(5, 90, last=900)), (1, records(5)), (1, records(90))]
)
def test_a_reader_that_no_transaction_holds_back_waits_for_the_broker(
    isolation: int, brought: dict[str, dict[int, bytes]], tmp_path: Path
) -> None:
    scene, script = talk()
    call = messages.fetch(11, 1, brought, isolation=isolation, high_watermark=2000)
    script.call(call, at=10 * MS, answer_at=100 * MS)
    row = latencies(tmp_path, scene.packets())[1]
    assert (row["wait"], parts(row)) == ("none", (0, 0, 90 * MS, 0, 0))


def test_a_wait_is_compared_with_the_brokers_clock(tmp_path: Path) -> None:
    """A request from afar is under way for 60 ms: a record made meanwhile may have been there in time."""
    scene, script = far()
    script.call(messages.fetch(11, 1, records(1059)), at=1000 * MS, answer_at=1000 * MS + WAY + 90 * MS)
    script.call(messages.fetch(11, 2, records(2061)), at=2000 * MS, answer_at=2000 * MS + WAY + 90 * MS)
    rows = latencies(tmp_path, scene.packets())
    assert all_parts(rows[1]) == all_parts(rows[2]) == (0, WAY, 0, 1 * MS, 89 * MS, 0)
    assert (rows[1]["wait"], rows[2]["wait"]) == ("data_possible", "data")


@pytest.mark.parametrize(
    "call",
    [
        groups.join_group(7, 1, "g"),
        groups.sync_group(5, 1, "g"),
        groups.sync_group(5, 1, "g", error=27),  # REBALANCE_IN_PROGRESS: it waited, and others came
    ],
)
def test_a_member_may_have_waited_for_the_others(call: Exchange, tmp_path: Path) -> None:
    scene, script = talk()
    script.call(call, at=10 * MS, answer_at=910 * MS)
    row = latencies(tmp_path, scene.packets())[1]
    assert (row["wait"], parts(row)) == ("group_possible", (0, 0, 1 * MS, 899 * MS, 0))


@pytest.mark.parametrize(("took_us", "wait"), [(5_000, "none"), (5_001, "group_possible")])
def test_a_member_that_is_answered_soon_waited_for_nobody(took_us: int, wait: str, tmp_path: Path) -> None:
    """As brokers' own clocks have it."""
    scene, script = talk()
    script.call(groups.join_group(7, 1, "g"), at=10 * MS, answer_at=10 * MS + took_us * 1_000)
    row = latencies(tmp_path, scene.packets())[1]
    assert (row["wait"], row["broker_ns"]) == (wait, 5 * MS if wait == "none" else 1 * MS)


def test_the_first_generation_of_a_group_waits_for_its_first_members(tmp_path: Path) -> None:
    scene, script = talk()
    script.call(groups.join_group(7, 1, "g"), at=10 * MS, answer_at=3020 * MS)
    row = latencies(tmp_path, scene.packets())[1]
    assert (row["wait"], parts(row)) == ("group", (0, 0, 1 * MS, 3009 * MS, 0))


@pytest.mark.parametrize("call", [groups.join_group(7, 1, "g", error=79), heartbeat(1)])
def test_who_is_told_to_come_again_waited_for_nobody(call: Exchange, tmp_path: Path) -> None:
    scene, script = talk()
    script.call(call, at=10 * MS, answer_at=110 * MS)
    row = latencies(tmp_path, scene.packets())[1]
    assert (row["wait"], parts(row)) == ("none", (0, 0, 100 * MS, 0, 0))


@pytest.mark.parametrize(
    ("error", "acks", "took_ms", "wait"),
    [
        (0, -1, 3, "none"),
        (0, -1, 300, "replicas_possible"),  # nobody tells: it stays the broker's
        (7, -1, 300, "replicas"),
        (20, -1, 300, "replicas"),
        (6, -1, 300, "none"),
        (0, 1, 300, "none"),
        (7, 1, 300, "none"),
    ],
)
def test_a_produce_may_have_waited_for_followers(
    error: int, acks: int, took_ms: int, wait: str, tmp_path: Path
) -> None:
    scene, script = talk()
    call = messages.produce(9, 1, DATA, acks=acks, errors={("orders", 0): error})
    script.call(call, at=10 * MS, answer_at=(10 + took_ms) * MS)
    row = latencies(tmp_path, scene.packets())[1]
    waited = took_ms - 1 if wait == "replicas" else 0
    assert (row["wait"], parts(row)) == (wait, (0, 0, (took_ms - waited) * MS, waited * MS, 0))


@pytest.mark.parametrize(
    ("error", "took_ms", "wait"),
    [
        (58, 302, "authentication_delay"),
        (58, 100, "authentication_delay"),  # connection.failed.authentication.delay.ms, its default
        (58, 60, "authentication_delay_possible"),
        (0, 302, "none"),
    ],
)
def test_failed_authentication_is_held_back(error: int, took_ms: int, wait: str, tmp_path: Path) -> None:
    scene, script = talk()
    script.call(groups.sasl_handshake(1, 1, "PLAIN"), at=5 * MS, answer_at=6 * MS)
    call = groups.sasl_authenticate(2, 2, b"\0eve\0wrong", b"", error=error)
    script.call(call, at=10 * MS, answer_at=(10 + took_ms) * MS)
    row = latencies(tmp_path, scene.packets())[2]
    broker = 1 if error else took_ms
    assert (row["wait"], parts(row)) == (wait, (0, 0, broker * MS, (took_ms - broker) * MS, 0))


def test_calls_in_line_name_the_call_that_took_most_of_it(tmp_path: Path) -> None:
    """A long poll of 500 ms, calls of 2, 300 and 1 ms that were sent while it lasted, and a later one."""
    scene, script = talk()
    script.call(messages.fetch(11, 1, EMPTY), at=10 * MS, answer_at=511 * MS)
    script.call(heartbeat(2), at=20 * MS, answer_at=513 * MS)
    script.call(heartbeat(3), at=30 * MS, answer_at=813 * MS)
    script.call(heartbeat(4), at=40 * MS, answer_at=814 * MS)
    script.call(heartbeat(5), at=500 * MS, answer_at=815 * MS)
    rows = latencies(tmp_path, scene.packets())
    assert rows[1]["queued_behind"] is rows[1]["queued_behind_wait"] is None
    for number in (2, 3, 4):
        assert (rows[number]["queued_behind"], rows[number]["queued_behind_wait"]) == (
            rows[1]["call_id"],
            "long_poll",
        )
    assert (rows[5]["queued_behind"], rows[5]["queued_behind_wait"]) == (rows[3]["call_id"], "none")
    assert parts(rows[5]) == (0, 314 * MS, 1 * MS, 0, 0)


def test_a_call_that_was_not_seen_whole_is_one_to_wait_for(tmp_path: Path) -> None:
    """When its last byte was sent is not known, but that the broker was busy with it until its answer."""
    scene, script = talk(mss=100)
    script.call(heartbeat(1), at=1 * MILLISECOND, answer_at=20 * MILLISECOND)
    script.call(messages.produce(9, 2, DATA), at=2 * MILLISECOND, answer_at=100 * MILLISECOND)
    script.call(heartbeat(3), at=10 * MILLISECOND, answer_at=101 * MILLISECOND)
    packets = scene.packets()
    asked = [packet for packet in packets if packet.from_client and packet.payload]
    last = next(packet for packet in reversed(asked) if packet.time_ns < asked[0].time_ns + 5 * MILLISECOND)
    packets.remove(last)
    tables = exact(tmp_path, packets)
    calls = {row["correlation_id"]: row["call_id"] for row in tables["api_calls"]}
    rows = {row["call_id"]: row for row in tables["latencies"]}
    assert calls[2] not in rows
    assert (rows[calls[3]]["queue_wait_ns"], rows[calls[3]]["queued_behind"]) == (90 * MILLISECOND, calls[2])
