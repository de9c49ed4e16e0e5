"""Rows of several analyzers as one would give them, against sorting in Python."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from kwsniff.core.declared import ENUMS
from kwsniff.layout.catalog import load_catalog
from kwsniff.tables.build import Builder
from kwsniff.tables.merged_rows import Part, _name_listed, _name_one, merge_parts
from tests.tables.columns import table

ID = "A" * 21 + "B"
OTHER = "C" * 22


def part(
    packets: list[tuple[int, int]], ids: list[int], table_name: str = "error_codes", **given: Any
) -> Part:
    """Rows by (packet, step within it), in order."""
    columns = {"call_id": ids, **given}
    rows = Builder(load_catalog(), ENUMS).build(table_name, table(table_name, len(ids), **columns))
    runs = [(*key, place) for place, key in enumerate(packets) if place == 0 or key != packets[place - 1]]
    return Part(rows, np.array(runs, np.int64).reshape(-1, 3))


@pytest.mark.parametrize("steps", [1, 3])
@pytest.mark.parametrize("analyzers", [1, 2, 5])
def test_rows_are_in_the_order_of_packets_and_of_steps_in_them(analyzers: int, steps: int) -> None:
    dice = random.Random(analyzers * 10 + steps)
    parts, everything = [], []
    for analyzer in range(analyzers):
        keys = sorted((dice.randrange(30), dice.randrange(steps)) for _ in range(40))
        ids = [1000 * analyzer + place for place in range(40)]
        everything += [(key, analyzer, number) for key, number in zip(keys, ids, strict=True)]
        parts.append({"error_codes": part(keys, ids)})
    found = merge_parts(parts, ["error_codes"])["error_codes"]
    assert found["call_id"].to_pylist() == [number for *_, number in sorted(everything)]


def test_an_analyzer_without_rows_changes_nothing() -> None:
    parts = [
        {"error_codes": part([(5, 0), (9, 0)], [1, 2])},
        {"error_codes": part([], [])},
        {"error_codes": part([(4, 0), (7, 0)], [3, 4])},
    ]
    assert merge_parts(parts, ["error_codes"])["error_codes"]["call_id"].to_pylist() == [3, 1, 4, 2]


def test_a_topic_has_its_name_in_rows_behind_the_packet_that_gives_it() -> None:
    """Not in that packet, nor before; and not where there is a name already."""
    given: dict[str, Any] = {
        "topic": [None, None, None, b"carts", None],
        "topic_id": [ID.encode(), ID.encode(), ID.encode(), ID.encode(), OTHER.encode()],
    }
    rows = part([(4, 0), (5, 0), (6, 0), (7, 0), (8, 0)], [*range(5)], **given)
    found = _name_one(rows, {ID: ("orders", 5)})
    assert found["topic"].to_pylist() == [None, None, "orders", "carts", None]
    assert found.schema == rows.rows.schema
    assert _name_one(rows, {}) is rows.rows


def test_lists_of_topics_have_names_and_each_once() -> None:
    own, other = ID.encode(), OTHER.encode()
    topics = [[own], [own], [b"z", own, b"a"], [own, b"orders"], [b"orders", own, other], None, []]
    packets = [(packet, 0) for packet in (4, 5, 6, 7, 8, 9, 10)]
    rows = part(packets, [*range(7)], "api_calls", topics=topics)
    found = _name_listed(rows, {ID: ("orders", 5)})
    assert found["topics"].to_pylist() == [
        [ID],
        [ID],
        ["z", "orders", "a"],
        ["orders"],
        ["orders", OTHER],
        None,
        [],
    ]
    assert pa.types.is_list(found["topics"].type)
