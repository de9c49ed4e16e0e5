"""The way of batches from producers to readers, against times that scripts set and that clients noted."""

from __future__ import annotations

import csv
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import kwsniff
from kwsniff.timelines.deliveries import deliveries as held
from kwsniff.timelines.deliveries.sightings import APPENDED, FETCHED, SIGHTINGS
from kwsniff.timelines.memory_budget import MemoryBudget
from tests.pipeline.compare import analyzed_packets
from tests.traffic import groups, messages
from tests.traffic.exchange import Exchange
from tests.traffic.records import batch
from tests.traffic.tcp import MILLISECOND, Endpoint, Scene

CAPTURES = Path(__file__).parents[2] / "captures"
RECORDED = CAPTURES / "deliveries"
SEARCHED = (
    "group_classic/capture.pcap",
    "deliveries/capture.pcap.gz",
    "incidents/healthy_committed_reads/broker.pcap",
    "incidents/healthy_long_transactions/broker.pcap",
    "field/eos_healthy.pcap",
    "clocks/loss_3_far/client.pcap",
)
STEPS = ("produced_time", "acknowledged_time", "visible_time", "fetched_time", "committed_time")
PARTS = ("before_wire_ns", "produce_ns", "replication_ns", "fetch_wait_ns", "fetch_ns", "processing_ns")
PRODUCER, READER, OTHER, COORDINATOR, FOLLOWER = range(5)
BEGIN_MS = 1_700_000_000_000
OFFSET = 42  # where all batches of the scripts begin: so says the response to a Produce

Row = dict[str, Any]
Turn = tuple[int, Exchange, int, int]
"""Who makes a call, when it is sent and answered, in milliseconds."""


def tables_of(folder: Path, *turns: Turn) -> Any:
    scene = Scene()
    scripts: dict[int, Any] = {}
    for who, call, at, answered in turns:
        if who not in scripts:
            # All readers have one address, and two connections each.
            host = {READER: "10.0.0.7", COORDINATOR: "10.0.0.7"}.get(who, f"10.0.1.{who}")
            scripts[who] = scene.connection(Endpoint(host, 40_000 + who), Endpoint("10.0.0.1", 9092))
            scripts[who].open(at=0)
        scripts[who].call(call, at=at * MILLISECOND, answer_at=answered * MILLISECOND)
    return analyzed_packets(folder, scene.packets())


def sent(acks: int = 1, *, made_ms: int = 90, correlation: int = 1) -> Exchange:
    """A batch of two records, the last of them made a millisecond after the first."""
    records = batch([b"a", b"b"], time_ms=BEGIN_MS + made_ms - 1)
    return messages.produce(9, correlation, {"orders": {0: records}}, acks=acks, client_id="shop")


def read(end: int, *, client: str = "billing-1", empty: bool = False, **more: Any) -> Exchange:
    records = b"" if empty else batch([b"a", b"b"], base_offset=OFFSET, time_ms=BEGIN_MS + 89)
    return messages.fetch(
        12, 1, {"orders": {0: records}}, client_id=client, high_watermark=end, offset=OFFSET, **more
    )


def committed(offset: int, *, group: str = "billing", client: str = "billing-1") -> Exchange:
    return groups.offset_commit(8, 1, group, {"orders": {0: offset}}, client_id=client)


def at_ms(value: datetime | None) -> int | None:
    """Milliseconds since the scene began."""
    begin = datetime.fromtimestamp(BEGIN_MS / 1000, UTC)
    return None if value is None else (value - begin) // timedelta(milliseconds=1)


def steps(row: Row) -> list[int | None]:
    return [at_ms(row[name]) for name in STEPS]


def parts_ms(row: Row) -> list[int | None]:
    return [None if row[name] is None else row[name] // 1_000_000 for name in PARTS]


def test_the_parts_of_a_batch_are_the_times_between_its_steps(tmp_path: Path) -> None:
    """With acks=1, another reader's response shows that followers have it."""
    (row,) = tables_of(
        tmp_path,
        (PRODUCER, sent(), 100, 110),
        (OTHER, read(44, client="audit-1", empty=True), 50, 125),
        (READER, read(44), 130, 160),
        (COORDINATOR, committed(44), 190, 195),
    )["deliveries"]
    assert (row["topic"], row["partition"], row["base_offset"], row["last_offset"]) == ("orders", 0, 42, 43)
    assert (row["record_count"], row["group_id"], row["client_id"]) == (2, "billing", "billing-1")
    assert at_ms(row["record_time"]) == 90
    assert steps(row) == [100, 110, 125, 160, 190]
    assert parts_ms(row) == [10, 10, 15, 35, 0, 30]
    assert row["total_ns"] == 100_000_000


def test_an_acknowledgement_of_all_replicas_shows_that_a_batch_can_be_read(tmp_path: Path) -> None:
    (row,) = tables_of(tmp_path, (PRODUCER, sent(acks=-1), 100, 110), (READER, read(44), 60, 160))[
        "deliveries"
    ]
    assert steps(row) == [100, 110, 110, 160, None]
    assert parts_ms(row) == [10, 10, 0, 50, 0, None]
    assert (row["visible_call_id"], row["group_id"]) == (row["produced_call_id"], None)
    assert row["total_ns"] == 70_000_000


def test_what_only_the_readers_own_response_shows_is_not_split(tmp_path: Path) -> None:
    (row,) = tables_of(tmp_path, (PRODUCER, sent(), 100, 110), (READER, read(44), 60, 160))["deliveries"]
    assert steps(row) == [100, 110, 160, 160, None]
    assert parts_ms(row) == [10, 10, None, 50, 0, None]


def test_an_acknowledgement_after_the_fetch_takes_nothing_from_it(tmp_path: Path) -> None:
    (row,) = tables_of(tmp_path, (PRODUCER, sent(), 100, 170), (READER, read(44), 60, 160))["deliveries"]
    assert steps(row) == [100, 170, 160, 160, None]
    assert parts_ms(row) == [10, 60, None, 0, 0, None]
    assert row["total_ns"] == 70_000_000


def test_a_clock_ahead_gives_no_time_before_the_wire(tmp_path: Path) -> None:
    early = sent(made_ms=105)
    (row,) = tables_of(tmp_path, (PRODUCER, early, 100, 110), (READER, read(44), 60, 160))["deliveries"]
    assert (at_ms(row["record_time"]), row["before_wire_ns"], row["total_ns"]) == (105, None, 60_000_000)


def test_every_reader_has_a_row_and_followers_have_none(tmp_path: Path) -> None:
    rows = tables_of(
        tmp_path,
        (PRODUCER, sent(), 100, 110),
        (FOLLOWER, read(42, client="broker-2", replica=2), 60, 115),
        (READER, read(44), 60, 160),
        (OTHER, read(44, client="audit-1"), 60, 150),
        (COORDINATOR, committed(44), 190, 195),
    )["deliveries"]
    assert [(row["group_id"], row["client_id"], at_ms(row["fetched_time"])) for row in rows] == [
        (None, "audit-1", 150),
        ("billing", "billing-1", 160),
    ]
    assert {at_ms(row["visible_time"]) for row in rows} == {150}


def test_a_batch_that_nobody_reads_has_a_row_and_so_has_one_that_nobody_produced(tmp_path: Path) -> None:
    (unread,) = tables_of(tmp_path, (PRODUCER, sent(), 100, 110))["deliveries"]
    assert [*steps(unread), unread["client_id"], unread["total_ns"]] == [100, 110, *[None] * 5]
    (older,) = tables_of(tmp_path, (READER, read(44), 150, 160))["deliveries"]
    assert [*steps(older), older["client_id"]] == [None, None, None, 160, None, "billing-1"]
    assert parts_ms(older) == [None, None, None, None, 0, None]
    assert older["total_ns"] == 70_000_000


@pytest.mark.parametrize("name", SEARCHED)
def test_steps_are_those_that_a_search_through_the_other_tables_finds(name: str) -> None:
    """For each row all calls are gone through again, one by one."""
    found = kwsniff.analyze(CAPTURES / name)
    calls = {row["call_id"]: row for row in found.api_calls.to_pylist()}
    order = {call: place for place, call in enumerate(calls)}
    partitions, commits = found.partitions.to_pylist(), found.commits.to_pylist()
    fetches = [row for row in partitions if row["api_name"] == "Fetch" and row["high_watermark"] is not None]
    rows = [row for row in found.deliveries.to_pylist() if row["produced_time"] and row["fetched_time"]]
    assert rows
    for row in rows:
        place, beyond = (row["topic"], row["partition"]), row["last_offset"]
        produced, fetch = calls[row["produced_call_id"]], calls[row["fetched_call_id"]]
        stable = fetch["isolation_level"] == 1
        column = "last_stable_offset" if stable else "high_watermark"
        shown = [
            calls[each["call_id"]]
            for each in sorted(fetches, key=lambda each: order[each["call_id"]])
            if (each["topic"], each["partition"]) == place and (each[column] or 0) > beyond
        ][:1]
        shown += [produced] if produced["acks"] == -1 and not stable else []
        times = [each["response_time"] for each in shown if each["response_time"] >= produced["request_time"]]
        assert row["visible_time"] == min(times, default=None)
        own = [
            each["time"]
            for each in commits
            if (each["topic"], each["partition"], each["group_id"]) == (*place, row["group_id"])
            and each["committed_offset"] > beyond
        ]
        assert row["committed_time"] == (own[0] if own and own[0] >= row["fetched_time"] else None)


@pytest.mark.parametrize("name", SEARCHED)
def test_the_parts_add_up(name: str) -> None:
    rows = kwsniff.analyze(CAPTURES / name).deliveries.to_pylist()
    whole = [row for row in rows if row["produced_time"] and row["total_ns"] is not None]
    assert whole
    assert all(sum(row[part] or 0 for part in PARTS) == row["total_ns"] for row in whole)
    assert all(row[part] is None or row[part] >= 0 for row in rows for part in PARTS)


def test_a_client_of_two_groups_is_told_apart_by_partition_or_has_none(tmp_path: Path) -> None:
    other = groups.offset_commit(8, 2, "audit", {"orders": {1: 7}}, client_id="billing-1")
    turns = (
        (READER, read(44), 60, 160), (COORDINATOR, committed(44), 190, 195), (COORDINATOR, other, 200, 205),
    )  # fmt: skip
    (row,) = tables_of(tmp_path, *turns)["deliveries"]
    assert row["group_id"] == "billing"
    same = groups.offset_commit(8, 3, "audit", {"orders": {0: 7}}, client_id="billing-1")
    (row,) = tables_of(tmp_path, *turns, (COORDINATOR, same, 210, 215))["deliveries"]
    assert (row["group_id"], row["committed_time"], row["client_id"]) == (None, None, "billing-1")


def test_a_retry_that_is_answered_with_the_first_offset_is_the_same_batch(tmp_path: Path) -> None:
    (row,) = tables_of(tmp_path, (PRODUCER, sent(), 100, 110), (PRODUCER, sent(correlation=2), 120, 130))[
        "deliveries"
    ]
    assert steps(row)[:2] == [100, 110]


@pytest.mark.parametrize(
    ("offset", "end", "lag_ms"),
    [
        (42, 44, 190 - 89),  # the first record of the batch is not read
        (43, 44, 190 - 89),  # inside: the batch is as old as its first record
        (44, 44, 0),  # all is read
        (41, 44, None),  # nobody saw the record at 41
    ],
)
def test_the_lag_of_a_commit_is_as_old_as_the_first_record_beyond_it(
    tmp_path: Path, offset: int, end: int, lag_ms: int | None
) -> None:
    (row,) = tables_of(
        tmp_path,
        (PRODUCER, sent(), 100, 110),
        (OTHER, read(end, client="audit-1", empty=True), 50, 125),
        (COORDINATOR, committed(offset), 190, 195),
    )["commits"]
    assert row["lag"] == end - offset
    assert row["lag_ns"] == (None if lag_ms is None else lag_ms * 1_000_000)


def test_what_was_not_seen_before_a_commit_is_no_witness_of_its_lag(tmp_path: Path) -> None:
    (row,) = tables_of(
        tmp_path,
        (OTHER, read(44, client="audit-1", empty=True), 50, 125),
        (COORDINATOR, committed(42), 190, 195),
        (READER, read(44), 200, 210),
    )["commits"]
    assert (row["lag"], row["lag_ns"]) == (2, None)


def noted() -> dict[int, dict[str, int]]:
    """Offset -> what the clients noted; microseconds."""
    with (RECORDED / "records.tsv").open() as file:
        rows = csv.DictReader(file, delimiter="\t")
        return {
            int(row["offset"]): {name: int(value) for name, value in row.items() if value} for row in rows
        }


def errors(column: str, name: str) -> dict[str, list[int]]:
    """By group, what a client noted less what the table has for the same batch; microseconds."""
    records, found = noted(), dict[str, list[int]]()
    for row in kwsniff.analyze(RECORDED / "capture.pcap.gz").deliveries.to_pylist():
        told = records[row["last_offset"]][name.format(group=row["group_id"])]
        time = (row[column] - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
        found.setdefault(row["group_id"], []).append(told - time)
    return found


def test_every_record_that_a_client_noted_is_in_a_batch_of_each_group() -> None:
    rows = kwsniff.analyze(RECORDED / "capture.pcap.gz").deliveries.to_pylist()
    for group in ("audit", "billing"):
        own = [row for row in rows if row["group_id"] == group]
        covered = [n for row in own for n in range(row["base_offset"], row["last_offset"] + 1)]
        assert sorted(covered) == sorted(noted())
        assert sum(row["record_count"] for row in own) == len(noted())


@pytest.mark.parametrize(
    ("column", "name", "sign"),
    [
        ("record_time", "sent_us", 1),  # in whole milliseconds, so a little before
        ("acknowledged_time", "acknowledged_us", 1),
        ("fetched_time", "{group}_polled_us", 1),
        ("committed_time", "{group}_commits_us", -1),
    ],
)
def test_clients_note_the_same_times(column: str, name: str, sign: int) -> None:
    """Within a millisecond, half of the time, on a busy machine: a thread of the client has to wake up first.
    What a client does is never on the other side of what is captured."""
    for found in errors(column, name).values():
        apart = sorted(sign * error for error in found)
        assert apart[0] >= (-1_000 if column == "record_time" else 0)
        assert apart[len(apart) // 2] <= 1_000
        assert apart[-1] <= 5_000


def _sightings(kind: int, *bases: int) -> pa.RecordBatch:
    """Batches of one record that shop produced, or that reader fetched, a second apart by offset."""
    count = len(bases)
    texts = {"topic": "orders", "client_id": "reader", "client_address": "10.0.0.9"}
    times = {"begin": 1, "shown": 2, "end": 3}
    columns: list[pa.Array] = []
    for field in SIGHTINGS:
        if field.type == pa.string():
            column = pa.array([texts.get(field.name)] * count, pa.string()).dictionary_encode()
        elif field.name in times:
            column = pa.array(
                [1_000_000 * (base + 100 * kind) + times[field.name] for base in bases], pa.int64()
            )
        elif field.name in ("base", "last", "call_id"):
            column = pa.array(bases, pa.int64())
        else:
            column = pa.array(
                [kind if field.name == "kind" else 1 if field.name == "record_count" else 0] * count
            )
        columns.append(column)
    return pa.RecordBatch.from_arrays(columns, names=SIGHTINGS.names)


def test_a_reader_that_comes_after_its_produce_was_let_go_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """MemoryBudget for four: of six the older half goes. Batch 40 was produced before the capture."""
    monkeypatch.setattr(held, "_LEAST", 4)
    monkeypatch.setattr(held, "_SHARE", 1 << 40)
    budget = MemoryBudget()
    found = held.Deliveries(budget)
    found.add(_sightings(APPENDED, *range(6)), [])
    found.add(_sightings(FETCHED, 1, 4, 40), [])
    found.finish()
    rows = pa.Table.from_batches([*found.drain(0)]).select(["base_offset", "produced_time", "fetched_time"])
    seen = [
        (row["base_offset"], bool(row["produced_time"]), bool(row["fetched_time"]))
        for row in rows.to_pylist()
    ]
    given_up = [(0, True, False), (1, True, False), (2, True, False)]
    assert sorted(seen) == sorted(
        [*given_up, (1, False, True), (3, True, False), (4, True, True), (5, True, False), (40, False, True)]
    )
    assert budget.left_out == 1


def test_batches_without_a_reader_are_not_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held, "_LEAST", 4)
    monkeypatch.setattr(held, "_SHARE", 1 << 40)
    budget = MemoryBudget()
    found = held.Deliveries(budget)
    for first in range(0, 60, 6):
        found.add(_sightings(APPENDED, *range(first, first + 6)), [])
        resumed = held.Deliveries(budget)
        resumed.resume(found.state())
        resumed.batches, found = found.batches, resumed
    found.finish()
    assert sum(batch.num_rows for batch in found.drain(0)) == 60
    assert budget.left_out == 0


def test_batches_stay_within_their_share_of_the_memory() -> None:
    """As a live capture goes on for ever: what leaves memory is a row."""
    budget = MemoryBudget()
    budget.most = 8_000_000
    share = budget.most // 4
    found, rows, highest = held.Deliveries(budget), 0, 0
    for first in range(0, 60_000, 500):
        found.add(_sightings(APPENDED, *range(first, first + 500)), [])
        highest = max(highest, budget.used)
        rows += sum(batch.num_rows for batch in found.drain(0))
    assert share // 2 < highest <= share
    assert sum(column.nbytes for each in found._held for column in each.values()) <= share
    found.finish()
    assert rows + sum(batch.num_rows for batch in found.drain(0)) == 60_000
    assert budget.used < 2_000  # names


@pytest.mark.parametrize("percentile", [50, 99])
@pytest.mark.parametrize("group", ["audit", "billing"])
def test_percentiles_of_the_way_are_those_of_the_clients(group: str, percentile: int) -> None:
    """From the call of produce to the record in poll."""
    rows = [
        row
        for row in kwsniff.analyze(RECORDED / "capture.pcap.gz").deliveries.to_pylist()
        if row["group_id"] == group and row["base_offset"] == row["last_offset"]
    ]
    records = noted()
    own = [(row["fetched_time"] - row["record_time"]) // timedelta(microseconds=1) for row in rows]
    told = [records[row["base_offset"]] for row in rows]
    clients = [each[f"{group}_polled_us"] - each["sent_us"] for each in told]
    place = len(own) * percentile // 100
    assert abs(sorted(own)[place] - sorted(clients)[place]) <= 1_000
