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
