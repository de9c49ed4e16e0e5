"""Staging of a run: a hidden folder next to the output, which replaces the output at the end.

Readers of the output see either the previous or this run, complete (see kwsniff/tables/folder.py); the next
run removes the files of a killed run. For stores: kwsniff/spark/store_staging.py.
"""

import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from kwsniff.errors import OutputError
from kwsniff.sources.paths import local_path
from kwsniff.spark.file_systems import check_uri, check_written, is_uri, settings_for
from kwsniff.spark.manifest import as_text, check_files, check_same, manifest_of, read_published
from kwsniff.spark.parts import Part
from kwsniff.spark.storage import Place
from kwsniff.tables.aggregates import AGGREGATES
from kwsniff.tables.folder import MANIFEST, Folder, translate_errors
from kwsniff.tables.run import new_run_id
from kwsniff.tables.schema import TABLES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kwsniff.spark.store_staging import StoreStaging

_OURS: Final = (MANIFEST, *TABLES, *AGGREGATES)


class Staging:
    """A context: `commit` makes the output of what was written; leaving without it removes that."""

    def __init__(self, output: str | os.PathLike[str]) -> None:
        self.output = Path(os.path.abspath(local_path(output)))  # noqa: PTH100 - a link stays a link
        self.run = new_run_id()
        self.inputs: Sequence[str] = ()
        """The fingerprints of this run's captures."""
        self._place = Folder(self.output, whole=True)

    def __enter__(self) -> Self:
        _refuse_foreign(self.output)
        self._place.__enter__()
        try:
            with translate_errors(self.output):
                (self._place.staging / "scratch").mkdir()
        except BaseException:
            self._place.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._place.close()

    @property
    def place(self) -> Place:
        """For what is going to be the output."""
        return Place(str(self._place.new))

    @property
    def scratch(self) -> Place:
        """For files that only the run itself reads."""
        return Place(str(self._place.staging / "scratch"))

    def commit(self, parts: Sequence[Part], facts: Mapping[str, Any], *, beside: Iterable[str] = ()) -> None:
        """Publishes these files atomically, with the content of the folders `beside`.

        Files of failed attempts are not among them. Raises OutputError, without any change, if one of them
        does not match its writer's result.
        """
        _refuse_foreign(self.output)
        check_files(self.place, parts)
        with translate_errors(self.output):
            self.keep_only(parts, beside=beside)
            manifest = as_text(manifest_of(self.run, parts, {"inputs": {self.run: [*self.inputs]}, **facts}))
            (self._place.new / MANIFEST).write_text(manifest, "utf-8")
            made = {path.name for path in self._place.new.iterdir()}
        self._place.commit(sorted(made), [name for name in _OURS if name not in made])

    def keep_only(self, parts: Sequence[Part], *, beside: Iterable[str] = ()) -> None:
        """Removes what attempts that died have written: all files but these, and what lies in `beside`."""
        tables = {part.table for part in parts}
        kept = {self._place.new / part.path for part in parts}
        for folder in self._place.new.iterdir():
            if folder.name not in tables:
                shutil.rmtree(folder)
                continue
            for file in folder.rglob("*"):
                inside = file.relative_to(folder).parts[0]
                if file.is_file() and file not in kept and inside not in beside:
                    file.unlink()


def _refuse_foreign(output: Path) -> None:
    """What is replaced must be ours."""
    if not output.exists():
        return
    if not output.is_dir():
        raise OutputError(f"{output} is a file; choose a folder with -o")
    shown = [path for path in output.iterdir() if not path.name.startswith(".kwsniff")]
    check_same(str(output), read_published(Place(str(output))), "parquet")
    if shown and not (output / MANIFEST).is_file():
        raise OutputError(
            f"{output} has files that kwsniff pipeline did not write; choose a new or empty folder with -o"
        )


def place_of(given: str | os.PathLike[str], spark: "SparkSession") -> Place:
    """The place of a path, or of a URI that is written to. Raises UsageError."""
    if not is_uri(given):
        return Place(str(Path(local_path(given)).absolute()))
    uri = check_uri(os.fspath(given))
    place = Place(uri, settings_for(spark, uri))
    check_written(uri, place.settings)
    return place


@contextmanager
def scratch_in(
    given: str | os.PathLike[str] | None, staging: "Staging | StoreStaging", spark: "SparkSession"
) -> "Iterator[Place]":
    """Where files lie that only the run itself reads: a folder of its own inside `given`, a path or a URI,
    which is removed in the end; without it the output's. Raises OutputError."""
    if given is None:
        yield staging.scratch
        return
    name = f"kwsniff-{staging.run}"
    place = place_of(given, spark)
    if place.is_local:
        with translate_errors(place.folder):
            (place.folder / name).mkdir(parents=True)
    try:
        yield place.inside(name)
    finally:
        place.remove_folder(name)
