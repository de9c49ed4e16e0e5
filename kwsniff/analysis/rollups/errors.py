"""Errors by the client that received them and by the broker that sent them, against all calls of each.

Memory is bounded. A call's errors are rows of one batch: it counts once for each error, however often the
error is in it.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa

from kwsniff.tables.arrays import whole_numbers
from kwsniff.tables.error_codes import SIDES
from kwsniff.tables.grouping import Groups

MOST_KEYS: Final = 10_000
"""Clients, brokers and their errors that are counted one by one; what comes after is counted together."""
OTHERS: Final = "(others)"
_PARTIES: Final = tuple(name for names in SIDES.values() for name in names)
_ERROR: Final = ("error_code", "error_name")
_REST: Final = (OTHERS, None)

Party = tuple[Any, Any]
Told = tuple[Party, tuple[int, str | None]]


class Failures:
    """Counts the rows it is shown, in the coded schema. `most`: keys that are counted separately."""

    def __init__(self, most: int = MOST_KEYS) -> None:
        self._most = most
        self._calls: dict[str, Counter[Party]] = {side: Counter() for side in SIDES}
        self._errors: dict[str, Counter[Told]] = {side: Counter() for side in SIDES}
        self._failed: dict[str, Counter[Told]] = {side: Counter() for side in SIDES}
        """Calls with an error; keys as in `_errors`."""

    def add_calls(self, batch: pa.RecordBatch) -> None:
        """Rows of api_calls: what the errors are a share of."""
        groups = Groups(batch, _PARTIES)
        for label, number in zip(groups.labels(), groups.counts().tolist(), strict=True):
            for side, party in zip(SIDES, (label[:2], label[2:]), strict=True):
                self._count_calls(side, party, number)

    def add_errors(self, batch: pa.RecordBatch) -> None:
        """Rows of error_codes."""
        groups = Groups(batch, (*_PARTIES, *_ERROR))
        ids = whole_numbers(batch["call_id"], null=0)
        order = np.lexsort((ids, groups.numbers))
        first = np.diff(ids[order], prepend=-1) != 0
        first |= np.diff(groups.numbers[order], prepend=-1) != 0
        calls = np.bincount(groups.numbers[order][first], minlength=len(groups.counts()))
        for label, number, failed in zip(
            groups.labels(), groups.counts().tolist(), calls.tolist(), strict=True
        ):
            for side, party in zip(SIDES, (label[:2], label[2:4]), strict=True):
                self._count_errors(side, (party, label[4:]), number, failed)

    def merge(self, others: Iterable["Failures"]) -> "Failures":
        """Counts what others counted, too; returns itself."""
        for other in others:
            for side in SIDES:
                for party, number in other._calls[side].items():
                    self._count_calls(side, party, number)
                for told, number in other._errors[side].items():
                    self._count_errors(side, told, number, other._failed[side][told])
        return self

    def _count_calls(self, side: str, party: Party, number: int) -> None:
        counter = self._calls[side]
        if party in counter or len(counter) < self._most:
            counter[party] += number

    def _count_errors(self, side: str, told: Told, number: int, failed: int) -> None:
        if told not in self._errors[side] and len(self._errors[side]) >= self._most:
            told = (_REST, told[1])
        self._errors[side][told] += number
        self._failed[side][told] += failed

    def as_dict(self) -> dict[str, list[dict[str, Any]]]:
        """errors_by_client and errors_by_broker, most errors first.

        `count`: errors; `calls`: those with the error; `share`: of all calls of that client, or to that
        broker, None where these were not counted one by one.
        """
        return {f"errors_by_{side}": list(self._rank(side)) for side in SIDES}

    def _rank(self, side: str) -> Iterator[dict[str, Any]]:
        failed, all_calls = self._failed[side], self._calls[side]
        for told, number in sorted(self._errors[side].items(), key=lambda item: (-item[1], str(item[0]))):
            party, error = told
            of = all_calls.get(party)
            yield {
                **dict(zip(SIDES[side], party, strict=True)),
                **dict(zip(_ERROR, error, strict=True)),
                "count": number,
                "calls": failed[told],
                "share": round(failed[told] / of, 4) if of else None,
            }
