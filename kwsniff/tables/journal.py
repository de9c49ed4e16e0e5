"""How new files and folders take the place of old ones: all of them, whatever happens in between.

What is new lies in a staging folder beside what is old. Which names change is written down there, and on
the disk, before the first of them does. Whoever finds the journal of a dead writer goes on where it stood:

    STAGING/new/NAME    what comes        STAGING/journal.json   forward: NAME becomes the new one
    STAGING/old/NAME    what was there    STAGING/undo.json      back: NAME becomes the old one again

Without a journal nothing was moved yet. Each step looks at what is there, so that it may be repeated. A file
is replaced in one step, its old self kept by a second link; a folder, or a file where there are no links, is
first moved away.
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
    """Names below the folder, at most two deep: those that come, and those that go without a successor."""

    put: tuple[str, ...]
    remove: tuple[str, ...] = ()
    fresh: tuple[str, ...] = ()
    """Of those that come, the ones that were not there before."""

    @classmethod
    def plan(cls, folder: Path, put: Iterable[str], remove: Iterable[str]) -> "Journal":
        """What has to be done, given what is there."""
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
    """Keeps the old files, and writes down what is to come. Until this returns, nothing is."""
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
    """Before it takes the place of what was there: a power cut must not find it half written."""
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
        if os.path.lexists(folder / name):  # its old self is kept by the second link
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
    """The journal of a staging folder, and whether it leads forward; None where nothing was moved yet.

    Raises ValueError for one that is not ours.
    """
    for name, forward in ((_FORWARD, True), (_BACK, False)):
        try:
            descriptor = os.open(staging / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            continue
        with os.fdopen(descriptor, encoding="utf-8") as file:
            return _checked(json.load(file)), forward
    return None


def _checked(found: Any) -> Journal:
    """Only names inside the folder: whoever may plant a journal must not move what lies elsewhere."""
    if not isinstance(found, dict) or found.keys() != {"put", "remove", "fresh"}:
        raise ValueError("no journal")
    for names in found.values():
        if not isinstance(names, list) or not all(isinstance(each, str) and _is_name(each) for each in names):
            raise ValueError("names of another folder")
    return Journal(**{key: tuple(names) for key, names in found.items()})


def _is_name(text: str) -> bool:
    return _NAME.fullmatch(text) is not None


def _keep(path: Path, kept: Path) -> None:
    """A second link to a file that is going to be replaced, where there can be one."""
    if path.is_dir() and not path.is_symlink():
        return
    try:
        os.link(path, kept, follow_symlinks=False)
    except OSError:  # not there, or no links here: it is moved away then
        return


def _move_away(path: Path, kept: Path) -> None:
    if os.path.lexists(path) and not os.path.lexists(kept):
        path.rename(kept)


def _sync_all(journal: Journal, folder: Path) -> None:
    for parent in {(folder / name).parent for name in journal.names}:
        _sync(parent)


def _sync(folder: Path) -> None:
    """Puts the names in a folder on the disk, where the file system can."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
