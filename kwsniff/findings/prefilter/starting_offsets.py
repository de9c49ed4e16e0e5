"""Where groups begin: bounds for the rule about groups without committed offsets."""

from collections import Counter
from typing import Any, Final

import numpy as np
import pyarrow as pa

from kwsniff.findings.api_purposes import names_of
from kwsniff.findings.prefilter.dictionaries import encode, numbers_of

MOST_PLACES: Final = 20_000
"""Partitions of groups that are counted apart; beyond it only the rule can tell."""
OF_STARTS: Final = ("api_name", "group_id", "partition", "requested_offset", "error_code")
"""Columns of partitions that are looked at."""


class StartingOffsets:
    """Answers that a group has committed no offset, and ends of logs that clients asked for."""

    def __init__(self) -> None:
        self._without: Counter[tuple[str, int]] = Counter()
        """Group and partition, of whatever topic -> times that there was no offset."""
        self._listed = 0
        self._crowded = False

    def add(self, batch: pa.RecordBatch) -> None:
        """Takes rows of partitions."""
        apis, names = encode(batch, "api_name")
        listed = _are(apis, names, "is_list_offsets")
        groups, known = encode(batch, "group_id")
        asked = (groups >= 0) & _are(apis, names, "is_question")
        if not (listed.any() or asked.any()):
            return
        offsets = numbers_of(batch, "requested_offset", null=-1)
        self._listed += int(np.count_nonzero(listed & (offsets > 0)))
        rows = np.flatnonzero(asked & (offsets < 0) & (numbers_of(batch, "error_code", null=0) == 0))
        partitions = numbers_of(batch, "partition", null=0)[rows].astype(np.int64) & 0xFFFFFFFF
        places = groups[rows].astype(np.int64) << 32 | partitions
        for place, times in zip(*np.unique(places, return_counts=True), strict=True):
            self._without[known[int(place) >> 32], int(place) & 0xFFFFFFFF] += int(times)
        self._forget_where_crowded()

    def figures(self) -> dict[str, float]:
        """`without_offset`: the most such answers for one partition of a group; `listed_ends`: offsets
        beyond 0 that ListOffsets gave to clients."""
        most = float("inf") if self._crowded else max(self._without.values(), default=0)
        return {"without_offset": most, "listed_ends": self._listed}

    def state(self) -> tuple[Any, ...]:
        """What was counted, for `merge`."""
        return dict(self._without), self._listed, self._crowded

    def merge(self, state: tuple[Any, ...]) -> None:
        """Adds what another one counted."""
        without, listed, crowded = state
        self._without.update(without)
        self._listed += listed
        self._crowded |= crowded
        self._forget_where_crowded()

    def _forget_where_crowded(self) -> None:
        self._crowded |= len(self._without) > MOST_PLACES
        if self._crowded:
            self._without.clear()


def _are(apis: "np.ndarray[Any, Any]", names: list[str], purpose: str) -> "np.ndarray[Any, Any]":
    wanted = [names.index(api) for api in names_of(purpose) if api in names]
    return np.isin(apis, wanted)
