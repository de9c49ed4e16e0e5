"""The folder that a run writes into: wholly the run before or this one, and one writer at a time.

    DIR/.kwsniff.lock               locked while somebody writes (lock.py)
    DIR/.kwsniff-<random>/          what is being written, in a folder only its writer may enter
        .kwsniff.lock               locked as well: a staging folder whose lock can be taken is of a dead run
        new/  old/  journal.json    journal.py

`commit` moves names out of `new` into DIR, by a journal. A whole folder can be exchanged instead, in one
step, where the kernel can do that and nothing else lies in DIR; the staging folder is then beside it,
`.DIR.kwsniff-<random>/`. What a dead run left is put right by the next that writes there, and by `settle`,
for whoever only reads: a run that was moving its files is completed or taken back, all else of it removed.
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
from kwsniff.temporary import is_temporary, refused

MANIFEST: Final = "_kwsniff.json"
"""Says that the pipeline wrote a folder, which run of it, and of what its tables are made."""
_STAGING: Final = re.compile(r"\.kwsniff-[0-9a-f]{32}")
_HERE: Final = -100  # AT_FDCWD
_EXCHANGE: Final = 2  # RENAME_EXCHANGE
_MOST_TRIES: Final = 100


class Folder:
    """A context: `commit`, any number of times, gives names to what was written below `new`.

    The folder is made when it is not there. `whole`: what is written is all that shall be there; when nothing
    was committed, a folder that was made goes again. Raises OutputError: another writes there, or the
    operating system refuses.
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
            with guarded(self.directory):
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
        """Where the run may put what only it reads."""
        assert self._staging is not None  # noqa: S101 - inside the context only
        return self._staging

    @property
    def new(self) -> Path:
        """Where to write what is going to be in the folder."""
        return self.staging / journal.NEW

    def commit(self, put: Iterable[str], remove: Iterable[str] = ()) -> None:
        """Moves these names (at most two deep) into the folder, and others out of it. All, or none.

        Raises OutputError where the operating system refuses one: all is then as it was.
        """
        with guarded(self.directory):
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
        """Removes what was not committed, and lets others write. Harmless when called again."""
        if self._staging is not None:
            _clear(self._staging, self.directory)
            _leave(self._staging, self._staging_lock)
            self._staging = self._staging_lock = None
        if self._lock is not None:
            self._lock.release()
            self._lock = None
        if self._made:
            self._made = False
            with suppress(OSError):  # somebody else has put something there
                self.directory.rmdir()

    def _forget(self) -> None:
        """Removes what was replaced. It is committed: nothing here may fail any more."""
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
                continue  # who had made it has just removed it
            if lock is None:
                break
            return lock
        self._made = False
        if (self.directory / STAND_IN).exists():
            raise OutputError(
                f"{self.directory}: another kwsniff is writing there, says {STAND_IN} (this file system has "
                "no locks); if none is, remove that file; or choose another folder with -o"
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
            self._staging.mkdir(0o777 if self._whole else 0o700)  # a cluster's tasks may be of another user
            _make_rooms(self._staging)
        self._staging_lock = take_lock(self._staging)

    def _is_exchanged(self, plan: Journal) -> bool:
        """Puts the whole folder in the place of the old one at once, where that loses nothing."""
        ours = {*plan.names, NAME, STAND_IN}
        beside = self.staging.parent != self.directory
        if beside and {each.name for each in self.directory.iterdir()} <= ours:
            return exchange(self.new, self.directory)
        return False


def settle(directory: str | os.PathLike[str]) -> None:
    """Before a folder is read: puts right what a run that died in the middle of its commit has left.

    Does nothing while another writes there. Raises OutputError where the operating system refuses.
    """
    folder = Path(directory)
    if not any(_has_journal(staging) for staging in _leftovers(folder)):
        return
    with guarded(folder):
        lock = take_lock(folder)
        if lock is not None:
            try:
                _settle(folder, kept=lock.is_kept)
            finally:
                lock.release()


@contextmanager
def guarded(directory: Path) -> Iterator[None]:
    """Makes OutputErrors of what the operating system refuses."""
    try:
        yield
    except OSError as error:
        if is_temporary(directory):
            raise refused(directory, error) from error
        why = os.strerror(error.errno) if error.errno else str(error).splitlines()[0]
        if directory.exists() and not directory.is_dir():
            why = "it is no folder"
        space = "free some space or " if error.errno in (errno.ENOSPC, errno.EDQUOT) else ""
        changed = "nothing was changed there"
        if any(_has_journal(staging) for staging in _leftovers(directory)):
            changed = "the next run that writes there completes or takes back what was begun"
        raise OutputError(
            f"{directory}: cannot be written ({why}); {changed}; {space}choose another folder with -o"
        ) from error


def exchange(one: Path, other: Path) -> bool:
    """Two folders change places, in one step; False where the kernel or the file system cannot do that.

    Source: renameat2(2), RENAME_EXCHANGE.
    """
    call: Callable[..., int] | None = getattr(ctypes.CDLL(None), "renameat2", None)
    return call is not None and call(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE) == 0


def _may_be_exchanged(directory: Path) -> bool:
    """A link stays a link, a mount point cannot be moved, and nobody's working directory goes away."""
    return not (directory.is_symlink() or directory.is_mount() or directory.samefile("."))


def _made_beside(directory: Path) -> Path | None:
    """A staging folder from where the whole folder can be exchanged; None where that cannot be."""
    staging = directory.with_name(f".{directory.name}.kwsniff-{uuid.uuid4().hex}")
    try:
        staging.mkdir()
    except OSError:  # the folder above is another's, or the name is too long
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
    """Staging folders of this folder, of whatever run. Beside it, where anybody may write, only our own."""
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
    """A folder, no link to one, and of this user: nobody else's journal moves anything for us."""
    try:
        found = staging.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()


def _settle(directory: Path, *, kept: bool) -> None:
    """`kept`: locks hold here. Without them it was the user who said that nobody else writes."""
    for staging in _leftovers(directory):
        if not _is_ours(staging):
            raise OutputError(
                f"{directory}: {staging.name} is of another user, who may write there once more or remove it"
            )
        with suppress(FileNotFoundError):  # somebody else was quicker
            lock = take_lock(staging)
            if lock is not None or not kept:
                _clear(staging, directory)
                _leave(staging, lock)
                if _has_journal(staging):
                    raise OutputError(
                        f"{directory}: a run died while its files were moved, and {staging.name} cannot be "
                        "completed; remove it, or choose another folder with -o"
                    )


def _clear(staging: Path, directory: Path) -> None:
    """Empties a staging folder, once what it had begun is done. Otherwise all stays."""
    with suppress(OSError, ValueError):
        found = journal.find(staging)
        if found is not None:
            plan, forward = found
            (journal.go_forward if forward else journal.go_back)(plan, staging, directory)
        for path in staging.iterdir():
            if path.name not in (NAME, STAND_IN):
                shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink()


def _leave(staging: Path, lock: Lock | None) -> None:
    """Gives back the lock of a staging folder, and removes it if it is empty."""
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
