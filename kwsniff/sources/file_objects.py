"""File objects instead of paths: open files, or data in memory such as an upload."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Protocol, runtime_checkable

from kwsniff.errors import CaptureError, UsageError
from kwsniff.temporary import temporary_folder, translate_errors

_PIECE: Final = 1 << 20


@runtime_checkable
class Readable(Protocol):
    """A file object in binary mode: an open file, `io.BytesIO`, a response of a server."""

    def read(self, size: int = ..., /) -> Any:
        """Some bytes; empty at the end."""


Given = str | os.PathLike[str] | Readable


class Copied(str):
    """The path of a temporary copy, with another name for display."""

    __slots__ = ("shown",)
    shown: str

    def __new__(cls, path: str, shown: str) -> "Copied":
        """`shown`: the name in tables and messages."""
        made = super().__new__(cls, path)
        made.shown = shown
        return made


def shown_name(path: str | os.PathLike[str]) -> str:
    """The display name of a capture."""
    return path.shown if isinstance(path, Copied) else os.fspath(path)


@contextmanager
def as_paths(given: Given | Sequence[Given]) -> Iterator[list[str | os.PathLike[str]]]:
    """Paths unchanged; file objects copied to a temporary folder, from their position to their end.

    Captures are read more than once (their first packets give the order), but file objects can be read only
    once. Raises CaptureError for an unreadable one, UsageError for one in text mode.
    """
    each = [given] if isinstance(given, str | os.PathLike | Readable) else list(given)
    if not any(isinstance(one, Readable) for one in each):
        yield [one for one in each if not isinstance(one, Readable)]
        return
    with temporary_folder() as folder:
        paths: dict[int, str | os.PathLike[str]] = {}
        for place, one in enumerate(each):
            if id(one) not in paths:
                copy = Path(folder, str(place))
                paths[id(one)] = _copy(one, copy, place) if isinstance(one, Readable) else one
        yield [paths[id(one)] for one in each]


def _copy(file: Readable, copy: Path, place: int) -> Copied:
    name = getattr(file, "name", None)
    shown = os.fspath(name) if isinstance(name, str | os.PathLike) else f"file object {place + 1}"
    with translate_errors(copy), copy.open("wb") as out:
        while piece := _read(file, shown):
            out.write(piece)
    return Copied(str(copy), shown)


def _read(file: Readable, shown: str) -> bytes:
    try:
        piece = file.read(_PIECE)
    except (OSError, ValueError) as error:  # ValueError: the file is closed, or not decodable as text
        raise CaptureError(f"{shown}: cannot read: {error}") from error
    if isinstance(piece, str):
        raise UsageError(f"{shown} is open in text mode; open it with mode 'rb'")
    return bytes(piece or b"")
