"""Arrow's columns of whole numbers, counted and added up, against the same in plain Python."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from kwsniff.core.columns.numbers import WholeColumn
from kwsniff.tables.arrays import column_of, whole_numbers
from tests.core.whole_columns import ROWS, column

TYPES = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.timestamp("us")]


@pytest.mark.parametrize("type_", TYPES)
@pytest.mark.parametrize("begin", [0, 1, 8, 13])
def test_nulls_get_a_number_wherever_a_slice_begins(type_: pa.DataType, begin: int) -> None:
    rng = random.Random(begin)
    mixed = [rng.choice((None, rng.randint(-100, 100))) for _ in range(30)]
    values = [*mixed, *range(20), *[None] * 20, *mixed]  # whole bytes of the mask are full, or empty
    expected = [-7 if value is None else value for value in values]
    column = pa.array(values, pa.int64()).cast(type_)
    for size in (0, 1, 7, 15, len(values) - begin):
        assert whole_numbers(column.slice(begin, size), null=-7).tolist() == expected[begin : begin + size]


@pytest.mark.parametrize("nulls", [True, False])
@pytest.mark.parametrize("type_", TYPES)
@pytest.mark.parametrize("begin", [0, 5])
def test_rows_are_counted_and_added_up(type_: pa.DataType, begin: int, *, nulls: bool) -> None:
    rng = random.Random(4)
    values = [rng.choice((*range(-3, 4), None if nulls else 0)) for _ in range(ROWS)]
    told = values[begin:]
    rows = column_of(pa.array(values, pa.int64()).cast(type_).slice(begin))
    for wanted in (-3, -1, 0, 3, 4, 300, -(1 << 63)):
        assert rows.count(wanted) == told.count(wanted)
    assert rows.sum_above(above=0) == sum(max(value or 0, 0) for value in told)
    assert rows.bounds(null=-9) == (min(-9 if nulls else -3, -3), 3)


def test_a_column_that_is_missing_has_nulls_only() -> None:
    missing = WholeColumn(b"", 0, 0, 300)
    assert missing.bounds(null=-5) == (-5, -5)
    assert missing.count(-5) == missing.sum_above(above=-100) == 0
    into = np.zeros(300, np.int64)
    missing.spread(8, into)
    assert into.tolist() == [8] * 300
    assert WholeColumn(b"", 0, 0, 0).bounds(null=3) == (3, 3)


@pytest.mark.parametrize(
    ("width", "first", "rows", "bits"),
    [
        (3, 0, 1, None),
        (8, 0, 9, None),
        (8, 1, 8, None),
        (4, 16, 1, None),
        (8, -1, 2, None),
        (8, 0, -1, None),
        (1, 0, 9, bytes(1)),
        (1, 8, 1, bytes(1)),
        (8, 1 << 60, 1, None),
        (8, 0, 1 << 60, None),
    ],
)
def test_columns_with_less_memory_than_rows_are_refused(
    width: int, first: int, rows: int, bits: bytes | None
) -> None:
    with pytest.raises(ValueError, match=r"no column|less"):
        WholeColumn(bytes(64), width, first, rows, bits)


def test_numbers_do_not_go_where_there_is_no_room() -> None:
    with pytest.raises(ValueError, match="different sizes"):
        column([1, 2]).spread(0, np.zeros(1, np.int64))
