"""Who writes in a folder: a hidden file there, locked for as long as its writer lives.

The lock is `flock`'s. It belongs to the open file and ends with it, however its process ends; it holds
between containers (whose process ids mean nothing to each other) and, over NFS and SMB, between hosts. So
what a writer left behind is provably dead exactly when its lock can be taken. The file is removed when the
lock is given back; whoever opened it before that notices, and begins again with a new one.

Where the file system has no locks, a file that may not be there before stands in for one. Nobody can tell
whether its writer lives: it is never removed for another, who is asked to do that by hand.
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
_MOST_TRIES: Final = 100  # each is one more writer that came and went in between


class Lock:
    """A lock that is held. `release` gives it back; so does the end of the process."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path = path
        self._descriptor: int | None = descriptor

    @property
    def is_kept(self) -> bool:
        """Whether the file system keeps it: not that of a stand-in."""
        return self._path.name == NAME

    def release(self) -> None:
        """Lets others in. Harmless when called again, or when the folder is gone."""
        if self._descriptor is None:
            return
        with suppress(OSError):
            if _is_at(self._path, self._descriptor):  # else the folder was replaced: not ours to remove
                self._path.unlink()
        os.close(self._descriptor)
        self._descriptor = None


def take_lock(folder: Path) -> Lock | None:
    """The lock of a folder that is there; None where another holds it.

    Raises OSError where the folder cannot be written, or something that is no plain file has the lock's name.
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
                path.unlink()  # it locks nothing here
            return _stand_in(folder)
        os.close(descriptor)  # it was given back, and removed, between the two calls
    return None


def _stand_in(folder: Path) -> Lock | None:
    path = folder / STAND_IN
    try:
        return Lock(path, os.open(path, _OPEN | os.O_CREAT | os.O_EXCL, 0o666))
    except FileExistsError:
        return None


def _is_at(path: Path, descriptor: int) -> bool:
    """Whether the open file is the one of this name. Opened anew: NFS answers that from the server."""
    try:
        again = os.open(path, _OPEN)
    except OSError:
        return False
    try:
        return os.path.samestat(os.fstat(again), os.fstat(descriptor))
    finally:
        os.close(again)
