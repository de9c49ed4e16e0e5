"""Rows of a live capture that belong to calls that match the filters; rows on many calls together are left
out."""

from typing import Final

from kwsniff.analysis.chosen import TABLES_OF_CALLS, Chosen
from kwsniff.analysis.fitting_rows import FittingRows
from kwsniff.layout.catalog import Catalog
from kwsniff.live.batches import Batches
from kwsniff.tables.arrays import flags, whole_numbers
from kwsniff.timelines.waits.pending_rows import UNSETTLED
from kwsniff.view.filters import Filters

MOST_CONNECTIONS: Final = 65_536
"""The latest connections with matching calls: a connection's row comes at its end."""
MOST_CALLS: Final = 65_536
"""The latest matching calls: a row of latencies may come later if it depends on other connections."""


class ChosenRows:
    """Selects rows, batch by batch."""

    def __init__(self, filters: Filters, catalog: Catalog) -> None:
        self._rows = FittingRows(filters, catalog)
        self._calls: dict[int, None] = {}
        self._connections: dict[int, None] = {}

    def of(self, batches: Batches) -> Batches:
        """The rows of matching calls, and of their connections from the first such call on."""
        calls: list[int] = []
        if "api_calls" in batches:
            all_calls = batches["api_calls"]
            found = all_calls.filter(flags(self._rows.fitting(all_calls, batches.get("error_codes"))))
            calls = whole_numbers(found["call_id"], null=0).tolist()
            connections = whole_numbers(found["connection_id"], null=0).tolist()
            _remember(self._connections, connections, MOST_CONNECTIONS)
        chosen = Chosen((*self._calls, *calls), self._connections)
        _remember(self._calls, calls, MOST_CALLS)
        rows = {
            name: chosen.of(name, batch)
            for name, batch in batches.items()
            if name in TABLES_OF_CALLS or name == UNSETTLED
        }
        return {name: batch for name, batch in rows.items() if batch.num_rows}


def _remember(latest: dict[int, None], numbers: list[int], most: int) -> None:
    """Appends numbers, and drops the oldest."""
    for number in numbers:
        latest.pop(number, None)
        latest[number] = None
    while len(latest) > most:
        latest.pop(next(iter(latest)))
