"""Replaces old files and folders by new ones: all of them, even after a crash.

New files are in a staging folder. A journal there lists the names to change, and is on disk before the
first change. A process that finds the journal of a dead writer continues it:

    STAGING/new/NAME    new file          STAGING/journal.json   forward: NAME becomes the new one
    STAGING/old/NAME    old file          STAGING/undo.json      back: NAME becomes the old one again

Without a journal, no file has been moved. Each step checks the current state, so that it can be repeated. A
file is replaced atomically, and a second link keeps the old one; a folder, or a file on a file system without
links, is first moved away.
"""

import errno
import json
import os
import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

NEW: Final = "new"
OLD: Final = "old"
_FORWARD: Final = "journal.json"
_BACK: Final = "undo.json"
_DRAFT: Final = "journal.draft"
_LOST: Final = (errno.EIO, errno.ENOSPC, errno.EDQUOT)
_NAME = re.compile(r"\w[\w.=-]*(?:/\w[\w.=-]*)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Journal:
    """Names below the folder, at most two deep: new ones, and removed ones without a replacement."""

    put: tuple[str, ...]
    remove: tuple[str, ...] = ()
    fresh: tuple[str, ...] = ()
    """New names that did not exist before."""

    @classmethod
    def plan(cls, folder: Path, put: Iterable[str], remove: Iterable[str]) -> "Journal":
        """The remaining steps, from the current state."""
        coming = tuple(put)
        return cls(
            coming,
            tuple(name for name in remove if os.path.lexists(folder / name)),
            tuple(name for name in coming if not os.path.lexists(folder / name)),
        )

    @property
    def names(self) -> tuple[str, ...]:
        """All of them."""
        return self.put + self.remove


def begin(journal: Journal, staging: Path, folder: Path) -> None:
    """Keeps the old files, and writes the journal. No name changes before this returns."""
    for name in journal.names:
        (staging / OLD / name).parent.mkdir(parents=True, exist_ok=True)
        _keep(folder / name, staging / OLD / name)
    draft = staging / _DRAFT
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(asdict(journal), file)
        file.flush()
        os.fsync(file.fileno())
    draft.rename(staging / _FORWARD)
    _sync(staging)


def keep_on_disk(new: Path) -> None:
    """Before it replaces the old one: after a power cut it must not be half written."""
    for path in new.rglob("*"):
        if path.is_file():
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                os.fsync(descriptor)
            except OSError as error:
                if error.errno in _LOST:  # others: a file system that has no such call
                    raise
            finally:
                os.close(descriptor)


def go_forward(journal: Journal, staging: Path, folder: Path) -> None:
    """Every name becomes the new one. Raises OSError where one cannot."""
    for name in journal.put:
        if os.path.lexists(staging / NEW / name):
            (folder / name).parent.mkdir(exist_ok=True)
            _move_away(folder / name, staging / OLD / name)
            (staging / NEW / name).rename(folder / name)
    for name in journal.remove:
        _move_away(folder / name, staging / OLD / name)
        if os.path.lexists(folder / name):  # the second link keeps the old file
            (folder / name).unlink()
    _sync_all(journal, folder)
    (staging / _FORWARD).unlink()


def go_back(journal: Journal, staging: Path, folder: Path) -> None:
    """Every name becomes the old one again. Raises OSError where one cannot."""
    if os.path.lexists(staging / _FORWARD):
        (staging / _FORWARD).rename(staging / _BACK)
    for name in journal.names:
        kept, coming, place = staging / OLD / name, staging / NEW / name, folder / name
        if os.path.lexists(kept):
            if place.is_dir() and not place.is_symlink():
                place.rename(coming)
            kept.rename(place)
        elif name in journal.fresh and os.path.lexists(place) and not os.path.lexists(coming):
            place.rename(coming)
    _sync_all(journal, folder)
    (staging / _BACK).unlink()


def find(staging: Path) -> tuple[Journal, bool] | None:
    """The journal of a staging folder, and its direction (forward or not); None if no file was moved.

    Raises ValueError for one that is not ours.
    """
    for name, forward in ((_FORWARD, True), (_BACK, False)):
        try:
            descriptor = os.open(staging / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            continue
        with os.fdopen(descriptor, encoding="utf-8") as file:
            return _check(json.load(file)), forward
    return None


def _check(found: Any) -> Journal:
    """Only names inside the folder: a planted journal must not move other files."""
    if not isinstance(found, dict) or found.keys() != {"put", "remove", "fresh"}:
        raise ValueError("no journal")
    for names in found.values():
        if not isinstance(names, list) or not all(isinstance(each, str) and _is_name(each) for each in names):
            raise ValueError("names of another folder")
    return Journal(**{key: tuple(names) for key, names in found.items()})


def _is_name(text: str) -> bool:
    return _NAME.fullmatch(text) is not None


def _keep(path: Path, kept: Path) -> None:
    """A second link to a file before its replacement, if links are supported."""
    if path.is_dir() and not path.is_symlink():
        return
    try:
        os.link(path, kept, follow_symlinks=False)
    except OSError:  # missing, or links are not supported: it is moved away later
        return


def _move_away(path: Path, kept: Path) -> None:
    if os.path.lexists(path) and not os.path.lexists(kept):
        path.rename(kept)


def _sync_all(journal: Journal, folder: Path) -> None:
    for parent in {(folder / name).parent for name in journal.names}:
        _sync(parent)


def _sync(folder: Path) -> None:
    """Flushes the names in a folder to disk, if the file system supports it."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
