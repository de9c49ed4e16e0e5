"""Columns of parts of batches as numpy arrays, with nulls and without the column."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from kwsniff.findings.prefilter.dictionaries import (
    as_bytes,
    encode,
    flags_of,
    from_bytes,
    numbers_of,
)

VALUES: list[bool | None] = [True, None, False, True, None, True, True, False, None, True, False]


@pytest.mark.parametrize("offset", range(6))
def test_flags_of_a_part_are_its_own_and_null_is_false(offset: int) -> None:
    # A null whose memory has a one, as kernels may leave it.
    there = np.array([value is not None for value in VALUES])
    bits = [pa.py_buffer(np.packbits(each, bitorder="little")) for each in (there, np.ones(11, np.bool_))]
    column = pa.Array.from_buffers(pa.bool_(), 11, bits)
    ones = pa.record_batch({"flag": column}).slice(offset, 5)
    assert flags_of(ones, "flag").tolist() == [value is not None for value in VALUES[offset : offset + 5]]
    batch = pa.record_batch({"flag": pa.array(VALUES)}).slice(offset, 5)
    assert flags_of(batch, "flag").tolist() == [bool(value) for value in VALUES[offset : offset + 5]]
    assert flags_of(batch, "none").tolist() == [False] * 5


@pytest.mark.parametrize("null", [0, -1, 77])
def test_numbers_have_the_given_one_for_null_and_where_the_column_is_missing(null: int) -> None:
    batch = pa.record_batch({"n": pa.array([5, None, 7], pa.int32())})
    assert numbers_of(batch, "n", null).tolist() == [5, null, 7]
    assert numbers_of(batch.slice(1), "n", null).tolist() == [null, 7]
    assert numbers_of(batch, "none", null).tolist() == [null] * 3


def test_times_are_microseconds() -> None:
    batch = pa.record_batch({"t": pa.array([3_000_000_000], pa.timestamp("ns", "UTC"))})
    assert numbers_of(batch, "t", 0).tolist() == [3_000_000]


def test_texts_are_places_in_a_list() -> None:
    batch = pa.record_batch({"w": ["b", None, "a", "b"]})
    codes, words = encode(batch, "w")
    assert [None if code < 0 else words[code] for code in codes.tolist()] == ["b", None, "a", "b"]
    assert encode(batch, "none")[0].tolist() == [-1] * 4


def test_numbers_go_through_bytes() -> None:
    values = np.arange(12).reshape(3, 4)
    assert from_bytes(as_bytes(values), 3).tolist() == values.tolist()
