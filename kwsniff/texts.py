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


def suggested(name: str, known: Iterable[str]) -> str:
    """What may have been meant, as the end of a message: the names like it, or all there are."""
    from difflib import get_close_matches  # takes a while to load, and most runs need it not

    names = list(known)
    near = get_close_matches(name.lower(), names, n=2, cutoff=0.6)
    return f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(names)}"
