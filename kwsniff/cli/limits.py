"""``--limit NAME=N``: bounds on memory and work, for every verb that reads captures or messages."""

import argparse
from collections.abc import Iterable

from kwsniff.errors import UsageError


def add_limit_option(parser: argparse.ArgumentParser) -> None:
    """Add the option to a verb."""
    parser.add_argument(
        "--limit",
        action="append",
        default=[],
        metavar="NAME=N",
        help="change a bound on memory or work, for example connections=1000000; see docs/limits.md",
    )


def parse_limits(texts: Iterable[str]) -> dict[str, int]:
    """Name to number, whatever the names. Raises UsageError for what is not NAME=N."""
    return dict(map(_parse_limit, texts))


def _parse_limit(text: str) -> tuple[str, int]:
    name, equals, value = text.partition("=")
    if not equals or not value.strip().isdecimal():
        raise UsageError(
            f"--limit {text}: give a name and a whole number, for example --limit connections=1000"
        )
    try:
        return name.strip(), int(value)
    except ValueError as error:  # Python reads no number of more than 4,300 digits
        raise UsageError(f"--limit {name}: a number of {len(value):,} digits is too large") from error
