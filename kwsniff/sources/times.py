"""Parsing of times, and the time range of captures.

2026-11-20T22:06:53.5Z  2026-11-20 22:06  22:06:53    in a zone without an offset; the day of the first packet
1795212413.25    seconds since 1970, or ms, us, ns by the number of digits
+30s  +1h30m  -5m    after the first packet; before the last one
"""

import re
from collections.abc import Mapping, Sequence, Set
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from kwsniff.errors import UsageError
from kwsniff.sources.files import STANDARD_INPUT, CaptureFile
from kwsniff.sources.order import first_time_in, last_time
from kwsniff.zones import UTC_ZONE, Zone

FORMS: Final = "2026-11-20T22:06:53, 22:06:53, +30s from the first packet, or -30s from the last"
_SECOND: Final = 1_000_000_000
_LAST: Final = (1 << 63) - 1
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_UNITS: Final = {
    "ns": 1, "us": 1_000, "ms": 1_000_000, "s": _SECOND, "": _SECOND, "m": 60 * _SECOND, "min": 60 * _SECOND,
    "h": 3600 * _SECOND, "d": 86_400 * _SECOND,
}  # fmt: skip
_STEP: Final = re.compile(r"(?a)(\d{1,15}(?:\.\d{1,9})?)(ns|us|ms|min|s|m|h|d|$)")
_STEPS: Final = re.compile(
    r"(?a)([+-])((?:\d{1,15}(?:\.\d{1,9})?(?:ns|us|ms|min|s|m|h|d))+|\d{1,15}(?:\.\d{1,9})?)"
)
_EPOCH_TEXT: Final = re.compile(r"(?a)(\d{9,10}(?:\.\d{1,9})?|\d{13}|\d{16}|\d{19})")
_EPOCH_UNITS: Final = {13: 1_000_000, 16: 1_000, 19: 1}
_FRACTION: Final = re.compile(r"(?a)(.*:\d\d)[.,](\d+)(\D.*)?")
_TIME_OF_DAY: Final = re.compile(r"(?a)\d\d?:")
_OFFSET: Final = re.compile(r"(?a)(?<=\d) *(UTC|[+-]\d\d(?::?\d\d)?)$")


class Moment(NamedTuple):
    """A given time. `nanoseconds`: since 1970 (`at`), after the first packet (`after`), before
    the last one (`before`); a time of day gets its date later."""

    said: str
    kind: Literal["at", "after", "before", "time_of_day"]
    nanoseconds: int = 0
    zone: Zone = UTC_ZONE
    """Zone of a time without an offset."""

    def resolve(self, first: int | None, last: int | None = None) -> int:
        """Nanoseconds since 1970. `first`, `last`: times of the first and the last packet, where known.

        Raises UsageError if the packet that it counts from has no time.
        """
        if self.kind == "at":
            return self.nanoseconds
        known = last if self.kind == "before" else first
        if known is None:
            raise UsageError(
                f"{self.said}: the capture has no packet time to count from; give a date and time"
            )
        if self.kind == "before":
            return _bound(known - self.nanoseconds)
        if self.kind == "after":
            return _bound(known + self.nanoseconds)
        return _calendar(f"{self.zone.at(known):%Y-%m-%d}T{self.said}", self.zone)


Given = str | datetime | timedelta | Moment | None
"""A time; a `timedelta` counts from the first packet, a negative one from the last."""


def parse_moment(given: str | datetime | timedelta | Moment, name: str, zone: Zone = UTC_ZONE) -> Moment:
    """Parses a time. `name`: of the option, for the message; `zone`: for a text without an offset. Raises
    UsageError."""
    if isinstance(given, Moment):
        return given
    if isinstance(given, timedelta):
        span = given // timedelta(microseconds=1) * 1000
        return Moment(str(given), "after" if span >= 0 else "before", abs(span))
    if isinstance(given, datetime):
        spare = int(getattr(given, "nanosecond", 0))  # pandas has them
        return Moment(given.isoformat(), "at", _bound(_since_epoch(given) + spare))
    if not isinstance(given, str):
        raise UsageError(f"{name} {given!r} must be a text, a datetime or a timedelta")
    text = given.strip()
    try:
        return _parse(text, zone)
    except (ValueError, OverflowError) as error:
        raise UsageError(f"{name}: '{text}' is not a valid time; examples: {FORMS}") from error


def _parse(text: str, zone: Zone) -> Moment:
    from fractions import Fraction  # slow to import, and rarely needed

    if steps := _STEPS.fullmatch(text.replace(" ", "")):
        span = sum(Fraction(number) * _UNITS[unit] for number, unit in _STEP.findall(steps[2]))
        return Moment(text, "after" if steps[1] == "+" else "before", round(span), zone)
    if _EPOCH_TEXT.fullmatch(text):
        unit = _EPOCH_UNITS.get(len(text), _SECOND) if "." not in text else _SECOND
        return Moment(text, "at", _bound(round(Fraction(text) * unit)), zone)
    if _TIME_OF_DAY.match(text):
        text = text if text[2:3] == ":" else f"0{text}"
        _calendar(f"2026-11-20T{text}", zone)
        return Moment(text, "time_of_day", zone=zone)
    return Moment(text, "at", _calendar(text, zone), zone)


def _calendar(text: str, zone: Zone) -> int:
    """ISO 8601, or the format of log files; in the zone if it has no offset. Raises ValueError."""
    text = _OFFSET.sub(lambda found: "Z" if found[1] == "UTC" else found[1], text)
    found = _FRACTION.fullmatch(text)  # datetime has six digits of it
    if found is None:
        return _bound(_since_epoch(datetime.fromisoformat(text), zone))
    time = datetime.fromisoformat(found[1] + (found[3] or "").strip())
    return _bound(_since_epoch(time, zone) + int(found[2][:9].ljust(9, "0")))


def _since_epoch(time: datetime, zone: Zone = UTC_ZONE) -> int:
    return (zone.read(time) - _EPOCH) // timedelta(microseconds=1) * 1000


def _bound(nanoseconds: int) -> int:
    """As the core's times: from 1970 to 2262."""
    return max(0, min(nanoseconds, _LAST))


class TimeRange:
    """From `since` on and before `until`, as requested; and the range of the packets read."""

    def __init__(self, since: Given = None, until: Given = None) -> None:
        self._asked = tuple(
            None if given is None else parse_moment(given, name)
            for name, given in (("since", since), ("until", until))
        )
        self.since: int | None = None
        """Nanoseconds, after `resolve`."""
        self.until: int | None = None
        self._times: list[int] = []
        self._packets = 0
        first, second = self._asked
        if first and second and first.kind == second.kind and first.kind != "time_of_day":
            sign = -1 if first.kind == "before" else 1
            if sign * first.nanoseconds >= sign * second.nanoseconds:
                raise self._explain_order()

    def __bool__(self) -> bool:
        return self._asked != (None, None)

    def resolve(self, captures: Sequence[str], opened: CaptureFile) -> None:
        """Resolves both bounds; `opened`: the first capture, still unread.

        Raises UsageError if a bound is unknown or the range is empty.
        """
        first, last = ends_of({moment.kind for moment in self._asked if moment}, captures, opened)
        self.since, self.until = (
            None if moment is None else moment.resolve(first, last) for moment in self._asked
        )
        if self.since is not None and self.until is not None and self.since >= self.until:
            raise self._explain_order()

    def add_facts(self, facts: Mapping[str, Any]) -> None:
        """Takes the facts from closing a capture."""
        self._packets += facts["packets"] - facts["packets_other_time"]
        for name in ("other_first_time", "other_last_time"):
            if facts[name] is not None:
                self._times.append(facts[name])

    @property
    def missed(self) -> str | None:
        """A line if the captures have packets, but none in the range."""
        if self._packets or not self._times:
            return None
        since, until = self._asked
        asked = [f"from {since.said} on"] if since else []
        asked += [f"before {until.said}"] if until else []
        zone = next(moment.zone for moment in self._asked if moment)
        span = zone.between(min(self._times), max(self._times))
        return f"no packets {' and '.join(asked)}; the captures cover {span}"

    def _explain_order(self) -> UsageError:
        since, until = (moment.said for moment in self._asked if moment)
        return UsageError(f"since {since} is not before until {until}")


def ends_of(kinds: Set[str], captures: Sequence[str], opened: CaptureFile) -> tuple[int | None, int | None]:
    """Times of the first and the last packet, where moments of these kinds count from them. `opened`: the
    first capture, still unread. Raises UsageError if the last one is not known in advance."""
    first = first_time_in(opened) if kinds & {"after", "time_of_day"} else None
    return first, _last_time(captures) if "before" in kinds else None


def _last_time(captures: Sequence[str]) -> int | None:
    for name in captures:
        if name == STANDARD_INPUT or not Path(name).is_file():
            raise UsageError(f"{name}: the last packet is not known in advance; count from the first: +30s")
    return max((time for name in captures if (time := last_time(name)) is not None), default=None)
