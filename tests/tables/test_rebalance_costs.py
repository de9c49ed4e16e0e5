"""The question `rebalances` over scripted calls, in milliseconds: what no recording has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kwsniff.findings.sql import load_questions

duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed")

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
A, B = "billing-1", "billing-2"
CONNECTIONS = {A: 1, B: 2}

Turn = tuple[str, str, int, int, int | None]
"""Who calls what, when it is sent and answered, and the offset that it names of partition 0; None: none."""


def moment(at: int) -> datetime:
    return EPOCH + timedelta(milliseconds=at)


@pytest.fixture
def database() -> Iterator[Any]:
    with duckdb.connect() as found:
        found.execute("""
            set TimeZone = 'UTC';
            create table members (run_id varchar, group_id varchar, client_id varchar,
                client_address varchar);
            create table api_calls (run_id varchar, call_id bigint, connection_id bigint, api_name varchar,
                client_id varchar, client_address varchar, request_time timestamptz,
                response_end_time timestamptz, error_code int);
            create table partitions (run_id varchar, call_id bigint, api_name varchar, topic varchar,
                topic_id varchar, partition int, requested_offset bigint, base_offset bigint,
                last_offset bigint, high_watermark bigint, error_code int);
            create table groups (run_id varchar, group_id varchar, kind varchar, generation int,
                reason varchar, reason_member varchar, member_count int, duration_ns bigint,
                last_member varchar, first_join_time timestamptz, last_join_time timestamptz,
                begin_time timestamptz, end_time timestamptz);
        """)
        yield found


def cost(database: Any, begin: int, turns: Sequence[Turn]) -> tuple[int, int, int]:
    """Of the one rebalance, which begins then: partitions, milliseconds stopped, records fetched again."""
    for name in (A, B):
        database.execute("insert into members values ('r', 'billing', ?, '10.0.0.7')", [name])
    for number, (who, does, sent, answered, offset) in enumerate(turns):
        database.execute(
            "insert into api_calls values ('r', ?, ?, ?, ?, '10.0.0.7', ?, ?, 0)",
            [number, CONNECTIONS[who], does, who, moment(sent), moment(answered)],
        )
        if offset is not None:
            last = offset + 9 if does == "Fetch" else None
            database.execute(
                "insert into partitions values ('r', ?, ?, 'orders', null, 0, ?, null, ?, ?, 0)",
                [number, does, offset, last, last and last + 1],
            )
    database.execute(
        "insert into groups values ('r', 'billing', 'classic', 2, 'member_joined', 'x', 2, 0, 'x', "
        "?, ?, ?, null)",
        [moment(begin)] * 3,
    )
    found = database.sql(load_questions()["rebalances"].query).fetchall()
    assert len(found) == 1
    return found[0][9], found[0][10], found[0][11]


def test_a_member_that_joins_again_and_again_has_stopped_at_the_first_time(database: Any) -> None:
    turns: list[Turn] = [
        (A, "Fetch", 0, 5, 100),
        (A, "JoinGroup", 10, 15, None),
        (A, "JoinGroup", 20, 25, None),
        (A, "OffsetFetch", 30, 31, 105),
        (A, "Fetch", 32, 40, 105),
    ]
    assert cost(database, 8, turns) == (1, 22, 5)


def test_a_partition_begins_again_where_its_new_reader_fetches(database: Any) -> None:
    """The member before goes on with other partitions."""
    turns: list[Turn] = [
        (A, "Fetch", 0, 5, 100),
        (A, "Fetch", 6, 12, None),
        (A, "JoinGroup", 10, 15, None),
        (A, "Fetch", 16, 29, None),
        (B, "OffsetFetch", 30, 31, 110),
        (A, "Fetch", 35, 45, None),
        (B, "Fetch", 50, 60, 110),
    ]
    assert cost(database, 8, turns) == (1, 40, 0)


def test_a_session_need_not_name_a_partition_again(database: Any) -> None:
    """KIP-227: the same member has it as before."""
    turns: list[Turn] = [
        (A, "Fetch", 0, 5, 100),
        (A, "JoinGroup", 10, 15, None),
        (A, "OffsetFetch", 30, 31, 110),
        (A, "Fetch", 33, 133, None),
        (A, "Fetch", 134, 140, 110),
    ]
    assert cost(database, 8, turns) == (1, 23, 0)


def test_without_a_join_or_leave_the_last_fetch_is_the_last_sign(database: Any) -> None:
    turns: list[Turn] = [
        (A, "Fetch", 0, 5, 100),
        (A, "Fetch", 6, 7, None),
        (B, "OffsetFetch", 6_010, 6_011, 110),
        (B, "Fetch", 6_012, 6_020, 110),
    ]
    assert cost(database, 6_000, turns) == (1, 6_005, 0)
