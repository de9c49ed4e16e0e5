"""A file that appears under its name only when complete."""

import io
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from kwsniff.errors import OutputError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class _Written(io.FileIO):
    """A file. Raises OutputError for write errors, but BrokenPipeError unchanged."""

    def __init__(self, path: Path, mode: str, place: Path) -> None:
        self._place = place
        super().__init__(path, mode)

    def write(self, data: "ReadableBuffer", /) -> int:
        try:
            return super().write(data) or 0
        except BrokenPipeError:
            raise
        except OSError as error:
            raise _explain_error(self._place, error) from error


def _open(path: Path, mode: str, place: Path, *, binary: bool) -> IO[Any]:
    try:
        file: Any = io.BufferedWriter(_Written(path, f"{mode}b", place))
    except OSError as error:
        raise _explain_error(place, error) from error
    return file if binary else io.TextIOWrapper(file, encoding="utf-8", newline="\n")


def _explain_error(place: Path, error: OSError) -> OutputError:
    return OutputError(f"{place}: cannot write: {error.strerror or error}")


@contextmanager
def write_atomically(path: str | os.PathLike[str], *, binary: bool = False) -> Iterator[IO[Any]]:
    """A hidden file next to `path` that replaces it at the end. It is deleted on any exception, and if the
    caller closed it, which means that there is nothing to write. Pipes and devices are written directly.

    Raises OutputError if it cannot be written, before any other work if that is known by then.
    """
    place = Path(path)
    if place.exists() and not (place.is_file() or place.is_dir()):
        with _through(place, binary) as through:
            yield through
        return
    if place.is_file():
        place = place.resolve()  # symbolic links stay
    hidden = place.parent / f".{secrets.token_hex(8)}.kwsniff"
    if place.is_dir():
        raise OutputError(f"{place} is a directory; give a file name")
    file = _open(hidden, "x", place, binary=binary)
    try:
        yield file
        if file.closed:
            return
        try:
            file.flush()
            os.fsync(file.fileno())
            file.close()
            hidden.replace(place)
        except OSError as error:
            raise _explain_error(place, error) from error
    finally:
        _discard(file, hidden)


@contextmanager
def _through(place: Path, binary: bool) -> Iterator[IO[Any]]:
    file = _open(place, "w", place, binary=binary)
    try:
        yield file
    except BaseException:
        with suppress(OSError, OutputError):
            file.close()
        raise
    try:
        file.close()
    except OSError as error:
        raise _explain_error(place, error) from error


def _discard(file: IO[Any], hidden: Path) -> None:
    try:
        file.close()
    except (OSError, OutputError):  # data that could not be flushed is lost with the file
        pass
    finally:
        hidden.unlink(missing_ok=True)
