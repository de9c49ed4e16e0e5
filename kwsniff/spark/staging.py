"""Where a run writes until it is complete: a hidden folder beside the output, which then takes its place.

Whoever reads the output sees the run before or this one, whole (kwsniff/tables/folder.py says how); what a
run that was killed left behind is removed by the next one.
"""

import json
import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Self

from kwsniff.errors import OutputError
from kwsniff.sources.paths import local_path
from kwsniff.tables.aggregates import AGGREGATES
from kwsniff.tables.folder import Folder, guarded
from kwsniff.tables.run import new_run_id
from kwsniff.tables.schema import TABLES

MANIFEST: Final = "_kwsniff.json"
"""Says that a folder is ours, which run made it, and how many rows its tables have. Spark passes over it."""

_OURS: Final = (MANIFEST, *TABLES, *AGGREGATES)


class Staging:
    """A context: `commit` makes the output of what was written; leaving without it removes that."""

    def __init__(self, output: str | os.PathLike[str]) -> None:
        self.output = Path(os.path.abspath(local_path(output)))  # noqa: PTH100 - a link stays a link
        self.run = new_run_id()
        self._place = Folder(self.output, whole=True)

    def __enter__(self) -> Self:
        _refuse_foreign(self.output)
        self._place.__enter__()
        try:
            with guarded(self.output):
                self.scratch.mkdir()
        except BaseException:
            self._place.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._place.close()

    @property
    def folder(self) -> Path:
        """For what is going to be the output."""
        return self._place.new

    @property
    def scratch(self) -> Path:
        """For files that only the run itself reads."""
        return self._place.staging / "scratch"

    def keep_only(self, paths: Sequence[str], tables: Sequence[str]) -> None:
        """Removes what attempts that died have written of these tables: all files but these."""
        kept = {self.folder / path for path in paths}
        for table in tables:
            for file in (self.folder / table).rglob("*"):
                if file.is_file() and file not in kept:
                    file.unlink()

    def commit(self, facts: Mapping[str, Any], *, without: Iterable[str] = ()) -> None:
        """Puts everything in its place at once, but for some tables."""
        _refuse_foreign(self.output)
        with guarded(self.output):
            for table in without:
                shutil.rmtree(self.folder / table)
            manifest = json.dumps({"run_id": self.run, **facts}, indent=1) + "\n"
            (self.folder / MANIFEST).write_text(manifest, "utf-8")
            made = {path.name for path in self.folder.iterdir()}
        self._place.commit(sorted(made), [name for name in _OURS if name not in made])


def _refuse_foreign(output: Path) -> None:
    """What is replaced must be ours."""
    if not output.exists():
        return
    if not output.is_dir():
        raise OutputError(f"{output}: is a file; choose a folder with -o")
    shown = [path for path in output.iterdir() if not path.name.startswith(".kwsniff")]
    if shown and not (output / MANIFEST).is_file():
        raise OutputError(
            f"{output}: holds files that kwsniff pipeline did not write; choose a new or empty folder with -o"
        )
