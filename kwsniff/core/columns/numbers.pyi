from typing import Any

Array = Any
"""What shows its memory, of whole numbers: numpy's arrays, which the core does not know."""

class WholeColumn:
    """Rows of one column, read where Arrow keeps them; see the source."""

    rows: int
    def __init__(self, values: Any, width: int, first: int, rows: int, valid: Any = None) -> None: ...
    def spread(self, null: int, into: Array) -> None:
        """All rows as 64-bit numbers, `null` where they are null."""

    def bounds(self, null: int) -> tuple[int, int]:
        """The least and the greatest number, `null` where rows are null; (`null`, `null`) of no rows."""

    def count(self, wanted: int) -> int:
        """Rows with this number."""

    def sum_above(self, above: int) -> int:
        """The sum of all numbers that are greater."""
