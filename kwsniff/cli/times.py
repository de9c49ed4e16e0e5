"""``--since`` and ``--until``: the part of captures that a verb reads."""

import argparse
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from kwsniff.cli.standard_streams import says
from kwsniff.errors import UsageError

if TYPE_CHECKING:
    from kwsniff.sources.times import TimeRange

OPTIONS: Final = ("--since", "--until")
_BELOW_ZERO: Final = re.compile(r"-\d")


def add_time_options(parser: argparse.ArgumentParser) -> None:
    """Add both options to a verb that reads captures."""
    parser.add_argument(
        "--since",
        metavar="TIME",
        help="only packets from a time on: 2026-11-20T22:06:53 (UTC, or with an offset), 22:06:53, seconds "
        "since 1970, +30s from the first packet, -5m from the last",
    )
    parser.add_argument("--until", metavar="TIME", help="only packets before a time, given the same ways")


def time_range(args: argparse.Namespace) -> "TimeRange":
    """What was asked for. Raises UsageError for what is no time, or encloses nothing."""
    from kwsniff.sources.times import TimeRange

    return TimeRange(args.since, args.until)


def asked_words(args: argparse.Namespace) -> list[str]:
    """The options as they were given, for commands that read the same part."""
    words = zip(OPTIONS, (args.since, args.until), strict=True)
    return [f"{option}={time}" for option, time in words if time is not None]


def refuse_times(args: argparse.Namespace, why: str) -> None:
    """Raises UsageError where either was given and cannot be followed."""
    if asked_words(args):
        raise UsageError(f"--since and --until do not go with {why}")


def say_missed(line: str | None) -> None:
    """What the captures have instead, where no packet lies in the range."""
    if line:
        says(f"note: {line}")


def joined_times(arguments: Sequence[str]) -> Iterator[str]:
    """The command line with `--since -5m` and its like as one word: argparse takes -5m for an option."""
    words = iter(arguments)
    for word in words:
        if word in (*OPTIONS, "--at"):
            time = next(words, None)
            if time is not None and _BELOW_ZERO.match(time):
                yield f"{word}={time}"
                continue
            yield word
            if time is not None:
                yield time
        else:
            yield word
