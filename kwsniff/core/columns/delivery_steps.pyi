from typing import Any

Column = Any
"""One that shows its memory, of whole numbers: numpy's arrays, which the core does not know."""

UNKNOWN: int
IN_SYNC: int
STABLE: int
STEPS: tuple[str, ...]

def make_steps(sightings: tuple[Column, ...], places: tuple[Column, ...], steps: Column) -> None:
    """The steps of each row; see the source."""
