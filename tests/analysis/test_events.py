"""What the summary says of transactions and throttling, against counting by hand."""

from typing import Any

import pytest

from kwsniff.analysis.rollups import events as trouble_room
from kwsniff.analysis.rollups.events import OTHERS, Trouble
from kwsniff.core.declared import ENUMS
from kwsniff.layout.catalog import load_catalog
from kwsniff.tables import rows
from kwsniff.tables.build import Builder
from kwsniff.tables.column import LISTS
from kwsniff.tables.schema import TABLES
from tests.tables.columns import table

EMPTY: dict[str, Any] = {
    column.name: [] if column.type in LISTS else None for column in TABLES["transactions"].own
}


def transactions(*taken: tuple[str, int | None, str]) -> dict[str, dict[str, Any]]:
    """Transactional id -> what is said of its transactions (id, duration, outcome)."""
    trouble = Trouble()
    for name, took, how in taken:
        row = {**EMPTY, "transactional_id": name, "duration_ns": took, "outcome": how}
        trouble.add("transactions", rows.batch_of("transactions", [row]))
    return {said["transactional_id"]: said for said in trouble.as_dict()["transactions"]}


def test_the_longest_transaction_is_told_whenever_it_came() -> None:
    said = transactions(
        ("a", 5, "committed"), ("a", 900, "committed"), ("a", None, "unknown"), ("a", 7, "aborted")
    )
    assert said["a"] == {
        "transactional_id": "a",
        "transactions": 4,
        "max_duration_ns": 900,
        "total_duration_ns": 912,
        "outcomes": {"committed": 2, "unknown": 1, "aborted": 1},
    }


def test_names_beyond_the_bound_are_counted_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trouble_room, "MOST_NAMES", 2)
    said = transactions(*((name, 10, "committed") for name in "abcda"))
    assert {name: each["transactions"] for name, each in said.items()} == {"a": 2, "b": 1, OTHERS: 2}


def test_throttle_times_are_nanoseconds() -> None:
    """The column has milliseconds."""
    trouble = Trouble()
    given: dict[str, Any] = {
        "throttle_time_ms": [250, 0, None, 30],
        "client_id": [b"shop"] * 4,
        "api_key": [0, 0, 0, 0],
    }
    trouble.add(
        "api_calls", Builder(load_catalog(), ENUMS).build("api_calls", table("api_calls", 4, **given))
    )
    (said,) = trouble.as_dict()["throttling"]
    assert (said["client_id"], said["calls"]) == ("shop", 2)
    assert (said["throttle_time_ns"], said["max_throttle_time_ns"]) == (280_000_000, 250_000_000)


def shown(name: str, rows: int, **given: Any) -> Trouble:
    trouble = Trouble()
    trouble.add(name, Builder(load_catalog(), ENUMS).build(name, table(name, rows, **given)))
    return trouble


def test_who_was_throttled_longest_comes_first() -> None:
    """One millisecond counts; the order is that of the sums, not of the longest or of the number."""
    held = {b"a": [1], b"b": [300], b"c": [100, 100, 150]}
    rows = [(client, time) for client, times in held.items() for time in times]
    got = shown(
        "api_calls",
        len(rows),
        client_id=[client for client, _ in rows],
        throttle_time_ms=[time for _, time in rows],
        api_key=[0] * len(rows),
    ).as_dict()["throttling"]
    assert [(each["client_id"], each["throttle_time_ns"] // 1_000_000) for each in got] == [
        ("c", 350),
        ("b", 300),
        ("a", 1),
    ]


def test_what_took_longest_comes_first_and_of_equal_ones_what_happened_more() -> None:
    said = transactions(
        ("once", 10, "committed"),
        ("short", 3, "committed"),
        ("often", 4, "committed"),
        ("often", 3, "aborted"),
        ("often", 3, "aborted"),
        ("long", 70, "committed"),
    )
    assert [*said] == ["long", "often", "once", "short"]


def test_the_farthest_client_has_the_longest_way_to_a_broker_and_back() -> None:
    """The halves count where both are known; a handshake that was held up does not. Without calls, none."""
    trouble = shown(
        "connections",
        5,
        client_address=[b"10.0.0.1", b"10.0.0.2", b"10.0.0.3", b"10.0.0.4", b"10.0.0.5"],
        round_trip_ns=[50, 900, 30, 200, 5000],
        client_round_trip_ns=[10, 100, None, None, 2000],
        broker_round_trip_ns=[20, 100, 70, None, 2000],
        calls=[1, 1, 1, 1, 0],
        capture_point=["client", "client", "broker", "broker", "between"],
    )
    transport = trouble.as_dict()["transport"]
    # 30, 200 (its handshake took 900), 30 (one half alone says nothing), 200; the first of equal ones stays.
    assert (transport["farthest_client"], transport["max_round_trip_ns"]) == ("10.0.0.2", 200)
    assert transport["capture_points"] == {"client": 2, "broker": 2}


def test_rebalances_have_the_reasons_that_the_rows_have() -> None:
    empty: dict[str, Any] = {
        column.name: [] if column.type in LISTS else None for column in TABLES["groups"].own
    }
    trouble = Trouble()
    for why in ("member_left", "unknown", "member_left"):
        row = {**empty, "group_id": "g", "kind": "classic", "duration_ns": 5, "reason": why}
        trouble.add("groups", rows.batch_of("groups", [row]))
    (said,) = trouble.as_dict()["groups"]
    assert (said["rebalances"], said["reasons"]) == (3, {"member_left": 2, "unknown": 1})
    assert (said["max_duration_ns"], said["total_duration_ns"]) == (5, 15)
