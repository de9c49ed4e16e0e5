"""Arrow arrays from Python and numpy values.

pyarrow's own functions (`array`, `scalar`, `to_numpy`) import pandas to check for pandas input, which takes a
third of the time of a small capture.
"""

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pyarrow as pa

from kwsniff.core.columns.numbers import WholeColumn

Numbers = np.ndarray[Any, Any]
Bits = np.ndarray[Any, np.dtype[np.bool_]]

_RADIX = 1 << 16
LONGEST_WORD: Final = 256
"""Bytes kept of a text by code that counts or tracks names; tables have the whole text."""
_KEPT_OF_LONG: Final = 200


def bits(flags: Bits) -> pa.Buffer:
    """Booleans as Arrow's bitmap."""
    return pa.py_buffer(np.packbits(flags, bitorder="little"))


def flags(values: Bits) -> pa.BooleanArray:
    """A boolean array without nulls."""
    return pa.Array.from_buffers(pa.bool_(), len(values), [None, bits(values)])


def numbers(type_: pa.DataType, values: Numbers, valid: Bits | None = None) -> pa.Array:
    """`values` as an array of the type, without a copy; null where not `valid`."""
    mask = None if valid is None else bits(valid)
    return pa.Array.from_buffers(type_, len(values), [mask, pa.py_buffer(values)])


def column_of(array: pa.Array) -> WholeColumn:
    """An integer array for compiled passes, without a copy."""
    if not len(array):
        return WholeColumn(b"", 0, 0, 0)
    valid, values = array.buffers()
    return WholeColumn(
        values, array.type.bit_width // 8, array.offset, len(array), valid if array.null_count else None
    )


def whole_numbers(array: pa.Array, null: int) -> Numbers:
    """The values of an integer array, with a number instead of nulls."""
    if not len(array):
        return np.zeros(0, np.int64)
    if array.null_count:
        filled = np.empty(len(array), np.int64)
        column_of(array).spread(null, filled)
        return filled
    memory = np.frombuffer(array.buffers()[1], f"i{array.type.bit_width // 8}")
    return memory[array.offset : array.offset + len(array)]


def valid_rows(array: pa.Array) -> Bits:
    """Mask of the values that are not null."""
    mask = array.buffers()[0] if len(array) else None
    if mask is None:
        return np.ones(len(array), np.bool_)
    return _unpack(mask, array)


def set_bits(array: pa.BooleanArray) -> Bits:
    """The values of a boolean array without nulls."""
    return _unpack(array.buffers()[1], array) if len(array) else np.zeros(0, np.bool_)


def _unpack(bitmap: pa.Buffer, array: pa.Array) -> Bits:
    memory = np.unpackbits(np.frombuffer(bitmap, np.uint8), bitorder="little")
    return memory[array.offset : array.offset + len(array)].view(np.bool_)


def among(values: Numbers, some: Iterable[int]) -> Bits:
    """Mask of the 16-bit numbers that are in a set of non-negative ones; -1 means null."""
    table = np.zeros(_RADIX, np.bool_)  # a negative index counts from the end
    table[[*some]] = True
    found: Bits = table[values]
    return found


def in_groups(group: Numbers, groups: int) -> Numbers:
    """Rows sorted by group number, which is below `groups`; stable within a group."""
    # For these types a stable sort is a radix sort.
    return np.argsort(group.astype(np.uint16) if groups < _RADIX else group, kind="stable")


def words_of(dictionary: pa.Array) -> list[Any]:
    """A dictionary's values as Python values.

    Texts above LONGEST_WORD become their beginning, their size, and a hash that keeps them distinct, so that
    the size per text is bounded for any capture.
    """
    values: list[Any]
    if not pa.types.is_string(dictionary.type) or dictionary.null_count or is_short(dictionary):
        values = dictionary.to_pylist()
        return values
    ends = np.frombuffer(dictionary.buffers()[1], np.int32)[dictionary.offset :][: len(dictionary) + 1]
    long = np.flatnonzero(np.diff(ends) > LONGEST_WORD)
    data = memoryview(dictionary.buffers()[2])
    spans = pairwise(ends.tolist())
    values = [str(data[begin:end][:LONGEST_WORD], "utf-8", "ignore") for begin, end in spans]
    for place in long.tolist():
        values[place] = _shorten(data[ends[place] : ends[place + 1]])
    return values


def is_short(words: pa.StringArray) -> bool:
    """Whether no text is longer than LONGEST_WORD."""
    if not len(words):
        return True
    ends = np.frombuffer(words.buffers()[1], np.int32)[words.offset :][: len(words) + 1]
    return bool(ends[-1] - ends[0] <= LONGEST_WORD or (ends[1:] - ends[:-1]).max() <= LONGEST_WORD)


def _shorten(text: memoryview) -> str:
    begin = str(text[:_KEPT_OF_LONG], "utf-8", "ignore")
    return f"{begin}… ({len(text):,} bytes, {blake2b(text, digest_size=6).hexdigest()})"


def texts(values: Sequence[str | None]) -> pa.StringArray:
    """A string array."""
    encoded = [b"" if value is None else value.encode() for value in values]
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int32)
    mask = bits(np.array([value is not None for value in values], np.bool_))
    return pa.Array.from_buffers(
        pa.string(), len(values), [mask, pa.py_buffer(ends), pa.py_buffer(b"".join(encoded))]
    )


def plain_values(type_: pa.DataType, values: Sequence[Any]) -> pa.Array:
    """An array of integers, timestamps (as whole numbers of their unit), floats or bool; None is null.

    Numbers out of the type's range (sums and differences of hostile values) become the nearest one.
    """
    valid = np.array([value is not None for value in values], np.bool_)
    filled = [0 if value is None else value for value in values]
    if pa.types.is_boolean(type_):
        return pa.Array.from_buffers(type_, len(values), [bits(valid), bits(np.array(filled, np.bool_))])
    if pa.types.is_floating(type_):
        return numbers(type_, np.array(filled, np.float64), valid)
    most = (1 << (type_.bit_width - 1)) - 1
    held = [min(max(value, -most - 1), most) for value in filled]
    return numbers(type_, np.array(held, f"i{type_.bit_width // 8}"), valid)


def coded_lists(type_: pa.DataType, values: Sequence[Sequence[str] | None]) -> pa.Array:
    """Lists of texts as lists of dictionary-encoded texts; None is null."""
    ends = np.cumsum([0, *(len(value or ()) for value in values)], dtype=np.int32)
    told = [text for value in values for text in value or ()]
    places = {word: place for place, word in enumerate(dict.fromkeys(told))}
    codes = numbers(pa.int32(), np.array([places[text] for text in told], np.int32))
    words = pa.DictionaryArray.from_arrays(codes, texts(list(places)), safe=False)
    mask = bits(np.array([value is not None for value in values], np.bool_))
    return pa.Array.from_buffers(type_, len(values), [mask, pa.py_buffer(ends)], children=[words])


def number_lists(type_: pa.DataType, values: Sequence[Sequence[int] | None]) -> pa.Array:
    """Lists of 64-bit integers; None is null."""
    inner = plain_values(pa.int64(), [number for value in values for number in value or ()])
    ends = np.cumsum([0, *(len(value or ()) for value in values)], dtype=np.int32)
    mask = bits(np.array([value is not None for value in values], np.bool_))
    return pa.Array.from_buffers(type_, len(values), [mask, pa.py_buffer(ends)], children=[inner])


def distinct(values: Numbers) -> Numbers:
    """Distinct integers in order. numpy's unique loads numpy.ma first: a hundredth of a second."""
    ordered = np.sort(values)
    return ordered[np.flatnonzero(np.diff(ordered, prepend=ordered[:1] - 1))]
