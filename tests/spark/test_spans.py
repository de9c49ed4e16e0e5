"""Notes of spans of positions, merged again: the same rows as a sort of all gives."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from kwsniff.spark.events import CALLS, NotesFile, Spans, _encode, _schema
from kwsniff.spark.merged_events import merge_events
from kwsniff.spark.storage import Place
from kwsniff.timelines.decoded_messages import PLACE


@pytest.mark.parametrize(
    ("position", "span"), [(0, 0), (9, 0), (10, 1), (19, 1), (20, 2), (29, 2), (30, 2), (1 << 62, 2)]
)
def test_a_span_has_its_packets_and_the_last_all_that_come_later(position: int, span: int) -> None:
    assert Spans(3, 10).find(np.array([position])).tolist() == [span]


def written(place: Place, number: int, rows: list[tuple[int, int]], spans: Spans) -> str:
    """A file of calls by (position, call id), in batches of any length."""
    dice = random.Random(number)
    name = f"{number}{CALLS}"
    schema = _schema()
    file = NotesFile(place.open_output(name), schema, spans)
    at = 0
    while at < len(rows):
        part = rows[at : at + dice.randrange(1, 9)]
        at += len(part)
        known = {PLACE: [position for position, _ in part], "call_id": [call for _, call in part]}
        columns = [
            pa.array(known[each.name], each.type) if each.name in known else pa.nulls(len(part), each.type)
            for each in schema
        ]
        table = pa.Table.from_arrays(columns, schema=schema).cast(_encode(schema))
        file.write(table, np.array(known[PLACE], np.int64))
    file.close()
    return name


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("first", "last"), [(0, 1 << 62), (0, 2), (2, 5), (3, 4)])
def test_files_of_buckets_are_merged_by_position_then_bucket(
    tmp_path: Path, seed: int, first: int, last: int
) -> None:
    """Many share a position; of the same one, each bucket's in its own order, and all together."""
    dice, spans, place = random.Random(seed), Spans(5, 20), Place(str(tmp_path))
    files: list[tuple[str, list[tuple[int, int]]]] = []
    for number in range(4):
        positions = sorted(dice.randrange(130) for _ in range(dice.randrange(30, 90)))
        rows = [(position, 1000 * number + place_) for place_, position in enumerate(positions)]
        files.append((written(place, number, rows, spans), rows))
    found: list[Any] = []
    for noted in merge_events(place, [name for name, _ in files], first, last):
        calls = noted.calls
        if found and calls.num_rows:
            assert calls[PLACE][0].as_py() > found[-1][0]  # all of one position come together
        found += zip(calls[PLACE].to_pylist(), calls["call_id"].to_pylist(), strict=True)
    wanted = [
        (position, call)
        for _, rows in files
        for position, call in rows
        if first <= min(position // 20, 4) < last
    ]
    assert found == sorted(wanted, key=lambda each: (each[0], each[1] // 1000))


def test_few_notes_of_one_bucket_wait_for_many_of_another(tmp_path: Path) -> None:
    """One is far ahead; the other has more batches than are taken in one go."""
    place, spans = Place(str(tmp_path)), Spans(1, 1 << 20)
    ahead = written(place, 0, [(1000, 1)], spans)
    many = written(place, 1, [(position, 10 + position) for position in range(200)], spans)
    found = [
        position
        for noted in merge_events(place, [ahead, many])
        for position in noted.calls[PLACE].to_pylist()
    ]
    assert found == [*range(200), 1000]
