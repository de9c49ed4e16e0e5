"""The plan of an analysis: what its caller asks for, checked."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from kwsniff.analysis.capture_points import CapturePoints
from kwsniff.analysis.filled_holes import FilledHoles
from kwsniff.errors import UsageError
from kwsniff.filter.rows_of_calls import Chosen
from kwsniff.layout.catalog import Catalog
from kwsniff.limits import Limits
from kwsniff.memory import foreign_bytes
from kwsniff.sources.files import Found
from kwsniff.sources.times import Given as Time
from kwsniff.sources.times import TimeRange
from kwsniff.sources.tls import KeyLog

Progress = Callable[[str, int, int | None], None]
"""Called with the capture's name, the raw bytes read so far of all captures, and their total if known."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Captures to read, and what becomes of their rows."""

    found: Found
    output: str | os.PathLike[str] | None
    chosen: tuple[str, ...]
    ports: Sequence[int]
    bounds: Limits
    progress: Progress | None
    tls_keylog: KeyLog
    run: str
    catalog: Catalog
    size: int | None
    """Bytes of the captures; None where they are not files, which can be read a second time."""
    times: tuple[Time, Time]
    """Packets from the first on, before the second."""
    sort: bool
    num_analyzers: int = 1
    only: Chosen | None = None
    places: CapturePoints | None = None
    """Of the captures that can be read; None: not known."""
    filled: FilledHoles | None = None
    """What other captures have of bytes that one misses."""
    foreign: int = field(default_factory=foreign_bytes)
    """Bytes of memory that the process had before, in addition to kwsniff's own."""


def check_plan(since: Time, until: Time, output: str | os.PathLike[str] | None, *, sort: bool) -> None:
    """Raises UsageError for what does not go together."""
    TimeRange(since, until)
    if sort and output is None:
        raise UsageError("only files are sorted: name a folder for them (-o DIR, output=)")
