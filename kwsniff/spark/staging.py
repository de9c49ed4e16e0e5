"""Where a run writes until it is complete: a hidden folder beside the output, which then takes its place.

Whoever reads the output sees the run before or this one, whole; what a run that was killed left behind is
removed by the next one.
"""

import json
import os
import shutil
import uuid
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from kwsniff.errors import OutputError
from kwsniff.sources.paths import local_path

MANIFEST = "_kwsniff.json"
"""Says that a folder is ours, which run made it, and how many rows its tables have. Spark passes over it."""


class Staging:
    """A context: `commit` makes the output of what was written; leaving without it removes that."""

    def __init__(self, output: str | os.PathLike[str]) -> None:
        self.output = Path(os.path.abspath(local_path(output)))  # noqa: PTH100 - a link stays a link
        self.run = uuid.uuid4().hex
        self.folder = self.output.with_name(f".{self.output.name}.partial-{self.run}")
        self.scratch = self.output.with_name(f".{self.output.name}.scratch-{self.run}")
        """For files that only the run itself reads."""

    def __enter__(self) -> Self:
        _refuse_foreign(self.output)
        try:
            self.output.parent.mkdir(parents=True, exist_ok=True)
            self._remove_abandoned()
            self.folder.mkdir()
            self.scratch.mkdir()
            for folder in (self.folder, self.scratch):
                (folder / f"_by-{os.getpid()}").touch()
        except OSError as error:
            raise _unwritable(self.output, error) from error
        return self

    def __exit__(self, *_: object) -> None:
        for folder in (self.folder, self.scratch):
            shutil.rmtree(folder, ignore_errors=True)

    def keep_only(self, paths: Sequence[str], tables: Sequence[str]) -> None:
        """Removes what attempts that died have written of these tables: all files but these."""
        kept = {self.folder / path for path in paths}
        for table in tables:
            for file in (self.folder / table).rglob("*"):
                if file.is_file() and file not in kept:
                    file.unlink()

    def commit(self, facts: Mapping[str, Any], *, without: Iterable[str] = ()) -> None:
        """Puts everything in its place at once, but for some tables."""
        replaced = self.output.with_name(f".{self.output.name}.partial-replaced-{self.run}")
        try:
            for table in without:
                shutil.rmtree(self.folder / table)
            (self.folder / f"_by-{os.getpid()}").unlink()
            (self.folder / MANIFEST).write_text(
                json.dumps({"run": self.run, **facts}, indent=1) + "\n", "utf-8"
            )
            _refuse_foreign(self.output)
            if self.output.exists():
                self.output.rename(replaced)
            self.folder.rename(self.output)
        except OSError as error:
            if replaced.exists() and not self.output.exists():
                replaced.rename(self.output)
            raise _unwritable(self.output, error) from error
        shutil.rmtree(replaced, ignore_errors=True)

    def _remove_abandoned(self) -> None:
        for kind in ("partial", "scratch"):
            for folder in self.output.parent.glob(f".{self.output.name}.{kind}-*"):
                owners = [int(each.name.removeprefix("_by-")) for each in folder.glob("_by-*")]
                if not any(map(_is_running, owners)):
                    shutil.rmtree(folder, ignore_errors=True)


def _refuse_foreign(output: Path) -> None:
    """What is replaced must be ours, all of it."""
    if not output.exists():
        return
    if not output.is_dir():
        raise OutputError(f"{output}: is a file; choose a folder with -o")
    if any(output.iterdir()) and not (output / MANIFEST).is_file():
        raise OutputError(
            f"{output}: holds files that kwsniff pipeline did not write; choose a new or empty folder with -o"
        )


def _unwritable(output: Path, error: OSError) -> OutputError:
    why = os.strerror(error.errno) if error.errno else str(error)
    return OutputError(
        f"{output}: cannot be written ({why}); choose another folder with -o, or free some space"
    )


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True
