"""``--since``, ``--until`` and ``--tz``: the time range that a verb reads, and the zone of times."""

import argparse
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from kwsniff.cli.help_text import group_of
from kwsniff.errors import UsageError
from kwsniff.zones import UTC_ZONE, Zone, parse_zone

if TYPE_CHECKING:
    from kwsniff.sources.times import Moment, TimeRange

OPTIONS: Final = ("--since", "--until")
_BELOW_ZERO: Final = re.compile(r"-\d")


def add_time_options(parser: argparse.ArgumentParser) -> None:
    """Add the options to a verb that reads captures."""
    group = group_of(parser, "time")
    group.add_argument(
        "--since",
        metavar="TIME",
        help="only packets from this time on: 2026-11-20T22:06:53 (in --tz, or with an offset), 22:06:53, "
        "seconds since 1970, +30s from the first packet, -5m from the last",
    )
    group.add_argument("--until", metavar="TIME", help="only packets before this time, in the same formats")
    add_zone_option(parser)


def add_zone_option(parser: argparse.ArgumentParser) -> None:
    """Add --tz to a verb that shows times. Its argument becomes a Zone, or a UsageError."""
    group_of(parser, "time").add_argument(
        "--tz",
        metavar="local|ZONE",
        type=parse_zone,
        help="show times in this zone: local, +02:00, Europe/Berlin (default: UTC); JSON always has UTC",
    )


def zone_of(args: argparse.Namespace) -> Zone:
    """The zone of times on the screen."""
    return args.tz or UTC_ZONE


def since_and_until(args: argparse.Namespace) -> tuple["Moment | None", "Moment | None"]:
    """Both bounds of the time range. Raises UsageError for invalid times."""
    if args.since is None and args.until is None:
        return None, None
    from kwsniff.sources.times import parse_moment

    since, until = (
        None if text is None else parse_moment(text, option, zone_of(args))
        for option, text in zip(OPTIONS, (args.since, args.until), strict=True)
    )
    return since, until


def time_range(args: argparse.Namespace) -> "TimeRange":
    """The time range. Raises UsageError for invalid times or an empty range."""
    from kwsniff.sources.times import TimeRange

    return TimeRange(*since_and_until(args))


def asked_words(args: argparse.Namespace) -> list[str]:
    """The options as given, for commands that read the same time range."""
    words = zip(OPTIONS, (args.since, args.until), strict=True)
    said = [f"{option}={time}" for option, time in words if time is not None]
    return [*said, f"--tz={args.tz.name}"] if said and args.tz else said


def refuse_times(args: argparse.Namespace, why: str) -> None:
    """Raises UsageError if either was given and does not apply."""
    if asked_words(args):
        raise UsageError(f"--since and --until cannot be used with {why}")


def joined_times(arguments: Sequence[str]) -> Iterator[str]:
    """The command line with options like `--since -5m` joined into one word: argparse reads -5m as an
    option."""
    words = iter(arguments)
    for word in words:
        if word in (*OPTIONS, "--at", "--tz"):
            time = next(words, None)
            if time is not None and _BELOW_ZERO.match(time):
                yield f"{word}={time}"
                continue
            yield word
            if time is not None:
                yield time
        else:
            yield word
