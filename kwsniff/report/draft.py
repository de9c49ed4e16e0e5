"""A file that appears under its name when it is complete."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from kwsniff.errors import OutputError


@contextmanager
def draft(path: str | os.PathLike[str], *, binary: bool = False) -> Iterator[IO[Any]]:
    """A hidden file beside `path` that takes its place at the end; on any exception it goes, and where it was
    closed: then nothing is to be written. What is no file (a pipe, a device) is written as it is.

    Raises OutputError where it cannot be written, before anything else happens if it can be told then.
    """
    place = Path(path)
    if place.exists() and not (place.is_file() or place.is_dir()):
        with _through(place, binary) as through:
            yield through
        return
    if place.is_file():
        place = place.resolve()  # a link stays one
    hidden = place.parent / f".{secrets.token_hex(8)}.kwsniff"
    if place.is_dir():
        raise OutputError(f"{place}: is a directory; name a file")
    try:
        file: IO[Any] = hidden.open("xb") if binary else hidden.open("x", encoding="utf-8", newline="\n")
    except OSError as error:
        raise OutputError(f"{place}: cannot be written: {error.strerror}") from error
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
            raise OutputError(f"{place}: cannot be written: {error.strerror}") from error
    finally:
        _discard(file, hidden)


@contextmanager
def _through(place: Path, binary: bool) -> Iterator[IO[Any]]:
    try:
        file: IO[Any] = place.open("wb") if binary else place.open("w", encoding="utf-8", newline="\n")
    except OSError as error:
        raise OutputError(f"{place}: cannot be written: {error.strerror}") from error
    try:
        yield file
    except BaseException:
        with suppress(OSError):
            file.close()
        raise
    try:
        file.close()
    except OSError as error:
        raise OutputError(f"{place}: cannot be written: {error.strerror}") from error


def _discard(file: IO[Any], hidden: Path) -> None:
    try:
        file.close()
    except OSError:  # what could not be flushed is lost with the file
        pass
    finally:
        hidden.unlink(missing_ok=True)
