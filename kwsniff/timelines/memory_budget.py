"""The memory limit of state over many calls: a capture may contain any number of names.

Trackers charge the size of their Python objects here. When the limit is reached, a tracker drops the entries
idle for longest or takes no new ones. Both are counted and become an anomaly.

    --limit memory | interpreter | core: 1/2 of the rest | rows: 1/4 | names: 1/4 |
"""

from typing import Any, Final

from kwsniff.limits import Limits
from kwsniff.tables.schema import TABLES

_INTERPRETER: Final = 150_000_000
_LEAST: Final = 8_000_000
SHORT: Final = 128
"""Approximate bytes of a number or a short text in a list or a dictionary."""
RECORD: Final = 640
"""Approximate bytes of an object with a dozen fields, with its key and slot."""


class MemoryBudget:
    """Charged bytes, and their maximum `most`. `left_out`: number of dropped or ignored entries."""

    def __init__(self, memory: int = Limits().memory) -> None:
        self.most = max((memory - _INTERPRETER) // 4, _LEAST)
        self.used = 0
        self.left_out = 0

    def charge(self, num: int) -> None:
        """Adds or subtracts charged bytes."""
        self.used += num

    @property
    def is_full(self) -> bool:
        """Whether entries must be dropped."""
        return self.used > self.most

    def admits(self, num: int, *, full: bool = False) -> bool:
        """Charges bytes if they fit and the tracker itself is not `full`; otherwise counts the entry as
        left out."""
        if full or self.used + num > self.most:
            self.left_out += 1
            return False
        self.used += num
        return True

    def state(self) -> tuple[int, int]:
        """The state for `resume`."""
        return self.used, self.left_out

    def resume(self, state: tuple[int, int]) -> None:
        """Continues from a saved state."""
        self.used, self.left_out = state

    def anomalies(self) -> list[dict[str, Any]]:
        """A row of anomalies, if entries were left out."""
        if not self.left_out:
            return []
        columns = dict.fromkeys(column.name for column in TABLES["anomalies"].columns)
        return [{**columns, "name": "timelines_limit", "value": self.left_out}]
