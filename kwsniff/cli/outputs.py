"""Output files: an existing file is replaced only if it is an earlier result of the same kind."""

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
        help="replace the output file even if it is not an earlier result; never a capture that is read",
    )


def refuse_loss(path: str, endings: Sequence[str], *, read: Iterable[str] = (), force: bool = False) -> None:
    """Raises UsageError if writing to `path` would replace a file other than an earlier result.

    An earlier result has one of the `endings` and is not a capture, unless `slice` wrote it.
    `read`: input captures and directories, which are never replaced.
    """
    place = Path(path)
    if not place.is_file():
        return
    capture = _is_capture(place)
    for name in read:
        there = Path(name)
        if there.is_file() and there.samefile(place):
            raise UsageError(f"{path} is an input capture; choose another output file")
        if capture and there.is_dir() and there.resolve() == place.resolve().parent:
            raise UsageError(f"{path} is a capture in the input directory; choose another output file")
    if force or not place.stat().st_size:
        return
    what = ""
    if capture and not _is_slice(place):
        what = "is a capture"
    elif capture and ".pcapng" not in endings:
        what = "is a slice of a capture"
    elif place.suffix.lower() not in endings:
        what = f"exists already and does not end with {' or '.join(endings) or 'anything'}"
    elif place.suffix.lower() == ".parquet" and _is_table(place):
        what = "is a table of kwsniff"
    if what:
        raise UsageError(f"{path} {what}; choose another file, or replace it with --force")


def refuse_table(path: str, tables: Iterable[str]) -> None:
    """Raises UsageError if `path` is an input file."""
    place = Path(path)
    if place.exists() and any(Path(name).samefile(place) for name in tables):
        raise UsageError(f"{path} is an input table; choose another output file")


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
    from kwsniff.findings.views import is_folder_of_tables
    from kwsniff.tables.schema import TABLES

    return place.stem in TABLES and is_folder_of_tables(place.parent)
