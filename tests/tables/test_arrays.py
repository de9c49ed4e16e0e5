"""Arrow arrays as numpy's, whole and in parts, against what Arrow itself says of them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from kwsniff.tables.arrays import (
    LONGEST_WORD,
    coded_lists,
    distinct,
    in_groups,
    is_short,
    number_lists,
    plain_values,
    texts,
    valid_rows,
    whole_numbers,
    words_of,
)


@pytest.mark.parametrize("offset", range(10))
def test_parts_of_columns_have_their_own_values_and_nulls(offset: int) -> None:
    values = [5, None, 7, 8, None, None, 1, 2, None, 4, 6, None, 9]
    part = pa.array(values, pa.int32()).slice(offset, 3)
    shown = values[offset : offset + 3]
    assert valid_rows(part).tolist() == [value is not None for value in shown]
    assert whole_numbers(part, null=-1).tolist() == [-1 if value is None else value for value in shown]
    whole = pa.array([value or 0 for value in values], pa.int16()).slice(offset, 3)
    assert whole_numbers(whole, null=-1).tolist() == [value or 0 for value in shown]
    assert valid_rows(whole).all()


@pytest.mark.parametrize(("length", "is_whole"), [(LONGEST_WORD, True), (LONGEST_WORD + 1, False)])
def test_a_text_is_whole_up_to_the_bound(length: int, is_whole: bool) -> None:
    """Beyond it: its beginning, its size, and what keeps it apart from others that begin alike."""
    given = ["short", "x" * length, "x" * (length - 1) + "y"]
    assert is_short(pa.array(given)) == is_whole
    found = words_of(pa.array(given))
    assert (found == given) == is_whole
    assert found[0] == "short"
    assert len({*found}) == 3
    assert max(map(len, found)) <= LONGEST_WORD
    if not is_whole:
        assert f"({length:,} bytes, " in found[1]


def test_short_texts_among_long_ones_do_not_make_them_short() -> None:
    assert not is_short(pa.array(["", "x" * 300, ""]))
    assert is_short(pa.array(["x" * 200, "y" * 200]))
    assert is_short(pa.array([], pa.string()))


@pytest.mark.parametrize("groups", [3, (1 << 16) - 1, 1 << 16, 1 << 17])
def test_rows_are_sorted_by_group_and_stay_in_order(groups: int) -> None:
    group = np.array([groups - 1, 0, groups // 2, 0, groups - 1, 1], np.int64)
    order = in_groups(group, groups)
    assert [*zip(group[order].tolist(), order.tolist(), strict=True)] == sorted(
        zip(group.tolist(), range(6), strict=True)
    )


@pytest.mark.parametrize(("type_", "bits"), [(pa.int16(), 16), (pa.int32(), 32), (pa.int64(), 64)])
def test_numbers_that_a_type_does_not_hold_are_the_nearest(type_: pa.DataType, bits: int) -> None:
    most = (1 << (bits - 1)) - 1
    given = [most, most + 1, -most - 1, -most - 2, 1 << 80, -(1 << 80), None, 0]
    found = plain_values(type_, given).to_pylist()
    assert found == [most, most, -most - 1, -most - 1, most, -most - 1, None, 0]


def test_lists_are_what_they_were_with_words_as_they_come() -> None:
    given = [["b", "a"], None, [], ["a", "c", "b"]]
    type_ = pa.list_(pa.field("element", pa.dictionary(pa.int32(), pa.string())))
    found = coded_lists(type_, given)
    assert found.to_pylist() == given
    assert found.values.dictionary.to_pylist() == ["b", "a", "c"]
    numbers = [[1, -2], None, [], [1 << 62]]
    assert number_lists(pa.list_(pa.int64()), numbers).to_pylist() == numbers
    assert texts(["a", None, "", "ü"]).to_pylist() == ["a", None, "", "ü"]


def test_a_text_of_the_greatest_length_beside_a_longer_one_is_whole() -> None:
    given = ["x" * LONGEST_WORD, "y" * (LONGEST_WORD + 1)]
    whole, cut = words_of(pa.array(given))
    assert whole == given[0]
    assert cut != given[1]


@pytest.mark.parametrize(
    ("values", "found"), [([], []), ([4], [4]), ([3, 3, 1, 3, 1], [1, 3]), ([-5, 0, -5], [-5, 0])]
)
def test_distinct_numbers_are_all_of_them_in_order(values: list[int], found: list[int]) -> None:
    assert distinct(np.array(values, np.int64)).tolist() == found
