"""Groups without committed offsets: records that they skip, and members that never begin.

The rows are those of a Java group that found an added partition late, and of one with auto.offset.reset=none.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from kwsniff.findings.finding import Finding
from kwsniff.findings.prefilter.starting_offsets import StartingOffsets
from tests.findings.scripted import Rows, find, find_worth_asking

RULE = "no_committed_offset"
SECOND = 10**6
Row = dict[str, Any]


def _row(number: int, moment_s: float, api: str, partition: int = 1, **more: Any) -> Row:
    broker = {"broker_address": "10.0.0.2", "broker_port": 9092}
    asked = {"call_id": number, "connection_id": 1, "api_name": api, "client_id": "billing-1"}
    place = {"topic": "orders", "partition": partition, "error_code": 0}
    return {**broker, **asked, **place, "time": int(moment_s * SECOND), **more}


def _written(number: int, moment_s: float, offset: int, partition: int = 1) -> Row:
    answer = {"base_offset": offset, "record_count": 2, "client_id": "shop"}
    return _row(number, moment_s, "Produce", partition, **answer)


def _asked(number: int, moment_s: float, committed: int | None = None, **more: Any) -> Row:
    return _row(number, moment_s, "OffsetFetch", group_id="billing", requested_offset=committed, **more)


def _begun(moment_s: float, position: int, number: int = 20) -> list[Row]:
    """A member asks for the end of the log, and fetches from there."""
    return [
        _row(number, moment_s, "ListOffsets", requested_offset=position),
        _row(number + 1, moment_s + 0.1, "Fetch", requested_offset=position),
    ]


READS = _row(1, 1, "Fetch", 0, requested_offset=0, last_offset=4)
"""Of another partition of the topic."""
READ_BEFORE = _row(5, 7, "Fetch", requested_offset=0, last_offset=3)
ADDED = [_written(2, 5, 0), _written(3, 6, 2)]


def _member(client: str = "billing-1", group: str = "billing", kind: str = "classic") -> Row:
    return {"group_id": group, "member_id": f"{client} {group}", "client_id": client, "kind": kind}


def _found(rows: list[Row], members: Rows | None = None) -> list[Finding]:
    return find(
        RULE, {"partitions": sorted(rows, key=lambda row: row["time"]), "members": members or [_member()]}
    )


def test_records_of_an_added_partition_that_a_group_skips_are_counted() -> None:
    (found,) = _found([READS, *ADDED, _asked(10, 8), *_begun(8.1, 4)])
    assert (found.subject, found.value, found.severity, found.blames) == (
        "billing", 4, "problem", "configuration",
    )  # fmt: skip
    assert "orders-1: billing-1 began at its end, offset 4" in found.text
    assert "auto.offset.reset=earliest" in found.advice


def test_a_group_that_reads_the_topic_for_the_first_time_is_noted() -> None:
    (found,) = _found([*ADDED, _asked(10, 8), *_begun(8.1, 4)])
    assert (found.severity, found.value) == ("info", 4)
    assert "nothing is wrong" in found.advice


def test_a_group_that_has_just_begun_was_not_reading_the_topic() -> None:
    """It reads one partition before it has the end of the other."""
    first = _row(11, 8.05, "Fetch", 0, requested_offset=0, last_offset=4)
    (found,) = _found([*ADDED, _asked(10, 8), first, _written(12, 8.07, 4), *_begun(8.1, 6)])
    assert (found.severity, found.value) == ("info", 6)


def test_records_written_while_a_member_that_never_commits_restarts_are_counted() -> None:
    before = [_asked(1, 0.8), *_begun(0.9, 1, 2), _row(4, 2, "Fetch", requested_offset=1, last_offset=2)]
    later = [_written(5, 3, 3), _written(6, 4, 5), _asked(10, 8), *_begun(8.1, 7)]
    (found,) = _found([*before, *later])
    assert (found.severity, found.value) == ("warning", 4)
    assert "commit offsets" in found.advice


@pytest.mark.parametrize(
    "rows",
    [
        [READS, *ADDED, _asked(10, 8, committed=4), *_begun(8.1, 4)],  # it goes on where it was
        [READS, *ADDED, _asked(10, 8), *_begun(8.1, 0)],  # earliest
        [READS, _written(2, 9, 4), _asked(10, 8), *_begun(8.1, 4)],  # written later
        [READS, *ADDED, READ_BEFORE, _asked(10, 8), *_begun(8.1, 4)],
        [READS, _asked(3, 4), *_begun(4.1, 0, 6), *ADDED, *_begun(8.1, 4)],  # its offset is out of range
        [READS, *ADDED, _asked(10, 8, error_code=88), *_begun(8.1, 4)],  # an open transaction: it asks again
    ],
    ids=["committed", "earliest", "later", "read", "lost", "unstable"],
)  # fmt: skip
def test_a_group_that_skips_nothing_is_left_in_peace(rows: list[Row]) -> None:
    assert _found(rows) == []


def test_clients_of_two_groups_are_left_out() -> None:
    rows = [READS, *ADDED, _asked(10, 8), *_begun(8.1, 4)]
    assert _found(rows, [_member(), _member(group="audit")]) == []
    assert _found(rows, [_member(kind="share")]) == []


def _insisting(times: int) -> list[Row]:
    return [_asked(30 + number, 10 + number) for number in range(times)]


def test_a_member_that_asks_again_and_never_fetches_has_no_reset() -> None:
    (found,) = _found([*ADDED, *_insisting(4)])
    assert (found.subject, found.severity, found.calls) == ("billing", "problem", 4)
    assert "asked for it 4 times and never fetched" in found.text


def test_members_that_begin_or_whose_leader_is_not_captured_may_wait_for_something_else() -> None:
    assert _found([*ADDED, *_insisting(2)]) == []
    assert _found(_insisting(4)) == []
    assert _found([*ADDED, *_insisting(4), *_begun(20, 4)]) != []  # it asked in vain: noted
    assert all(each.severity == "info" for each in _found([*ADDED, *_insisting(4), *_begun(20, 4)]))


def test_the_rule_is_asked_only_where_groups_begin_without_an_offset() -> None:
    healthy = [READS, *ADDED, _asked(10, 8, committed=4), *_begun(8.1, 4)]
    first = [_asked(10, 0.5), *_begun(0.6, 0), READS]
    for rows in (healthy, first):
        assert RULE not in find_worth_asking({"partitions": rows, "members": [_member()]})


def test_a_partition_below_zero_counts_for_the_group_that_asked_about_it() -> None:
    """Messages may say any number: of two groups each asked twice, the most for one partition is two."""
    counted = StartingOffsets()
    counted.add(
        pa.record_batch({
            "api_name": pa.array(["OffsetFetch"] * 4).dictionary_encode(),
            "group_id": pa.array(["billing", "audit"] * 2).dictionary_encode(),
            "partition": pa.array([-1] * 4, pa.int32()),
            "requested_offset": pa.nulls(4, pa.int64()),
            "error_code": pa.array([0] * 4, pa.int16()),
        })
    )  # fmt: skip
    assert counted.figures()["without_offset"] == 2
