"""A filter: conditions joined by and, or, not, with the logic of SQL's three values."""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final

import numpy as np
import pyarrow as pa

from kwsniff.errors import UsageError
from kwsniff.filter.attributes import ERROR, FRAME, STREAM
from kwsniff.filter.conditions import (
    Condition,
    Failed,
    NumberCondition,
    PacketCondition,
    TextCondition,
    Truth,
    anything,
    of_facts,
)
from kwsniff.filter.literals import microseconds
from kwsniff.sources.times import Moment
from kwsniff.tables.arrays import Bits
from kwsniff.tables.columns import HARM


@dataclass(frozen=True)
class Junction:
    """All of the parts (and), or one of them (or)."""

    parts: tuple["Node", ...]
    all: bool


@dataclass(frozen=True)
class Negation:
    """The opposite; null stays null."""

    part: "Node"


Node = Junction | Negation | Condition

_ENDS: Final = ("capture", "client_address", "client_port", "broker_address", "broker_port")
_FRAMES: Final = ("request_frame", "request_end_frame", "response_frame", "response_end_frame")
_COLUMNS_OF: Final[Mapping[str, tuple[str, ...]]] = {
    ERROR: ("error_count",), FRAME: (*_ENDS, *_FRAMES), STREAM: (*_ENDS, *_FRAMES),
}  # fmt: skip
"""What decides in place of a column that api_calls does not have."""


@dataclass(frozen=True)
class Filter:
    """Which calls are chosen: those for which the expression is true; not those for which it is null."""

    node: Node
    text: str
    """As written."""

    @property
    def columns(self) -> frozenset[str]:
        """Columns of api_calls that decide."""
        return frozenset(
            column
            for each in _conditions(self.node)
            for column in _COLUMNS_OF.get(each.column, (each.column,))
        )

    @property
    def asks_packets(self) -> bool:
        """Whether it names packets or TCP streams by their numbers in capture files."""
        return any(isinstance(each, PacketCondition) for each in _conditions(self.node))

    def check_located(self) -> None:
        """Raises UsageError if it names packets, where no capture file says whose they are."""
        if self.asks_packets:
            raise UsageError(
                f"{FRAME} and {STREAM} number packets of capture files, which are read twice: name files"
            )

    def locate(self, find: Callable[[PacketCondition], "Node"]) -> "Filter":
        """The same with other conditions in place of packets."""
        return replace(self, node=_locate(self.node, find)) if self.asks_packets else self

    def check_passing(self) -> None:
        """Raises UsageError if it needs what is known only once all calls have passed."""
        if HARM.name in self.columns:
            raise UsageError(
                f"{HARM.name} is known once all calls have passed: filter a folder of tables by it"
            )

    @property
    def asks_errors(self) -> bool:
        """Whether rows of error_codes decide, too."""
        return any(each.column == ERROR for each in _conditions(self.node))

    def rows(self, calls: pa.RecordBatch, failed: Failed | None = None) -> Bits:
        """The chosen rows of api_calls. `failed`: their rows of error_codes."""
        return _truth(self.node, calls, failed, ()).true

    def possible_rows(self, calls: pa.RecordBatch, failed: Failed | None, unknown: Container[str]) -> Bits:
        """Rows that may be chosen once the `unknown` columns are known."""
        return _truth(self.node, calls, failed, unknown).true

    def may_choose(self, facts: Mapping[str, Any]) -> bool:
        """Whether a call may be chosen of which some columns are known: column -> value, None for null."""
        return _possible(self.node, facts)[0]

    def span(self, column: str) -> tuple[int | None, int | None]:
        """The lowest and the highest number that a chosen call may have in a column; None where there is no
        bound."""
        return _span(self.node, column)

    def numbers(self, column: str) -> frozenset[int] | None:
        """The numbers that chosen calls have in a column, if the filter lists them."""
        return _numbers(self.node, column)

    @property
    def relative_kinds(self) -> frozenset[str]:
        """What times of the filter count from: `after` and `time_of_day` the first packet, `before` the
        last one."""
        return frozenset(each.kind for each in _moments(self.node) if each.kind != "at")

    def resolve(self, first: int | None, last: int | None = None) -> "Filter":
        """The same with all times as dates. `first`, `last`: times of the first and the last packet,
        nanoseconds. Raises UsageError if a time counts from one that is not known."""
        if not any(True for _ in _moments(self.node)):
            return self
        return replace(self, node=_resolve(self.node, first, last))

    def with_topics(self, names: Mapping[str, str]) -> "Filter":
        """The same for rows that show ids of topics. `names`: topic id -> name."""
        return replace(self, node=_with_topics(self.node, names))


def both(one: Filter | None, other: Filter | None) -> Filter | None:
    """Calls that two filters choose; None chooses all."""
    if one is None or other is None:
        return one or other
    return Filter(Junction((one.node, other.node), all=True), f"({one.text}) and ({other.text})")


def among(column: str, numbers: Iterable[int]) -> Filter:
    """Calls with one of these numbers in a column."""
    values = tuple(map(Fraction, numbers))
    return Filter(NumberCondition(column, "=", values), f"{column} in (...)")


def _conditions(node: Node) -> Iterator[Condition]:
    if isinstance(node, Junction):
        for part in node.parts:
            yield from _conditions(part)
    elif isinstance(node, Negation):
        yield from _conditions(node.part)
    else:
        yield node


def _moments(node: Node) -> Iterator[Moment]:
    for condition in _conditions(node):
        if isinstance(condition, NumberCondition):
            yield from (value for value in condition.values if isinstance(value, Moment))


def _truth(node: Node, calls: pa.RecordBatch, failed: Failed | None, unknown: Container[str]) -> Truth:
    if isinstance(node, Negation):
        true, false = _truth(node.part, calls, failed, unknown)
        return Truth(false, true)
    if isinstance(node, Junction):
        parts = [_truth(part, calls, failed, unknown) for part in node.parts]
        every = np.logical_and.reduce([part.true if node.all else part.false for part in parts])
        some = np.logical_or.reduce([part.false if node.all else part.true for part in parts])
        return Truth(every, some) if node.all else Truth(some, every)
    if node.column in unknown:
        return anything(calls.num_rows)
    (column, *_) = _COLUMNS_OF.get(node.column, (node.column,))
    return node.match_rows(calls[column], calls, failed)


def _possible(node: Node, facts: Mapping[str, Any]) -> tuple[bool, bool]:
    if isinstance(node, Negation):
        true, false = _possible(node.part, facts)
        return false, true
    if isinstance(node, Junction):
        parts = [_possible(part, facts) for part in node.parts]
        if node.all:
            return all(true for true, _ in parts), any(false for _, false in parts)
        return any(true for true, _ in parts), all(false for _, false in parts)
    return of_facts(node, facts)


def _span(node: Node, column: str) -> tuple[int | None, int | None]:
    if isinstance(node, NumberCondition) and node.column == column and node.spans:
        return node.spans[0][0], node.spans[-1][1]
    if not isinstance(node, Junction):
        return None, None
    spans = [_span(part, column) for part in node.parts]
    lows, highs = [low for low, _ in spans], [high for _, high in spans]
    if node.all:
        return (
            max((low for low in lows if low is not None), default=None),
            min((high for high in highs if high is not None), default=None),
        )
    return (
        None if None in lows else min(low for low in lows if low is not None),
        None if None in highs else max(high for high in highs if high is not None),
    )


def _numbers(node: Node, column: str) -> frozenset[int] | None:
    if isinstance(node, NumberCondition) and node.column == column and node.operator == "=":
        return frozenset(low for low, _ in node.spans)
    if not isinstance(node, Junction):
        return None
    parts = [_numbers(part, column) for part in node.parts]
    known = [part for part in parts if part is not None]
    if node.all:
        return frozenset.intersection(*known) if known else None
    return frozenset.union(*known) if len(known) == len(parts) else None


def _with_topics(node: Node, names: Mapping[str, str]) -> Node:
    if isinstance(node, Junction):
        return replace(node, parts=tuple(_with_topics(part, names) for part in node.parts))
    if isinstance(node, Negation):
        return Negation(_with_topics(node.part, names))
    if not isinstance(node, TextCondition) or node.column != "topics":
        return node
    fits = node.fits
    return TextCondition(node.column, lambda text: fits(names.get(text, text)))


def _locate(node: Node, find: Callable[[PacketCondition], Node]) -> Node:
    if isinstance(node, Junction):
        return replace(node, parts=tuple(_locate(part, find) for part in node.parts))
    if isinstance(node, Negation):
        return Negation(_locate(node.part, find))
    return find(node) if isinstance(node, PacketCondition) else node


def _resolve(node: Node, first: int | None, last: int | None) -> Node:
    if isinstance(node, Junction):
        return replace(node, parts=tuple(_resolve(part, first, last) for part in node.parts))
    if isinstance(node, Negation):
        return Negation(_resolve(node.part, first, last))
    if not isinstance(node, NumberCondition):
        return node
    values = (
        microseconds(value.resolve(first, last)) if isinstance(value, Moment) else value
        for value in node.values
    )
    return NumberCondition(node.column, node.operator, tuple(values))
