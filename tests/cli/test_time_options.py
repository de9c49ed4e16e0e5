"""--since, --until and --tz as words: what argparse gets, and what commands repeat."""

from __future__ import annotations

import argparse

import pytest

from kwsniff.cli.options.times import asked_words, joined_times, zone_of
from kwsniff.zones import UTC_ZONE, parse_zone


@pytest.mark.parametrize(
    ("given", "joined"),
    [
        (["show", "--since", "-5m"], ["show", "--since=-5m"]),
        (["--until", "-0.5s", "x"], ["--until=-0.5s", "x"]),
        (["--tz", "-03:00"], ["--tz=-03:00"]),
        (["--at", "-1h"], ["--at=-1h"]),
        (["--since", "+5m"], ["--since", "+5m"]),
        (["--since", "--json"], ["--since", "--json"]),  # an option: argparse says what is missing
        (["--since"], ["--since"]),
        (["-o", "-5m"], ["-o", "-5m"]),
        (["--since", "1", "--until", "-2s"], ["--since", "1", "--until=-2s"]),
    ],
)
def test_times_below_zero_are_joined_to_their_option(given: list[str], joined: list[str]) -> None:
    assert [*joined_times(given)] == joined


def test_commands_repeat_times_and_the_zone_they_are_in() -> None:
    berlin = parse_zone("Europe/Berlin")
    for since, until, zone, words in (
        (None, None, None, []),
        (None, None, berlin, []),
        ("+30s", None, None, ["--since=+30s"]),
        ("+30s", "22:00", berlin, ["--since=+30s", "--until=22:00", f"--tz={berlin.name}"]),
    ):
        args = argparse.Namespace(since=since, until=until, tz=zone)
        assert asked_words(args) == words
        assert zone_of(args) is (zone or UTC_ZONE)
