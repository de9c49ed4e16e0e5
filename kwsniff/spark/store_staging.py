"""Staging of a run in a store, which becomes the output without renames.

    URI/_kwsniff.json                      names the files that are the tables (manifest.py)
    URI/<table>/date=.../<run>-*.parquet   those files
    URI/_kwsniff.claims/  _kwsniff.runs/   the writer (output_lock.py; folders have locks), unpublished files

Tasks write below `_kwsniff.runs/<run>/`. When all files are complete, they are copied to unique names and
checked; then one small file, the manifest, makes them the tables, and the files of the previous run are
removed. Readers of the manifest always see one run. Readers that list the folders may see files of both runs
for a moment, which differ in `run_id`. Files of a killed run are in no manifest: the next run removes them.
Tables of Delta and Iceberg change one after the other: intent.py.
"""

import re
from collections.abc import Container, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Self

import pyarrow as pa

from kwsniff.errors import OutputError
from kwsniff.spark.capture_fingerprints import check_new, inputs_of_runs
from kwsniff.spark.conditional_writes import GuardedFile
from kwsniff.spark.dated_parts import date_of
from kwsniff.spark.intent import Intent, finish_commit
from kwsniff.spark.manifest import (
    check_files,
    check_same,
    keep_for_readers,
    kept_for_readers,
    manifest_of,
    parts_of,
    paths_of,
    publish,
    read_published,
)
from kwsniff.spark.output_lock import Claim
from kwsniff.spark.parts import Part
from kwsniff.spark.storage import Place, in_threads
from kwsniff.spark.table_formats import keep_parts, place_part
from kwsniff.tables.aggregates import AGGREGATES
from kwsniff.tables.folder import MANIFEST, Folder
from kwsniff.tables.run import new_run_id
from kwsniff.tables.schema import TABLES

if TYPE_CHECKING:
    from collections.abc import Iterator

RUNS: Final = "_kwsniff.runs"
_OURS: Final = ("_kwsniff.", ".kwsniff", *(f"{name}/" for name in (*TABLES, *AGGREGATES)))
_NAMES: Final = "|".join((*TABLES, *AGGREGATES))
_PUBLISHED: Final = re.compile(rf"(?:{_NAMES})/date=[^/]+/[0-9a-f]{{32}}-[^/]+\.parquet")
_RUN: Final = re.compile(r"^[0-9a-f]{32}-")
_LOGGED: Final = re.compile(rf"(?:{_NAMES})/(?:_delta_log|metadata)/.*")


class StoreStaging:
    """A context: `commit` publishes what was written; leaving without it removes that."""

    def __init__(
        self, output: Place, *, form: str = "parquet", mode: str = "overwrite", keep_old: float = 0
    ) -> None:
        """`keep_old`: how many seconds replaced files stay for those who read them."""
        self.output = output
        self._keep_old = keep_old
        self._form, self.mode = form, mode
        self.run = new_run_id()
        self.finished: Intent | None = None
        """The commit of a run that was cut off between two tables, and that this one completed."""
        self.inputs: Sequence[str] = ()
        """The fingerprints of this run's captures."""
        self._guard: GuardedFile | None = None
        self._claim: Claim | Folder = Claim(output, self.run)
        if output.is_local:  # has locks, which end with their process
            self._claim = Folder(output.folder)

    def __enter__(self) -> Self:
        with translate_errors(self.output):
            if self.output.is_local:
                self.output.folder.mkdir(parents=True, exist_ok=True)
            self._refuse_foreign()
            self._claim.__enter__()
            try:
                self.finished = finish_commit(self.output)
                if self.finished:
                    self._refuse_foreign()
                # Delta and Iceberg change their own logs first, which guard themselves.
                if self._form == "parquet":
                    self._guard = GuardedFile.look_at(self.output, MANIFEST)
                self._clear()
                if self.output.is_local:  # tasks do not make them: a worker that does not see them says so
                    for place in (self.place, self.scratch):
                        place.folder.mkdir(parents=True)
            except BaseException:
                self._claim.close()
                raise
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        with translate_errors(self.output):
            try:
                self.output.remove_folder(f"{RUNS}/{self.run}")
            finally:
                self._claim.close()
            if isinstance(error, (OSError, pa.ArrowException)):  # of the run: it read what it had written
                raise error

    @property
    def place(self) -> Place:
        """For what is going to be the output."""
        return self.output.inside(f"{RUNS}/{self.run}/new")

    @property
    def scratch(self) -> Place:
        """For files that only the run itself reads."""
        return self.output.inside(f"{RUNS}/{self.run}/scratch")

    def commit(
        self,
        parts: Sequence[Part],
        facts: Mapping[str, Any],
        *,
        beside: Iterable[str] = (),
        removes: Iterable[str] = (),
    ) -> None:
        """Publishes these files instead of `removes`, which were published before. Raises OutputError,
        and changes nothing, where one is not what its writer said. `beside` is for folders of this machine.
        """
        assert not [*beside]  # noqa: S101 - who asks has looked
        with translate_errors(self.output):
            check_files(self.place, parts)
            final = [replace(part, path=self.name_published(part.path)) for part in parts]
            final = [*in_threads(self._copy, zip(parts, final, strict=True))]
            before = read_published(self.output)
            gone = {*removes}
            if self._form == "delta" and gone:
                final += self._copy_beside(before, gone)
            check_files(self.output, final)
            if isinstance(self._claim, Claim):
                self._claim.check()
            kept = keep_parts(before, self.mode, final, gone)
            inputs = {**inputs_of_runs(before, kept), self.run: [*self.inputs]}
            named = [*_choose_needed(final, kept), *kept]
            paths = {part.path for part in named}
            old = keep_for_readers(self.output, before, paths, self._keep_old)
            said = {"format": self._form, "inputs": inputs, "old": old, **facts}
            manifest = manifest_of(self.run, named, said)
            if self._form == "parquet":
                publish(self.output, manifest, self._guard)
            else:
                intent = Intent(self.mode, final, manifest, sorted(gone))
                intent.write(self.output)
                intent.carry_out(self.output)
            self._clear(paths_of(before))

    def name_published(self, path: str) -> str:
        """What a file of this run is called once it is published."""
        folder, _, name = path.rpartition("/")
        return f"{folder}/{self.run}-{name}"

    def path_inside(self, path: str) -> str:
        """The path in the output of a file that is not published yet."""
        return f"{RUNS}/{self.run}/new/{path}"

    def published_parts(self, *, without: Container[str] = ()) -> list[Part]:
        """The files of earlier runs. Raises OSError, OutputError."""
        return [part for part in parts_of(read_published(self.output)) if part.path not in without]

    def _copy_beside(self, before: Mapping[str, Any] | None, gone: set[str]) -> list[Part]:
        """Delta's log replaces whole days: of days from which files go, those that stay come under new
        names."""
        days = {(path.partition("/")[0], date_of(path)) for path in gone}
        stays = [
            part
            for part in parts_of(before)
            if (part.table, date_of(part.path)) in days and part.path not in gone and part.rows
        ]
        copies = [replace(part, path=self.name_published(_bare_name(part.path))) for part in stays]
        for old, new in zip(stays, copies, strict=True):
            self.output.copy(old.path, new.path)
        gone |= {part.path for part in stays}
        return copies

    def check_new(self, inputs: Mapping[str, str]) -> None:
        """Raises UsageError where tables that are appended to have rows of one of these captures. `inputs`:
        fingerprint -> name."""
        if self.mode == "append":
            with translate_errors(self.output):
                check_new(inputs, read_published(self.output), self.output.root)

    def keep_only(self, parts: Sequence[Part]) -> None:
        """Nothing has to go: only what is named is published."""

    def _copy(self, pair: tuple[Part, Part]) -> Part:
        part, target = pair
        return place_part(self._form, self.output, self.path_inside(part.path), target)

    def _clear(self, before: Container[str] = ()) -> None:
        """Removes files of ours that nothing published names, and what dead runs have left. `before`: the
        files of the run before. Those that an older version of a table has stay."""
        manifest = read_published(self.output)
        named = paths_of(manifest) | kept_for_readers(manifest)
        found = self.output.files()
        if self._form == "parquet":
            mine = [path for path in found if _PUBLISHED.fullmatch(path) or path in before]
            self.output.remove(path for path in mine if path not in named)
        for run in {path.split("/")[1] for path in found if path.startswith(f"{RUNS}/")}:
            if run != self.run:
                self.output.remove_folder(f"{RUNS}/{run}")

    def _refuse_foreign(self) -> None:
        """What is replaced must be ours; a store of other things is left alone."""
        manifest = read_published(self.output)
        check_same(self.output.root, manifest, self._form)
        ours = _OURS if manifest else _OURS[:2]
        foreign = [
            path
            for path in self.output.files()
            if not (path.startswith(ours) or _PUBLISHED.fullmatch(path) or _LOGGED.fullmatch(path))
        ]
        if foreign:
            raise OutputError(
                f"{self.output.root} has files that kwsniff pipeline did not write ({foreign[0]}); "
                "choose a new or empty folder with -o"
            )


def _bare_name(path: str) -> str:
    """Without the id of the run that published it."""
    folder, _, name = path.rpartition("/")
    return f"{folder}/{_RUN.sub('', name)}"


def _choose_needed(parts: Sequence[Part], kept: Iterable[Part]) -> list[Part]:
    """Files without rows only show the columns of a table that has no others."""
    there = {part.table for part in kept}
    return [part for part in parts if part.rows or part.table not in there]


@contextmanager
def translate_errors(place: Place) -> "Iterator[None]":
    """Makes OutputErrors of what a store refuses."""
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        why = " ".join(str(error).split())
        raise OutputError(f"{place.root}: cannot write ({why}); check the URI and its credentials") from error
