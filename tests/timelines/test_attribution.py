"""What other connections prove of a wait; and that it is the same however rows come, and where.

Scripts know when followers asked, records were written and members came; recordings have the brokers' log.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import kwsniff
from kwsniff.live.session import Session
from kwsniff.spark.serialization import dump, load
from kwsniff.timelines.timelines import Timelines
from kwsniff.timelines.waits import evidence
from kwsniff.timelines.waits.attribution import ProvenWaits
from tests.live.running import FileSource
from tests.pipeline.clocks import CLOCKS, calls, witness
from tests.pipeline.test_latency import DATA, latencies, parts
from tests.tables.runs import of_any_run
from tests.traffic import groups, messages
from tests.traffic.records import batch
from tests.traffic.tcp import MICROSECOND, MILLISECOND, Scene, Script

MS = MILLISECOND
# Produce is answered with base offset 42 and brings two records; fetches ask for what comes from 100 on.
BROUGHT = {"orders": {0: batch([b"v"], base_offset=43, time_ms=1)}}
OTHER = {"orders": {1: batch([b"v"], base_offset=43, time_ms=1)}}
NOTHING = {"orders": {0: b""}}
ELSEWHERE = {"orders": {1: b""}}


def scripts(number: int) -> tuple[Scene, list[Script]]:
    scene = Scene()
    found = [scene.connection() for _ in range(number)]
    for script in found:
        script.open(round_trip_ns=20 * MICROSECOND)
    return scene, found


@pytest.mark.parametrize(
    ("asked_ms", "what", "acks", "wait", "broker_ms"),
    [
        ((295,), NOTHING, -1, "replicas", 1),
        ((120, 295), NOTHING, -1, "replicas", 1),
        ((120, 200), NOTHING, -1, "replicas", 101),  # after the last of them the broker did something else
        ((295,), NOTHING, 1, "none", 290),
        ((295,), ELSEWHERE, -1, "replicas_possible", 290),
        ((301,), NOTHING, -1, "replicas_possible", 290),
        ((), NOTHING, -1, "replicas_possible", 290),
    ],
)
def test_followers_that_ask_for_more_prove_that_a_produce_waited(  # noqa: PLR0917
    tmp_path: Path, asked_ms: tuple[int, ...], what: Any, acks: int, wait: str, broker_ms: int
) -> None:
    scene, (client, *followers) = scripts(1 + len(asked_ms))
    client.call(messages.produce(9, 1, DATA, acks=acks), at=10 * MS, answer_at=300 * MS)
    for number, (script, at) in enumerate(zip(followers, asked_ms, strict=True)):
        call = messages.fetch(11, 10 + number, what, replica=2 + number)
        script.call(call, at=at * MS, answer_at=(at + 501) * MS)
    row = latencies(tmp_path, scene.packets())[1]
    assert (row["wait"], parts(row)) == (wait, (0, 0, broker_ms * MS, (290 - broker_ms) * MS, 0))


def test_a_consumer_that_asks_for_more_proves_nothing(tmp_path: Path) -> None:
    scene, (client, consumer) = scripts(2)
    client.call(messages.produce(9, 1, DATA), at=10 * MS, answer_at=300 * MS)
    consumer.call(messages.fetch(11, 2, NOTHING), at=295 * MS, answer_at=796 * MS)
    assert latencies(tmp_path, scene.packets())[1]["wait"] == "replicas_possible"


def test_a_follower_that_is_answered_more_than_a_second_later_is_too_late(tmp_path: Path) -> None:
    scene, (client, follower, other) = scripts(3)
    client.call(messages.produce(9, 1, DATA), at=10 * MS, answer_at=300 * MS)
    call = messages.fetch(11, 2, NOTHING, replica=2, max_wait_ms=1500)
    follower.call(call, at=295 * MS, answer_at=1796 * MS)
    other.call(messages.produce(9, 3, DATA), at=1400 * MS, answer_at=1401 * MS)
    assert latencies(tmp_path, scene.packets())[1]["wait"] == "replicas_possible"


def test_what_the_broker_wrote_before_followers_were_answered_is_its_own(tmp_path: Path) -> None:
    """40 ms until the records are in its log and the waiting follower has them, then 250 ms of waiting."""
    scene, (client, follower) = scripts(2)
    first = {"orders": {0: batch([b"v"], base_offset=42, time_ms=1)}}
    follower.call(messages.fetch(11, 2, first, replica=2, offset=42), at=5 * MS, answer_at=50 * MS)
    follower.call(messages.fetch(11, 3, NOTHING, replica=2), at=295 * MS, answer_at=796 * MS)
    client.call(messages.produce(9, 1, DATA), at=10 * MS, answer_at=300 * MS)
    row = latencies(tmp_path, scene.packets())[1]
    assert row["wait"] == "replicas"
    assert abs(row["broker_ns"] - 40 * MS) <= 100 * MICROSECOND  # from the response's last packet


@pytest.mark.parametrize(
    ("told_ms", "replicas", "wait"),
    [
        ((5,), [1], "none"),
        ((290,), [1], "none"),
        ((5,), [1, 2, 3], "replicas_possible"),
        ((301,), [1], "replicas_possible"),  # nobody had said so when the answer came
        ((), [1], "replicas_possible"),
    ],
)
def test_nobody_follows_a_partition_with_one_copy(
    tmp_path: Path, told_ms: tuple[int, ...], replicas: list[int], wait: str
) -> None:
    scene, (client, other) = scripts(2)
    for at in told_ms:
        told = messages.metadata(7, 5, ["orders"], replicas=replicas)
        other.call(told, at=(at - 2) * MS, answer_at=at * MS)
    client.call(messages.produce(9, 1, DATA), at=10 * MS, answer_at=300 * MS)
    row = latencies(tmp_path, scene.packets())[1]
    assert (row["wait"], parts(row)) == (wait, (0, 0, 290 * MS, 0, 0))


def test_a_partition_that_got_more_copies_may_be_waited_for(tmp_path: Path) -> None:
    scene, (client, other) = scripts(2)
    for number, (at, replicas) in enumerate(((5, [1]), (50, [1, 2]))):
        told = messages.metadata(7, 5 + number, ["orders"], replicas=replicas)
        other.call(told, at=at * MS, answer_at=(at + 1) * MS)
    client.call(messages.produce(9, 1, DATA), at=10 * MS, answer_at=40 * MS)
    client.call(messages.produce(9, 2, DATA), at=60 * MS, answer_at=90 * MS)
    rows = latencies(tmp_path, scene.packets())
    assert (rows[1]["wait"], rows[2]["wait"]) == ("none", "replicas_possible")


def test_calls_behind_it_say_what_it_waited_for(tmp_path: Path) -> None:
    scene, (client, follower) = scripts(2)
    client.call(messages.produce(9, 1, DATA), at=10 * MS, answer_at=300 * MS)
    client.call(messages.produce(9, 2, DATA), at=20 * MS, answer_at=301 * MS)
    follower.call(messages.fetch(11, 9, NOTHING, replica=2), at=295 * MS, answer_at=796 * MS)
    rows = latencies(tmp_path, scene.packets())
    assert (rows[2]["queued_behind"], rows[2]["queued_behind_wait"]) == (rows[1]["call_id"], "replicas")


@pytest.mark.parametrize(
    ("at_ms", "answer_ms", "what", "wait", "broker_ms"),
    [
        (90, 95, BROUGHT, "data", 1),
        (20, 30, BROUGHT, "data", 81),  # had come 80 ms before the answer
        (2, 8, BROUGHT, "none", 90),  # was there before it was asked for
        (2, 95, BROUGHT, "data_possible", 1),  # had come, but may have stood in line
        (90, 95, OTHER, "data_possible", 1),
        (101, 102, BROUGHT, "data_possible", 1),
    ],
)
def test_the_produce_that_brought_the_record_proves_that_a_fetch_waited(  # noqa: PLR0917
    tmp_path: Path, at_ms: int, answer_ms: int, what: Any, wait: str, broker_ms: int
) -> None:
    scene, (consumer, producer) = scripts(2)
    consumer.call(messages.fetch(11, 1, what, high_watermark=44), at=10 * MS, answer_at=100 * MS)
    producer.call(messages.produce(9, 2, DATA, acks=1), at=at_ms * MS, answer_at=answer_ms * MS)
    row = latencies(tmp_path, scene.packets())[1]
    assert (row["wait"], parts(row)) == (wait, (0, 0, broker_ms * MS, (90 - broker_ms) * MS, 0))


@pytest.mark.slow
def test_recordings_prove_what_the_brokers_log_says() -> None:
    """Produce that is said to have waited for followers did so by the log, but for 2 ms or 15 %."""
    proven = Counter[bool]()
    for name in ("follower_stopped", "follower_stopped_3_9", "follower_stopped_far"):
        for key, row in calls(name, "broker").items():
            if row["wait"] == "replicas":
                remote_us = witness(name)[key].remote_us or 0
                ours = row["deliberate_wait_ns"] / 1000
                proven[abs(ours - remote_us) <= max(2_000, 0.15 * remote_us)] += 1
    assert proven.total() >= 95
    assert proven[True] >= 0.95 * proven.total()


RECORDED = ("follower_stopped/broker.pcap", "members_slow/client.pcap", "loss_2/broker.pcap")


def rows_of(table: pa.Table) -> list[str]:
    return sorted(map(repr, of_any_run(table).to_pylist()))


@pytest.mark.parametrize("name", RECORDED)
@pytest.mark.parametrize("most", [40, 1 << 16])
def test_rows_are_the_same_in_one_batch_and_in_many(
    name: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evidence, "MOST_EVENTS", most)
    whole = kwsniff.analyze(CLOCKS / name)
    words = Counter(whole.latencies["wait"].to_pylist())
    assert any(word in words for word in ("replicas", "group", "data"))
    monkeypatch.setattr("kwsniff.timelines.row_path.ROW_GROUP_ROWS", 8)
    monkeypatch.setattr("kwsniff.sources.files.BUFFER_BYTES", 256)
    add = Timelines.add

    def add_and_begin_anew(self: Timelines, notes: Any) -> None:
        add(self, notes)
        saved = load(dump(self.waits.state()))
        rows = self.waits.rows
        self.waits = ProvenWaits(self._catalog, self.leaders)
        self.waits.rows = rows
        self.waits.resume(saved)

    monkeypatch.setattr(Timelines, "add", add_and_begin_anew)
    assert rows_of(kwsniff.analyze(CLOCKS / name).latencies) == rows_of(whole.latencies)


def test_what_is_held_goes_with_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A minute of Produce that wait, and of members that come and are answered at once."""
    scene, (client, member) = scripts(2)
    for number in range(300):
        at = (10 + 200 * number) * MS
        client.call(messages.produce(9, number, DATA), at=at, answer_at=at + 100 * MS)
        joined = groups.join_group(5, number, f"billing-{number}")
        member.call(joined, at=at, answer_at=at + MS // 2)
    monkeypatch.setattr("kwsniff.timelines.row_path.ROW_GROUP_ROWS", 8)
    monkeypatch.setattr("kwsniff.sources.files.BUFFER_BYTES", 256)
    sizes: list[int] = []
    add = Timelines.add

    def add_and_measure(self: Timelines, notes: Any) -> None:
        add(self, notes)
        sizes.append(len(dump(self.waits.state())))

    monkeypatch.setattr(Timelines, "add", add_and_measure)
    assert latencies(tmp_path, scene.packets())
    third = len(sizes) // 3
    assert third > 20
    assert max(sizes[2 * third :]) <= 1.1 * max(sizes[third : 2 * third])


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", RECORDED)
def test_live_gives_the_same_rows(name: str) -> None:
    found: list[pa.RecordBatch] = []
    with Session(FileSource(CLOCKS / name, pieces=500)) as session:
        while not session.wait(0.01):
            found += [batch for table, batch in session.drain().items() if table == "latencies"]
        found += [batch for table, batch in session.finish().items() if table == "latencies"]
    live = [{**row, "capture": ""} for batch in found for row in batch.to_pylist()]
    whole = [
        {**row, "capture": ""} for row in of_any_run(kwsniff.analyze(CLOCKS / name).latencies).to_pylist()
    ]
    assert sorted(map(repr, live)) == sorted(map(repr, whole))
