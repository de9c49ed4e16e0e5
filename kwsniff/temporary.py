"""Folders beside other temporary files, for what nobody wants to keep and memory may not hold."""

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from kwsniff.errors import OutputError

_PREFIX: Final = "kwsniff-"


@contextmanager
def temporary_folder() -> Iterator[str]:
    """A folder that is gone again at the end. Raises OutputError where none can be made."""
    try:
        made = tempfile.TemporaryDirectory(prefix=_PREFIX)
    except OSError as error:
        raise OutputError(
            f"no temporary folder can be made ({_reason(error)}); set TMPDIR to a folder that can be written"
        ) from error
    with made as folder:
        yield folder


def is_temporary(directory: Path) -> bool:
    """Whether it is such a folder."""
    return directory.parent == Path(tempfile.gettempdir()) and directory.name.startswith(_PREFIX)


def refused(folder: Path, error: OSError) -> OutputError:
    """What to say where such a folder cannot be written."""
    space = "free some space or " if error.errno in (errno.ENOSPC, errno.EDQUOT) else ""
    return OutputError(
        f"{folder.parent}: temporary files cannot be written ({_reason(error)});"
        f" {space}set TMPDIR to another folder"
    )


@contextmanager
def kept_in(path: Path) -> Iterator[None]:
    """For writing a file of such a folder. Raises OutputError for what the operating system refuses."""
    try:
        yield
    except OSError as error:
        raise refused(path.parent, error) from error


def _reason(error: OSError) -> str:
    return os.strerror(error.errno) if error.errno else str(error).splitlines()[0]
