"""What timelines are made of: calls and offsets of all buckets, put into the order in which the calls ended.

Every bucket notes the calls that matter with a position, in streams of Arrow's (parquet costs three times as
much, and these are read once); on the driver the notes are merged, a few batches at a time, and followed as
`kwsniff analyze` follows its rows.
"""

import uuid
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import ipc

from kwsniff.layout.catalog import Catalog
from kwsniff.spark.storage import Place
from kwsniff.tables.arrays import Numbers, numbers, whole_numbers
from kwsniff.tables.kernels import taken
from kwsniff.tables.schema import TABLES, arrow_schema
from kwsniff.timelines.details import BYTES, PLACE
from kwsniff.timelines.held_rows import TIMED
from kwsniff.timelines.offsets import NO_OFFSETS, OFFSETS
from kwsniff.timelines.timelines import COLUMNS, Noted, Timelines, noted, without_twins
from kwsniff.timelines.twins import Twins

_AT_THE_END = 1 << 62
_ROWS = 1 << 15
_READ_BYTES = 1 << 16
_TEXTS = (pa.string(), pa.binary())
_IDS_PER_PACKET = 1000
_ONE_OF_MANY = 1 << 62  # call ids from here on: 2^24 for each packet
_NO_FRAME = -1
_CALLS, _OFFSETS, _TIMED = ".calls", ".offsets", ".timed"


def _schema() -> pa.Schema:
    calls = arrow_schema(TABLES["api_calls"])
    kept = [pa.field(name, pa.binary()) for name in BYTES]
    return pa.schema([*(calls.field(name) for name in COLUMNS), *kept, pa.field(PLACE, pa.int64())])


def _coded(schema: pa.Schema) -> pa.Schema:
    """As it is noted: texts as dictionaries."""
    return pa.schema(
        [
            (each.name, pa.dictionary(pa.int32(), each.type) if each.type in _TEXTS else each.type)
            for each in schema
        ]
    )


def _none(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.nulls(0, each.type) for each in schema], schema=schema)


_NO_CALLS = _none(_coded(_schema()))
_NO_TIMED = _none(_coded(TIMED))
# Threads cost a task twice the processor time, and whoever merges waits for one batch at a time.
_COMPRESSED = ipc.IpcWriteOptions(compression="lz4", use_threads=False)
_ALONE = ipc.IpcReadOptions(use_threads=False)


class Notes:
    """One bucket's notes, of calls and of offsets; a file is made when there is something to note.

    A position is the number of the packet, counted over all captures, with which a call ended. Calls that the
    end of their connection ended come behind what was noted before them; those that the end of the captures
    ended come last, in the order in which their connections fell silent.
    """

    def __init__(self, folder: Place, task: str, catalog: Catalog, packets_before: int = 0) -> None:
        """`packets_before`: of the captures before the one under way."""
        self._catalog = catalog
        # From which of the calls to come on so many packets of other captures are before theirs.
        self._packets_before = [(0, packets_before)]
        self._folder = folder
        self._name = f"{task}-{uuid.uuid4().hex[:12]}"
        self._writers: dict[str, ipc.RecordBatchStreamWriter] = {}
        self._files: dict[str, Any] = {}
        self._latest = 0
        self._silent_since: dict[int, int] | None = None

    @property
    def packets_before(self) -> int:
        """Packets of the captures before the one under way."""
        return self._packets_before[-1][1]

    def end_capture(self, packets: int, calls: int) -> None:
        """The capture under way had so many packets, and so many calls wait that `add` will bring."""
        before = self.packets_before + packets
        if self._packets_before[-1][0] == calls:
            self._packets_before.pop()
        self._packets_before.append((calls, before))

    def begin_end(self, connections: pa.RecordBatch) -> None:
        """What comes now was still open; these are the connections that were, too."""
        ids = whole_numbers(connections["connection_id"], null=0).tolist()
        times = whole_numbers(connections["last_time"], null=0).tolist()
        self._silent_since = dict(zip(ids, times, strict=True))

    def add(
        self,
        batch: pa.RecordBatch,
        details: pa.RecordBatch | None = None,
        partitions: pa.RecordBatch | None = None,
        timed: pa.RecordBatch | None = None,
    ) -> None:
        """Calls in the order in which the bucket gave them, with the bytes that were kept of some, their
        partitions, and those of their rows of latencies that are held back."""
        if not batch.num_rows:
            return
        part, offsets, _ = noted(batch, details, partitions, self._catalog)
        if self._silent_since is None:
            positions = np.maximum(self._ends(batch), self._latest)
        else:
            since = self._silent_since
            ids = whole_numbers(batch["connection_id"], null=0).tolist()
            positions = np.array([_AT_THE_END + since.get(each, 0) for each in ids], np.int64)
        positions = np.maximum.accumulate(positions)
        self._latest = int(positions[-1])
        self._packets_before = [(0, self.packets_before)]
        self._write(_CALLS, part, positions, _schema())
        if offsets is not None:
            self._write(_OFFSETS, offsets, positions, OFFSETS)
        if timed is not None:
            self._write(_TIMED, timed, positions, TIMED)

    def close(self) -> list[str]:
        """The complete files, by their names in the folder."""
        for name, writer in self._writers.items():
            writer.close()
            self._files[name].close()
        return [self._name + name for name in self._writers]

    def _write(self, name: str, batch: pa.RecordBatch, positions: Numbers, schema: pa.Schema) -> None:
        if not batch.num_rows:
            return
        placed = numbers(pa.int64(), positions[whole_numbers(batch[PLACE], null=0)])
        columns = [placed if each == PLACE else batch[each] for each in schema.names]
        coded = _coded(schema)
        if name not in self._writers:
            self._files[name] = self._folder.open_output(self._name + name)
            self._writers[name] = ipc.new_stream(self._files[name], coded, options=_COMPRESSED)
        rows = pa.Table.from_arrays(columns, names=schema.names).cast(coded)
        self._writers[name].write_table(rows, max_chunksize=_ROWS)

    def _ends(self, calls: pa.RecordBatch) -> Numbers:
        ids = whole_numbers(calls["call_id"], null=0)
        asked = np.where(ids < _ONE_OF_MANY, ids // _IDS_PER_PACKET, (ids - _ONE_OF_MANY) >> 24)
        answered = whole_numbers(calls["response_end_frame"], null=_NO_FRAME)
        begins, before = np.array(self._packets_before, np.int64).T
        capture = np.searchsorted(begins, np.arange(calls.num_rows), side="right") - 1
        return np.where(answered == _NO_FRAME, asked, answered + before[capture])


def follow(
    folder: Place, paths: Sequence[str], catalog: Catalog, twins: Twins
) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Batches of the tables in FOLLOWED, of the notes of all buckets but those about twins."""
    timelines = Timelines(catalog)
    for batch in merged(folder, paths):
        timelines.add(without_twins(batch, twins))
        yield from timelines.take(_ROWS)
    timelines.finish()
    yield from timelines.take(0)


def merged(folder: Place, paths: Sequence[str]) -> Iterator[Noted]:
    """The notes by position; memory is that of a batch per file."""
    files = [pa.BufferedInputStream(folder.open_input(path), _READ_BYTES) for path in paths]
    try:
        heads = [_Head(PurePosixPath(path).suffix, file) for path, file in zip(paths, files, strict=True)]
        while heads := [head for head in heads if head.is_open]:
            # Up to here nothing that is not read yet can come in between.
            until = min(head.last for head in heads)
            parts: dict[str, list[_Run]] = {_CALLS: [], _OFFSETS: [], _TIMED: []}
            for head in heads:
                parts[head.kind] += head.taken(until)
            calls, offsets, timed = parts.values()
            yield Noted(
                _in_order(calls, _NO_CALLS),
                _in_order(offsets, NO_OFFSETS),
                _in_order(timed, _NO_TIMED) if timed else None,
            )
    finally:
        for file in files:
            file.close()


class _Run(NamedTuple):
    """Rows of one file and their positions."""

    rows: pa.RecordBatch
    positions: Numbers


class _Head:
    """A file of notes, read a batch at a time; what of it was not taken yet."""

    def __init__(self, kind: str, file: Any) -> None:
        self.kind = kind
        self.is_open = True
        """Whether something is at hand."""
        self._batches = _batches(file)
        self._rows: pa.RecordBatch = _NO_CALLS
        self._positions: Numbers = np.zeros(0, np.int64)
        self._begin = 0
        self._refill()

    @property
    def last(self) -> int:
        """The last position of the batch that is at hand."""
        return int(self._positions[-1])

    def taken(self, until: int) -> list[_Run]:
        """What is at hand up to a position, if anything."""
        begin, places = self._begin, self._positions
        end = len(places) if until >= self.last else int(np.searchsorted(places, until, side="right"))
        found = [_Run(self._rows.slice(begin, end - begin), places[begin:end])] if end > begin else []
        self._begin = end
        if end == len(places):
            self._refill()
        return found

    def _refill(self) -> None:
        rows = next(self._batches, None)
        self.is_open = rows is not None
        self._begin = 0
        self._rows = _NO_CALLS if rows is None else rows
        self._positions = whole_numbers(self._rows[PLACE], null=0)


def _batches(file: Any) -> Iterator[pa.RecordBatch]:
    with ipc.open_stream(file, options=_ALONE) as stream:
        yield from stream


def _in_order(runs: Sequence[_Run], none: pa.RecordBatch) -> pa.RecordBatch:
    """One batch, by position; of the same position, by bucket, each in its own order."""
    if not runs:
        return none
    if len(runs) == 1:
        return runs[0].rows
    order = np.argsort(np.concatenate([each.positions for each in runs]), kind="stable")
    return taken(pa.concat_batches([each.rows for each in runs]), order)
