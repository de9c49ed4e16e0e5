"""The saved state of a bucket's analyzer, with what its rows hold back, from which a later task continues."""

from collections.abc import Container, Mapping, Sequence
from typing import NamedTuple

from kwsniff.analyzers import resume_analyzer, start_analyzer
from kwsniff.core.analyzer import Analyzer
from kwsniff.layout.catalog import Catalog

_NUMBER_BYTES = 8
"""A state begins with two numbers: packets of the captures before the one that is open, and bytes of the
state of the row path, which follows. The analyzer's comes last."""


class Saved(NamedTuple):
    """The parts of a state. `analyzer`: None, where nothing was read yet."""

    packets_before: int = 0
    row_path: bytes = b""
    analyzer: bytes | None = None

    @classmethod
    def read(cls, state: bytes) -> "Saved":
        """From its bytes."""
        before, size = (int.from_bytes(state[at : at + _NUMBER_BYTES], "little") for at in (0, _NUMBER_BYTES))
        begin = 2 * _NUMBER_BYTES
        return cls(before, state[begin : begin + size], state[begin + size :])

    def to_bytes(self) -> bytes:
        """As `read` takes them."""
        numbers = (self.packets_before, len(self.row_path))
        head = [each.to_bytes(_NUMBER_BYTES, "little") for each in numbers]
        return b"".join([*head, self.row_path, self.analyzer or b""])

    def take_up(
        self,
        catalog: Catalog,
        tables: Container[str],
        *,
        ports: Sequence[int],
        limits: Mapping[str, int],
        bucket: tuple[int, int] | None,
    ) -> Analyzer:
        """An analyzer that continues, or begins. It has no secrets: these are read again. Raises UsageError
        for a damaged state, and for one of another build or other layouts."""
        if self.analyzer is None:
            return start_analyzer(catalog, tables, ports=ports, limits=limits, bucket=bucket)
        return resume_analyzer(catalog, self.analyzer, tables)
