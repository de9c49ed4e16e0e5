"""Numbers and foreign texts as people read them, on a terminal and on a page."""

from collections.abc import Iterable

_SIZES = ((1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB"))
_TIMES = ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us"), (1, "ns"))


def in_bytes(number: int) -> str:
    """A size in decimal units: 12.2 kB."""
    for size, unit in _SIZES:
        if number >= size:
            return f"{number / size:.1f} {unit}"
    return f"{number} bytes"


def in_percent(part: float | None, whole: float = 1) -> str:
    """A share: 12 %; below 1 % with two digits, so that little is not shown as nothing; nothing for None."""
    if part is None:
        return ""
    percent = 100 * part / whole
    return f"{percent:.0f} %" if percent >= 1 else f"{percent:.2g} %"


def in_time(nanoseconds: float | None) -> str:
    """A duration with three digits or more: 84.0 us; nothing for None."""
    if nanoseconds is None:
        return ""
    for size, unit in _TIMES:
        if nanoseconds >= size:
            value = nanoseconds / size
            return f"{value:.0f} {unit}" if value >= 100 else f"{value:.3g} {unit}"
    return f"{nanoseconds:.3g} ns"


def plural(number: int, word: str) -> str:
    """1 call, 2 calls."""
    return f"{number:,} {word}" if number == 1 else f"{number:,} {word}s"


def clean(text: str | None) -> str:
    """A text from the wire for the screen: what could steer the terminal is spelled out."""
    if text is None:
        return ""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def display_filter(frames: Iterable[tuple[int | None, int | None]], port: int | None = None) -> str:
    """For Wireshark: the packets between the first and last ones of messages; `port`: one that only the
    connection's packets have, for what lies between."""
    spans = sorted({(first, last or first) for first, last in frames if first is not None})
    listed = ", ".join(f"{first}" if first == last else f"{first}..{last}" for first, last in spans)
    between = port is not None and any(last > first + 1 for first, last in spans)
    return f"frame.number in {{{listed}}}" + (f" and tcp.port == {port}" if between else "")
