"""What a run of the pipeline gives back."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kwsniff.sources.files import Unread


@dataclass(frozen=True, slots=True)
class Result:
    """What a run made."""

    output: Path | str
    """A folder, or the URI of one."""
    rows: dict[str, int]
    """Table -> rows."""
    captures: list[dict[str, Any]]
    """Rows of captures, times in nanoseconds."""
    unread: list[Unread]
    """What was found and could not be read."""
    facts: dict[str, int]
    """splits, buckets; capture_bytes, and bytes_read of them by the first stage; bytes_kept: of packets
    between the stages; bytes_named: of packets that the second stage reads in the captures instead."""
    no_packets: str | None = None
    """What the captures have instead, where no packet lies between `since` and `until`."""
    absent_ports: tuple[int, ...] = ()
    """Those of `ports` that no connection has."""
    finished: str | None = None
    """An earlier run over the same captures, cut off between two tables: this one completed it, and read
    nothing more. `rows` are those of that run."""
    known: tuple[str, ...] = ()
    """With `state`: captures that an earlier run has read, and this one passed over."""
