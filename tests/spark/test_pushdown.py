"""Filters that the source takes decide as SQL does."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed")

import pyarrow as pa
from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
)

from kwsniff.spark.pushdown import condition
from kwsniff.tables.schema import TABLES

COLUMNS = {column.name: column for column in TABLES["api_calls"].own}
VALUES = pa.record_batch({"latency_ns": pa.array([1, 2, 3, None], pa.int64())})


def decided(asked: Filter) -> list[bool | None]:
    taken = condition(asked, COLUMNS)
    assert taken is not None
    rows: list[bool | None] = taken.rows(VALUES).to_pylist()
    return rows


@pytest.mark.parametrize(
    ("kind", "wanted"),
    [
        (GreaterThan, [False, False, True, None]),
        (GreaterThanOrEqual, [False, True, True, None]),
        (EqualTo, [False, True, False, None]),
        (LessThanOrEqual, [True, True, False, None]),
        (LessThan, [True, False, False, None]),
    ],
)
def test_comparisons_with_what_is_equal(kind: Any, wanted: list[bool | None]) -> None:
    assert decided(kind(("latency_ns",), 2)) == wanted


@pytest.mark.parametrize("kind", [EqualTo, GreaterThan, LessThanOrEqual])
def test_a_comparison_with_null_is_left_to_spark(kind: Any) -> None:
    assert condition(kind(("latency_ns",), None), COLUMNS) is None


def test_a_null_among_values_is_none_of_them() -> None:
    assert decided(In(("latency_ns",), (1, None)))[:3] == [True, False, False]
