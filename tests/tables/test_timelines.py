"""Groups and transactions are followed in bounded memory."""

from typing import Any

import pytest

from kwsniff.tables import rows
from kwsniff.tables.column import LISTS
from kwsniff.tables.schema import TABLES, coded_schema
from kwsniff.timelines import rebalance, rebalances, transactions
from kwsniff.timelines.rebalance import Call
from kwsniff.timelines.rebalances import Rebalances
from kwsniff.timelines.transactions import Transactions


def join(group: str, member: str, generation: int, begin: int) -> Call:
    return Call(rebalances.JOIN, group, member, generation, "consumer", begin, begin + 5, 0, "x.pcap")


def produced(transactional_id: str, begin: int, **more: Any) -> transactions.Call:
    call = transactions.Call(
        transactions.PRODUCE,
        transactional_id,
        7,
        0,
        "10.0.0.1",
        "c",
        begin,
        begin + 5,
        0,
        None,
        ["t"],
        1,
        None,
        1,
        10,
        "x.pcap",
    )
    for name, value in more.items():
        setattr(call, name, value)
    return call


def test_beyond_the_limit_the_group_that_was_silent_longest_is_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rebalances, "MOST_GROUPS", 3)
    followed = Rebalances()
    for number, group in enumerate(["a", "b", "c", "a", "d", "e"]):
        followed.take(join(group, "m", 1, number))
    assert [row["group_id"] for row in followed.rows] == ["b", "c"]
    assert followed.forgotten == 2
    followed.finish()
    assert sorted(row["group_id"] for row in followed.rows) == ["a", "b", "c", "d", "e"]


def test_members_beyond_the_limit_are_counted_but_not_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rebalances, "MOST_MEMBERS", 3)
    monkeypatch.setattr(rebalance, "MOST_MEMBERS", 3)
    followed = Rebalances()
    for number in range(10):
        followed.take(join("g", f"m{number}", 1, number))
    followed.finish()
    (row,) = followed.rows
    assert row["members"] == ["m0", "m1", "m2"]
    assert row["member_count"] == 10


def test_members_of_all_groups_together_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rebalances, "MOST_MEMBERS_TOTAL", 10)
    followed = Rebalances()
    for number in range(100):
        followed.take(join(f"g{number // 4}", f"m{number}", 1, number))
        assert sum(len(group.signs) for group in followed._groups.values()) <= 10
    followed.finish()
    assert sum(row["member_count"] for row in followed.rows) == 100


def test_producers_and_topics_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transactions, "MOST_PRODUCERS", 2)
    monkeypatch.setattr(transactions, "MOST_TOPICS", 2)
    followed = Transactions({})
    for number, name in enumerate(["a", "b", "a", "c"]):
        followed.take(produced(name, number, topics=[f"t{number}", f"u{number}"]))
    assert [row["transactional_id"] for row in followed.rows] == ["b"]
    followed.finish()
    assert {row["transactional_id"]: len(row["topics"]) for row in followed.rows} == {"a": 2, "b": 2, "c": 2}
    assert {row["outcome"] for row in followed.rows} == {"open_at_end"}


def test_a_call_whose_row_comes_late_belongs_to_the_transaction_it_was_made_in() -> None:
    followed = Transactions({})
    followed.take(produced("a", 10))
    followed.take(produced("a", 30, role=transactions.END, committed=True, topics=None, record_count=None))
    followed.take(produced("a", 20))
    followed.finish()
    (row,) = followed.rows
    assert (row["calls"], row["record_count"], row["outcome"]) == (3, 2, "committed")


def test_long_names_are_cut() -> None:
    followed = Transactions({})
    followed.take(produced("x" * 10_000, 1, topics=["y" * 10_000]))
    followed.finish()
    assert len(followed.rows[0]["transactional_id"]) == transactions.LONGEST_NAME
    assert len(followed.rows[0]["topics"][0]) == transactions.LONGEST_NAME


@pytest.mark.parametrize("name", ["groups", "transactions"])
def test_a_row_without_values_is_a_row_of_nulls(name: str) -> None:
    empty = {column.name: [] if column.type in LISTS else None for column in TABLES[name].own}
    batch = rows.batch_of(name, [empty, empty])
    batch.validate(full=True)
    assert batch.schema.equals(coded_schema(TABLES[name]))
    assert batch.to_pylist() == [empty, empty]
    assert rows.batch_of(name, []).num_rows == 0


@pytest.mark.parametrize("name", ["groups", "transactions"])
def test_numbers_that_a_type_cannot_hold_are_the_nearest_it_can(name: str) -> None:
    row = {
        column.name: {"strings": [], "integers": [1 << 80], "string": None, "bool": None}.get(
            column.type, 1 << 80
        )
        for column in TABLES[name].own
    }
    (got,) = rows.batch_of(name, [row]).drop_columns(_times(name)).to_pylist()
    widths = {"int16": 15, "int32": 31, "int64": 63}
    for column in TABLES[name].own:
        if column.type in widths:
            assert got[column.name] == (1 << widths[column.type]) - 1


def _times(name: str) -> list[str]:
    return [column.name for column in TABLES[name].own if column.type == "time"]


def test_clocks_that_jump_from_one_end_of_time_to_the_other_do_no_harm() -> None:
    followed = Rebalances()
    followed.take(join("g", "m", 1, -(1 << 62)))
    followed.take(Call(rebalances.SYNC, "g", "m", 1, None, 0, (1 << 63) - 1, 0, "x.pcap"))
    followed.take(join("h", "m", 1, 1 << 62))
    followed.take(Call(rebalances.SYNC, "h", "m", 1, None, 0, 5, 0, "x.pcap"))
    followed.finish()
    assert rows.batch_of("groups", followed.rows)["duration_ns"].to_pylist() == [(1 << 63) - 1, 0]
