"""Calls in groups: by client, API, topic and the like, with their times and errors; for comparisons."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from kwsniff.findings.evaluate import fetch

if TYPE_CHECKING:
    import duckdb

PARTS: Final = (
    "network", "transmission", "queue", "broker", "throttle", "replicas", "group", "authentication_delay",
)  # fmt: skip
"""Parts of a call's time, without waits for records that do not exist yet."""
STANDSTILLS: Final = ("network", "broker", "replicas")
"""Parts that a stall makes long: on few calls, so that the mean of many does not show it."""
LONG_NS: Final = 1_000_000_000

_COLUMNS: Final[Mapping[str, str]] = {
    "round_trip": "case when network = 0 then round_trip when timed then 0 end",
    "network": "network",
    "transmission": "transmission",
    "broker": "broker_time + case when queued_behind_wait = 'broker' then queued else 0 end",
    "queue": "case when coalesce(queued_behind_wait, 'none') not in ('throttle', 'replicas', 'group', "
    "'authentication_delay', 'broker') then queued when timed then 0 end",
}
LONGEST: Final = "longest_"
ROUND_TRIP: Final = "round_trip"
"""The round trip of calls whose times do not have it, because the capture was taken at the broker."""
_OF_CALL: Final[Mapping[str, str]] = {
    "all": "''",
    "client": "client",
    "broker": "broker",
    "api": "api_name",
    "version": "api_name || ' ' || api_version",
    "software": "software",
    "acks": "acks::varchar",
}
_OF_OTHERS: Final[Mapping[str, str]] = {
    "topic": "select distinct run_id, call_id, coalesce(topic, topic_id) as subject from partition_call",
    "partition": "select distinct run_id, call_id, topic_partition as subject from partition_call",
    "codec": "select distinct run_id, call_id, codec as subject from batch",
}
KINDS: Final = ("client", "broker", "api", "topic", "partition", "acks", "codec", "version", "software")

# Calls queued behind a call with a broker time far above the usual one wait for the broker;
# calls queued because there are many of them do not.
# The time that a Produce with acks=-1 takes beyond the same broker's time for calls without followers
# counts as
# a wait for replicas, also for calls queued behind it, though no single call proves it.
_FACTS: Final = """
create or replace temp table fact as
with usual as (
    select broker, quantile_cont(broker_ns, 0.9) as broker_ns from timing
    where wait = 'none'
        and (run_id, call_id) not in (select (run_id, call_id) from client_call where acks = -1)
    group by broker
),
held as (
    select l.run_id, l.call_id, l.broker_ns - least(l.broker_ns, u.broker_ns)::bigint as waited
    from timing l join usual u using (broker)
    where l.wait = 'replicas_possible' and (l.run_id, l.call_id) not in (from lone_produce)
),
common as (select broker, median(broker_ns) as broker_ns from timing where wait = 'none' group by broker),
stuck as (
    select run_id, call_id, queue_wait_ns, epoch_us(until - request_time) * 1000 as stood
    from (
        select l.*, max(case when l.broker_ns >= 10 * m.broker_ns then response_end_time end) over (
            partition by run_id, connection_id order by request_time, call_id
            rows between unbounded preceding and 1 preceding
        ) as until
        from timing l join common m using (broker)
    ) where queue_wait_ns > 0 and stood > 0.5 * queue_wait_ns
)
select c.run_id, c.call_id, c.client, c.broker, c.api_name, c.api_version, c.acks, c.request_time,
    trim(concat_ws(' ', c.client_software_name, c.client_software_version)) as software,
    coalesce(c.error_code, 0) not in (0, 27, 51, 79) or c.status = 'unanswered' as failed,
    l.call_id is not null as timed, l.round_trip_ns as round_trip, l.network_ns as network,
    l.broker_ns - coalesce(h.waited, 0) as broker_time,
    l.queue_wait_ns as queued,
    case when b.waited > 0.5 * l.queue_wait_ns then 'replicas'
        when coalesce(l.queued_behind_wait, 'none') = 'none' and s.call_id is not null then 'broker'
        else replace(l.queued_behind_wait, '_possible', '') end as queued_behind_wait,
    l.request_transmission_ns + l.response_transmission_ns as transmission,
    l.deliberate_wait_ns + coalesce(h.waited, 0) as waited, replace(l.wait, '_possible', '') as wait,
    c.request_time + to_microseconds(coalesce(l.total_ns, 0) // 1000) as end_time,
    l.total_ns - case when l.wait in ('data', 'data_possible', 'transaction', 'transaction_possible',
            'long_poll', 'long_poll_possible')
        then l.deliberate_wait_ns else 0 end as counted
from client_call c
left join timing l on l.call_id = c.call_id and l.run_id is not distinct from c.run_id
left join held h on h.call_id = c.call_id and h.run_id is not distinct from c.run_id
left join held b on b.call_id = l.queued_behind and b.run_id is not distinct from c.run_id
left join stuck s on s.call_id = c.call_id and s.run_id is not distinct from c.run_id
"""


@dataclass(frozen=True, slots=True)
class Side:
    """A selection of calls: SQL over the table `fact`; duration of the capture; one of the halves by
    slowness."""

    where: str = "true"
    seconds: float | None = None
    slowest: bool = False


def collect(database: "duckdb.DuckDBPyConnection") -> None:
    """Creates the table `fact`: a row for each call of a client, with the parts of its time."""
    database.execute(_FACTS)


def read_groups(
    database: "duckdb.DuckDBPyConnection", side: Side
) -> dict[tuple[str, str], dict[str, dict[str, Any]]]:
    """(kind, subject) -> API -> calls, timed, failed, and of each part its sum and sum of squares; of
    STANDSTILLS the longest, too, and number and sum of those that took LONG_NS."""
    sums = ", ".join(
        [
            *(
                f"sum({_part(part)})::double as {part}_sum, "
                f"sum(({_part(part)})::double ** 2) as {part}_squares"
                for part in (*PARTS, ROUND_TRIP)
            ),
            *(
                f"max({_part(part)})::double as {part}_longest, "
                f"count(*) filter ({_part(part)} >= {LONG_NS}) as {part}_long, "
                f"sum({_part(part)}) filter ({_part(part)} >= {LONG_NS})::double as {part}_long_sum"
                for part in STANDSTILLS
            ),
        ]
    )
    groups: dict[tuple[str, str], dict[str, dict[str, Any]]] = defaultdict(dict)
    groups["all", ""] = {}
    for kind in ("all", *KINDS):
        # Names are those of this module, `where` is made by the verb of a number or a time.
        query = f"""
            select subject, api_name, count(*) as calls, count(*) filter (timed) as timed,
                count(*) filter (failed) as failed, {sums}
            from ({_members(kind)})
            where {side.where} and api_name is not null and (subject <> '' or '{kind}' = 'all')
            group by all
        """  # noqa: S608
        for row in fetch(database, query):
            groups[kind, row["subject"]][row["api_name"]] = row
    return groups


def _part(part: str) -> str:
    """SQL: the time of a part of a call, null if unknown. A queue wait behind a call in a deliberate wait
    counts as that wait: the quota causes the queue, for example."""
    if part in _COLUMNS:
        return _COLUMNS[part]
    return (
        f"case when timed then case when wait = '{part}' then waited else 0 end "
        f"+ case when queued_behind_wait = '{part}' then queued else 0 end end"
    )


def _members(kind: str) -> str:
    """SQL: the rows of `fact` with the subject of that kind; a call of two topics has two rows."""
    if kind in _OF_CALL:
        return f"select *, {_OF_CALL[kind]} as subject from fact"  # noqa: S608
    return f"""
        select f.*, o.subject from fact f join ({_OF_OTHERS[kind]}) o
            on o.call_id = f.call_id and o.run_id is not distinct from f.run_id
    """  # noqa: S608


def read_proofs(
    database: "duckdb.DuckDBPyConnection", side: Side, kind: str, subject: str, what: str
) -> list[int]:
    """Calls that show a difference, the strongest proof first."""
    part = what.removeprefix(LONGEST).removesuffix("_ms")
    if what == "errors":
        chosen, order = "failed", "request_time"
    elif part in (*PARTS, ROUND_TRIP):
        chosen, order = "timed", f"{_part(part)} desc"
    else:
        chosen, order = "true", "request_time"
    query = (
        f"select call_id from ({_members(kind)}) where subject = $subject and {chosen} and {side.where} "  # noqa: S608
        f"order by {order}, call_id limit 20"
    )
    return [row["call_id"] for row in fetch(database, query, {"subject": subject})]  # type: ignore[dict-item]


def read_losses(database: "duckdb.DuckDBPyConnection") -> dict[str, tuple[int, int, int]]:
    """Client -> bytes sent, bytes retransmitted, and calls, of its connections."""
    query = """
        select client, sum(client_bytes + broker_bytes)::bigint as sent, sum(calls)::bigint as calls,
            sum(client_retransmitted_bytes + broker_retransmitted_bytes)::bigint as again
        from connection
        where protocol = 'kafka' and coalesce(caller, 'client') = 'client' and client is not null
        group by client
    """
    return {row["client"]: (row["sent"], row["again"], row["calls"]) for row in fetch(database, query)}
