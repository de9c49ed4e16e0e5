"""The time zone of times on the screen: `2026-11-21 22:06:53.312 UTC`. Programs get UTC in ISO 8601."""

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Final, NamedTuple

from kwsniff.errors import UsageError

LOCAL: Final = "local"
UNKNOWN: Final = "an unknown time"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND: Final = 1_000_000_000
_OFFSET: Final = re.compile(r"(?a)(?:UTC|GMT)?([+-])(\d\d?)(?::?(\d\d))?", re.IGNORECASE)
_LAST_HOUR: Final = 23

Time = datetime | int | None
"""A datetime, UTC if naive; or nanoseconds since 1970."""


class Zone(NamedTuple):
    """A zone with its name on the command line. `info`: None for this machine's zone."""

    name: str
    info: tzinfo | None

    def at(self, time: datetime | int) -> datetime:
        """A time in this zone, to the microsecond. It stays UTC if the zone would shift it out of the
        calendar's
        range."""
        aware = _EPOCH + timedelta(microseconds=_nanoseconds(time) // 1000)
        try:
            return aware.astimezone(self.info)
        except (OverflowError, ValueError, OSError):
            return aware

    def read(self, time: datetime) -> datetime:
        """A naive local time of this zone as an aware datetime; an aware datetime is returned unchanged.

        Raises OverflowError or ValueError for a time out of the calendar's range.
        """
        if time.tzinfo is not None:
            return time
        return time.astimezone() if self.info is None else time.replace(tzinfo=self.info)

    def moment(self, time: Time, digits: int = 3) -> str:
        """Date, time and zone: `2026-11-21 22:06:53.312 UTC`, elsewhere `2026-11-21 23:06:53.312 +01:00`."""
        if time is None:
            return UNKNOWN
        return f"{self.date_and_clock(time, digits)} {offset(self.at(time))}"

    def date_and_clock(self, time: datetime | int, digits: int = 3) -> str:
        """Without the zone: `2026-11-21 22:06:53.312`."""
        return f"{self.at(time):%Y-%m-%d} {self.clock(time, digits)}"

    def clock(self, time: Time, digits: int = 3) -> str:
        """The time of day: `22:06:53.312`; "" for None. Truncated, not rounded."""
        if time is None:
            return ""
        fraction = f"{_nanoseconds(time) % _SECOND:09}"[:digits]
        return f"{self.at(time):%H:%M:%S}" + (f".{fraction}" if fraction else "")

    def between(self, first: Time, last: Time, digits: int = 3) -> str:
        """`2026-11-21 22:06:53.312 UTC to 22:06:56.346`: does not repeat a common date and zone."""
        if first is None or last is None:
            return self.moment(last if first is None else first, digits)
        begin = self.moment(first, digits)
        if begin == self.moment(last, digits):
            return begin
        one, other = self.at(first), self.at(last)
        if one.utcoffset() != other.utcoffset():
            return f"{begin} to {self.moment(last, digits)}"
        same_day = one.date() == other.date()
        return f"{begin} to {(self.clock if same_day else self.date_and_clock)(last, digits)}"


UTC_ZONE: Final = Zone("UTC", UTC)


def offset(time: datetime) -> str:
    """The UTC offset of an aware time: `UTC`, or hours and minutes such as `+01:00`."""
    ahead = time.utcoffset()
    return str(timezone(ahead)).removeprefix("UTC") if ahead else "UTC"


def from_iso(text: str | None) -> int | None:
    """Nanoseconds since 1970 of a time in ISO 8601 with up to nine decimals and an offset."""
    if text is None:
        return None
    head, _, rest = text.partition(".")
    digits = rest[: len(rest) - len(rest.lstrip("0123456789"))]
    time = datetime.fromisoformat(head + rest[len(digits) :])
    return _nanoseconds(time) + int(digits[:9].ljust(9, "0"))


def parse_zone(text: str) -> Zone:
    """The zone of --tz: `local`, `UTC`, an offset such as `+02:00`, or a name such as `Europe/Berlin`.

    Raises UsageError.
    """
    name = text.strip()
    if name.lower() == LOCAL:
        return Zone(LOCAL, None)
    if name.upper() in ("UTC", "Z"):
        return UTC_ZONE
    if found := _OFFSET.fullmatch(name):
        sign, hours, minutes = found[1], int(found[2]), int(found[3] or 0)
        if hours <= _LAST_HOUR and minutes < 60:
            ahead = timedelta(hours=hours, minutes=minutes)
            return Zone(name, timezone(ahead if sign == "+" else -ahead))
    return Zone(name, _by_name(name))


def _by_name(name: str) -> tzinfo:
    from zoneinfo import ZoneInfo  # slow to import

    try:
        if name and not name.startswith("."):
            return ZoneInfo(name)
    except (OSError, ValueError, LookupError):
        pass
    raise UsageError(f"--tz {name}: unknown time zone; {_meant(name)}")


def _meant(name: str) -> str:
    from zoneinfo import available_timezones

    known = sorted(available_timezones())
    if not known:
        return "this system has no time zone database: give local, UTC or an offset such as +02:00"
    wanted = name.lower().replace(" ", "_")
    cities = [each for each in known if wanted and wanted in each.lower().split("/")]
    from difflib import get_close_matches

    near = cities or get_close_matches(name, known, 2, 0.7)
    if near:
        return f"did you mean {' or '.join(near[:2])}?"
    return "give local, UTC, an offset such as +02:00, or a name such as Europe/Berlin"


def _nanoseconds(time: datetime | int) -> int:
    if isinstance(time, int):
        return time
    aware = time if time.tzinfo else time.replace(tzinfo=UTC)
    return (aware - _EPOCH) // timedelta(microseconds=1) * 1000
