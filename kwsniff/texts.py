"""Numbers and foreign texts as people read them, on a terminal and on a page, and as JSON has them.

What comes from the wire, or from names of files, goes to people through `clean` and to programs through
`json_text`: nothing else writes it.
"""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

JSON_VERSION: Final = 1
"""Of the JSON that verbs print: a higher one where something goes away or means something else."""

_PART: Final = 1 << 16
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
    return _printable(text, lambda char: char.encode("unicode_escape").decode())


def suggested(name: str, known: Iterable[str]) -> str:
    """What may have been meant, as the end of a message: the names like it, or all there are."""
    from difflib import get_close_matches  # takes a while to load, and most runs need it not

    names = list(known)
    near = get_close_matches(name.lower(), names, n=2, cutoff=0.6)
    return f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(names)}"


def versioned(facts: Mapping[str, Any]) -> dict[str, Any]:
    """An object that verbs print, with the version of its form in front (docs/stability.md)."""
    return {"version": JSON_VERSION, **facts}


def json_text(value: Any, indent: int | None = None) -> str:
    """JSON without a character that could steer a terminal, or end a line for whoever reads line by line: C1,
    signs of direction, U+2028 and their like are spelled out, as surrogates without a partner are.

    NaN and infinity, which JSON does not have, are null.
    """
    try:
        text = json.dumps(value, indent=indent, ensure_ascii=False, allow_nan=False)
    except ValueError:
        text = json.dumps(_without_nan(value), indent=indent, ensure_ascii=False, allow_nan=False)
    if text.isascii() and "\x7f" not in text:
        return text
    return _printable(text, lambda char: char if char == "\n" else _spelled(char))


def json_pieces(value: Any) -> Iterator[str]:
    """The text of `json_text` in pieces, for values of many megabytes: never all of it, nor a copy."""
    if isinstance(value, dict) and value:
        mark = "{"
        for name, each in value.items():
            yield f"{mark}{json_text(name)}: "
            yield from json_pieces(each)
            mark = ", "
        yield "}"
    elif isinstance(value, list | tuple) and value:
        mark = "["
        for each in value:
            yield mark
            yield from json_pieces(each)
            mark = ", "
        yield "]"
    else:
        yield json_text(value)


def _printable(text: str, spell: Callable[[str], str]) -> str:
    """A text whose other characters are spelled; in parts, as joining characters takes much memory."""
    if text.isprintable():
        return text
    parts = (text[at : at + _PART] for at in range(0, len(text), _PART))
    return "".join(
        part if part.isprintable() else "".join(char if char.isprintable() else spell(char) for char in part)
        for part in parts
    )


def _spelled(char: str) -> str:
    units = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


def _without_nan(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _without_nan(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(each) for each in value]
    return value


def display_filter(frames: Iterable[tuple[int | None, int | None]], port: int | None = None) -> str:
    """For Wireshark: the packets between the first and last ones of messages; `port`: one that only the
    connection's packets have, for what lies between."""
    spans = sorted({(first, last or first) for first, last in frames if first is not None})
    listed = ", ".join(f"{first}" if first == last else f"{first}..{last}" for first, last in spans)
    between = port is not None and any(last > first + 1 for first, last in spans)
    return f"frame.number in {{{listed}}}" + (f" and tcp.port == {port}" if between else "")
