"""The calls of captures that a filter chooses, for readers of messages: by rows of api_calls, as they
come."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from kwsniff.core.declared import ENUMS
from kwsniff.filter.conditions import TextCondition
from kwsniff.filter.error_rows import ErrorRows
from kwsniff.filter.expression import Filter
from kwsniff.filter.frame_numbers import locate_packets
from kwsniff.filter.pushdown import PushedFilter, push_down
from kwsniff.layout.catalog import Catalog, load_catalog
from kwsniff.sources.files import CaptureFile
from kwsniff.sources.times import ends_of
from kwsniff.tables.arrays import Bits, flags, whole_numbers
from kwsniff.tables.build import PartBuilder
from kwsniff.view.columns import num_rows, words
from kwsniff.view.selection import COLUMNS, Ended

_ID: Final = re.compile(r"[\w-]{22}")
_MICROSECOND: Final = 1_000
MOST_WAITING: Final = 100_000
"""Calls whose topics have no name yet, and wait for it."""


_SHOWN: Final = TextCondition("topics", lambda text: _ID.fullmatch(text) is not None)


class FilteredCalls:
    """Decides on rows of the core (kwsniff.view.selection.Selection)."""

    def __init__(self, filter_: Filter, catalog: Catalog | None = None) -> None:
        filter_.check_passing()
        self._filter = filter_
        self._catalog = catalog or load_catalog()
        self._builder = PartBuilder(self._catalog, ENUMS)
        self._columns = {*filter_.columns, "call_id"}
        self.tables = ("api_calls", "error_codes") if filter_.asks_errors else ("api_calls",)
        self.alone = False
        self.numbers = filter_.numbers("call_id")
        self._waiting: list[tuple[pa.RecordBatch, ErrorRows | None]] = []
        self._num_waiting = 0

    def begin(self, captures: Sequence[str], opened: CaptureFile) -> PushedFilter | None:
        """Resolves times and packets of the filter. Raises UsageError for a time that counts from a packet
        that is not known."""
        self._filter = resolve_over(self._filter, captures, opened)
        return push_down(self._filter, self._catalog)

    def select(self, tables: Mapping[str, Sequence[Any]]) -> Ended:
        """Rows that `Analyzer.take` returned."""
        by_name = dict(zip(COLUMNS, tables["api_calls"], strict=True))
        if not num_rows(by_name["call_id"]):
            return Ended(b"", {})
        batch = self._builder.build_some("api_calls", tables["api_calls"], self._columns)
        errors = None
        if "error_codes" in tables:
            rows = self._builder.build_some("error_codes", tables["error_codes"], {"call_id", "error_code"})
            errors = ErrorRows([rows])
        fits = self._filter.rows(batch, errors)
        waiting = self._wait(batch, errors)
        ids = whole_numbers(batch["call_id"], null=0)
        delivered = fits | waiting
        rows_ = np.flatnonzero(delivered).tolist()
        found = zip(
            ids[delivered].tolist(),
            words(by_name["status"], "status", rows_),
            words(by_name["reason"], "reason", rows_),
            strict=True,
        )
        return Ended(
            np.column_stack((ids, delivered)).astype(np.int64).tobytes(),
            {call: (status or "", reason) for call, status, reason in found},
            frozenset(ids[waiting].tolist()),
        )

    def select_late(self, names: Mapping[str, str]) -> frozenset[int]:
        """Which of the calls that waited are chosen, now that all names of topic ids are known."""
        named = self._filter.with_topics(names)
        found: set[int] = set()
        for batch, errors in self._waiting:
            found.update(whole_numbers(batch["call_id"], null=0)[named.rows(batch, errors)].tolist())
        self._waiting.clear()
        return frozenset(found)

    def _wait(self, batch: pa.RecordBatch, errors: ErrorRows | None) -> Bits:
        """Calls that show an id of a topic, and may be chosen or not once it has a name."""
        none = np.zeros(batch.num_rows, np.bool_)
        if "topics" not in self._filter.columns or self._num_waiting > MOST_WAITING:
            return none
        shown = _SHOWN.match_rows(batch["topics"], batch, None).true
        if not shown.any():
            return none
        waiting: Bits = shown & self._filter.possible_rows(batch, errors, {"topics"})
        self._num_waiting += int(waiting.sum())
        self._waiting.append((batch.filter(flags(waiting)), errors))
        return waiting


def resolve_captures(filter_: Filter, captures: Sequence[str]) -> Filter:
    """As resolve_over, for captures that can be read more than once."""
    filter_ = locate_packets(filter_, captures)
    if not filter_.relative_kinds:
        return filter_.resolve(None)
    with CaptureFile(captures[0]) as opened:
        return resolve_over(filter_, captures, opened)


def resolve_over(filter_: Filter, captures: Sequence[str], opened: CaptureFile) -> Filter:
    """The filter with its times as dates. `opened`: the first of the captures, unread. Times count from
    packets as tables have them: in microseconds."""
    filter_ = locate_packets(filter_, captures)
    first, last = (
        None if time is None else time // _MICROSECOND * _MICROSECOND
        for time in ends_of(filter_.relative_kinds, captures, opened)
    )
    return filter_.resolve(first, last)
