"""Input of the timelines: calls and offsets of a bucket, in the order in which the calls ended.

Every bucket notes the calls that matter with a position, in streams of Arrow's (parquet costs three times as
much, and these are read once or twice). Positions are cut into spans; each has a stream of its own, so that
what is of some spans can be read without the rest (`merged_notes`).

    stream of span 0 | stream of span 3 | ... | where those of span 0, 1, ... begin | rows of each | spans
"""

import uuid
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import ipc

from kwsniff.spark.storage import Place
from kwsniff.tables.arrays import Numbers, numbers, whole_numbers
from kwsniff.tables.schema import TABLES, arrow_schema
from kwsniff.timelines.decoded_messages import BYTES, PLACE
from kwsniff.timelines.deliveries.sightings import SIGHTINGS
from kwsniff.timelines.offsets import OFFSETS
from kwsniff.timelines.timelines import COLUMNS, Noted
from kwsniff.timelines.waits.pending_rows import TIMED

_AT_THE_END = 1 << 62
_ROWS = 1 << 15
_TEXTS = (pa.string(), pa.binary())
_IDS_PER_PACKET = 1000
_ONE_OF_MANY = 1 << 62  # call ids from here on: 2^24 for each packet
_NO_FRAME = -1
CALLS, OFFSETS_NOTED, TIMED_ROWS, SIGHTED = ".calls", ".offsets", ".timed", ".sighted"
"""What files of notes end with."""


class Spans(NamedTuple):
    """Positions are cut into a number of spans of equal packet counts. The last one has all later
    positions."""

    number: int = 1
    packets: int = 1

    def find(self, positions: Numbers) -> Numbers:
        """The span of each."""
        spans: Numbers = np.minimum(positions // self.packets, self.number - 1)
        return spans


ONE: Final = Spans()


def _schema() -> pa.Schema:
    calls = arrow_schema(TABLES["api_calls"])
    kept = [pa.field(name, pa.binary()) for name in BYTES]
    return pa.schema([*(calls.field(name) for name in COLUMNS), *kept, pa.field(PLACE, pa.int64())])


def _encode(schema: pa.Schema) -> pa.Schema:
    """As it is noted: texts as dictionaries."""
    return pa.schema(
        [
            (each.name, pa.dictionary(pa.int32(), each.type) if each.type in _TEXTS else each.type)
            for each in schema
        ]
    )


def _none(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.nulls(0, each.type) for each in schema], schema=schema)


NO_CALLS = _none(_encode(_schema()))
NO_TIMED = _none(_encode(TIMED))
# Threads cost a task twice the processor time.
_COMPRESSED = ipc.IpcWriteOptions(compression="lz4", use_threads=False)


class NotesFile:
    """Notes of one kind, complete when it is closed."""

    def __init__(self, file: Any, schema: pa.Schema, spans: Spans = ONE) -> None:
        self._file = file
        self._schema = _encode(schema)
        self._spans = spans
        self._begins: list[int] = []
        self._rows = np.zeros(spans.number, np.int64)
        self._writer: ipc.RecordBatchStreamWriter | None = None

    def write(self, rows: pa.Table, positions: Numbers) -> None:
        spans = self._spans.find(positions)
        for span in range(int(spans[0]), int(spans[-1]) + 1):
            begin, end = np.searchsorted(spans, [span, span + 1]).tolist()
            if end > begin:
                self._rows[span] += end - begin
                self._stream_of(span).write_table(rows.slice(begin, end - begin), max_chunksize=_ROWS)

    def close(self) -> None:
        self._end_streams(self._spans.number + 1)
        self._file.write(np.array([*self._begins, *self._rows, self._spans.number], np.int64).tobytes())
        self._file.close()

    def _stream_of(self, span: int) -> ipc.RecordBatchStreamWriter:
        if self._writer is None or span >= len(self._begins):
            self._end_streams(span + 1)
            self._writer = ipc.new_stream(self._file, self._schema, options=_COMPRESSED)
        return self._writer

    def _end_streams(self, begun: int) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        self._begins += [self._file.tell()] * (begun - len(self._begins))


class Notes:
    """One bucket's notes, of calls and of offsets; a file is made when there is something to note.

    A position is the number of the packet, counted over all captures, with which a call ended. Calls that the
    end of their connection ended come behind what was noted before them; those that the end of the captures
    ended come last, in the order in which their connections fell silent.
    """

    def __init__(self, folder: Place, task: str, packets_before: int = 0, spans: Spans = ONE) -> None:
        """`packets_before`: packets of the captures before the current one."""
        self._spans = spans
        # The future call from which on this number of packets of other captures precede its own.
        self._packets_before = [(0, packets_before)]
        self._folder = folder
        self._name = f"{task}-{uuid.uuid4().hex[:12]}"
        self._files: dict[str, NotesFile] = {}
        self._latest = 0
        self._silent_since: dict[int, int] | None = None

    @property
    def packets_before(self) -> int:
        """Packets of the captures before the current one."""
        return self._packets_before[-1][1]

    def end_capture(self, packets: int, calls: int) -> None:
        """Takes the number of packets of the current capture, and of calls that `add` will get later."""
        before = self.packets_before + packets
        if self._packets_before[-1][0] == calls:
            self._packets_before.pop()
        self._packets_before.append((calls, before))

    def begin_end(self, connections: pa.RecordBatch) -> None:
        """What comes now was still open; these are the connections that were, too."""
        ids = whole_numbers(connections["connection_id"], null=0).tolist()
        times = whole_numbers(connections["last_time"], null=0).tolist()
        self._silent_since = dict(zip(ids, times, strict=True))

    def add(self, batch: pa.RecordBatch, noted: Noted) -> None:
        """Rows of api_calls in the order in which the bucket gave them, and the notes of them."""
        part, offsets, timed, sightings = noted
        if self._silent_since is None:
            positions = np.maximum(self._ends(batch), self._latest)
        else:
            since = self._silent_since
            ids = whole_numbers(batch["connection_id"], null=0).tolist()
            positions = np.array([_AT_THE_END + since.get(each, 0) for each in ids], np.int64)
        positions = np.maximum.accumulate(positions)
        self._latest = int(positions[-1])
        self._packets_before = [(0, self.packets_before)]
        self._write(CALLS, part, positions, _schema())
        if offsets is not None:
            self._write(OFFSETS_NOTED, offsets, positions, OFFSETS)
        if timed is not None:
            self._write(TIMED_ROWS, timed, positions, TIMED)
        if sightings is not None:
            self._write(SIGHTED, sightings, positions, SIGHTINGS)

    def close(self) -> list[str]:
        """The complete files, by their names in the folder."""
        for file in self._files.values():
            file.close()
        return [self._name + name for name in self._files]

    def _write(self, name: str, batch: pa.RecordBatch, positions: Numbers, schema: pa.Schema) -> None:
        if not batch.num_rows:
            return
        placed = positions[whole_numbers(batch[PLACE], null=0)]
        place = numbers(pa.int64(), placed)
        columns = [place if each == PLACE else batch[each] for each in schema.names]
        coded = _encode(schema)
        if name not in self._files:
            self._files[name] = NotesFile(self._folder.open_output(self._name + name), schema, self._spans)
        self._files[name].write(pa.Table.from_arrays(columns, names=schema.names).cast(coded), placed)

    def _ends(self, calls: pa.RecordBatch) -> Numbers:
        ids = whole_numbers(calls["call_id"], null=0)
        asked = np.where(ids < _ONE_OF_MANY, ids // _IDS_PER_PACKET, (ids - _ONE_OF_MANY) >> 24)
        answered = whole_numbers(calls["response_end_frame"], null=_NO_FRAME)
        begins, before = np.array(self._packets_before, np.int64).T
        capture = np.searchsorted(begins, np.arange(calls.num_rows), side="right") - 1
        return np.where(answered == _NO_FRAME, asked, answered + before[capture])
