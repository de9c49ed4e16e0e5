"""Short text formats that several views share."""

from datetime import UTC, datetime
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


def in_nanoseconds(time: int) -> str:
    """A capture's time (nanoseconds since the epoch) as ISO 8601 with nine digits."""
    seconds, rest = divmod(time, 1_000_000_000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest:09}Z"


def in_span(nanoseconds: int) -> str:
    """A duration with three digits or more: 84.0 us."""
    for size, unit in ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")):
        if nanoseconds >= size:
            value = nanoseconds / size
            return f"{value:.0f} {unit}" if value >= 100 else f"{value:.3g} {unit}"
    return f"{nanoseconds} ns"
