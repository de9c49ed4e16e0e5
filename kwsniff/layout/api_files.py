"""The index of a folder of layouts: the first line of each API's file."""

import os
from pathlib import Path
from typing import Final

from kwsniff.errors import LayoutError
from kwsniff.layout.grammar import parse_api_line
from kwsniff.layout.model import ApiRange
from kwsniff.layout.tokens import fail

_FIRST_BYTES: Final = 512
"""Of a file, which have its first line."""


def read_api_ranges(folder: Path) -> dict[int, ApiRange]:
    """API key -> name and versions."""
    ranges: dict[int, ApiRange] = {}
    there = os.listdir(folder) if folder.is_dir() else ()  # noqa: PTH208 - paths cost more
    for name in there:
        if name[0].isdigit() and "_" in name and name.endswith(".layout"):
            add_api(ranges, parse_api_line(_first_line(f"{folder}/{name}"), name))
    if not ranges:
        raise LayoutError(f"{folder}: no layouts (files like 01_fetch.layout) in this folder")
    return ranges


def add_api(ranges: dict[int, ApiRange], api: ApiRange) -> None:
    """Adds an API whose key is not there yet."""
    if api.key in ranges:
        fail(api.file, 1, f"api key {api.key} is already in {ranges[api.key].file}")
    ranges[api.key] = api


def plain_name(name: str) -> str:
    """A name in any spelling -> one spelling."""
    return name.lower().replace("_", "").replace("-", "")


def _first_line(path: str) -> str:
    # Without the layers of a file object: there are many files, and every analysis reads them.
    file = os.open(path, os.O_RDONLY)
    try:
        return os.read(file, _FIRST_BYTES).partition(b"\n")[0].decode()
    finally:
        os.close(file)
