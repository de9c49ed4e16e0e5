"""``--limit NAME=N``: limits on memory and work, for every verb that reads captures or messages."""

import argparse
import re
from collections.abc import Iterable

from kwsniff.cli.help_text import group_of
from kwsniff.errors import UsageError

_UNITS = {"": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
_NUMBER = re.compile(rf"([0-9]+) ?({'|'.join(_UNITS)})")


def add_limit_option(parser: argparse.ArgumentParser) -> None:
    """Add the option to a verb."""
    group_of(parser, "advanced").add_argument(
        "--limit",
        action="append",
        default=[],
        metavar="NAME=N",
        help="change a limit on memory or work, for example memory=2GB; kwsniff explain limits lists them",
    )


def parse_limits(texts: Iterable[str]) -> dict[str, int]:
    """Name to number, for any names; 400MB is 400,000,000, 64MiB is 67,108,864.

    Raises UsageError for a text other than NAME=N.
    """
    return dict(map(_parse_limit, texts))


def _parse_limit(text: str) -> tuple[str, int]:
    name, equals, value = text.partition("=")
    found = _NUMBER.fullmatch(value.strip())
    if not equals or found is None:
        raise UsageError(
            f"--limit {text}: give a name and a whole number, for example --limit connections=1000 or "
            "--limit memory=400MB"
        )
    try:
        return name.strip(), int(found[1]) * _UNITS[found[2]]
    except ValueError as error:  # Python does not parse numbers of more than 4,300 digits
        raise UsageError(f"--limit {name}: the number is too large ({len(value):,} digits)") from error
