"""Numbers and foreign texts as a page shows them."""

from collections.abc import Iterable
from datetime import UTC, datetime

_TIMES = ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "µs"), (1, "ns"))


def duration(nanoseconds: float | None) -> str:
    """84.0 µs; nothing for None."""
    if nanoseconds is None:
        return ""
    for size, unit in _TIMES:
        if nanoseconds >= size:
            value = nanoseconds / size
            return f"{value:,.0f} {unit}" if value >= 100 else f"{value:.3g} {unit}"
    return "0"


def percent(share: float | None) -> str:
    """12 %; below 1 % with two digits."""
    if share is None:
        return ""
    value = 100 * share
    return f"{value:.0f} %" if value >= 1 or value == 0 else f"{value:.2g} %"


def plural(count: int, word: str) -> str:
    """1 call, 2 calls."""
    return f"{count:,} {word}" if count == 1 else f"{count:,} {word}s"


def moment(time: datetime | None) -> str:
    """22:06:53.312, in UTC."""
    if time is None:
        return ""
    aware = time if time.tzinfo else time.replace(tzinfo=UTC)
    return aware.astimezone(UTC).strftime("%H:%M:%S.%f")[:-3]


def clock_at(milliseconds: float) -> str:
    """The clock of a point on a time axis."""
    return moment(datetime.fromtimestamp(milliseconds / 1000, UTC))


def spelled(value: str) -> str:
    """A text from the wire with what cannot be seen, or turns the text around it, spelled out."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in value)


def label(value: object, most: int = 28) -> str:
    """A text for a chart, shortened in its middle."""
    shown = spelled("" if value is None else str(value))
    if len(shown) > most:
        head = (most - 1) // 2
        shown = f"{shown[:head]}…{shown[head + 1 - most :]}"
    return shown


def labels(values: Iterable[str], most: int = 28) -> dict[str, str]:
    """A label for each value, no two alike."""
    given: dict[str, str] = {}
    taken: set[str] = set()
    for value in values:
        if value in given:
            continue
        name = first = label(value, most)
        count = 1
        while name in taken:
            count += 1
            name = f"{first} ({count})"
        taken.add(name)
        given[value] = name
    return given
