"""Of each group the rows that come first: the calls that prove what a sum says, kept while rows pass."""

from typing import Final

import numpy as np

from kwsniff.findings.evaluate import MOST_PROOFS

_NEVER: Final = np.iinfo(np.int64).max


class Foremost:
    """Room for ids of the rows that are least by (key, id), at most MOST_PROOFS of a group, in order.

    What passes over rows fills it (`kwsniff.core.columns`).
    """

    def __init__(self) -> None:
        self.keys = np.full((0, MOST_PROOFS), _NEVER, np.int64)
        self.ids = np.full((0, MOST_PROOFS), _NEVER, np.int64)

    def make_room(self, groups: int) -> None:
        """For so many groups, which are numbered from 0."""
        if (missing := groups - len(self.ids)) > 0:
            more = np.full((missing, MOST_PROOFS), _NEVER, np.int64)
            self.keys, self.ids = np.concatenate([self.keys, more]), np.concatenate([self.ids, more])

    def of(self, group: int) -> list[int]:
        """Ids of a group, in order."""
        return [each for each in self.ids[group].tolist() if each != _NEVER]
