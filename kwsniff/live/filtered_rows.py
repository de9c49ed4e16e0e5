"""Rows of a live capture that belong to calls that a filter chooses; rows on many calls together are left
out."""

from collections.abc import Callable, Sequence
from typing import Final

from kwsniff.errors import UsageError
from kwsniff.filter.error_rows import ErrorRows
from kwsniff.filter.expression import Filter
from kwsniff.filter.rows_of_calls import TABLES_OF_CALLS, Chosen
from kwsniff.live.batches import Batches, Rows
from kwsniff.tables.arrays import Bits, flags, whole_numbers
from kwsniff.timelines.waits.pending_rows import UNSETTLED

MOST_CONNECTIONS: Final = 65_536
"""The latest connections with matching calls: a connection's row comes at its end."""
MOST_CALLS: Final = 65_536
"""The latest matching calls: a row of latencies may come later if it depends on other connections."""


class FilteredRows:
    """Selects rows, batch by batch."""

    def __init__(self, filter_: Filter, begun: Callable[[], int | None]) -> None:
        """`begun`: time of the first packet, nanoseconds. Raises UsageError as `check_filter` does."""
        check_filter(filter_)
        self._filter = filter_
        self._begun = begun
        self._is_resolved = False
        self._calls: dict[int, None] = {}
        self._connections: dict[int, None] = {}

    def select(self, batches: Batches) -> Batches:
        """The rows of matching calls, and of their connections from the first such call on."""
        calls: list[int] = []
        if "api_calls" in batches:
            all_calls = batches["api_calls"]
            found = all_calls.filter(flags(self._fitting(all_calls, batches)))
            calls = whole_numbers(found["call_id"], null=0).tolist()
            connections = whole_numbers(found["connection_id"], null=0).tolist()
            _remember(self._connections, connections, MOST_CONNECTIONS)
        chosen = Chosen((*self._calls, *calls), self._connections)
        _remember(self._calls, calls, MOST_CALLS)
        rows = {
            name: chosen.select(name, batch)
            for name, batch in batches.items()
            if name in TABLES_OF_CALLS or name == UNSETTLED
        }
        return {name: batch for name, batch in rows.items() if batch.num_rows}

    def _fitting(self, calls: Rows, batches: Batches) -> Bits:
        if not self._is_resolved:
            begun = self._begun()
            self._filter = self._filter.resolve(None if begun is None else begun // 1_000 * 1_000)
            self._is_resolved = True
        errors = batches.get("error_codes")
        return self._filter.rows(calls, ErrorRows([] if errors is None else [errors]))


def check_filter(filter_: Filter) -> None:
    """Raises UsageError for what a running capture does not know: the time of its last packet, harm."""
    if "before" in filter_.relative_kinds:
        raise UsageError("the last packet is not known in advance; count from the first: +30s")
    filter_.check_passing()
    filter_.check_located()


def with_needed(tables: Sequence[str], filter_: Filter | None) -> tuple[str, ...]:
    """Tables, and those that the filter needs."""
    needed = (
        () if filter_ is None else ("api_calls", "error_codes") if filter_.asks_errors else ("api_calls",)
    )
    return (*tables, *(name for name in needed if name not in tables))


def _remember(latest: dict[int, None], numbers: list[int], most: int) -> None:
    """Appends numbers, and drops the oldest."""
    for number in numbers:
        latest.pop(number, None)
        latest[number] = None
    while len(latest) > most:
        latest.pop(next(iter(latest)))
