"""Converts growing captures to the same tables, batch by batch, each call once.

The state of the analysis is saved with the position in the files and with the pending changes to the output,
in one record that replaces the previous one atomically. After a crash the stream continues from the record;
files that are not in it belong to an unfinished batch.

    OUT/<table>/date=YYYY-MM-DD/*.parquet     OUT/_stream/record.json, states, files not yet in their place
"""

import fcntl
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

from kwsniff.errors import OutputError, UsageError
from kwsniff.layout.catalog import Layouts, load_catalog, named_layouts
from kwsniff.limits import Limits
from kwsniff.sources.files import Unread
from kwsniff.sources.paths import local_path
from kwsniff.sources.tls import KeyLog, Secrets
from kwsniff.spark.aggregates import write_aggregates
from kwsniff.spark.checkpoint import (
    Record,
    keep_private,
    load_record,
    load_timelines,
    save_record,
    save_timelines,
)
from kwsniff.spark.client_rows import read_sources
from kwsniff.spark.compaction import NO_RULES, Rules, compact_parts
from kwsniff.spark.finish import name_topics
from kwsniff.spark.jobs import run_tasks
from kwsniff.spark.merged_events import merge_events
from kwsniff.spark.parts import Part, PartWriter, check_file, check_parts, empty_path, write_empty
from kwsniff.spark.storage import Place
from kwsniff.spark.stream_task import Advanced, Step, advance_bucket
from kwsniff.spark.tail import File, Piece, Progress
from kwsniff.tables.aggregates import AGGREGATES
from kwsniff.tables.captures import account, captures_batch, unread_anomalies, unread_row
from kwsniff.tables.folder import exchange
from kwsniff.tables.rows import batch_of
from kwsniff.tables.schema import TABLES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BATCH_BYTES: Final = 256 << 20
STATE: Final = "_stream"


class Stream:
    """A directory and the output that follows it; one process at a time."""

    def __init__(
        self,
        directory: str | os.PathLike[str],
        output: str | os.PathLike[str],
        *,
        spark: "SparkSession",
        source: str = "",
        ports: Sequence[int] = (),
        limits: Mapping[str, int] | None = None,
        num_buckets: int = 1,
        layouts: Layouts | None = None,
        tls_keylog: KeyLog = None,
        rules: Rules = NO_RULES,
    ) -> None:
        self._rules = rules
        self.directory = local_path(directory)
        if not Path(self.directory).is_dir():
            raise UsageError(
                f"--stream {self.directory} is not a directory; give the one into which tcpdump rotates files"
            )
        self.output = Path(local_path(output))
        Limits.with_changes(dict(limits or {}))
        self._spark = spark
        self._source = source
        self._pattern = "" if source.endswith("/") else source  # a folder has one recorder
        self._inside = STATE + (f"/{_name_of(source)}" if source else "")
        self._folder = self.output / self._inside
        self._place_of_files = Place(str(self._folder))
        self.unread: list[Unread] = []
        """What was there in the end and cannot be read."""
        self._lock = self._take_lock()
        settings = {
            "ports": [*ports],
            "limits": dict(limits or {}),
            "num_buckets": num_buckets,
            "layouts": named_layouts(layouts) or "",
            "tls_keylog": Secrets(tls_keylog, follow=True).paths,
        }
        try:
            self.record = self._load(settings)
            self._settle()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Releases the lock for other processes."""
        self._lock.close()

    def advance(self, most_bytes: int = BATCH_BYTES) -> int:
        """One batch of what is new; how many pieces of files it had. Without any, nothing happens."""
        if self.record.finished:
            raise UsageError(f"{self.output} is complete after --finish; choose another folder with -o")
        progress = self._progress()
        pieces = progress.next_pieces(self.directory, most_bytes)
        if pieces:
            self._batch(tuple(pieces), progress)
        return len(pieces)

    def finish(self) -> None:
        """No more is going to come: open calls and connections become rows, then the aggregates."""
        self.finish_tables()
        self.write_aggregates()

    def finish_tables(self) -> None:
        """Open calls and connections become rows."""
        if not self.record.finished:
            progress = self._progress()
            self.unread = progress.unread(self.directory)
            self._batch(tuple(progress.end(self.directory)), progress, finish=True)

    def write_aggregates(self) -> None:
        """Those of all rows that are in the folder, whatever source they are of."""
        computed = self._folder / "aggregates"
        computed.mkdir(exist_ok=True)
        write_aggregates(
            self._spark,
            tuple(AGGREGATES),
            Place(str(self.output)),
            (),
            target=Place(str(computed)),
            run_id=self.record.run_id,
            layouts=self.record.settings["layouts"],
        )
        for name in AGGREGATES:
            if not exchange(computed / name, self.output / name):
                shutil.rmtree(self.output / name, ignore_errors=True)
                (computed / name).rename(self.output / name)
        shutil.rmtree(computed)

    def _progress(self) -> Progress:
        return Progress([File(**each) for each in self.record.files], self._pattern)

    def _batch(self, pieces: tuple[Piece, ...], progress: Progress, *, finish: bool = False) -> None:
        old = self.record
        number = old.batch + 1
        step = Step(pieces, len(old.captures), finish)
        work = partial(
            advance_bucket,
            step=step,
            states=[str(self.output / path) for path in old.states],
            folder=str(self._folder),
            prefix=f"{number:08}",
            settings=old.settings,
            run_id=old.run_id,
        )
        done = run_tasks(self._spark, work, range(old.settings["num_buckets"]))
        self._check(done)
        new = Record(number, old.run_id, settings=old.settings, rows=dict(old.rows), finished=finish)
        new.files = [asdict(file) for file in progress.files]
        new.states = [f"{self._inside}/{Path(each.state).name}" for each in done]
        new.names = old.names | {key: name for each in done for key, name in each.topics.items()}
        parts = [part for each in done for part in each.parts]
        parts += self._on_driver(new, done, finish=finish)
        self._place(new, parts)
        for part in parts:
            if part.table != "captures":
                new.rows[part.table] += part.rows
        self._save(new)
        self._settle()

    def _on_driver(self, new: Record, done: Sequence[Advanced], *, finish: bool) -> list[Part]:
        """Rows of groups and transactions, and those of captures, whose bytes settle later."""
        writer = PartWriter(self._place_of_files, f"{new.batch:08}-all", new.run_id)
        saved = self.record.timelines
        output = Place(str(self.output))
        timelines = load_timelines(output, saved, load_catalog(self.record.settings["layouts"]))
        for batch in merge_events(self._place_of_files, [path for each in done for path in each.notes]):
            timelines.add(batch)
        for table, rows in read_sources(self._place_of_files, [part for each in done for part in each.parts]):
            timelines.add_rows(table, rows)
        if finish:
            timelines.finish()
        for table, batch in timelines.drain(1):
            writer.write(table, batch)
        new.timelines = f"{self._inside}/{new.batch:08}.timelines"
        save_timelines(timelines, output, new.timelines)
        new.captures = self.record.captures + done[0].captures
        for number, row in enumerate(new.captures):
            bins = [each.accounting[number] for each in done]
            account(row, {name: sum(each[name] for each in bins) for name in bins[0]})
        told = [*new.captures, *map(unread_row, self.unread)]
        if told:
            writer.write("captures", captures_batch(told))
        if damages := unread_anomalies(self.unread):
            writer.write("anomalies", batch_of("anomalies", damages))
        new.rows["captures"] = len(told)
        return writer.close()

    def _check(self, done: Sequence[Advanced]) -> None:
        """What tasks wrote has to be here before anything is said to be done."""
        for each in done:
            check_parts(self._place_of_files, each.parts)
            for path in (each.state, *each.notes):
                check_file(self._place_of_files, Path(path).name)

    def _place(self, new: Record, parts: Sequence[Part]) -> None:
        """Says what goes where: new parts, those that have a name now, and those that they replace."""
        staging, output = self._place_of_files, Place(str(self.output))
        old = [Part(**{**each, "ids": frozenset(each["ids"])}) for each in self.record.nameless]
        named = name_topics(self._spark, parts, new.names, root=staging, staging=staging)
        again = name_topics(self._spark, old, new.names, root=output, staging=staging)
        placed = [*(named.get(part, part) for part in parts), *again.values()]
        new.removes = [*self.record.replaced, *(part.path for part in again)]
        new.replaced = [part.path for part in placed if part.table == "captures"]
        old = [part for part in old if part not in again]
        ids = {part.path: part.ids for part in old}
        change = compact_parts(output, staging, self._rules, going={*new.removes}, ids=ids)
        placed += change.made
        new.moves = {f"{self._inside}/{part.path}": part.path for part in placed}
        new.removes += change.gone
        for table, rows in change.rows_gone.items():
            new.rows[table] -= rows
        nameless = [part for part in (*placed, *old) if part.ids and part.path not in change.gone]
        new.nameless = [{**asdict(part), "ids": sorted(part.ids)} for part in nameless]

    def _save(self, record: Record) -> None:
        save_record(record, self._folder / "record.json")
        self.record = record

    def _settle(self) -> None:
        """Does what the record says, as far as it is not done, and removes what it does not know."""
        for source, target in self.record.moves.items():
            staged, place = self.output / source, self.output / target
            if staged.exists() and staged != place:
                place.parent.mkdir(parents=True, exist_ok=True)
                staged.replace(place)
        for gone in self.record.removes:
            (self.output / gone).unlink(missing_ok=True)
        for table, rows in self.record.rows.items():
            empty = self.output / empty_path(TABLES[table])
            if rows:
                empty.unlink(missing_ok=True)
            elif not empty.exists():
                write_empty(Place(str(self.output)), TABLES[table])
        known = {self.output / name for name in (*self.record.states, self.record.timelines or "")}
        for path in self._folder.iterdir():
            if path.is_dir():
                if not (path / "lock").exists():  # another source's
                    shutil.rmtree(path)
            elif path not in known and path.name not in ("record.json", "lock"):
                path.unlink()

    def _load(self, settings: dict[str, Any]) -> Record:
        path = self._folder / "record.json"
        if not path.exists():
            return Record(settings=settings)
        record = load_record(path)
        if record.settings != settings:
            raise UsageError(
                f"{self.output} was created with other ports, limits, layouts or buckets: {record.settings}"
            )
        return record

    def _take_lock(self) -> IO[str]:
        begun = (self.output / STATE).is_dir()
        foreign = self.output.is_dir() and not begun and any(self.output.iterdir())
        if foreign or self.output.is_file():
            raise OutputError(
                f"{self.output} was not created by --stream; choose a new or empty folder with -o"
            )
        others = begun and any((self.output / STATE).glob("source-*"))
        if others if not self._source else (self.output / STATE / "record.json").exists():
            raise UsageError(
                f"{self.output} was created {'with' if others else 'without'} --source; continue in the "
                f"same way, or choose another folder with -o"
            )
        try:
            self.output.mkdir(parents=True, exist_ok=True)
            for folder in (self.output / STATE, self._folder):
                folder.mkdir(mode=0o700, exist_ok=True)
                keep_private(folder)
            lock = (self._folder / "lock").open("w")
        except OSError as error:
            raise OutputError(
                f"{self.output}: cannot write ({error.strerror}); choose another folder"
            ) from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            lock.close()
            raise UsageError(f"{self.output}: another process is writing there") from error
        return lock


def _name_of(source: str) -> str:
    """A folder's name for a pattern, which may hold anything."""
    return f"source-{blake2b(os.fsencode(source), digest_size=8).hexdigest()}"
