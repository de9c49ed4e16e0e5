"""Calls that several places captured: the delay between places, and the offset of their clocks.

A connection of one place is the twin of that of another. Its calls are the same where their correlation ids
are; an id that a connection has twice is left out. Between request and response, a call takes longer the
nearer to the client it is captured: that puts the places of a connection in order, whatever their clocks say.

    client ---- place 2 ---- place 0 ---- place 1 ---- broker
                  |  request_ns ->  | request_ns ->  |
                  | <- response_ns  | <- response_ns |
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from typing import Any, Final

import numpy as np
import pyarrow as pa

from kwsniff.analysis.clocks import Bounds, Clock, Numbers, solve_clock
from kwsniff.analysis.places import Place, Places, join_clocks
from kwsniff.filter.tokens import quote
from kwsniff.findings.database import hush, open_database
from kwsniff.findings.table_views import source_of
from kwsniff.tables.hops import NONE
from kwsniff.temporary import temporary_folder

_ROWS: Final = 1 << 16
_STRETCHES: Final = 1024  # of the time of two places; of each the narrowest bounds count

_NO_EVENTS: Final = """
(select null::bigint as call_id, '' as sender, '' as kind, false as lost_before limit 0)
"""
_SIGHTINGS: Final = """
create temp table place_of as
select unnest($captures::varchar[]) as capture, unnest($numbers::bigint[]) as place;
"""
_SEEN: Final = """
create temp table seen as
with sighting as (
    select connection_id, coalesce(twin_of, connection_id) as conversation, place
    from connections join place_of using (capture)
), shared as (
    select conversation from sighting group by all having count(distinct place) > 1
)
select conversation, place, correlation_id, any_value(call_id) as call_id,
    any_value(s.connection_id = conversation) as counts,
    any_value(epoch_us(request_time)) as asking, any_value(epoch_us(request_end_time)) as asked,
    any_value(epoch_us(response_time)) as answering, any_value(epoch_us(response_end_time)) as answered
from api_calls c join sighting s using (connection_id) join shared using (conversation)
group by all having count(*) = 1
"""
_TOGETHER: Final = """
create temp table sight as
select o.*, f.call_id as counted_id, f.place as counted_place,
    (o.answered - o.asked) - (f.answered - f.asked) as longer
from seen o join (from seen where counts) f using (conversation, correlation_id);
create temp table ordered as
with beside as (
    select conversation, place, median(longer) as longer from sight where longer is not null group by all
)
select conversation, place, row_number() over w as position,
    count(*) over (partition by conversation) as places
from beside window w as (partition by conversation order by longer desc, place);
create temp table copies as
select call_id, sender = 'client' as is_request, count(*) as num from tcp_events
where kind = 'retransmission' and not lost_before and call_id is not null group by all;
create temp table hop as
with placed as (
    select s.*, position, coalesce(a.num, 0) as requests_again, coalesce(b.num, 0) as responses_again
    from sight s join ordered using (conversation, place)
        left join copies a on a.call_id = s.call_id and a.is_request
        left join copies b on b.call_id = s.call_id and not b.is_request
), paired as (
    select counted_id, conversation, place as nearer, lead(place) over w as farther,
        asking, asked, answering, answered,
        lead(asking) over w as asking2, lead(asked) over w as asked2,
        lead(answering) over w as answering2, lead(answered) over w as answered2,
        requests_again as up, lead(requests_again) over w as up2,
        responses_again as down, lead(responses_again) over w as down2
    from placed window w as (partition by counted_id order by position)
)
from paired where farther is not null
"""
_PAIRS: Final = """
select least(nearer, farther) as one, greatest(nearer, farther) as other, count(*) as calls,
    min(case when nearer < farther then asked else asked2 end) as begin,
    max(case when nearer < farther then asked else asked2 end) as last
from hop where asked is not null and asked2 is not null group by all order by all
"""
_BOUNDS: Final = """
with clean as (
    select *, nearer < farther as straight from hop
    where least(nearer, farther) = $one and greatest(nearer, farther) = $other
        and up + up2 + down + down2 = 0
), bound as (
    select unnest([
        {'moment': if(straight, asking, asking2), 'ahead': if(straight, asking2 - asking, asking - asking2),
         'is_upper': straight},
        {'moment': if(straight, asked, asked2), 'ahead': if(straight, asked2 - asked, asked - asked2),
         'is_upper': straight},
        {'moment': if(straight, answering, answering2), 'is_upper': not straight,
         'ahead': if(straight, answering2 - answering, answering - answering2)},
        {'moment': if(straight, answered, answered2), 'is_upper': not straight,
         'ahead': if(straight, answered2 - answered, answered - answered2)}
    ], recursive := true) from clean
)
select is_upper, if(is_upper, arg_min(moment, ahead), arg_max(moment, ahead)) as moment,
    if(is_upper, min(ahead), max(ahead)) as ahead
from bound where moment is not null and ahead is not null
group by is_upper, moment // $width order by moment
"""
_LISTED: Final = f"""
select counted_id, conversation, nearer, farther, coalesce(asked, {NONE}) as asked,
    coalesce(asked2, {NONE}) as asked2, coalesce(answered, {NONE}) as answered,
    coalesce(answered2, {NONE}) as answered2,
    greatest(up - up2, 0) + greatest(down2 - down, 0) as lost
from hop order by counted_id, nearer, farther
"""  # noqa: S608
_SIDES: Final = """
select place, count(*) filter (where position = 1) as first,
    count(*) filter (where position = places) as last, count(*) as num
from ordered where places > 1 group by all
"""
_AT_THE_BROKER: Final = f"""
with spent as (
    select conversation, place, correlation_id, call_id, position, places,
        queue_wait_ns + broker_ns + deliberate_wait_ns as inside,
        coalesce(broker_round_trip_error_ns, {NONE}) as error
    from sight join ordered using (conversation, place) join latencies using (call_id)
)
select s.call_id, n.inside, n.error
from spent s join (from spent where position = places and places > 1) n using (conversation, correlation_id)
where s.position < s.places order by s.call_id limit $most + 1
"""  # noqa: S608


class SharedCalls:
    """Calls that several places captured, in a database of their own. Use it in a `with` block."""

    def __init__(
        self,
        tables: Mapping[str, Sequence[str | PathLike[str]] | pa.Table],
        numbers_: Mapping[str, int],
        memory: str,
    ) -> None:
        """`tables`: those of READ, files or rows; `numbers_`: name of a capture -> its place; `memory`: what
        DuckDB may take."""
        self._folder = temporary_folder()
        folder = self._folder.__enter__()
        self._database = open_database()
        hush(self._database)
        self._database.execute(
            f"set memory_limit = '{memory}'; set temp_directory = {quote(folder)}; set threads = 1"
        )
        for name, rows in tables.items():
            if isinstance(rows, pa.Table):
                self._database.register(name, rows)
            else:
                shown = source_of(rows) if rows else _NO_EVENTS
                self._database.execute(f"create temp view {name} as from {shown}")
        self._database.execute(
            _SIGHTINGS, {"captures": [*numbers_], "numbers": [*map(int, numbers_.values())]}
        )
        self._database.execute(_SEEN)
        self._database.execute(_TOGETHER)

    def __enter__(self) -> "SharedCalls":
        return self

    def __exit__(self, *_: object) -> None:
        self._database.close()
        self._folder.__exit__(None, None, None)

    def solve(self, names: Mapping[int, str]) -> Places:
        """The places with their clocks. `names`: by number."""
        places = Places({number: Place(names[number], number) for number in sorted(names)})
        counted = Counter(dict(self._rows("select counted_place, count(*) from sight group by all")))
        if not counted:
            return places
        reference = max(counted, key=lambda number: (counted[number], -number))
        places.found[reference].is_told = True
        pairs = {(one, other): self._solve(one, other, begin, last)
                 for one, other, _, begin, last in self._rows(_PAIRS)}  # fmt: skip
        join_clocks(places, pairs)
        for number, first, last, num in self._rows(_SIDES):
            place = places.found[number]
            if len(places.with_clocks) > 1 and place.is_told:
                place.side = "client" if 2 * first > num else "broker" if 2 * last > num else "between"
        return places

    def hops(self) -> Iterator[Mapping[str, Numbers]]:
        """Calls between neighbouring places, by columns of whole numbers; times in microseconds, or NONE."""
        self._database.execute("create temp table listed as " + _LISTED)
        ((total,),) = self._rows("select count(*) from listed")
        for first in range(0, total, _ROWS):
            chosen = f"from listed where rowid between {first} and {first + _ROWS - 1}"
            given = self._database.execute(chosen).fetchnumpy()
            yield {name: np.asarray(each, np.int64) for name, each in given.items()}

    def at_the_broker(self, most: int) -> tuple[Numbers, Numbers, Numbers]:
        """Of calls that a place nearer to the broker captured, too: call_id, nanoseconds that the call spent
        at the broker by the nearest, and the error of these, or NONE. Asks table latencies. Of more than
        `most` calls some are left out."""
        rows = self._database.execute(_AT_THE_BROKER, {"most": most}).fetchnumpy()
        call, inside, error = (np.asarray(rows[name], np.int64) for name in ("call_id", "inside", "error"))
        return call, inside, error

    def _rows(self, query: str) -> list[tuple[Any, ...]]:
        found: list[tuple[Any, ...]] = self._database.execute(query).fetchall()
        return found

    def _solve(self, one: int, other: int, begin: int, last: int) -> Clock | None:
        width = max((last - begin) // _STRETCHES, 1)
        told = {"one": one, "other": other, "width": width}
        rows = self._database.execute(_BOUNDS, told).fetchnumpy()
        upper = np.asarray(rows["is_upper"], np.bool_)
        at, ahead = (np.asarray(rows[name], np.float64) for name in ("moment", "ahead"))
        return solve_clock(Bounds(at[upper], ahead[upper]), Bounds(at[~upper], ahead[~upper]))
