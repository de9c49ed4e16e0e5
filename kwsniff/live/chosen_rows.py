"""Rows of a live capture that belong to calls which fit filters; what many calls do together is left out."""

from typing import Final

from kwsniff.analysis.chosen import TABLES_OF_CALLS, Chosen
from kwsniff.analysis.fitting_rows import FittingRows
from kwsniff.layout.catalog import Catalog
from kwsniff.live.batches import Batches
from kwsniff.tables.arrays import flags, whole_numbers
from kwsniff.view.filters import Filters

MOST_CONNECTIONS: Final = 65_536
"""Of those with calls that fit, the latest: a connection's row comes at its end."""


class ChosenRows:
    """Chooses of one batch after the other."""

    def __init__(self, filters: Filters, catalog: Catalog) -> None:
        self._rows = FittingRows(filters, catalog)
        self._connections: dict[int, None] = {}

    def of(self, batches: Batches) -> Batches:
        """The rows of calls that fit, and of their connections from the first such call on."""
        calls: list[int] = []
        if "api_calls" in batches:
            all_calls = batches["api_calls"]
            found = all_calls.filter(flags(self._rows.fitting(all_calls, batches.get("error_codes"))))
            calls = whole_numbers(found["call_id"], null=0).tolist()
            self._remember(whole_numbers(found["connection_id"], null=0).tolist())
        chosen = Chosen(calls, self._connections)
        rows = {name: chosen.of(name, batch) for name, batch in batches.items() if name in TABLES_OF_CALLS}
        return {name: batch for name, batch in rows.items() if batch.num_rows}

    def _remember(self, connections: list[int]) -> None:
        for number in connections:
            self._connections.pop(number, None)
            self._connections[number] = None
        while len(self._connections) > MOST_CONNECTIONS:
            self._connections.pop(next(iter(self._connections)))
