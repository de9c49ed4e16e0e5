from typing import Self

from typing_extensions import Buffer

class Guard:
    """As long as it is entered, `data`, a mapped file, can be read to its end, whatever becomes of the file:
    zeroes stand for what it no longer has."""

    def __init__(self, data: Buffer) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *_: object) -> None: ...
    @property
    def has_holes(self) -> bool:
        """Whether something was read that the file no longer has."""
