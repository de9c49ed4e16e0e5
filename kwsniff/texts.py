"""Formatting of numbers and untrusted texts for terminals, pages and JSON.

Text from the wire and file names pass through `clean` before a person sees them, and through `json_text`
before a program does.
"""

import json
import math
import string
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

JSON_VERSION: Final = 1
"""Version of the JSON that verbs print; it rises when a field is removed or changes its meaning."""

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
    """A share: 12 %; below 1 % with two digits, so that a small share does not appear as zero: < 0.01 % is
    the least; "" for None."""
    if part is None:
        return ""
    percent = 100 * part / whole
    if 0 < percent < 0.01:
        return "< 0.01 %"
    return f"{percent:.0f} %" if percent >= 1 else f"{percent:.2g} %"


class _Filled(string.Formatter):
    def format_field(self, value: Any, format_spec: str) -> str:
        text = str(format(value, format_spec))
        return f"{text[:-1]} %" if format_spec.endswith("%") else text


def fill(template: str, values: Mapping[str, Any]) -> str:
    """A template with its values; shares as `in_percent` writes them: 12 %."""
    return _Filled().vformat(template, (), values)


def in_time(nanoseconds: float | None) -> str:
    """A duration with three digits or more: 84.0 us; "" for None."""
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
    """A text from the wire for the screen, with control characters escaped."""
    if text is None:
        return ""
    return _printable(text, lambda char: char.encode("unicode_escape").decode())


def suggest(name: str, known: Iterable[str]) -> str:
    """The end of an error message: similar names, or all names."""
    from difflib import get_close_matches  # slow to import, and rarely needed

    names = list(known)
    near = get_close_matches(name.lower(), names, n=2, cutoff=0.6)
    return f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(names)}"


def add_version(facts: Mapping[str, Any]) -> dict[str, Any]:
    """An object that verbs print, with the version of its format first (docs/stability.md)."""
    return {"version": JSON_VERSION, **facts}


def json_text(value: Any, indent: int | None = None) -> str:
    """JSON without characters that control a terminal or act as line breaks: C1, bidirectional controls,
    U+2028
    and similar ones are escaped, and so are lone surrogates.

    NaN and infinity become null, as JSON has neither.
    """
    try:
        text = json.dumps(value, indent=indent, ensure_ascii=False, allow_nan=False)
    except ValueError:
        text = json.dumps(_without_nan(value), indent=indent, ensure_ascii=False, allow_nan=False)
    if text.isascii() and "\x7f" not in text:
        return text
    return _printable(text, lambda char: char if char == "\n" else _spell(char))


def json_pieces(value: Any) -> Iterator[str]:
    """The text of `json_text` in pieces, for values of many megabytes; never holds the whole text."""
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
    """A text with its other characters escaped; in parts, because joining single characters takes much
    memory."""
    if text.isprintable():
        return text
    parts = (text[at : at + _PART] for at in range(0, len(text), _PART))
    return "".join(
        part if part.isprintable() else "".join(char if char.isprintable() else spell(char) for char in part)
        for part in parts
    )


def _spell(char: str) -> str:
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
    """A Wireshark display filter for the packets of messages, from first to last. `port`: a port of only this
    connection, to exclude other packets in between."""
    spans = sorted({(first, last or first) for first, last in frames if first is not None})
    listed = ", ".join(f"{first}" if first == last else f"{first}..{last}" for first, last in spans)
    between = port is not None and any(last > first + 1 for first, last in spans)
    return f"frame.number in {{{listed}}}" + (f" and tcp.port == {port}" if between else "")
