"""The intent of a commit: what tables with a history are going to hold, written before the first of them
changes.

    _kwsniff.intent.json    {"mode": "append", "parts": [{"table", "path", ...}], "manifest": {...}}

The files are complete by then. A writer that dies between two tables leaves the intent. The next writer
commits these files to the tables that do not have them, as the tables' own logs say, and publishes the
manifest: each table has them once.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

from kwsniff.errors import OutputError
from kwsniff.spark.manifest import publish, read_published
from kwsniff.spark.parts import Part
from kwsniff.spark.storage import Place
from kwsniff.spark.table_formats import check_format, log_files
from kwsniff.tables.stored_files import INTENT


@dataclass(frozen=True, slots=True)
class Intent:
    """A commit that has begun, or is about to. `manifest`: what is published once all tables have it."""

    mode: str
    parts: Sequence[Part]
    manifest: Mapping[str, Any]
    removes: Sequence[str] = ()
    """Published files that `parts` replace."""

    @classmethod
    def read(cls, place: Place) -> Self | None:
        """The intent that a writer left; None: there is none. Raises OSError, OutputError."""
        text = place.read_text(INTENT)
        if text is None:
            return None
        try:
            said: Any = json.loads(text)
            parts = [Part(**each) for each in said["parts"]]
            run, form = said["manifest"]["run_id"], said["manifest"]["format"]
            if not (isinstance(run, str) and isinstance(form, str)):
                raise TypeError("of no run")
            return cls(said["mode"], parts, said["manifest"], [*map(str, said.get("removes", []))])
        except (ValueError, KeyError, TypeError):
            # Its writer died while it wrote this: no table has changed yet.
            return None

    def covers(self, inputs: Iterable[str], tables: Iterable[str]) -> bool:
        """Whether it appends these tables of the captures with these fingerprints, and no others."""
        said = self.manifest
        same = sorted(said["inputs"][said["run_id"]]) == sorted(inputs) and {*said["rows"]} == {*tables}
        return self.mode == "append" and same

    def write(self, place: Place) -> None:
        """Raises OSError."""
        parts = [
            {name: value for name, value in asdict(part).items() if name in {"table", "path", "rows", "size"}}
            for part in self.parts
        ]
        said = {"mode": self.mode, "parts": parts, "removes": [*self.removes], "manifest": self.manifest}
        place.write_text(INTENT, json.dumps(said))

    def carry_out(self, place: Place) -> None:
        """Commits the files to tables without them, publishes the manifest and removes the intent. Raises
        OSError, OutputError."""
        published = read_published(place)
        if published is None or published["run_id"] != self.manifest["run_id"]:
            form, run = self.manifest["format"], self.manifest["run_id"]
            log_files(form, self.mode, place, self.parts, run, removes=self.removes)
            publish(place, self.manifest)
        place.remove([INTENT])


def finish_commit(place: Place) -> Intent | None:
    """Carries out the intent of a writer that died between two tables; None: there was none. Raises OSError,
    OutputError, UsageError."""
    intent = Intent.read(place)
    if intent is None:
        place.remove([INTENT])
        return None
    check_format(intent.manifest["format"], intent.mode, is_uri=not place.is_local)
    try:
        intent.carry_out(place)
    except OutputError as error:
        raise OutputError(
            f"{error}; an earlier run ended before all tables had its rows, and this one could not "
            f"finish it: repair that table, or remove {place.display(INTENT)} to give that run up (some "
            "tables may have its rows then)"
        ) from error
    return intent
