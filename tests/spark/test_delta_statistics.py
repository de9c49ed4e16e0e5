"""Least and greatest values of a file, against values written by hand."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from kwsniff.spark.delta_statistics import file_statistics
from kwsniff.spark.parts import Part
from kwsniff.spark.storage import Place

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)


def test_of_several_row_groups_all_count(tmp_path: Path) -> None:
    rows = pa.table({
        "number": pa.array([5, None, 2, 9, None, None], pa.int64()),
        "text": ["b", "c", "a", "d", None, None],
        "time": pa.array([NOON, None, None, NOON.replace(hour=13), None, None], pa.timestamp("us", "UTC")),
        "long": ["x" * 65] * 6,
        "flag": [True] * 6,
    })  # fmt: skip
    pq.write_table(rows, tmp_path / "part.parquet", row_group_size=2)
    part = Part("api_calls", "part.parquet", rows=6, size=1)
    said = json.loads(file_statistics(Place(str(tmp_path)), part))
    assert said == {
        "numRecords": 6,
        "minValues": {"number": 2, "text": "a", "time": "2026-11-20T12:00:00.000000Z"},
        "maxValues": {"number": 9, "text": "d", "time": "2026-11-20T13:00:00.000000Z"},
        "nullCount": {"number": 3, "text": 2, "time": 4, "long": 0, "flag": 0},
    }
