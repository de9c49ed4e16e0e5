"""Temporary folders for data that may not fit in memory."""

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
    """A folder that is deleted at the end. Raises OutputError if it cannot be created."""
    try:
        made = tempfile.TemporaryDirectory(prefix=_PREFIX)
    except OSError as error:
        raise OutputError(
            f"cannot create a temporary folder ({_reason(error)}); set TMPDIR to a writable folder"
        ) from error
    with made as folder:
        yield folder


def is_temporary(directory: Path) -> bool:
    """Whether it is such a folder."""
    return directory.parent == Path(tempfile.gettempdir()) and directory.name.startswith(_PREFIX)


def explain_error(folder: Path, error: OSError) -> OutputError:
    """The error message for a temporary folder that cannot be written."""
    space = "free some space or " if error.errno in (errno.ENOSPC, errno.EDQUOT) else ""
    return OutputError(
        f"{folder.parent}: cannot write temporary files ({_reason(error)});"
        f" {space}set TMPDIR to another folder"
    )


@contextmanager
def translate_errors(path: Path) -> Iterator[None]:
    """Wraps writes to a file in such a folder. Raises OutputError for write errors."""
    try:
        yield
    except OSError as error:
        raise explain_error(path.parent, error) from error


def _reason(error: OSError) -> str:
    return os.strerror(error.errno) if error.errno else str(error).splitlines()[0]
