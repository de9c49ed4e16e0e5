"""Error codes, releases and enums: reference tables next to the layouts."""

import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from kwsniff.layout.tokens import fail

_LISTED: Final = 0.45
"""Least share of a release's APIs that a list of ranges must have to prove the release."""


class ErrorCode(NamedTuple):
    """An error code of the protocol. ``since``: its first release; ``meaning``: one line."""

    code: int
    name: str
    retriable: bool
    since: str
    meaning: str


class Releases(NamedTuple):
    """API versions by release.

    ``names`` is in order of release; ``ranges`` maps an api key to one entry per name: (min, max) or None.
    ``shown``: what ApiVersions may show in place of a range, by api key and release.
    """

    names: tuple[str, ...]
    ranges: Mapping[int, tuple[tuple[int, int] | None, ...]]
    shown: Mapping[tuple[int, str], tuple[int, int]]

    def speaks(self, release: str) -> Mapping[int, tuple[int, int]]:
        """API key -> (min, max) version of a release; empty for an unknown release."""
        if release not in self.names:
            return {}
        at = self.names.index(release)
        return {key: span for key, spans in self.ranges.items() if (span := spans[at]) is not None}

    def newest_of(self, name: str) -> str | None:
        """A release by its name, or the newest of a line: 4.3.1 for 4.3; None if unknown. A snapshot
        needs its full name."""
        if name in self.names:
            return name
        line = [each for each in self.names if each.startswith(f"{name}.") and "-" not in each]
        return max(line, key=lambda each: [int(part) for part in each.split(".")], default=None)

    def offering(self, offered: Mapping[int, tuple[int, int]]) -> tuple[str, ...]:
        """The releases of which a broker or controller lists exactly these ranges in ApiVersions. `offered`:
        by API key.

        A listener lists less than the release has: a controller half of the APIs. Fewer prove nothing.
        """
        return tuple(name for name in self.names if self._offers(name, offered))

    def _offers(self, name: str, offered: Mapping[int, tuple[int, int]]) -> bool:
        spans = self.speaks(name)
        return len(offered) >= _LISTED * len(spans) and all(
            span == spans.get(key) or span == self.shown.get((key, name)) for key, span in offered.items()
        )

    def spoken_by(self, api_key: int, version: int) -> tuple[str, ...]:
        """The releases with a version of an API."""
        spans = self.ranges.get(api_key, ())
        return tuple(
            name
            for name, span in zip(self.names, spans, strict=False)
            if span is not None and span[0] <= version <= span[1]
        )


def _rows(text: str) -> Iterator[tuple[int, str]]:
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.partition("#")[0].rstrip()
        if line:
            yield number, line


def parse_errors(text: str, file: str) -> Mapping[int, ErrorCode]:
    """Lines ``code name retriable|final since [words that explain it]``."""
    errors: dict[int, ErrorCode] = {}
    for number, line in _rows(text):
        words = line.split(None, 4)
        if len(words) < 4 or words[2] not in ("retriable", "final") or not words[0].lstrip("-").isdigit():
            fail(file, number, f"'{line}': an error needs: code NAME retriable|final since [explanation]")
        code = int(words[0])
        if not -32768 <= code <= 32767:
            fail(file, number, f"'{code}' is not an int16")
        if code in errors:
            fail(file, number, f"'{code}' is already defined")
        errors[code] = ErrorCode(
            code, words[1], words[2] == "retriable", words[3], words[4] if len(words) > 4 else ""
        )
    return errors


def parse_releases(text: str, file: str) -> Releases:
    """First line: the releases, oldest first. Then per API: key, ``release:min-max[/min-max]`` at each
    change; the second range is what ApiVersions may show instead."""
    rows = _rows(text)
    number, line = next(rows, (1, ""))
    names = tuple(line.split()[1:])
    ranges: dict[int, tuple[tuple[int, int] | None, ...]] = {}
    shown: dict[tuple[int, str], tuple[int, int]] = {}
    for number, line in rows:
        key, *changes = line.split()
        if not key.isdigit():
            fail(file, number, f"'{key}' is not an api key")
        known = dict(_change(change, names, file, number) for change in changes)
        spans: list[tuple[int, int] | None] = []
        now: _Change = (None, None)
        for name in names:
            now = known.get(name, now)
            spans.append(now[0])
            if now[1] is not None:
                shown[int(key), name] = now[1]
        ranges[int(key)] = tuple(spans)
    return Releases(names, ranges, shown)


_Change = tuple[tuple[int, int] | None, tuple[int, int] | None]
_CHANGE: Final = re.compile(r"([^:]+):(?:none|(\d+)(?:-(\d+))?(?:/(\d+)-(\d+))?)")


def _change(word: str, names: tuple[str, ...], file: str, number: int) -> tuple[str, _Change]:
    found = _CHANGE.fullmatch(word)
    if found is None or found[1] not in names:
        fail(
            file, number, f"'{word}' is not RELEASE:MIN-MAX or RELEASE:none with a release of the first line"
        )
    name, first, last, *instead = found.groups()
    span = None if first is None else (int(first), int(last or first))
    return name, (span, (int(instead[0]), int(instead[1])) if instead[0] else None)


def parse_enums(text: str, file: str) -> Mapping[str, Mapping[int, str]]:
    """Blocks: the enum's name at the margin, then indented lines ``code name``."""
    enums: dict[str, dict[int, str]] = {}
    values: dict[int, str] | None = None
    for number, line in _rows(text):
        words = line.split()
        if not line.startswith(" "):
            if len(words) != 1 or words[0] in enums:
                fail(file, number, f"'{line}' is not the name of a new enum")
            values = enums[words[0]] = {}
        elif values is None or len(words) != 2 or not words[0].lstrip("-").isdigit():
            fail(file, number, f"'{line.strip()}' is not: code name")
        else:
            values[int(words[0])] = words[1]
    return enums
