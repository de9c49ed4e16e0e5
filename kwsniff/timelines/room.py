"""What is followed over many calls has one bound in bytes: a capture may name as much as it likes.

Who follows something charges what it keeps, by the sizes of Python's objects; who has no room forgets what
was silent longest, or takes nothing new. Either is counted, and told as an anomaly.

    --limit memory | interpreter | core: 1/2 of the rest | rows: 1/4 | Room: 1/4 |
"""

from typing import Any, Final

from kwsniff.limits import Limits
from kwsniff.tables.schema import TABLES

_INTERPRETER: Final = 150_000_000
_LEAST: Final = 8_000_000
SHORT: Final = 128
"""Bytes of a number or a short text in a list or a dictionary, about."""
RECORD: Final = 640
"""Bytes of an object with a dozen of fields, its key and its place."""


class Room:
    """Bytes that are kept, and `most` of them. `left_out`: what was forgotten or not taken in."""

    def __init__(self, memory: int = Limits().memory) -> None:
        self.most = max((memory - _INTERPRETER) // 4, _LEAST)
        self.used = 0
        self.left_out = 0

    def charge(self, num: int) -> None:
        """So many bytes more are kept, or fewer."""
        self.used += num

    @property
    def is_full(self) -> bool:
        """Whether something has to go."""
        return self.used > self.most

    def admits(self, num: int, *, full: bool = False) -> bool:
        """Charges bytes if they fit; what does not, or has no room of its own (`full`), is left out."""
        if full or self.used + num > self.most:
            self.left_out += 1
            return False
        self.used += num
        return True

    def state(self) -> tuple[int, int]:
        """For `resume`."""
        return self.used, self.left_out

    def resume(self, state: tuple[int, int]) -> None:
        """Goes on where another stood."""
        self.used, self.left_out = state

    def anomalies(self) -> list[dict[str, Any]]:
        """A row of anomalies, where something was left out."""
        if not self.left_out:
            return []
        columns = dict.fromkeys(column.name for column in TABLES["anomalies"].columns)
        return [{**columns, "name": "timelines_limit", "value": self.left_out}]
