"""Tables as parquet files while the capture goes on: one directory per table, files that are complete or not
there.

    DIR/api_calls/20261120T191500.123456Z-000001.parquet    named when complete, never touched again
    DIR/latencies/20261120T191500.123456Z-000001.parquet    all tables are closed together, same number
    DIR/.live-<process>/                                    the files being written; removed by the next run

Names say when the run began, in UTC. `spark.read.parquet("DIR/api_calls")` and pyarrow read a directory as it
is; both pass over names that begin with a dot.
"""

import os
import re
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

import pyarrow as pa

from kwsniff.errors import OutputError
from kwsniff.live.session import Batches, one_batch
from kwsniff.tables.write import ROW_GROUP_ROWS, TableWriter
from kwsniff.timelines.late_names import late_names

_STAGING = re.compile(r"\.live-(\d+)")


@dataclass(frozen=True, slots=True)
class Rotation:
    """When files are closed: after so many seconds, or once the largest has so many bytes; whichever is
    first."""

    seconds: float = 60.0
    file_bytes: int = 128_000_000


class RollingTables:
    """Writes batches of a live capture. `finish` completes the open files; leaving the block without it
    removes them.

    Rows are held until they fill a row group or the file is closed, so that a file read at leisure is not
    made of hundreds of small groups. Whatever the operating system refuses is an OutputError.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        tables: Sequence[str],
        rotation: Rotation | None = None,
        late_topics: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        self.directory = Path(directory)
        self.closed: list[Path] = []
        """Files completed since this list was last cleared."""
        self.rows = 0
        self._tables = tuple(tables)
        self._rotation = rotation or Rotation()
        self._late_topics = late_topics
        self._stamp = f"{datetime.now(UTC):%Y%m%dT%H%M%S.%f}Z"
        self._number = 0
        self._named: set[str] = set()
        self._staging = self.directory / f".live-{os.getpid()}"
        self._held: dict[str, list[pa.RecordBatch]] = {}
        self._written: dict[str, int] = {}
        self._writer: TableWriter | None = None
        self._opened = time.monotonic()
        self._make_room()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._writer:
            self._writer.abort()
        with suppress(OSError):
            shutil.rmtree(self._staging)

    def write(self, batches: Batches) -> None:
        """Takes rows; closes the open files when it is time."""
        for table, batch in batches.items():
            if table in self._tables and batch.num_rows:
                self._held.setdefault(table, []).append(batch)
                if sum(held.num_rows for held in self._held[table]) >= ROW_GROUP_ROWS:
                    self._flush(table)
        if self._is_due():
            self.close_files()

    def finish(self) -> None:
        """Completes the open files. Every table has one then, be it an empty one: its directory can be
        read."""
        self.close_files(every=True)

    def close_files(self, *, every: bool = False) -> None:
        """Gives the open files their names. A table without rows gets one if `every` table is to have one."""
        self._opened = time.monotonic()
        for table in list(self._held):
            self._flush(table)
        wanted = self._written.keys() | (set(self._tables) - self._named if every else set())
        if not wanted:
            return
        writer = self._open_writer()
        changes = late_names(self._late_topics(), self._written.keys())
        for table, change in changes.items():
            writer.rewrite(table, change)
        paths = writer.commit()
        self._writer = None
        self._number += 1
        for table, path in paths.items():
            if table in wanted:
                self._name(table, path)
            else:
                path.unlink()
        self._written.clear()

    def _name(self, table: str, path: Path) -> None:
        target = self.directory / table / f"{self._stamp}-{self._number:06}.parquet"
        try:
            target.parent.mkdir(exist_ok=True)
            path.rename(target)
        except OSError as error:
            raise OutputError(f"{target}: cannot be written ({error.strerror or error})") from error
        self._named.add(table)
        self.closed.append(target)

    def _flush(self, table: str) -> None:
        batch = one_batch(self._held.pop(table))
        self._open_writer().write(table, batch)
        self._written[table] = self._written.get(table, 0) + batch.num_rows
        self.rows += batch.num_rows

    def _open_writer(self) -> TableWriter:
        if self._writer is None:
            self._writer = TableWriter(self._staging, self._tables)
        return self._writer

    def _is_due(self) -> bool:
        if time.monotonic() - self._opened >= self._rotation.seconds:
            return True
        if self._writer is None:
            return False
        sizes = [path.stat().st_size for path in self._staging.iterdir()]
        return max(sizes, default=0) >= self._rotation.file_bytes

    def _make_room(self) -> None:
        """Makes the directory, and removes what runs that were killed left open."""
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            for path in self.directory.iterdir():
                found = _STAGING.fullmatch(path.name)
                if found and not _is_running(int(found[1])):
                    shutil.rmtree(path)
        except OSError as error:
            raise OutputError(
                f"{self.directory}: cannot be written ({error.strerror or error}); choose another with -o"
            ) from error


def _is_running(process: int) -> bool:
    return process != os.getpid() and Path(f"/proc/{process}").exists()
