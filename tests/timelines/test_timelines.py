"""Groups and transactions are followed in bounded memory."""

from typing import Any

import pyarrow as pa
import pytest

from kwsniff.tables import rows
from kwsniff.tables.column import LISTS
from kwsniff.tables.schema import TABLES, coded_schema
from kwsniff.timelines import transactions
from kwsniff.timelines.groups import rebalance, rebalances
from kwsniff.timelines.groups.rebalance import Call
from kwsniff.timelines.groups.rebalances import Rebalances
from kwsniff.timelines.metadata.late_topic_names import late_names
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
        followed.add_call(join(group, "m", 1, number))
    assert [row["group_id"] for row in followed.rows] == ["b", "c"]
    assert followed.forgotten == 2
    followed.finish()
    assert sorted(row["group_id"] for row in followed.rows) == ["a", "b", "c", "d", "e"]


def test_members_beyond_the_limit_are_counted_but_not_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rebalances, "MOST_MEMBERS", 3)
    monkeypatch.setattr(rebalance, "MOST_MEMBERS", 3)
    followed = Rebalances()
    for number in range(10):
        followed.add_call(join("g", f"m{number}", 1, number))
    followed.finish()
    (row,) = followed.rows
    assert row["members"] == ["m0", "m1", "m2"]
    assert row["member_count"] == 10


def test_members_of_all_groups_together_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rebalances, "MOST_MEMBERS_TOTAL", 10)
    followed = Rebalances()
    for number in range(100):
        followed.add_call(join(f"g{number // 4}", f"m{number}", 1, number))
        assert sum(len(group.signs) for group in followed._groups.values()) <= 10
    followed.finish()
    assert sum(row["member_count"] for row in followed.rows) == 100


def test_producers_and_topics_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transactions, "MOST_PRODUCERS", 2)
    monkeypatch.setattr(transactions, "MOST_TOPICS", 2)
    followed = Transactions({})
    for number, name in enumerate(["a", "b", "a", "c"]):
        followed.add_call(produced(name, number, topics=[f"t{number}", f"u{number}"]))
    assert [row["transactional_id"] for row in followed.rows] == ["b"]
    followed.finish()
    assert {row["transactional_id"]: len(row["topics"]) for row in followed.rows} == {"a": 2, "b": 2, "c": 2}
    assert {row["outcome"] for row in followed.rows} == {"open_at_end"}


def test_a_call_whose_row_comes_late_belongs_to_the_transaction_it_was_made_in() -> None:
    followed = Transactions({})
    followed.add_call(produced("a", 10))
    followed.add_call(
        produced("a", 30, role=transactions.END, committed=True, topics=None, record_count=None)
    )
    followed.add_call(produced("a", 20))
    followed.finish()
    (row,) = followed.rows
    assert (row["calls"], row["record_count"], row["outcome"]) == (3, 2, "committed")


def test_long_names_are_cut() -> None:
    followed = Transactions({})
    followed.add_call(produced("x" * 10_000, 1, topics=["y" * 10_000]))
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
    followed.add_call(join("g", "m", 1, -(1 << 62)))
    followed.add_call(Call(rebalances.SYNC, "g", "m", 1, None, 0, (1 << 63) - 1, 0, "x.pcap"))
    followed.add_call(join("h", "m", 1, 1 << 62))
    followed.add_call(Call(rebalances.SYNC, "h", "m", 1, None, 0, 5, 0, "x.pcap"))
    followed.finish()
    assert rows.batch_of("groups", followed.rows)["duration_ns"].to_pylist() == [(1 << 63) - 1, 0]


def finished(*calls: transactions.Call) -> list[transactions.Row]:
    followed = Transactions({})
    for call in calls:
        followed.add_call(call)
    followed.finish()
    return followed.rows


def test_partitions_that_were_added_count_before_those_that_were_written() -> None:
    added = produced("a", 10, role=transactions.ADD_PARTITIONS, partition_count=3, record_count=None)
    assert [row["partition_count"] for row in finished(added, produced("a", 20))] == [3]
    assert [row["partition_count"] for row in finished(produced("a", 20))] == [1]


@pytest.mark.parametrize(("error", "outcome"), [(None, "unknown"), (51, "unknown"), (0, "committed")])
def test_an_end_that_was_asked_for_leaves_no_transaction_open(error: int | None, outcome: str) -> None:
    """Without an answer, or with one that says to ask again (51), nobody knows how it ended."""
    end = produced("a", 30, role=transactions.END, committed=True, topics=None, error_code=error)
    assert [row["outcome"] for row in finished(produced("a", 10), end)] == [outcome]


SECOND = 1_000_000


def reasons(*calls: Call) -> list[tuple[str, str | None]]:
    followed = Rebalances()
    for call in calls:
        followed.add_call(call)
    followed.finish()
    return [(row["reason"], row["reason_member"]) for row in followed.rows]


@pytest.mark.parametrize(
    ("later_s", "why"), [(5, ("metadata_change", None)), (6, ("heartbeat_gap", "silent"))]
)
def test_who_does_not_come_back_fell_silent_after_the_shortest_session(
    later_s: int, why: tuple[str, str | None]
) -> None:
    """group.min.session.timeout.ms is six seconds."""
    first = [join("g", member, 1, SECOND) for member in ("other", "silent")]
    assert reasons(*first, join("g", "other", 2, (1 + later_s) * SECOND))[1:] == [why]


def test_what_came_first_is_the_reason_of_a_rebalance() -> None:
    leave = Call(rebalances.LEAVE, "g", "two", None, "consumer", 2 * SECOND, 2 * SECOND + 5, 0, "x.pcap")
    first = [join("g", member, 1, SECOND) for member in ("one", "two")]
    then = [join("g", "one", 2, 3 * SECOND), join("g", "three", 2, 4 * SECOND)]
    assert reasons(*first, leave, *then)[1:] == [("member_left", "two")]
    assert reasons(*first, *then)[1:] == [("member_joined", "three")]


def test_a_list_with_an_id_and_its_name_says_the_name_once() -> None:
    ids = ["AAAAAAAAAAAAAAAAAAAAAA", "BBBBBBBBBBBBBBBBBBBBBA"]
    lists = [[ids[0], "orders", "b"], ["b", ids[1], "orders", ids[0]], [], ["b"], None, [ids[1]]]
    table = pa.table({"topics": pa.array(lists, pa.list_(pa.string()))})
    mended = late_names({ids[0]: "orders", ids[1]: "b"}, ["api_calls"])["api_calls"](table)
    assert mended["topics"].to_pylist() == [["orders", "b"], ["b", "orders"], [], ["b"], None, ["b"]]
