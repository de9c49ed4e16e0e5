"""The defaults of client libraries, from a text file: a line per library, setting and change."""

import re
from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Final

from kwsniff.layout.catalog import Catalog

_FILE: Final = "client_defaults.tsv"
_NUMBER: Final = re.compile(r"\d+")
_MOST_NUMBERS: Final = 4
_MATCHES: Final = "matches"

_Version = tuple[int, ...]
_Changes = dict[str, list[tuple[_Version, str]]]


@lru_cache(maxsize=64)
def find_defaults(catalog: Catalog, software: str | None, version: str | None) -> Mapping[str, str]:
    """Setting -> default in that version of a library; empty for one that the file does not have."""
    for pattern, changes in _libraries(catalog):
        if part := pattern.search(f"{software or ''} {version or ''}"):
            number = _numbers(part[1])
            return {
                setting: values[-1]
                for setting, told in changes.items()
                if (values := [value for since, value in told if since <= number])
            }
    return {}


def _numbers(version: str) -> _Version:
    return tuple(int(each[:6]) for each in _NUMBER.findall(version)[:_MOST_NUMBERS])


@cache
def _libraries(catalog: Catalog) -> tuple[tuple[re.Pattern[str], _Changes], ...]:
    found: dict[str, tuple[re.Pattern[str], _Changes]] = {}
    for line in (catalog.folder / _FILE).read_text("utf-8").splitlines():
        if not line or line.startswith("#"):
            continue
        library, setting, since, value, _ = line.split("\t")
        if setting == _MATCHES:
            found[library] = re.compile(value), {}
        else:
            found[library][1].setdefault(setting, []).append((_numbers(since), value))
    return (*found.values(),)
