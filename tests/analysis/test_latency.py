"""Where the time went, against adding up by hand."""

import random
from typing import Any

import pytest

from kwsniff.analysis.rollups import events, latency
from kwsniff.analysis.rollups.events import Trouble
from kwsniff.analysis.rollups.latency import CAUSES, PARTS, Shares
from kwsniff.core.declared import ENUMS
from kwsniff.layout.catalog import load_catalog
from kwsniff.tables.build import Builder
from kwsniff.tables.rows import batch_of
from kwsniff.tables.schema import TABLES
from tests.tables.columns import table

WAIT = PARTS.index("deliberate_wait_ns")


def batches(rows: list[dict[str, Any]], **words: list[Any]) -> tuple[Any, Any]:
    """Latencies, and the calls they belong to in another order, with calls between that have none."""
    builder = Builder(load_catalog(), ENUMS)
    given: dict[str, list[Any]] = {name: [row["parts"][n] for row in rows] for n, name in enumerate(PARTS)}
    given["total_ns"] = [sum(row["parts"]) for row in rows]
    given |= words
    for name in ("call_id", "api_key", "client_id", "broker_port"):
        given[name] = [row[name] for row in rows]
    calls = [
        *reversed(rows),
        {"call_id": 10**6, "topics": [b"never"]},
        {"call_id": 10**6 + 1, "topics": None},
    ]
    ids = {name: [row[name] for row in calls] for name in ("call_id", "topics")}
    return (
        builder.build("latencies", table("latencies", len(rows), **given)),
        builder.build("api_calls", table("api_calls", len(calls), **ids)),
    )


def scripted(count: int, first: int = 0) -> list[dict[str, Any]]:
    dice = random.Random(count)
    return [
        {
            "call_id": first + number,
            "api_key": dice.choice([0, 1, 3]),
            "client_id": dice.choice([b"a", b"b", None]),
            "broker_port": dice.choice([9092, 9093]),
            "topics": dice.choice([[b"t"], [b"t", b"u"], [], None]),
            "parts": [dice.randrange(1000) for _ in PARTS],
        }
        for number in range(count)
    ]


def by_hand(rows: list[dict[str, Any]]) -> tuple[int, int, int, list[int]]:
    """Calls, mean and greatest active time, sums of the parts."""
    sums = [sum(row["parts"][n] for row in rows) for n in range(len(PARTS))]
    active = [sum(row["parts"]) - row["parts"][WAIT] for row in rows]
    return len(rows), round(sum(active) / len(rows)), max(active), sums


def told(item: dict[str, Any]) -> tuple[int, int, int, list[int]]:
    return item["calls"], item["mean_active_ns"], item["max_active_ns"], [item[name] for name in PARTS]


def test_parts_are_added_up_by_api_client_broker_and_topic() -> None:
    rows = scripted(500)
    found = Shares()
    for piece in (rows[:100], rows[100:]):
        found.add(*batches(piece))
    got = found.as_dict({})
    for key, name in ((0, "Produce"), (1, "Fetch"), (3, "Metadata")):
        item = next(item for item in got["apis"] if item["api_name"] == name)
        assert told(item) == by_hand([row for row in rows if row["api_key"] == key])
    for client in ("a", "b", None):
        item = next(item for item in got["clients"] if item["client_id"] == client)
        assert told(item) == by_hand([r for r in rows if r["client_id"] == (client and client.encode())])
    for port in (9092, 9093):
        item = next(item for item in got["brokers"] if item["broker_port"] == port)
        assert told(item) == by_hand([row for row in rows if row["broker_port"] == port])
    assert {item["topic"] for item in got["topics"]} == {"t", "u"}
    for topic in ("t", "u"):
        item = next(item for item in got["topics"] if item["topic"] == topic)
        assert told(item) == by_hand([row for row in rows if topic.encode() in (row["topics"] or ())])
    for items in got.values():
        means = [item["mean_active_ns"] for item in items]
        assert means == sorted(means, reverse=True)


ROW = {"api_key": 0, "client_id": b"a", "broker_port": 1, "topics": None}


@pytest.mark.parametrize(
    ("parts", "told", "mostly"),
    [
        ([(0, 0, 75, 20, 0, 5)], [("none", "none")], ("queue_wait_ns", "none", False, 0.75)),
        ([(0, 75, 0, 20, 0, 5)], [("none", None)], ("network_ns", "none", False, 0.75)),
        # waits of a kind count together, and are only possible when more than half of them is
        (
            [(0, 0, 0, 40, 30, 0), (0, 0, 0, 0, 30, 0)],
            [("data", None), ("long_poll", None)],
            ("deliberate_wait_ns", "data", False, 0.6),
        ),
        (
            [(0, 0, 0, 40, 25, 0), (0, 0, 0, 0, 35, 0)],
            [("data", None), ("data_possible", None)],
            ("deliberate_wait_ns", "data", True, 0.6),
        ),
        (
            [(0, 0, 30, 10, 0, 0), (0, 0, 30, 10, 20, 0)],
            [("none", "long_poll"), ("throttle", "data_possible")],
            ("queue_wait_ns", "data", False, 0.6),
        ),
        (
            [(0, 0, 0, 30, 0, 0), (0, 0, 0, 70, 0, 0)],
            [("none", None), ("replicas_possible", None)],
            ("broker_ns", "none", True, 1.0),
        ),
    ],
)
def test_what_took_most_is_named_with_its_share(
    parts: list[tuple[int, ...]], told: list[tuple[str, str | None]], mostly: tuple[Any, ...]
) -> None:
    rows = [{**ROW, "call_id": number, "parts": each} for number, each in enumerate(parts)]
    found = Shares()
    found.add(
        *batches(rows, wait=[wait for wait, _ in told], queued_behind_wait=[behind for _, behind in told])
    )
    (item,) = found.as_dict({})["apis"]
    assert tuple(item["mostly"].values()) == mostly
    deliberate, queue = PARTS.index("deliberate_wait_ns"), PARTS.index("queue_wait_ns")
    assert sum(item["waited_for"].values()) == sum(each[deliberate] for each in parts)
    assert sum(item["in_line_behind"].values()) == sum(each[queue] for each in parts)
    for (wait, behind), each in zip(told, parts, strict=True):
        if each[deliberate]:
            assert item["waited_for"][wait] == each[deliberate]
        if each[queue]:
            assert item["in_line_behind"][behind] == each[queue]


def test_every_part_has_causes_of_its_own() -> None:
    assert {part for part, _ in CAUSES} == set(PARTS)
    assert len(set(CAUSES)) == len(CAUSES)


def test_topics_named_later_are_added_to_their_name() -> None:
    row = {"api_key": 0, "client_id": b"a", "broker_port": 1, "parts": [0, 0, 0, 9, 0, 0]}
    found = Shares()
    found.add(*batches([{**row, "call_id": 1, "topics": [b"id"]}, {**row, "call_id": 2, "topics": [b"t"]}]))
    (item,) = found.as_dict({"id": "t"})["topics"]
    assert (item["topic"], item["calls"]) == ("t", 2)


def test_endless_clients_are_added_up_together_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(latency, "MOST_KEYS", 10)
    row = {"api_key": 0, "broker_port": 1, "topics": None, "parts": [1, 1, 1, 1, 1, 1]}
    found = Shares()
    found.add(*batches([{**row, "call_id": n, "client_id": b"c%d" % n} for n in range(100)]))
    items = found.as_dict({})["clients"]
    assert len(items) == 11
    assert {item["client_id"]: item["calls"] for item in items}["(others)"] == 90


def test_times_that_take_more_than_64_bits_together_are_added_up() -> None:
    row = {"api_key": 0, "client_id": b"a", "broker_port": 1, "topics": [b"t"]}
    rows = [{**row, "call_id": n, "parts": [n, 0, 0, (1 << 60) + n, 0, 1]} for n in range(50)]
    found = Shares()
    for each in rows:
        found.add(*batches([each]))
    for items in found.as_dict({}).values():
        assert [told(item) for item in items] == [by_hand(rows)]
    assert sum(row["parts"][3] for row in rows) > 1 << 65


def test_rebalances_transactions_and_throttles_are_counted() -> None:
    found = Trouble()
    empty = {column.name: None for column in TABLES["groups"].columns} | {"members": []}
    rows = [
        {**empty, "group_id": group, "kind": "classic", "duration_ns": took, "reason": reason}
        for group, took, reason in (("g", 5, "member_left"), ("g", None, "unknown"), ("h", 90, "member_left"))
    ]
    found.add("groups", batch_of("groups", rows))
    calls = {
        "throttle_time_ms": [0, None, 20, 100],
        "client_id": [b"a", b"a", b"a", b"a"],
        "api_key": [0, 0, 0, 0],
    }
    found.add("api_calls", Builder(load_catalog(), ENUMS).build("api_calls", table("api_calls", 4, **calls)))
    got = found.as_dict()
    assert [(item["group_id"], item["rebalances"], item["max_duration_ns"]) for item in got["groups"]] == [
        ("h", 1, 90),
        ("g", 2, 5),
    ]
    assert got["groups"][1]["reasons"] == {"member_left": 1, "unknown": 1}
    (throttled,) = got["throttling"]
    assert (throttled["calls"], throttled["throttle_time_ns"]) == (2, 120_000_000)
    assert throttled["max_throttle_time_ns"] == 100_000_000


def test_endless_groups_are_counted_together_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "MOST_NAMES", 10)
    empty = {column.name: None for column in TABLES["groups"].columns} | {"members": []}
    rows = [{**empty, "group_id": f"g{n}", "kind": "share", "reason": "unknown"} for n in range(100)]
    found = Trouble()
    found.add("groups", batch_of("groups", rows))
    counted = {item["group_id"]: item["rebalances"] for item in found.as_dict()["groups"]}
    assert len(counted) == 11
    assert counted["(others)"] == 90


def test_the_mean_is_of_all_time_and_of_active_time() -> None:
    """Three calls of 10, 20 and 60 ns, of which 30 were a deliberate wait."""
    row = {"api_key": 0, "client_id": b"a", "broker_port": 1, "topics": None}
    waits = [0, 0, 30]
    rows = []
    for number, (took, waited) in enumerate(zip((10, 20, 60), waits, strict=True)):
        parts = [0] * len(PARTS)
        parts[WAIT], parts[PARTS.index("broker_ns")] = waited, took - waited
        rows.append({**row, "call_id": number, "parts": parts})
    found = Shares()
    found.add(*batches(rows, wait=["none", "none", "data"]))
    (item,) = found.as_dict({})["clients"]
    assert (item["total_ns"], item["mean_ns"], item["mean_active_ns"]) == (90, 30, 20)
    assert item["max_active_ns"] == 30
