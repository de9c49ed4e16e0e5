"""The option --place: captures by where they were taken."""

import argparse
from collections.abc import Mapping, Sequence

from kwsniff.cli.help_text import group_of
from kwsniff.errors import UsageError


def add_place_option(parser: argparse.ArgumentParser) -> None:
    """Add the option to a verb."""
    group_of(parser, "reading captures").add_argument(
        "--place",
        action="append",
        default=[],
        nargs="+",
        metavar=("NAME=CAPTURE", "CAPTURE"),
        help="captures of one place, once per place; without it, packets tell places apart",
    )


def parse_places(given: Sequence[Sequence[str]]) -> dict[str, list[str]]:
    """Name of a place -> its captures. Raises UsageError."""
    places: dict[str, list[str]] = {}
    for first, *more in given:
        name, is_named, capture = first.partition("=")
        if not (is_named and name and capture):
            raise UsageError(f"--place {first}: give a name and captures, for example --place client=a.pcap")
        places.setdefault(name, []).extend([capture, *more])
    return places


def captures_of(places: Mapping[str, Sequence[str]]) -> list[str]:
    """The captures of all places."""
    return [capture for each in places.values() for capture in each]


def with_placed(
    captures: Sequence[str], places: Mapping[str, Sequence[str]], *, verb: str, argument: str
) -> list[str]:
    """These captures and those of places. Raises UsageError where there are none."""
    found = [*captures, *captures_of(places)]
    if not found:
        raise UsageError(f"the following arguments are required: {argument}; see kwsniff {verb} --help")
    return found
