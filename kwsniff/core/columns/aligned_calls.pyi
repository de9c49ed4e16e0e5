from typing import Any

Column = Any
"""One that shows its memory, of whole numbers: numpy's arrays, which the core does not know."""

NO_END: int

def align_calls(calls: tuple[Column, ...], upstream: tuple[Column, ...], found: Column) -> None:
    """The row of `calls` that each row of `upstream` belongs to, or -1; see the source."""
