"""The plan file that every bucket reads: the captures in order, and the places of their packets."""

import os
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.ipc

from kwsniff.analysis.capture_points import CapturePoints
from kwsniff.errors import CaptureError
from kwsniff.spark.inputs import Capture
from kwsniff.spark.parts import check_file
from kwsniff.spark.scan import Walked
from kwsniff.spark.shuffle import PacketFile, Stretch
from kwsniff.spark.storage import Place

_CAPTURES = pa.schema(
    [
        ("name", pa.binary()),
        ("head", pa.binary()),
        ("stop", pa.string()),
        ("stretches", pa.int64()),
        ("seen_at", pa.int64()),
    ]
)
_STRETCHES = pa.schema(
    [
        *((name, pa.int64()) for name in ("file", "packets", "index", "parts", "place")),
        ("named", pa.bool_()),
    ]
)
_FILES = pa.schema([("path", pa.binary()), ("size", pa.int64()), ("index_size", pa.int64())])
_SUFFIXES = (".captures", ".stretches", ".files")
_STEP = 1 << 12


@dataclass(frozen=True, slots=True)
class Planned:
    """A capture, and where its packets are, in their order."""

    name: str
    head: bytes
    stop: str | None
    stretches: list[tuple[PacketFile, Stretch]]
    seen_at: int
    """The place where it was taken."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Where the files of a plan are, and what their names begin with."""

    place: Place
    path: str

    @classmethod
    def write(
        cls,
        folder: Place,
        captures: Sequence[Capture],
        walks: Sequence[Sequence[Walked]],
        places: CapturePoints,
    ) -> "Plan":
        """Raises CaptureError for a capture of which nothing was walked."""
        made = cls(folder, uuid.uuid4().hex)
        files: dict[PacketFile, int] = {}
        read: list[tuple[Any, ...]] = []
        stretches: list[tuple[Any, ...]] = []
        for capture, walked in zip(captures, walks, strict=True):
            if not walked:
                raise CaptureError(f"{capture.name}: nothing of it was read")
            before = len(stretches)
            for walk in walked:
                assert walk.file is not None  # noqa: S101 - it is known where the task came back
                number = files.setdefault(walk.file, len(files))
                stretches += (
                    (number, each.packets, each.index, each.parts, each.place, each.named)
                    for each in walk.stretches
                )
            name = os.fsencode(capture.name)
            told = capture.head, walked[-1].scan.stop, len(stretches) - before, places.find(capture.name)
            read.append((name, *told))
        listed: list[tuple[Any, ...]] = [
            (os.fsencode(each.path), each.size, each.index_size) for each in files
        ]
        for suffix, schema, found in zip(
            _SUFFIXES, (_CAPTURES, _STRETCHES, _FILES), (read, stretches, listed), strict=True
        ):
            columns: list[Any] = [*zip(*found, strict=True)] or [[]] * len(schema)
            arrays = [pa.array(each, field.type) for each, field in zip(columns, schema, strict=True)]
            batch = pa.RecordBatch.from_arrays(arrays, schema=schema)
            with folder.open_output(made.path + suffix) as file, pa.ipc.new_file(file, schema) as writer:
                writer.write_batch(batch)
        return made

    def captures(self) -> Iterator[Planned]:
        """Raises OutputError where workers do not see what the driver wrote."""
        captures, stretches, listed = (self._batch(suffix) for suffix in _SUFFIXES)
        files = [PacketFile(os.fsdecode(each.pop("path")), **each) for each in listed.to_pylist()]
        at = 0
        for begin in range(0, captures.num_rows, _STEP):
            for row in captures.slice(begin, _STEP).to_pylist():
                rows = stretches.slice(at, row["stretches"]).to_pylist()
                at += row["stretches"]
                where = [(files[each.pop("file")], Stretch(**each)) for each in rows]
                yield Planned(os.fsdecode(row["name"]), row["head"], row["stop"], where, row["seen_at"])

    def _batch(self, suffix: str) -> pa.RecordBatch:
        check_file(self.place, self.path + suffix)
        with self.place.open_input(self.path + suffix) as file:
            return pa.ipc.open_file(file).get_batch(0)
