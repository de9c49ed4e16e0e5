"""The time range of a page, in slots of equal length, which limit the points of a chart."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from kwsniff.findings.evaluate import fetch
from kwsniff.zones import UTC_ZONE, Zone

if TYPE_CHECKING:
    import duckdb

SLOTS = 120
_LEAST_MICROSECONDS = 1_000

# `captures` may have no rows yet (the folder of a live run) while there are calls.
_SPAN = """
select min(a) as first, max(b) as last from (
    select epoch_us(min(request_time)) as a,
        epoch_us(max(coalesce(response_end_time, request_time))) as b
    from call
    union all
    select epoch_us(min(first_time)), epoch_us(max(last_time)) from connection
)
"""


@dataclass(frozen=True, slots=True)
class Span:
    """From `begin`, `slots` times `width`; both in microseconds, `begin` since 1970.

    Charts take milliseconds since 1970 and show them as UTC, so axis values are shifted by the zone's UTC
    offset at `begin`.
    """

    begin: int
    width: int
    zone: Zone = UTC_ZONE

    @property
    def _ahead_ms(self) -> float:
        ahead = self.zone.at(self.begin * 1000).utcoffset() or timedelta()
        return ahead / timedelta(milliseconds=1)

    @property
    def values(self) -> dict[str, float]:
        """The query parameters $begin and $width."""
        return {"begin": self.begin, "width": self.width}

    @property
    def first_ms(self) -> float:
        """Start of time axes, in milliseconds of charts."""
        return self.begin / 1000 + self._ahead_ms

    @property
    def last_ms(self) -> float:
        """End of time axes."""
        return (self.begin + SLOTS * self.width) / 1000 + self._ahead_ms

    @property
    def width_ms(self) -> float:
        """The length of a slot."""
        return self.width / 1000

    def middle_ms(self, slot: int) -> float:
        """The middle of a slot."""
        return (self.begin + (slot + 0.5) * self.width) / 1000 + self._ahead_ms

    def time_ms(self, time: datetime) -> float:
        """The axis value of a time."""
        return time.timestamp() * 1000 + self._ahead_ms

    def at(self, milliseconds: float) -> str:
        """The time of a point on an axis, with date and zone."""
        return self.zone.moment(int((milliseconds - self._ahead_ms) * 1_000_000))


def find_span(database: "duckdb.DuckDBPyConnection", zone: Zone = UTC_ZONE) -> Span | None:
    """The time range of all calls and connections; None if none has a time."""
    row = fetch(database, _SPAN)[0]
    if row["first"] is None or row["last"] is None:
        return None
    length = max(row["last"] - row["first"], _LEAST_MICROSECONDS)
    return Span(int(row["first"]), int(length // SLOTS + 1), zone)
