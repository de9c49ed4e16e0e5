"""Values of a filter, read as the kind of their column asks."""

import re
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from typing import Final

from kwsniff.errors import UsageError
from kwsniff.filter.attributes import KINDS, Attribute
from kwsniff.layout.catalog import load_catalog
from kwsniff.layout.spoken import api_names, error_codes
from kwsniff.sources.times import Moment, parse_moment
from kwsniff.tables.enums import WORDS
from kwsniff.texts import suggest
from kwsniff.zones import Zone

Value = Fraction | Moment | str

_NUMBER: Final = re.compile(r"(?a)[+-]?\d{1,40}(?:\.\d{1,20})?")
_STEP: Final = re.compile(r"([0-9]{1,20}(?:\.[0-9]{1,12})?)(ns|us|ms|min|s|m|h|d)")
_STEPS: Final = re.compile(rf"(?:{_STEP.pattern})+")
_SIZE: Final = re.compile(r"(?a)(\d{1,20}(?:\.\d{1,12})?) ?(b|kb|mb|gb|tb|kib|mib|gib|tib)")
_NANOSECONDS: Final = {
    "ns": 1, "us": 1_000, "ms": 1_000_000, "s": 10**9, "m": 60 * 10**9, "min": 60 * 10**9,
    "h": 3600 * 10**9, "d": 86_400 * 10**9,
}  # fmt: skip
_BYTES: Final = {
    "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12,
    "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40,
}  # fmt: skip
_FLAGS: Final = {"true": Fraction(1), "false": Fraction(0)}
_MICROSECOND: Final = 1_000
_LONGEST_NUMBER: Final = 18


class ValueProblem(Exception):
    """What is wrong with a value."""


def read_value(text: str, attribute: Attribute, zone: Zone) -> Value:
    """The value that a text is for this column, in the column's unit: a number, a text, or a time, which
    may be relative. Raises ValueProblem."""
    if attribute.kind == "time":
        try:
            return parse_moment(text, attribute.name, zone)
        except UsageError as error:
            raise ValueProblem(str(error).partition(": ")[2]) from error
    read: Mapping[str, Callable[[str, Attribute], Fraction | str]] = {
        "number": _number, "duration": _duration, "size": _size, "flag": _flag, "errors": _error,
        "packets": _packet,
    }  # fmt: skip
    return read[attribute.kind](text, attribute) if attribute.kind in read else _text(text, attribute)


def read_duration(text: str) -> int | None:
    """Nanoseconds of a text like 10ms, 1.5 s or 1m30s; None for any other text."""
    text = text.lower().replace("µs", "us").replace(" ", "")
    if not _STEPS.fullmatch(text):
        return None
    return round(sum(Fraction(number) * _NANOSECONDS[unit] for number, unit in _STEP.findall(text)))


def microseconds(moment: int) -> Fraction:
    """A time in nanoseconds as columns of times have it."""
    return Fraction(moment, _MICROSECOND)


def _number(text: str, attribute: Attribute) -> Fraction:
    if not _NUMBER.fullmatch(text):
        raise ValueProblem(_wrong(text, attribute))
    return Fraction(text)


def _packet(text: str, attribute: Attribute) -> Fraction:
    if not (text.isascii() and text.isdecimal() and len(text) <= _LONGEST_NUMBER):
        raise ValueProblem(_wrong(text, attribute))
    return Fraction(text)


def _duration(text: str, attribute: Attribute) -> Fraction:
    if _NUMBER.fullmatch(text):
        if attribute.bare or Fraction(text) == 0:
            return Fraction(text)
        raise ValueProblem(f"{attribute.name} needs a duration with a unit: {text}ms, {text}us or {text}s")
    span = read_duration(text)
    if span is None:
        raise ValueProblem(_wrong(text, attribute))
    return Fraction(span, attribute.unit_ns)


def _size(text: str, attribute: Attribute) -> Fraction:
    if _NUMBER.fullmatch(text):
        return Fraction(text)
    found = _SIZE.fullmatch(text.lower())
    if found is None:
        raise ValueProblem(_wrong(text, attribute))
    return Fraction(found[1]) * _BYTES[found[2]]


def _flag(text: str, attribute: Attribute) -> Fraction:
    if text.lower() not in _FLAGS:
        raise ValueProblem(_wrong(text, attribute))
    return _FLAGS[text.lower()]


def _error(text: str, _: Attribute) -> Fraction:
    if _NUMBER.fullmatch(text):
        return Fraction(text)
    codes = error_codes(load_catalog())
    name = text.upper().replace("-", "_")
    if name not in codes:
        raise ValueProblem(f"unknown error '{text}': {near_names(name, codes, 'errors')}")
    return Fraction(codes[name])


def _text(text: str, attribute: Attribute) -> str:
    if attribute.words == "api_name":
        names = api_names(load_catalog())
        if text not in names:
            raise ValueProblem(f"unknown API '{text}': {near_names(text, names, 'apis')}")
    elif attribute.words == "error_name":
        errors = [*error_codes(load_catalog())]
        if text not in errors:
            raise ValueProblem(f"unknown error '{text}': {near_names(text, errors, 'errors')}")
    elif attribute.words and text not in WORDS[attribute.words]:
        raise ValueProblem(f"unknown {attribute.name} '{text}'; {suggest(text, [*WORDS[attribute.words]])}")
    return text


def near_names(text: str, names: Iterable[str], what: str) -> str:
    """The end of a message on an unknown name. `what`: the list that `kwsniff explain` shows."""
    from difflib import get_close_matches

    plain = {name.lower().replace("_", ""): name for name in names}
    near = [plain[each] for each in get_close_matches(text.lower().replace("_", ""), plain, 3, 0.5)]
    return f"did you mean {', '.join(near)}?" if near else f"kwsniff explain {what} lists them"


def _wrong(text: str, attribute: Attribute) -> str:
    return f"'{text}' does not fit: {attribute.name} is {KINDS[attribute.kind]}"
