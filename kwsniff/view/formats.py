"""Short text formats that several views share."""

from typing import Final

from kwsniff.zones import Zone

_LONGEST: Final = 120
_LAST_TIME: Final = 253_402_300_800_000


def shorten(text: str) -> str:
    """At most 120 characters, with three dots for the rest."""
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def in_zone(milliseconds: int, zone: Zone) -> str:
    """A Kafka timestamp (milliseconds since the epoch) with date and zone; a number out of range stays a
    number."""
    return zone.moment(milliseconds * 1_000_000) if 0 < milliseconds < _LAST_TIME else str(milliseconds)


def plural(number: int, word: str) -> str:
    """1 batch is not 2 batches."""
    ending = "es" if word.endswith("ch") else "s"
    return f"{number} {word}" if number == 1 else f"{number} {word}{ending}"
