"""The writer's lock of a folder: a hidden file, locked as long as its writer lives.

The lock is `flock`'s. It belongs to the open file and ends with its process in any case. It works
between containers (with separate process ids) and, over NFS and SMB, between hosts. So a writer is
provably dead exactly when its lock can be taken. Releasing the lock removes the file; a process that
opened it
before notices that, and starts again with a new file.

On a file system without locks, exclusive creation of a file replaces the lock. kwsniff cannot know whether
its
writer lives, so it never removes that file for another run and asks the user to do it.
"""

import errno
import fcntl
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import Final

NAME: Final = ".kwsniff.lock"
STAND_IN: Final = ".kwsniff.writing"

_OPEN: Final = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NO_LOCKS: Final = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL)
_MOST_TRIES: Final = 100  # each attempt means another writer in between


class Lock:
    """A held lock. It ends with `release` or with the process."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path = path
        self._descriptor: int | None = descriptor

    @property
    def is_kept(self) -> bool:
        """Whether it is a lock of the file system, not the replacement file."""
        return self._path.name == NAME

    def release(self) -> None:
        """Releases the lock. May be called more than once, or after the folder was removed."""
        if self._descriptor is None:
            return
        with suppress(OSError):
            if _is_at(self._path, self._descriptor):  # otherwise the folder was replaced: not ours to remove
                self._path.unlink()
        os.close(self._descriptor)
        self._descriptor = None


def take_lock(folder: Path) -> Lock | None:
    """The lock of an existing folder; None if another process holds it.

    Raises OSError if the folder cannot be written, or if the lock's name is not a regular file.
    """
    path = folder / NAME
    for _ in range(_MOST_TRIES):
        descriptor = os.open(path, _OPEN | os.O_CREAT, 0o666)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise OSError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_at(path, descriptor):
                return Lock(path, descriptor)
        except BlockingIOError:
            os.close(descriptor)
            return None
        except OSError as error:
            os.close(descriptor)
            if error.errno not in _NO_LOCKS:
                raise
            with suppress(OSError):
                path.unlink()  # it has no effect here
            return _stand_in(folder)
        os.close(descriptor)  # it was released and removed between the two calls
    return None


def _stand_in(folder: Path) -> Lock | None:
    path = folder / STAND_IN
    try:
        return Lock(path, os.open(path, _OPEN | os.O_CREAT | os.O_EXCL, 0o666))
    except FileExistsError:
        return None


def _is_at(path: Path, descriptor: int) -> bool:
    """Whether the open file is the one of this name. Opens it again, because NFS then asks the server."""
    try:
        again = os.open(path, _OPEN)
    except OSError:
        return False
    try:
        return os.path.samestat(os.fstat(again), os.fstat(descriptor))
    finally:
        os.close(again)
