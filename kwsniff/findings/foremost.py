"""Of each group the rows that come first: the calls that prove what a sum says, kept while rows pass."""

from typing import Final

import numpy as np

from kwsniff.findings.coded import Numbers, distinct
from kwsniff.findings.evaluate import MOST_PROOFS

_NEVER: Final = np.iinfo(np.int64).max
_FEW: Final = 256


class Foremost:
    """Keeps ids of the rows that are least by (key, id), at most MOST_PROOFS of a group."""

    def __init__(self) -> None:
        self._keys = np.full((0, MOST_PROOFS), _NEVER, np.int64)
        self._ids = np.full((0, MOST_PROOFS), _NEVER, np.int64)

    def add(self, groups: Numbers, keys: Numbers, ids: Numbers) -> None:
        """Rows; groups are numbered from 0."""
        if len(groups) and (missing := int(groups.max()) + 1 - len(self._keys)) > 0:
            more = np.full((missing, MOST_PROOFS), _NEVER, np.int64)
            self._keys, self._ids = np.concatenate([self._keys, more]), np.concatenate([self._ids, more])
        # Few rows first: what they leave lets most of the others be passed over without being sorted.
        start, size = 0, _FEW
        while start < len(groups):
            part = slice(start, start + size)
            self._add(groups[part], keys[part], ids[part])
            start, size = start + size, size * 2

    def of(self, group: int) -> list[int]:
        """Ids of a group, in order."""
        if group >= len(self._ids):
            return []
        return [each for each in self._ids[group].tolist() if each != _NEVER]

    def _add(self, groups: Numbers, keys: Numbers, ids: Numbers) -> None:
        last = self._keys[:, -1].copy()
        rows = np.flatnonzero(keys <= last[groups])
        groups, keys, ids = groups[rows], keys[rows], ids[rows]
        rows = np.flatnonzero((keys < last[groups]) | (ids < self._ids[:, -1][groups]))
        if not len(rows):
            return
        changed = distinct(groups[rows])
        all_groups = np.concatenate([np.repeat(changed, MOST_PROOFS), groups[rows]])
        all_keys = np.concatenate([self._keys[changed].ravel(), keys[rows]])
        all_ids = np.concatenate([self._ids[changed].ravel(), ids[rows]])
        order = np.lexsort((all_ids, all_keys, all_groups))
        sorted_groups = all_groups[order]
        starts = np.flatnonzero(np.diff(sorted_groups, prepend=-1))
        sizes = np.diff(starts, append=len(order))
        places = np.arange(len(order)) - np.repeat(starts, sizes)
        kept = np.flatnonzero(places < MOST_PROOFS)
        self._keys[sorted_groups[kept], places[kept]] = all_keys[order[kept]]
        self._ids[sorted_groups[kept], places[kept]] = all_ids[order[kept]]
