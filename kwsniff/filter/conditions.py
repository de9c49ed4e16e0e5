"""Conditions on one column each, decided for whole columns, or for one value that is known early.

Like every part of a filter, a condition is true, false, or neither: SQL's null, where the column is null. A
column that is not known yet may be anything: the condition may then be true, and may be false.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import ceil, floor
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from kwsniff.sources.times import Moment
from kwsniff.tables.arrays import Bits, Numbers, valid_rows, whole_numbers
from kwsniff.tables.compute import dictionary_encode

_LOWEST: Final = -(1 << 63)
_HIGHEST: Final = (1 << 63) - 1
_FEW: Final = 4
_NULL: Final = -1


class Truth(NamedTuple):
    """For each row: whether the condition may be true, and whether it may be false."""

    true: Bits
    false: Bits


class Failed(Protocol):
    """Rows of error_codes."""

    def having(self, calls: pa.RecordBatch, codes: frozenset[int]) -> Bits:
        """For each call whether its response has one of these error codes."""


def anything(rows: int) -> Truth:
    """What is not known may be true and false."""
    return Truth(np.ones(rows, np.bool_), np.ones(rows, np.bool_))


@dataclass(frozen=True)
class NumberCondition:
    """Comparison of a column of whole numbers, flags, or times in microseconds."""

    column: str
    operator: str
    values: tuple[Fraction | Moment, ...]

    @cached_property
    def spans(self) -> tuple[tuple[int, int], ...]:
        """What fits, as spans of whole numbers, both ends included."""
        if self.operator == "=":
            points = sorted({int(value) for value in self._numbers if value.denominator == 1})
            return tuple((each, each) for each in points if _LOWEST <= each <= _HIGHEST)
        bound = self._numbers[0]
        lowest, highest = _LOWEST, _HIGHEST
        if self.operator in ("<", "<="):
            highest = ceil(bound) - 1 if self.operator == "<" else floor(bound)
        else:
            lowest = floor(bound) + 1 if self.operator == ">" else ceil(bound)
        span = (max(lowest, _LOWEST), min(highest, _HIGHEST))
        return (span,) if span[0] <= span[1] else ()

    @property
    def _numbers(self) -> list[Fraction]:
        if any(isinstance(value, Moment) for value in self.values):
            raise AssertionError("a relative time is compared before it is known what it counts from")
        return [value for value in self.values if isinstance(value, Fraction)]

    def match_rows(self, column: Any, calls: pa.RecordBatch, failed: Failed | None) -> Truth:
        """By the spans."""
        values = _flags(column) if pa.types.is_boolean(column.type) else whole_numbers(column, null=0)
        fits = np.zeros(len(column), np.bool_)
        if len(self.spans) > _FEW:
            fits |= np.isin(values, np.array([low for low, _ in self.spans], np.int64))
        else:
            for low, high in self.spans:
                fits |= (values >= np.int64(low)) & (values <= np.int64(high))
        return _of_valid(fits, valid_rows(column))

    def match(self, value: Any) -> bool | None:
        """By the spans."""
        return any(low <= value <= high for low, high in self.spans)


@dataclass(frozen=True)
class TextCondition:
    """Comparison of a column of texts, or of lists of texts, of which one must fit. Each distinct text is
    compared one time, however many rows have it."""

    column: str
    fits: Callable[[str], bool]

    def match_rows(self, column: Any, calls: pa.RecordBatch, failed: Failed | None) -> Truth:
        """By the dictionary of the texts."""
        if not pa.types.is_list(column.type):
            return _of_valid(self._fitting(column), valid_rows(column))
        fits = np.zeros(len(column), np.bool_)
        if len(column) and len(column.values):
            ends = np.frombuffer(column.buffers()[1], np.int32)[column.offset :][: len(column) + 1]
            rows = np.repeat(np.arange(len(column)), np.diff(ends))
            fits[rows[self._fitting(column.values)[ends[0] : ends[-1]]]] = True
        return _of_valid(fits, valid_rows(column))

    def _fitting(self, texts: Any) -> Bits:
        coded = texts if pa.types.is_dictionary(texts.type) else dictionary_encode(texts)
        found = np.array([*map(self.fits, coded.dictionary.to_pylist()), False], np.bool_)
        fits: Bits = found[whole_numbers(coded.indices, null=_NULL)]
        return fits

    def match(self, value: Any) -> bool | None:
        """For one text."""
        return self.fits(value)


@dataclass(frozen=True)
class ErrorCondition:
    """Whether a response has one of these error codes, however deep; 0: whether it has none."""

    column: str
    codes: frozenset[int]

    def match_rows(self, column: Any, calls: pa.RecordBatch, failed: Failed | None) -> Truth:
        """`column`: error_count, which says where it is not known."""
        if failed is None:
            return anything(len(column))
        fits = failed.having(calls, self.codes - {0})
        if 0 in self.codes:
            fits = fits | (whole_numbers(column, null=_NULL) == 0)
        return _of_valid(fits, valid_rows(column))

    def match(self, value: Any) -> bool | None:
        """Not by one value."""
        return None


@dataclass(frozen=True)
class NullCondition:
    """Whether a column is null."""

    column: str

    def match_rows(self, column: Any, calls: pa.RecordBatch, failed: Failed | None) -> Truth:
        """By the column's bitmap."""
        valid = valid_rows(column)
        if pa.types.is_dictionary(column.type):
            valid = whole_numbers(column.indices, null=_NULL) != _NULL
        return Truth(~valid, valid)

    def match(self, value: Any) -> bool | None:
        """For one value, which is not null."""
        return False


@dataclass(frozen=True)
class PacketCondition:
    """Whether a call has one of these packets, or a connection with one of these numbers. The captures say
    which calls do (kwsniff.filter.frame_numbers)."""

    column: str
    numbers: frozenset[int]

    def match_rows(self, column: Any, calls: pa.RecordBatch, failed: Failed | None) -> Truth:
        """Not before it is located."""
        raise AssertionError("packets are compared before they are located")

    def match(self, value: Any) -> bool | None:
        """Not by one value."""
        return None


Condition = NumberCondition | TextCondition | ErrorCondition | NullCondition | PacketCondition
"""A part of a filter about one column: `over` decides for the rows of a batch, `of` for one value that is
not null."""


def of_facts(condition: Condition, facts: Mapping[str, Any]) -> tuple[bool, bool]:
    """Whether the condition may be true, and whether it may be false, where only some columns are known."""
    if condition.column not in facts:
        return True, True
    value = facts[condition.column]
    if value is None:
        return isinstance(condition, NullCondition), False
    told = condition.match(value)
    return told is not False, told is not True


def matches_pattern(pattern: str) -> Callable[[str], bool]:
    """SQL's `like`: % is any text, _ any character. Takes time proportional to the product of both lengths
    at most."""

    def fits(text: str) -> bool:
        at = place = 0
        star = mark = -1
        while at < len(text):
            if place < len(pattern) and pattern[place] == "%":
                star, mark = place, at
                place += 1
            elif place < len(pattern) and pattern[place] in ("_", text[at]):
                at += 1
                place += 1
            elif star >= 0:
                mark += 1
                at, place = mark, star + 1
            else:
                return False
        return all(char == "%" for char in pattern[place:])

    return fits


def _of_valid(fits: Bits, valid: Bits) -> Truth:
    return Truth(fits & valid, ~fits & valid)


def _flags(column: pa.BooleanArray) -> Numbers:
    if not len(column):
        return np.zeros(0, np.int64)
    memory = np.unpackbits(np.frombuffer(column.buffers()[1], np.uint8), bitorder="little")
    return memory[column.offset : column.offset + len(column)].astype(np.int64)
