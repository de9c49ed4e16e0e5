"""Files that verbs write: one that is there is replaced only where the same command can make it again."""

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from kwsniff.errors import UsageError

PAGE: Final = (".html", ".htm")
"""Endings of an HTML page."""
_OF_A_SLICE: Final = b"kwsniff slice"
_LOOK_BYTES: Final = 64


def add_force_option(parser: argparse.ArgumentParser) -> None:
    """Add --force to a verb that writes a file."""
    parser.add_argument(
        "-f",
        "--force",
        action="store_true",
        help="replace the output file whatever it is, but no capture that is read",
    )


def refuse_loss(path: str, endings: Sequence[str], *, read: Iterable[str] = (), force: bool = False) -> None:
    """Raises UsageError where writing to `path` would replace something else than an earlier result.

    An earlier result has one of the `endings` of such results, and is no capture, unless `slice` wrote it.
    `read`: captures and directories of them that are read, which nothing replaces.
    """
    place = Path(path)
    if not place.is_file():
        return
    capture = _is_capture(place)
    for name in read:
        there = Path(name)
        if there.is_file() and there.samefile(place):
            raise UsageError(f"{path}: is a capture that is read; name another file")
        if capture and there.is_dir() and there.resolve() == place.resolve().parent:
            raise UsageError(f"{path}: is a capture of the directory that is read; name another file")
    if force or not place.stat().st_size:
        return
    what = ""
    if capture and not _is_slice(place):
        what = "is a capture"
    elif capture and ".pcapng" not in endings:
        what = "is a slice of a capture"
    elif place.suffix.lower() not in endings:
        what = f"is there already, and does not end with {' or '.join(endings) or 'anything'}"
    elif place.suffix.lower() == ".parquet" and _is_table(place):
        what = "is a table of kwsniff"
    if what:
        raise UsageError(f"{path}: {what}; name another file, or replace it with --force")


def refuse_table(path: str, tables: Iterable[str]) -> None:
    """Raises UsageError where `path` is one of the files that are read."""
    place = Path(path)
    if place.exists() and any(Path(name).samefile(place) for name in tables):
        raise UsageError(f"{path}: is a table that is read; name another file")


def _is_capture(place: Path) -> bool:
    from kwsniff.errors import CaptureError
    from kwsniff.sources.files import check_capture

    try:
        check_capture(str(place))
    except CaptureError:
        return False
    return True


def _is_slice(place: Path) -> bool:
    with place.open("rb") as file:
        return _OF_A_SLICE in file.read(_LOOK_BYTES)


def _is_table(place: Path) -> bool:
    from kwsniff.findings.tables import is_folder_of_tables
    from kwsniff.tables.schema import TABLES

    return place.stem in TABLES and is_folder_of_tables(place.parent)
