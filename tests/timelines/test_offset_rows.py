"""What rows of partitions tell of offsets, by hand: commits, ends, first records."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kwsniff.core.declared import COLUMNS, ENUMS
from kwsniff.layout.catalog import load_catalog
from kwsniff.tables.build import Builder
from kwsniff.timelines.committed_lag import Commits, End
from kwsniff.timelines.offsets import extract_offsets, find_places
from tests.tables.columns import table

PRODUCE, FETCH, LIST_OFFSETS, COMMIT = 0, 1, 2, 8
OFFSET = next(name for name, *_ in COLUMNS["partitions"] if name in ("offset", "requested_offset"))


def offsets(*rows: dict[str, Any]) -> Any:
    """One call each. What a row does not have is null."""
    empty = {
        "error_code": 0,
        "group_id": None,
        OFFSET: None,
        "high_watermark": None,
        "base_offset": None,
        "record_count": None,
        "partition": 0,
        "topic": b"orders",
        "topic_id": None,
    }
    given = [{**empty, **row} for row in rows]
    ids = [100 + number for number in range(len(rows))]
    builder = Builder(load_catalog(), ENUMS)
    columns = {name: [row[name] for row in given] for name in [*empty, "api_key"]}
    partitions = builder.build("partitions", table("partitions", len(rows), call_id=ids, **columns))
    calls: dict[str, Any] = {"call_id": ids, "caller": ["client"] * len(rows), "api_key": columns["api_key"]}
    return extract_offsets(
        builder.build("api_calls", table("api_calls", len(rows), **calls)), partitions, load_catalog()
    )


@pytest.mark.parametrize(
    ("row", "found"),
    [
        # A Produce reaches the offset behind its last record; without a count it has at least one.
        ({"api_key": PRODUCE, "base_offset": 40, "record_count": 5}, (-1, 45, 40)),
        ({"api_key": PRODUCE, "base_offset": 40, "record_count": 0}, (-1, 41, 40)),
        ({"api_key": PRODUCE, "base_offset": 40, "record_count": None}, (-1, 41, 40)),
        ({"api_key": PRODUCE, "base_offset": -1, "record_count": 5}, None),
        ({"api_key": PRODUCE, "base_offset": 40, "record_count": 5, "error_code": 6}, None),
        ({"api_key": FETCH, "high_watermark": 120, "base_offset": 90, OFFSET: 90}, (-1, 120, 90)),
        ({"api_key": LIST_OFFSETS, OFFSET: 131}, (-1, 131, -1)),
        ({"api_key": LIST_OFFSETS, OFFSET: 131, "error_code": 3}, None),
        ({"api_key": COMMIT, OFFSET: 90, "group_id": b"billing"}, (90, -1, -1)),
        ({"api_key": COMMIT, OFFSET: 90}, None),
        ({"api_key": COMMIT, OFFSET: 90, "group_id": b"billing", "error_code": 25}, None),
        ({"api_key": COMMIT, OFFSET: 90, "group_id": b"billing", "error_code": None}, None),
        ({"api_key": COMMIT, OFFSET: 90, "group_id": b"billing", "error_code": -1}, None),
        ({"api_key": COMMIT, OFFSET: 90, "group_id": b"billing", "topic": None}, None),
    ],
)
def test_what_a_row_commits_reaches_and_begins_with(
    row: dict[str, Any], found: tuple[int, int, int] | None
) -> None:
    # Others around it, so that it is looked for among them.
    rows = offsets({"api_key": PRODUCE}, row, {"api_key": PRODUCE}, {"api_key": PRODUCE}).to_pylist()
    shown = [(each["committed"], each["reached"], each["base"]) for each in rows if each["call_id"] == 101]
    assert shown == ([] if found is None else [found])


def test_partitions_are_numbers_with_a_sign() -> None:
    """Hostile ones too: ends of other tasks are found under the same number."""
    commits = Commits(load_catalog())
    commits.add_log_ends(
        offsets(*({"api_key": LIST_OFFSETS, OFFSET: 7, "partition": each} for each in (3, -5)))
    )
    assert {place: end.offset for place, end in commits.ends.items()} == {("orders", 3): 7, ("orders", -5): 7}
    assert all(isinstance(end, End) for end in commits.ends.values())


@pytest.mark.parametrize("distance", [1, 3, 1 << 40])
def test_calls_are_found_however_far_apart_their_numbers_are(distance: int) -> None:
    """In any order; far ones take no memory for those between. Some come with other rows."""
    ids = np.array([7, 3, 9, 0, 5], np.int64) * distance + 11
    wanted = np.array([*ids[[4, 0, 0, 3, 2, 1]], 10, 11 + distance, 12 + 9 * distance, -2])
    places, known = find_places(ids, wanted)
    assert known.tolist() == [True] * 6 + [False] * 4
    assert places[:6].tolist() == [4, 0, 0, 3, 2, 1]
