"""The state of a stream between batches, in a folder that only its user can read or write."""

import json
import os
import stat
from dataclasses import asdict, dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

from kwsniff.errors import OutputError, UsageError
from kwsniff.findings.views import READ
from kwsniff.layout.catalog import Catalog
from kwsniff.spark.serialization import dump, load, register
from kwsniff.spark.storage import Place
from kwsniff.tables.run import new_run_id
from kwsniff.timelines.timelines import STATE_CLASSES, Timelines

_VERSION: Final = 4
_CHECK_BYTES: Final = 16
FOLLOWED: Final = READ
"""Tables of a stream. Findings are of a whole folder: `kwsniff why` makes them when they are asked for."""

for _kind in STATE_CLASSES:
    register(_kind)


@dataclass(slots=True)
class Record:
    """All that there is to know after a batch, as JSON; paths are relative to the output."""

    batch: int = 0
    run_id: str = field(default_factory=new_run_id)
    """Run id of the folder, for every process that continues it: ids of calls continue, too."""
    version: int = _VERSION
    settings: dict[str, Any] = field(default_factory=dict)
    files: list[dict[str, Any]] = field(default_factory=list)
    states: list[str] = field(default_factory=list)
    timelines: str | None = None
    captures: list[dict[str, Any]] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)
    """Topic id -> name."""
    nameless: list[dict[str, Any]] = field(default_factory=list)
    """Parts that show topic ids."""
    replaced: list[str] = field(default_factory=list)
    """The part of the table captures, which the next batch rewrites."""
    moves: dict[str, str] = field(default_factory=dict)
    removes: list[str] = field(default_factory=list)
    rows: dict[str, int] = field(default_factory=lambda: dict.fromkeys(FOLLOWED, 0))
    finished: bool = False


def save_record(record: Record, path: Path) -> None:
    """Replaces the previous record atomically."""
    draft = path.with_name(f"{path.name}.partial")
    with draft.open("w", encoding="utf-8") as file:
        json.dump(asdict(record), file)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)


def load_record(path: Path) -> Record:
    """Raises OutputError for what is none, UsageError for one of another version."""
    try:
        found = json.loads(path.read_text("utf-8"))
        version = found.get("version")
        record = Record(**found) if version == _VERSION else None
    except (ValueError, TypeError, AttributeError) as error:
        raise explain_damage(str(path)) from error
    if record is None:
        raise UsageError(
            f"{path.parent.parent} belongs to another version of kwsniff; choose another folder with -o"
        )
    return record


def save_timelines(timelines: Timelines, place: Place, path: str) -> None:
    """Writes what is followed; its rows were taken."""
    saved = dump(timelines.state())
    with place.open_output(path) as file:
        file.write(_check_sum(saved) + saved)


def load_timelines(place: Place, path: str | None, catalog: Catalog) -> Timelines:
    """Those that were saved; without a path new ones. Raises OutputError for a file that is none."""
    timelines = Timelines(catalog)
    if path is not None:
        with place.open_input(path) as file:
            data = bytes(file.read())
        try:
            if data[:_CHECK_BYTES] != _check_sum(data[_CHECK_BYTES:]):
                raise ValueError
            timelines.resume(load(data[_CHECK_BYTES:]))
        except (ValueError, TypeError) as error:
            raise explain_damage(place.display(path)) from error
    return timelines


def keep_private(folder: Path) -> None:
    """What is read back from here is trusted, and holds what captures say. Raises OutputError."""
    status = folder.lstat()
    why = None
    if not stat.S_ISDIR(status.st_mode):
        why = "is not a folder"
    elif status.st_uid != os.geteuid():
        why = "belongs to another user"
    elif status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        why = "can be written by other users"
    if why:
        raise OutputError(
            f"{folder} {why}, so kwsniff does not trust its files; choose another folder with -o"
        )
    folder.chmod(0o700)


def _check_sum(data: bytes) -> bytes:
    """Tells accidents, not forgeries: those the folder's owner and permissions keep out."""
    return blake2b(data, digest_size=_CHECK_BYTES).digest()


def explain_damage(path: str) -> OutputError:
    """What to say of a file of a state that is none."""
    return OutputError(f"{path} is damaged or not kwsniff's; restart with another folder, given with -o")
