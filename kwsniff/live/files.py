"""Tables as parquet files during the capture: one directory per table, and only complete files
in it.

    DIR/api_calls/20261120T191500.123456Z-000001.parquet    named when complete, then never changed
    DIR/latencies/20261120T191500.123456Z-000001.parquet    files of all tables close together, with the
    same number
    DIR/.kwsniff-<random>/                                  files being written; kwsniff/tables/folder.py

Names have the start time of the run, in UTC. `spark.read.parquet("DIR/api_calls")` and pyarrow read such a
directory; both skip names that begin with a dot.
"""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Self

import pyarrow as pa

from kwsniff.errors import OutputError
from kwsniff.findings.finding import Finding
from kwsniff.findings.finding_calls import TABLE
from kwsniff.findings.finding_rows import rows_of
from kwsniff.findings.views import FOUND
from kwsniff.live.batches import Batches, one_batch
from kwsniff.tables.folder import MANIFEST, Folder, translate_errors
from kwsniff.tables.harm import KEYS, HeldHarm, fill
from kwsniff.tables.rows import batch_of
from kwsniff.tables.run import new_run_id
from kwsniff.tables.schema import TABLES
from kwsniff.tables.write import ROW_GROUP_ROWS, TableFiles
from kwsniff.timelines.metadata.late_topic_names import ShownIds

_HELD_BYTES: Final = 24_000_000
"""Bytes of the rows held in memory."""


@dataclass(frozen=True, slots=True)
class Rotation:
    """When files close: after that many seconds, or when the largest has that many bytes, whichever is
    first."""

    seconds: float = 60.0
    file_bytes: int = 128_000_000


class RollingTables:
    """Writes batches of a live capture. `finish` completes the open files; leaving the block without it
    removes them.

    Several runs may write into one folder, one after the other. A folder with tables of another verb is an
    error: a file `api_calls.parquet` hides the folder `api_calls` from readers, and folders by date do not
    mix with files.

    Rows stay in memory until they fill a row group, take too much memory, or the file closes, so that a file
    does not consist of hundreds of small row groups. Raises OutputError for write errors, and if another run
    writes to the folder.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        tables: Sequence[str],
        rotation: Rotation | None = None,
        late_topics: Callable[[], Mapping[str, str]] = dict,
        run_id: str | None = None,
    ) -> None:
        self.directory = Path(directory)
        self.closed: list[Path] = []
        """Files completed since this list was last cleared."""
        self.rows = 0
        self._tables = tuple(tables)
        self._rotation = rotation or Rotation()
        self.late_topics = late_topics
        """Returns names for topic ids in rows."""
        self.findings: Callable[[], tuple[Sequence[Finding], Sequence[pa.RecordBatch]]] = lambda: ((), ())
        """Returns the findings since the last call and rows of `finding_calls`; called when files close."""
        self.harm: Callable[[], HeldHarm] = lambda: HeldHarm(1)
        """Returns what calls and connections suffered, as far as it is known; called when files close."""
        self._stamp = f"{datetime.now(UTC):%Y%m%dT%H%M%S.%f}Z"
        self._number = 0
        self._named: set[str] = set()
        self._run_id = run_id or new_run_id()
        self._held: dict[str, list[pa.RecordBatch]] = {}
        self._held_bytes: dict[str, int] = {}
        self._written: dict[str, int] = {}
        self._shown = ShownIds()
        self._files: TableFiles | None = None
        self._opened = time.monotonic()
        _refuse_others(self.directory)
        self._folder = Folder(self.directory)
        self._folder.__enter__()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._files:
            self._files.abort()
        self._folder.close()

    def abandon(self) -> None:
        """Incomplete files are deleted: they cannot be completed, and take space."""
        if self._files:
            self._files.abort()
            self._files = None
        self._held.clear()
        self._held_bytes.clear()
        self._folder.close()

    def write(self, batches: Batches) -> None:
        """Takes rows; closes the open files when due."""
        for table, batch in batches.items():
            if table in self._tables and batch.num_rows:
                self._held.setdefault(table, []).append(batch)
                if sum(held.num_rows for held in self._held[table]) >= ROW_GROUP_ROWS:
                    self._flush(table)
                else:
                    self._held_bytes[table] = self._held_bytes.get(table, 0) + batch.nbytes
        while sum(self._held_bytes.values()) > _HELD_BYTES:
            self._flush(max(self._held_bytes, key=self._held_bytes.__getitem__))
        if self._is_due():
            self.close_files()

    def finish(self) -> None:
        """Completes the open files. Every table then has at least one file, possibly empty, so that its
        directory
        can be read."""
        self.close_files(every=True)

    def close_files(self, *, every: bool = False) -> None:
        """Gives the open files their names. A table without rows gets one if `every` table is to have one."""
        self._opened = time.monotonic()
        if not FOUND.isdisjoint(self._tables):
            found, calls = self.findings()
            for table, batches in (("findings", [batch_of("findings", rows_of(found))]), (TABLE, calls)):
                if table in self._tables and found and batches:
                    self._held[table] = [*batches]
        for table in list(self._held):
            self._flush(table)
        wanted = self._written.keys() | (set(self._tables) - self._named if every else set())
        if not wanted:
            return
        files = self._open_files()
        changes = self._shown.late_names(self.late_topics())
        with translate_errors(self.directory):
            for table, change in changes.items():
                files.rewrite(table, change)
            files.close()
            self._write_harm(files)
        self._files = None
        named = {table: self._name(table) for table in self._tables if table in wanted}
        self._folder.commit(named.values())
        for table in set(self._tables) - named.keys():
            (self._folder.new / self._name(table)).unlink()
        self._number += 1
        self._named |= named.keys()
        self.closed += [self.directory / name for name in named.values()]
        self._written.clear()
        self._shown.clear()

    def _write_harm(self, files: TableFiles) -> None:
        """Rewrites files with harmed rows. What is found later is not in them."""
        harm = self.harm()
        for table in KEYS:
            if table in self._written and harm.is_in(table, self._folder.new / self._name(table)):
                files.rewrite(table, fill(table, harm), coded=True)

    def _name(self, table: str) -> str:
        return f"{table}/{self._stamp}-{self._number + 1:06}.parquet"

    def _flush(self, table: str) -> None:
        batch = one_batch(self._held.pop(table))
        self._held_bytes.pop(table, None)
        files = self._open_files()
        with translate_errors(self.directory):
            files.write(table, batch)
        self._shown.add(table, batch)
        self._written[table] = self._written.get(table, 0) + batch.num_rows
        self.rows += batch.num_rows

    def _open_files(self) -> TableFiles:
        if self._files is None:
            with translate_errors(self.directory):
                paths = {table: self._folder.new / self._name(table) for table in self._tables}
                for path in paths.values():
                    path.parent.mkdir(exist_ok=True)
                self._files = TableFiles(paths, self._run_id)
        return self._files

    def _is_due(self) -> bool:
        if time.monotonic() - self._opened >= self._rotation.seconds:
            return True
        if self._files is None:
            return False
        sizes = [(self._folder.new / self._name(table)).stat().st_size for table in self._tables]
        return max(sizes, default=0) >= self._rotation.file_bytes


def _refuse_others(directory: Path) -> None:
    """Raises OutputError if the folder has tables of analyze or pipeline."""
    for name in (MANIFEST, *(f"{table}.parquet" for table in TABLES)):
        if (directory / name).exists():
            raise OutputError(
                f"{directory} has tables that kwsniff live did not write ({name}); "
                "choose a new or empty folder with -o"
            )
