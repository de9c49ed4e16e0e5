"""The output folder of a run: it has the tables of either the previous or this run, and one writer at a time.

    DIR/.kwsniff.lock               locked during writing (lock.py)
    DIR/.kwsniff-<random>/          staging folder, accessible only to its writer
        .kwsniff.lock               also locked: if its lock can be taken, its run is dead
        new/  old/  journal.json    journal.py

`commit` moves names from `new` into DIR, with a journal. The whole folder is exchanged atomically instead
if the
kernel supports it and DIR has no other files; the staging folder is then next to it,
`.DIR.kwsniff-<random>/`. The next writer, or `settle` before a read, cleans up after a dead run: a started
commit is completed or rolled back, and the rest is removed.
"""

import ctypes
import errno
import os
import re
import shutil
import stat
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, Self

from kwsniff.errors import OutputError
from kwsniff.tables import journal
from kwsniff.tables.journal import Journal
from kwsniff.tables.lock import NAME, STAND_IN, Lock, take_lock
from kwsniff.temporary import explain_error, is_temporary

MANIFEST: Final = "_kwsniff.json"
"""Marks a folder of the pipeline, with its run and the inputs of its tables."""
_STAGING: Final = re.compile(r"\.kwsniff-[0-9a-f]{32}")
_HERE: Final = -100  # AT_FDCWD
_EXCHANGE: Final = 2  # RENAME_EXCHANGE
_MOST_TRIES: Final = 100


class Folder:
    """A context: `commit`, any number of times, publishes the files written below `new`.

    Creates the folder if missing, and removes it again if nothing was committed. `whole`: the written files
    replace the whole content. Raises OutputError for another writer or a system error.
    """

    def __init__(self, directory: str | os.PathLike[str], *, whole: bool = False) -> None:
        self.directory = Path(directory)
        self._whole = whole
        self._made = False
        self._lock: Lock | None = None
        self._staging: Path | None = None
        self._staging_lock: Lock | None = None

    def __enter__(self) -> Self:
        try:
            with translate_errors(self.directory):
                self._lock = self._lock_folder()
                _settle(self.directory, kept=self._lock.is_kept)
                self._make_staging()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def staging(self) -> Path:
        """Folder for the run's private files."""
        assert self._staging is not None  # noqa: S101 - inside the context only
        return self._staging

    @property
    def new(self) -> Path:
        """Folder for the new files."""
        return self.staging / journal.NEW

    def commit(self, put: Iterable[str], remove: Iterable[str] = ()) -> None:
        """Moves these names (at most two deep) into the folder, and others out of it: all or none.

        Raises OutputError for a system error; the folder is then unchanged.
        """
        with translate_errors(self.directory):
            plan = Journal.plan(self.directory, put, remove)
            if plan.names != plan.fresh:
                journal.keep_on_disk(self.new)
            if not (self._whole and self._is_exchanged(plan)):
                journal.begin(plan, self.staging, self.directory)
                try:
                    journal.go_forward(plan, self.staging, self.directory)
                except OSError:
                    journal.go_back(plan, self.staging, self.directory)
                    raise
            self._made = False
            self._forget()

    def close(self) -> None:
        """Removes uncommitted files and releases the lock. May be called more than once."""
        if self._staging is not None:
            _clear(self._staging, self.directory)
            _leave(self._staging, self._staging_lock)
            self._staging = self._staging_lock = None
        if self._lock is not None:
            self._lock.release()
            self._lock = None
        if self._made:
            self._made = False
            with suppress(OSError):  # another program has put files there
                self.directory.rmdir()

    def _forget(self) -> None:
        """Removes the replaced files. The commit is done: this must not fail."""
        with suppress(OSError):
            shutil.rmtree(self.staging / journal.OLD, ignore_errors=True)
            (self.staging / journal.OLD).mkdir()

    def _lock_folder(self) -> Lock:
        for _ in range(_MOST_TRIES):
            if not self.directory.is_dir():
                self.directory.mkdir(parents=True, exist_ok=True)
                self._made = self._whole
            try:
                lock = take_lock(self.directory)
            except FileNotFoundError:
                continue  # its creator has just removed it
            if lock is None:
                break
            return lock
        self._made = False
        if (self.directory / STAND_IN).exists():
            raise OutputError(
                f"{self.directory}: another kwsniff is writing there, according to {STAND_IN} (this file "
                f"system has no locks); if none is running, remove that file; or choose another folder "
                f"with -o"
            )
        raise OutputError(
            f"{self.directory}: another kwsniff is writing there; "
            "wait for it or choose another folder with -o"
        )

    def _make_staging(self) -> None:
        if self._whole and _may_be_exchanged(self.directory):
            self._staging = _made_beside(self.directory)
        if self._staging is None:
            self._staging = self.directory / f".kwsniff-{uuid.uuid4().hex}"
            self._staging.mkdir(0o777 if self._whole else 0o700)  # a cluster's tasks may run as another user
            _make_rooms(self._staging)
        self._staging_lock = take_lock(self._staging)

    def _is_exchanged(self, plan: Journal) -> bool:
        """Exchanges the whole folder with the old one atomically, if that loses no other files."""
        ours = {*plan.names, NAME, STAND_IN}
        beside = self.staging.parent != self.directory
        if beside and {each.name for each in self.directory.iterdir()} <= ours:
            return exchange(self.new, self.directory)
        return False


def recover(directory: str | os.PathLike[str]) -> None:
    """Before a read: completes or rolls back the commit of a dead run.

    Does nothing while another process writes there. Raises OutputError for a system error.
    """
    folder = Path(directory)
    if not any(_has_journal(staging) for staging in _leftovers(folder)):
        return
    with translate_errors(folder):
        lock = take_lock(folder)
        if lock is not None:
            try:
                _settle(folder, kept=lock.is_kept)
            finally:
                lock.release()


@contextmanager
def translate_errors(directory: Path) -> Iterator[None]:
    """Turns system errors into OutputErrors."""
    try:
        yield
    except OSError as error:
        if is_temporary(directory):
            raise explain_error(directory, error) from error
        why = os.strerror(error.errno) if error.errno else str(error).splitlines()[0]
        if directory.exists() and not directory.is_dir():
            why = "not a folder"
        space = "free some space or " if error.errno in (errno.ENOSPC, errno.EDQUOT) else ""
        changed = "no file was changed there"
        if any(_has_journal(staging) for staging in _leftovers(directory)):
            changed = "the next run that writes there completes or rolls back the change"
        raise OutputError(
            f"{directory}: cannot write ({why}); {changed}; {space}choose another folder with -o"
        ) from error


def exchange(one: Path, other: Path) -> bool:
    """Exchanges two folders atomically; False if the kernel or the file system does not support it.

    Source: renameat2(2), RENAME_EXCHANGE.
    """
    call: Callable[..., int] | None = getattr(ctypes.CDLL(None), "renameat2", None)
    return call is not None and call(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE) == 0


def _may_be_exchanged(directory: Path) -> bool:
    """Not for links, which stay links, for mount points, which cannot be moved, or for working
    directories."""
    return not (directory.is_symlink() or directory.is_mount() or directory.samefile("."))


def _made_beside(directory: Path) -> Path | None:
    """A staging folder for exchanging the whole folder; None if that is not possible."""
    staging = directory.with_name(f".{directory.name}.kwsniff-{uuid.uuid4().hex}")
    try:
        staging.mkdir()
    except OSError:  # the parent folder belongs to another user, or the name is too long
        return None
    _make_rooms(staging)
    if exchange(staging / journal.NEW, staging / journal.OLD):
        return staging
    shutil.rmtree(staging)
    return None


def _make_rooms(staging: Path) -> None:
    for name in (journal.NEW, journal.OLD):
        (staging / name).mkdir()


def _leftovers(directory: Path) -> list[Path]:
    """Staging folders of this folder, of any run. Next to it, where all users may write, only our own."""
    found = []
    for root, prefix in ((directory, ""), (directory.parent, f".{directory.name}")):
        with suppress(OSError):
            found += [
                path
                for path in root.iterdir()
                if path.name.startswith(prefix)
                and _STAGING.fullmatch(path.name.removeprefix(prefix))
                and (root == directory or _is_ours(path))
            ]
    return found


def _is_ours(staging: Path) -> bool:
    """A folder, not a link, of this user: journals of other users must not move files for us."""
    try:
        found = staging.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()


def _settle(directory: Path, *, kept: bool) -> None:
    """`kept`: locks work here. Without locks, the user has confirmed that there is no other writer."""
    for staging in _leftovers(directory):
        if not _is_ours(staging):
            raise OutputError(
                f"{directory}: {staging.name} belongs to another user, who must write there again or "
                f"remove it"
            )
        with suppress(FileNotFoundError):  # another process was faster
            lock = take_lock(staging)
            if lock is not None or not kept:
                _clear(staging, directory)
                _leave(staging, lock)
                if _has_journal(staging):
                    raise OutputError(
                        f"{directory}: a run died while it moved its files, and kwsniff cannot complete "
                        f"{staging.name}; remove it, or choose another folder with -o"
                    )


def _clear(staging: Path, directory: Path) -> None:
    """Empties a staging folder after its commit is complete. Otherwise everything stays."""
    with suppress(OSError, ValueError):
        found = journal.find(staging)
        if found is not None:
            plan, forward = found
            (journal.go_forward if forward else journal.go_back)(plan, staging, directory)
        for path in staging.iterdir():
            if path.name not in (NAME, STAND_IN):
                shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink()


def _leave(staging: Path, lock: Lock | None) -> None:
    """Releases the lock of a staging folder, and removes the folder if it is empty."""
    if lock is not None:
        lock.release()
    else:
        with suppress(OSError):
            (staging / STAND_IN).unlink()
    with suppress(OSError):
        staging.rmdir()


def _has_journal(staging: Path) -> bool:
    try:
        return journal.find(staging) is not None
    except (OSError, ValueError):
        return True
