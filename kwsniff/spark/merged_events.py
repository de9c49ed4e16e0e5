"""Notes of all buckets, put into the order in which the calls ended, a few batches at a time."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import pairwise
from pathlib import PurePosixPath
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import ipc

from kwsniff.spark.events import CALLS, NO_CALLS, NO_TIMED, OFFSETS_NOTED, SIGHTED, TIMED_ROWS
from kwsniff.spark.storage import Place
from kwsniff.tables.arrays import Numbers, whole_numbers
from kwsniff.tables.compute import take_rows
from kwsniff.timelines.decoded_messages import PLACE
from kwsniff.timelines.deliveries.sightings import NO_SIGHTINGS
from kwsniff.timelines.offsets import NO_OFFSETS
from kwsniff.timelines.timelines import Noted

_READ_BYTES: Final = 1 << 16
_WORD: Final = 8
# Threads take twice the CPU time, and the merge waits for one batch at a time.
_ALONE: Final = ipc.IpcReadOptions(use_threads=False)
_LAST: Final = 1 << 62
_MOST_RUNS: Final = 16
"""Batches of one file that may come together, so that memory stays bounded whatever positions say."""


class Index(NamedTuple):
    """Where the stream of each span begins in a file of notes, and the last one ends; and their rows."""

    begins: Numbers
    rows: Numbers


def read_index(file: Any) -> Index:
    """Of an open file."""
    size = file.size()
    file.seek(size - _WORD)
    number = int.from_bytes(file.read(_WORD), "little")
    file.seek(size - (2 * number + 2) * _WORD)
    found = np.frombuffer(file.read((2 * number + 1) * _WORD), np.int64)
    return Index(found[: number + 1], found[number + 1 :])


def merge_events(folder: Place, paths: Sequence[str], first: int = 0, last: int = _LAST) -> Iterator[Noted]:
    """The notes by position, of the spans from `first` to before `last`; memory is that of a batch per file.

    All of one position come together.
    """
    with ExitStack() as stack:
        files = [stack.enter_context(folder.open_input(path)) for path in paths]
        kinds = [PurePosixPath(path).suffix for path in paths]
        heads = [_Head(kind, _batches(file, first, last)) for kind, file in zip(kinds, files, strict=True)]
        while heads := [head for head in heads if head.is_open]:
            # Up to here nothing that is not read yet can come in between.
            until = min(head.last for head in heads)
            parts: dict[str, list[_Run]] = {CALLS: [], OFFSETS_NOTED: [], TIMED_ROWS: [], SIGHTED: []}
            for head in heads:
                parts[head.kind] += head.take_until(until)
            calls, offsets, timed, sighted = parts.values()
            yield Noted(
                _in_order(calls, NO_CALLS),
                _in_order(offsets, NO_OFFSETS),
                _in_order(timed, NO_TIMED) if timed else None,
                _in_order(sighted, NO_SIGHTINGS) if sighted else None,
            )


class _Run(NamedTuple):
    """Rows of one file and their positions."""

    rows: pa.RecordBatch
    positions: Numbers


class _Head:
    """A file of notes, read a batch at a time; what of it was not taken yet."""

    def __init__(self, kind: str, batches: Iterator[pa.RecordBatch]) -> None:
        self.kind = kind
        self.is_open = True
        """Whether something is at hand."""
        self._batches = batches
        self._rows: pa.RecordBatch = NO_CALLS
        self._positions: Numbers = np.zeros(0, np.int64)
        self._begin = 0
        self._refill()

    @property
    def last(self) -> int:
        """The last position of the batch that is at hand."""
        return int(self._positions[-1])

    def take_until(self, until: int) -> list[_Run]:
        """All up to a position: what is at hand of it, and what comes at the position itself."""
        found: list[_Run] = []
        while self.is_open and self._positions[self._begin] <= until and len(found) < _MOST_RUNS:
            begin, places = self._begin, self._positions
            end = len(places) if until >= self.last else int(np.searchsorted(places, until, side="right"))
            found.append(_Run(self._rows.slice(begin, end - begin), places[begin:end]))
            self._begin = end
            if end == len(places):
                self._refill()
        return found

    def _refill(self) -> None:
        rows = next(self._batches, None)
        self.is_open = rows is not None
        self._begin = 0
        self._rows = NO_CALLS if rows is None else rows
        self._positions = whole_numbers(self._rows[PLACE], null=0)


def _batches(file: Any, first: int, last: int) -> Iterator[pa.RecordBatch]:
    index = read_index(file)
    begins = index.begins[first : last + 1].tolist()
    if not begins:
        return
    file.seek(begins[0])
    buffered = pa.BufferedInputStream(file, _READ_BYTES)
    for begin, end in pairwise(begins):
        if end > begin:
            with ipc.open_stream(buffered, options=_ALONE) as stream:
                yield from stream


def _in_order(runs: Sequence[_Run], none: pa.RecordBatch) -> pa.RecordBatch:
    """One batch, by position; of the same position, by bucket, each in its own order."""
    if not runs:
        return none
    if len(runs) == 1:
        return runs[0].rows
    order = np.argsort(np.concatenate([each.positions for each in runs]), kind="stable")
    return take_rows(pa.concat_batches([each.rows for each in runs]), order)
