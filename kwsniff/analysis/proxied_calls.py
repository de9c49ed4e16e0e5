"""Calls on both sides of a proxy: which upstream call answers a client's call.

A proxy that reads Kafka's messages writes its own: correlation ids, names, versions and addresses may change.
What survives are batches (producer id, epoch, sequence, CRC), members and producers. A call of the upstream
connection begins after the client's call and ends before it does. Connections that share such calls belong
together, and so do their other calls, in their order.

    client ── calls ──▶ proxy ── upstream calls ──▶ broker
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from os import PathLike
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from kwsniff.analysis.connection_fits import Fit, Pairs, choose_fits
from kwsniff.analysis.proxies import OF_SERVERS, PossibleProxies
from kwsniff.core.columns.aligned_calls import NO_END, align_calls
from kwsniff.filter.tokens import quote
from kwsniff.findings.database import hush, open_database
from kwsniff.findings.table_views import source_of
from kwsniff.tables.arrays import Numbers, numbers, whole_numbers
from kwsniff.temporary import temporary_folder

COLUMN: Final = "upstream_call_id"
_NO_BATCHES: Final = """
(select 0::bigint as call_id, 0 as partition, 0::bigint as crc, 0 as record_count,
    now() as max_timestamp limit 0)
"""
_SHARE: Final = 0.9
"""Part of an upstream connection's proven calls that have to be of one client connection."""
_LEAST_FETCHES: Final = 8
"""Fetches that prove a connection where nothing else does: several clients may read the same batches."""
_LEAST_CALLS: Final = 2
"""Calls of a connection through a proven proxy that have to fit, where nothing else proves it."""
_CANDIDATES: Final = 32
"""Connections of clients that are tried for such a connection: the last ones before it, and some later ones,
since a capture may begin between packets of both."""
_LATER: Final = 8
_SAMPLE: Final = 256
"""Calls of a connection that are tried."""
_TOGETHER: Final = 256
"""Candidates that are tried together."""
_FEW_CALLS: Final = 100_000
"""With more calls parts of the run are read first: they prove a pair, or nothing is joined."""
_PARTS: Final = 3
_PART: Final = 64
"""Each is this part of the run."""
_CALLS_TOGETHER: Final = 400_000
"""Calls of conversations that are joined together; a larger one is joined alone."""
_BYTES_OF_A_CALL: Final = 32
"""Of the result. Where calls would take more than the memory, none is joined."""

_LEGS: Final = """
create temp table leg as
select connection_id, broker_address as address, broker_port as port, client_address as host,
    coalesce(place, 0) as place, twin_of, first_time, last_time,
    (broker_address, broker_port) in (select (unnest($addresses::varchar[]), unnest($ports::integer[])))
        as is_client,
    client_address in (select unnest($hosts::varchar[])) as is_upstream
from connections left join (
    select unnest($captures::varchar[]) as capture, unnest($places::bigint[]) as place
) using (capture)
where calls > 0 and coalesce(caller not in (select unnest($servers::varchar[])), true)
    and (is_client or is_upstream)
"""
_CALLS: Final = """
create temp table call as
with batch as (
    select call_id, sum(hash(partition, crc, record_count, max_timestamp) >> 16)::bigint as key
    from record_batches where crc is not null and ({chosen}) group by call_id
)
select c.call_id, c.connection_id, c.api_key, l.* exclude (connection_id, first_time, last_time),
    epoch_us(request_time) as begins, coalesce(epoch_us(response_end_time), $no_end) as ends,
    c.acks is not distinct from 0 as unanswered, is_log_fetch as is_fetch,
    coalesce(request_bytes, -1) as size,
    case when b.key is not null then b.key
        when c.member_id <> '' then (hash('member', c.member_id, c.generation) >> 16)::bigint
        when c.producer_id >= 0 then (hash('producer', c.producer_id, c.producer_epoch) >> 16)::bigint
        else 0 end as key
from api_calls c join leg l using (connection_id) left join batch b using (call_id)
    left join (select unnest($fetches::smallint[]) as api_key, true as is_log_fetch) using (api_key)
where request_time is not null and ({chosen})
"""
_SPAN: Final = "select count(*), min(call_id), max(call_id) from api_calls"
_SIZES: Final = "select connection_id, count(*) from call group by all"
_VOTES: Final = """
with one as (from call where key <> 0 and twin_of is null),
vote as (
    select d.connection_id as client, u.connection_id as upstream, d.address, u.host,
        count(*) as votes, count(*) filter (u.is_fetch is null) as certain
    from (from one where is_upstream) u asof join (from one where is_client) d
        on u.api_key = d.api_key and u.place = d.place and u.key = d.key and u.begins > d.begins
    where (u.address, u.port) <> (d.address, d.port)
        and (u.ends <= d.ends and d.ends < $no_end or u.unanswered and d.unanswered)
    group by all
),
total as (
    select connection_id as upstream, count(*) as calls, count(*) filter (is_fetch is null) as others
    from one where is_upstream group by all
)
select client, upstream, votes, certain, calls, others, address, host
from vote join total using (upstream) order by votes desc, client, upstream
"""
_TWINS: Final = """
select t.twin_of, t.connection_id from leg t join leg c on c.connection_id = t.twin_of
where (t.address, t.port) <> (c.address, c.port) and t.place = c.place
"""
_BESIDE: Final = """
create temp table candidate as
with other as (
    from leg where twin_of is null and connection_id not in (select unnest($known::bigint[]))
),
client as (
    select *, row_number() over (partition by place order by first_time, connection_id) as rank
    from other where is_client and address in (select unnest($addresses::varchar[]))
),
upstream as (
    select u.*, coalesce(c.rank, 0) + $later - unnest(range($most)) as rank
    from (from other where is_upstream and host in (select unnest($hosts::varchar[]))) u
        asof left join client c on c.place = u.place and c.first_time <= u.first_time
)
select row_number() over (order by u.connection_id, c.connection_id) - 1 as talk,
    c.connection_id as client, u.connection_id as upstream
from upstream u join client c using (place, rank)
where (u.address, u.port) <> (c.address, c.port) and c.last_time >= u.first_time
"""
_SAMPLED: Final = """
create temp table sample as
from call where connection_id in (select upstream from candidate)
qualify row_number() over (partition by connection_id order by begins, call_id) <= $most
"""
_SPANS: Final = """
create temp table span as
select connection_id as upstream, min(begins) as least, max(begins) as most from sample group by all
"""
_SAMPLED_CALLS: Final = """
select talk, call_id, api_key, key, begins, ends, size
from candidate c join span using (upstream) join call on c.client = call.connection_id
where talk between $first and $last and begins <= most and ends >= least
-- of more calls than these, fewer than half fit
qualify row_number() over (partition by talk order by begins, call_id) <= 2 * $sample + 1
order by talk, begins, call_id
"""
_SAMPLED_UPSTREAM: Final = """
select talk, call_id, api_key, key, begins, ends, size
from candidate join sample on upstream = connection_id
where talk between $first and $last order by talk, begins, call_id
"""
_ROWS: Final = """
select talk, call_id, api_key, key, begins, ends, size from call join (
    select unnest($connections::bigint[]) as connection_id, unnest($talks::bigint[]) as talk
) using (connection_id)
order by talk, begins, call_id
"""
_Talk = tuple[int, Sequence[int]]
"""A conversation: the connection of a client, and its upstream connections."""
Tables = Mapping[str, Sequence[str | PathLike[str]] | pa.Table]


class UpstreamCalls(NamedTuple):
    """Calls of clients, ascending, and the upstream call of each."""

    calls: Numbers
    upstream: Numbers

    def fill(self, rows: pa.Table) -> pa.Table:
        """Rows of api_calls with their upstream calls."""
        ids = np.concatenate([np.zeros(0, np.int64), *(whole_numbers(c, -1) for c in rows["call_id"].chunks)])
        places = np.searchsorted(self.calls, ids).clip(max=len(self.calls) - 1)
        found = self.calls[places] == ids
        column = numbers(pa.int64(), np.where(found, self.upstream[places], 0), found)
        return rows.set_column(rows.schema.get_field_index(COLUMN), COLUMN, column)


def join_upstream_calls(
    tables: Tables, proxies: PossibleProxies, places: Mapping[str, int], fetches: Sequence[int], memory: int
) -> UpstreamCalls | None:
    """`tables`: connections, api_calls and mostly record_batches, files or rows. `places`: name of a capture
    -> where it was taken. `fetches`: keys of APIs that fetch records. `memory`: bytes that it may
    take. None if no call has an upstream call, or there are more calls than the memory allows."""
    with temporary_folder() as folder:
        # DuckDB's package, which takes long to load, is needed for rows in memory.
        database = open_database(bare=not any(isinstance(rows, pa.Table) for rows in tables.values()))
        try:
            hush(database)
            most = f"{memory // 1_000_000}MB"
            database.execute(
                f"set memory_limit = '{most}'; set temp_directory = {quote(folder)}; set threads = 1"
            )
            for name, rows in tables.items():
                if isinstance(rows, pa.Table):
                    database.register(name, rows)
                else:
                    database.execute(f"create temp view {name} as from {source_of(rows)}")
            if "record_batches" not in tables:
                database.execute(f"create temp view record_batches as from {_NO_BATCHES}")
            if not _list_calls(database, proxies, places, fetches):
                return None
            sizes = dict(database.execute(_SIZES).fetchall())
            return None if sum(sizes.values()) * _BYTES_OF_A_CALL > memory else _join(database, sizes)
        finally:
            database.close()


def _list_calls(
    database: Any, proxies: PossibleProxies, places: Mapping[str, int], fetches: Sequence[int]
) -> bool:
    """Whether there may be any to join."""
    endpoints = sorted(proxies.endpoints)
    database.execute(
        _LEGS,
        {
            "addresses": [address for address, _ in endpoints],
            "ports": [port for _, port in endpoints],
            "hosts": sorted(proxies.hosts),
            "captures": [*places],
            "places": [*places.values()],
            "servers": OF_SERVERS,
        },
    )
    chosen = {"fetches": fetches, "no_end": NO_END}
    if not _has_pairs(database, chosen):
        return False
    database.execute(_CALLS.format(chosen="true"), chosen)
    return True


def _has_pairs(database: Any, chosen: Mapping[str, Any]) -> bool:
    """Whether there may be calls to join: in parts of a large run a pair is proven, or there are twins."""
    ((number, least, most),) = database.execute(_SPAN).fetchall()
    if number <= _FEW_CALLS or database.execute(_TWINS).fetchall():
        return True
    width = (most - least) // _PART
    begins = [least + (most - least - width) * part // (_PARTS - 1) for part in range(_PARTS)]
    parts = " or ".join(f"call_id between {begin} and {begin + width}" for begin in begins)
    database.execute(_CALLS.format(chosen=parts), chosen)
    found = bool(database.execute(_VOTES, {"no_end": NO_END}).fetchall())
    database.execute("drop table call")
    return found


def _join(database: Any, sizes: Mapping[int, int]) -> UpstreamCalls | None:
    """`sizes`: number of calls by connection."""
    proven = _choose_pairs(database)
    pairs = dict(proven.pairs)
    if pairs:
        pairs |= _choose_beside(database, proven)
    upstream_of: dict[int, list[int]] = {}
    for upstream, client in pairs.items():
        upstream_of.setdefault(client, []).append(upstream)
    # Which of two twins is the upstream one is known by their calls alone.
    twins = database.execute(_TWINS).fetchall()
    found = [*_join_talks(database, upstream_of.items(), sizes, least=0)]
    for ends in ([(one, [other]) for one, other in twins], [(other, [one]) for one, other in twins]):
        found += _join_talks(database, ends, sizes, least=_SHARE)
    if not found:
        return None
    calls, upstream_calls = (np.concatenate([each[at] for each in found]) for at in (0, 1))
    order = np.argsort(calls, kind="stable")
    firsts = order[np.flatnonzero(np.diff(calls[order], prepend=-1))]
    return UpstreamCalls(calls[firsts], upstream_calls[firsts]) if len(firsts) else None


class _Proven(NamedTuple):
    pairs: Pairs
    proxies: set[tuple[str, str]]
    """Where each proxy listens, and the host that it connects from."""


class _Calls(NamedTuple):
    """Calls of conversations, by column, in the order of `talks` and `begins`."""

    talks: Numbers
    ids: Numbers
    apis: Numbers
    keys: Numbers
    begins: Numbers
    ends: Numbers
    sizes: Numbers


def _choose_pairs(database: Any) -> _Proven:
    """Connections that share batches, members or producers."""
    found = _Proven({}, set())
    rows = database.execute(_VOTES, {"no_end": NO_END})
    for client, upstream, votes, certain, calls, others, address, host in rows.fetchall():
        enough = certain >= 1 and _are_nearly_all(certain, others) if others else votes >= _LEAST_FETCHES
        if upstream not in found.pairs and enough and _are_nearly_all(votes, calls):
            found.pairs[upstream] = client
            found.proxies.add((address, host))
    return found


def _are_nearly_all(fitting: int, number: int) -> bool:
    """One may miss its other side where a capture begins."""
    return fitting >= _SHARE * number or number - fitting <= 1 < fitting


def _choose_beside(database: Any, proven: _Proven) -> Pairs:
    """Other connections through these proxies: those whose calls fit the calls of one connection."""
    pairs = proven.pairs
    database.execute(
        _BESIDE,
        {
            "known": [*pairs, *pairs.values()],
            "addresses": [address for address, _ in proven.proxies],
            "hosts": [host for _, host in proven.proxies],
            "most": _CANDIDATES,
            "later": _LATER,
        },
    )
    database.execute(_SAMPLED, {"most": _SAMPLE})
    database.execute(_SPANS)
    rows = database.execute("from candidate order by talk").fetchall()
    fits = [
        Fit(upstream, client, score, slack)
        for begin in range(0, len(rows), _TOGETHER)
        for (_, client, upstream), (score, slack) in zip(
            rows[begin : begin + _TOGETHER],
            _score(database, begin, len(rows[begin : begin + _TOGETHER])),
            strict=True,
        )
        if score is not None
    ]
    return choose_fits(fits)


def _score(database: Any, first: int, number: int) -> list[tuple[tuple[int, int] | None, int]]:
    """Score and slack of each candidate; None if few calls fit."""
    talks = {"first": first, "last": first + number - 1}
    clients = _Calls(*_fetch(database, _SAMPLED_CALLS, talks | {"sample": _SAMPLE}))
    upstream = _Calls(*_fetch(database, _SAMPLED_UPSTREAM, talks))
    at = _align(clients, upstream)
    fits = np.flatnonzero(at >= 0)
    own = at[fits]
    same = fits[clients.sizes[own] == upstream.sizes[fits]]
    slack = upstream.begins[fits] - clients.begins[own]
    ended = (clients.ends[own] < NO_END) & (upstream.ends[fits] < NO_END)
    slack[ended] += (clients.ends[own] - upstream.ends[fits])[ended]
    slacks = np.bincount(upstream.talks[fits] - first, slack, minlength=number).astype(np.int64).tolist()
    all_, calls, fitting, equal = (
        np.bincount(each - first, minlength=number).tolist()
        for each in (upstream.talks, clients.talks, upstream.talks[fits], upstream.talks[same])
    )
    return [
        (
            (fit, alike) if fit >= _LEAST_CALLS and _are_nearly_all(fit, num) and fit >= few / 2 else None,
            spare,
        )
        for num, few, fit, alike, spare in zip(all_, calls, fitting, equal, slacks, strict=True)
    ]


def _align(clients: _Calls, upstream: _Calls) -> Numbers:
    """The place of each upstream call's call, or -1."""
    found = np.empty(len(upstream.ids), np.int64)
    one, other = ((each.talks, *each[2:6]) for each in (clients, upstream))
    align_calls(one, other, found)
    return found


def _join_talks(
    database: Any, talks: Iterable[_Talk], sizes: Mapping[int, int], *, least: float
) -> Iterator[UpstreamCalls]:
    """`least`: part of the upstream calls of a conversation that have to belong to calls; else none does."""
    together: list[_Talk] = []
    calls = 0
    for talk in talks:
        client, upstream = talk
        size = sum(sizes.get(each, 0) for each in (client, *upstream))
        if together and calls + size > _CALLS_TOGETHER:
            yield _join_some(database, together, least)
            together, calls = [], 0
        together.append(talk)
        calls += size
    if together:
        yield _join_some(database, together, least)


def _join_some(database: Any, talks: Sequence[_Talk], least: float) -> UpstreamCalls:
    clients = [(client, talk) for talk, (client, _) in enumerate(talks)]
    upstream = [(each, talk) for talk, (_, several) in enumerate(talks) for each in several]
    calls, others = (
        _Calls(*_fetch(database, _ROWS, {"connections": [*connections], "talks": [*numbers_]}))
        for connections, numbers_ in (zip(*each, strict=True) for each in (clients, upstream))
    )
    found = _align(calls, others)
    all_, fitting = (
        np.bincount(each, minlength=len(talks)) for each in (others.talks, others.talks[found >= 0])
    )
    joined = np.flatnonzero((found >= 0) & (fitting >= least * all_)[others.talks])
    return UpstreamCalls(calls.ids[found[joined]], others.ids[joined])


def _fetch(database: Any, query: str, parameters: Mapping[str, Any]) -> list[Numbers]:
    columns = database.execute(query, parameters).fetchnumpy()
    return [np.ascontiguousarray(column, np.int64) for column in columns.values()]
