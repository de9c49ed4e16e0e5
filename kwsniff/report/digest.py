"""A digest per client, API and topic, by share of total call latency."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kwsniff.findings.evaluate import fetch
from kwsniff.report.proof import Commands
from kwsniff.report.section import Cell, Section, Table, code, number, text
from kwsniff.texts import clean, in_percent, in_time

if TYPE_CHECKING:
    import duckdb

_MOST = 40
_MANY_CALLS = 1_000_000
"""With more calls than this, percentiles take constant memory and are accurate to about 1 %."""

# own: without deliberate waits.
_ROWS = """
with each as (
    select coalesce(c.client, c.client_address) as client,
        coalesce(c.api_name, c.api_key::varchar, 'unknown API') as api,
        case when len(c.topics) > 2 then c.topics[1] || ' and ' || (len(c.topics) - 1) || ' more'
            else array_to_string(c.topics, ', ') end as topic,
        c.call_id, c.run_id, coalesce(c.error_count, 0) > 0 as failed, c.status = 'unanswered' as unanswered,
        l.total_ns - l.deliberate_wait_ns as own_ns, l.deliberate_wait_ns as waited_ns
    from call c left join latency l using (run_id, call_id)
)
select client, api, coalesce(topic, '') as topic, count(*) as calls, count(*) filter (failed) as errors,
    count(*) filter (unanswered) as unanswered, coalesce(sum(own_ns), 0)::bigint as time_ns,
    PERCENTILE(own_ns, 0.5)::bigint as p50, PERCENTILE(own_ns, 0.95)::bigint as p95, max(own_ns) as longest,
    coalesce(sum(waited_ns), 0)::bigint as waited_ns, arg_max(call_id, own_ns) as slowest,
    sum(coalesce(sum(own_ns), 0)) over ()::bigint as all_ns, count(*) over () as combinations,
    sum(count(*)) over ()::bigint as all_calls
from each group by all order by time_ns desc, calls desc, client, api, topic limit $most
"""


def make_digest(database: "duckdb.DuckDBPyConnection", commands: Commands) -> Section:
    """The section of the digest."""
    calls = fetch(database, "select count(*) as calls from call")[0]["calls"]
    percentile = "quantile_disc" if calls <= _MANY_CALLS else "approx_quantile"
    rows = fetch(database, _ROWS.replace("PERCENTILE", percentile), {"most": _MOST})
    if not rows:
        return Section(name="digest", title="Digest", says=("No calls.",))
    table = Table(
        caption="Client, API and topic, by share of time",
        columns=(
            "rank",
            "share",
            "client",
            "API",
            "topic",
            "calls",
            "errors",
            "unanswered",
            "p50",
            "p95",
            "max",
            "time",
            "deliberate waits",
            "slowest call",
        ),
        rows=[_row(place, row, commands) for place, row in enumerate(rows, 1)],
        note=_rest(rows),
    )
    says = "Latency of calls without deliberate waits, which have their own column."
    return Section(name="digest", title="Digest", says=(says,), tables=(table,))


def _row(place: int, row: Mapping[str, Any], commands: Commands) -> list[Cell]:
    share = row["time_ns"] / row["all_ns"] if row["all_ns"] else 0.0
    slowest = row["slowest"]
    return [
        number(place),
        Cell(in_percent(share), "number", share=share),
        text(clean(row["client"] or "")),
        text(row["api"]),
        text(clean(row["topic"])),
        number(row["calls"]),
        number(row["errors"]),
        number(row["unanswered"]),
        number(row["p50"], in_time(row["p50"])),
        number(row["p95"], in_time(row["p95"])),
        number(row["longest"], in_time(row["longest"])),
        number(row["time_ns"], in_time(row["time_ns"])),
        number(row["waited_ns"], in_time(row["waited_ns"])),
        text(None) if slowest is None else code(commands.show(slowest)),
    ]


def _rest(rows: Sequence[Mapping[str, Any]]) -> str:
    first = rows[0]
    left = first["combinations"] - len(rows)
    if not left:
        return ""
    time = first["all_ns"] - sum(row["time_ns"] for row in rows)
    calls = first["all_calls"] - sum(row["calls"] for row in rows)
    share = in_percent(time / first["all_ns"] if first["all_ns"] else 0.0)
    return f"And {left:,} more combinations with {calls:,} calls and {share} of the time."
