"""Of each group the rows that come first: the calls that prove what a sum says, kept while rows pass."""

from typing import Final

import numpy as np

from kwsniff.findings.prefilter.dictionaries import Numbers, as_bytes, from_bytes
from kwsniff.findings.rule import MOST_PROOFS

_NEVER: Final = np.iinfo(np.int64).max


class TopK:
    """Room for ids of the rows that are least by (key, id), at most MOST_PROOFS of a group, in order.

    What passes over rows fills it (`kwsniff.core.columns`).
    """

    def __init__(self) -> None:
        self.keys = np.full((0, MOST_PROOFS), _NEVER, np.int64)
        self.ids = np.full((0, MOST_PROOFS), _NEVER, np.int64)

    def make_room(self, groups: int) -> None:
        """Reserves space for a number of groups, numbered from 0."""
        if (missing := groups - len(self.ids)) > 0:
            more = np.full((missing, MOST_PROOFS), _NEVER, np.int64)
            self.keys, self.ids = np.concatenate([self.keys, more]), np.concatenate([self.ids, more])

    def state(self) -> tuple[bytes, ...]:
        """What is there, for `add_up`."""
        there = self.ids != _NEVER
        return tuple(map(as_bytes, (np.nonzero(there)[0], self.keys[there], self.ids[there])))

    def merge(self, state: tuple[bytes, ...], numbers: Numbers) -> None:
        """Takes in what another one kept. `numbers`: of its groups, those that they have here, or -1."""
        groups, keys, ids = (from_bytes(each)[0] for each in state)
        chosen = numbers[groups] >= 0
        groups, keys, ids = numbers[groups[chosen]], keys[chosen], ids[chosen]
        met = np.zeros(len(self.ids), np.bool_)
        met[groups] = True
        there = (self.ids != _NEVER) & met[:, None]
        groups = np.concatenate([np.nonzero(there)[0], groups])
        keys, ids = np.concatenate([self.keys[there], keys]), np.concatenate([self.ids[there], ids])
        order = np.lexsort((ids, keys, groups))
        groups, keys, ids = groups[order], keys[order], ids[order]
        begins = np.flatnonzero(np.diff(groups, prepend=-1))
        ranks = np.arange(len(groups)) - np.repeat(begins, np.diff(begins, append=len(groups)))
        first = ranks < MOST_PROOFS
        self.keys[groups[first], ranks[first]] = keys[first]
        self.ids[groups[first], ranks[first]] = ids[first]

    def list_ids(self, group: int) -> list[int]:
        """Ids of a group, in order."""
        return [each for each in self.ids[group].tolist() if each != _NEVER]
