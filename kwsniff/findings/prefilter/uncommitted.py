"""Members of groups that commit nothing: a bound that decides whether `consumer_stuck` is evaluated."""

from collections import Counter
from typing import Any, Final

import numpy as np
import pyarrow as pa

from kwsniff.findings.prefilter.dictionaries import encode

MOST_GROUPS: Final = 2_000
"""Groups that are known by name, of either kind; beyond it only the rule can tell."""


class Uncommitted:
    """Members that left, and commits, by group."""

    OF_MEMBERS = ("group_id", "left_how")

    def __init__(self) -> None:
        self._left: Counter[str] = Counter()
        self._committed: set[str] = set()
        self._crowded = False

    def add_members(self, batch: pa.RecordBatch) -> None:
        """Takes rows of members."""
        left, _ = encode(batch, "left_how")
        codes, groups = encode(batch, "group_id")
        numbers = np.bincount(codes[(left >= 0) & (codes >= 0)], minlength=len(groups))
        self._left.update(
            {group: int(number) for group, number in zip(groups, numbers, strict=True) if number}
        )
        self._forget_where_crowded()

    def add_commits(self, batch: pa.RecordBatch) -> None:
        """Takes rows of commits."""
        codes, groups = encode(batch, "group_id")
        there = np.bincount(codes[codes >= 0], minlength=len(groups)) > 0
        self._committed.update(group for group, known in zip(groups, there, strict=True) if known)
        self._forget_where_crowded()

    def most(self) -> float:
        """The most members that left a group without commits."""
        if self._crowded:
            return float("inf")
        return max(
            (number for group, number in self._left.items() if group not in self._committed), default=0
        )

    def state(self) -> tuple[Any, ...]:
        """What was counted, for `merge`."""
        return dict(self._left), sorted(self._committed), self._crowded

    def merge(self, state: tuple[Any, ...]) -> None:
        """Adds what another one counted."""
        left, committed, crowded = state
        self._left.update(left)
        self._committed.update(committed)
        self._crowded |= crowded
        self._forget_where_crowded()

    def _forget_where_crowded(self) -> None:
        self._crowded |= max(len(self._left), len(self._committed)) > MOST_GROUPS
        if self._crowded:
            self._left.clear()
            self._committed.clear()
