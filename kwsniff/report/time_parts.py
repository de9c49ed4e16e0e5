"""Calls in flight over time, by the part of latency they were in."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kwsniff.findings.evaluate import fetch
from kwsniff.report.drawing import COLOURS, Drawing, draw_stack
from kwsniff.report.section import Chart, Section, Table, number, text
from kwsniff.report.span import SLOTS, Span
from kwsniff.texts import in_percent, in_time

if TYPE_CHECKING:
    import duckdb

_WORK = {
    "broker": "broker",
    "network": "network",
    "transmission": "transmission",
    "line": "queued behind another call",
    "line_behind_wait": "queued behind a waiting call",
}
_WAITS = {
    "long_poll": "no data until max_wait_ms",
    "long_poll_possible": "no data, ended early (possible)",
    "data": "new records",
    "data_possible": "new records (possible)",
    "transaction": "a transaction's end",
    "transaction_possible": "a transaction's end (possible)",
    "group": "other members",
    "group_possible": "other members (possible)",
    "replicas": "followers",
    "replicas_possible": "followers (possible)",
    "throttle": "a quota",
    "authentication_delay": "failed authentication",
    "authentication_delay_possible": "failed authentication (possible)",
}

_ON_PURPOSE = "The lower chart shows calls in deliberate waits, by what they waited for."

# A call longer than a slot counts in all its slots, with its parts spread evenly over its time.
_PARTS = """
with timed as (
    select epoch_us(request_time) - $begin as first, greatest(total_ns / 1000, 0.001) as took, wait,
        request_transmission_ns + response_transmission_ns as transmission, network_ns as network,
        broker_ns as broker,
        case when coalesce(queued_behind_wait, 'none') = 'none' then queue_wait_ns else 0 end as line,
        case when coalesce(queued_behind_wait, 'none') = 'none' then 0
            else queue_wait_ns end as line_behind_wait,
        deliberate_wait_ns as waited
    from latency where request_time is not null
),
placed as (
    select *, (first // $width)::bigint as a, least(floor((first + took) / $width)::bigint, $slots - 1) as b
    from timed
),
spread as (
    select *, a as slot, 1.0 as share from placed where a >= b
    union all
    select *, (least(first + took, (slot + 1) * $width) - greatest(first, slot * $width)) / took as share
    from (select *, unnest(range(a, b + 1)) as slot from placed where a < b)
)
select slot::int as slot, wait, sum(share * broker) as broker, sum(share * network) as network,
    sum(share * transmission) as transmission, sum(share * line) as line,
    sum(share * line_behind_wait) as line_behind_wait, sum(share * waited) as waited
from spread group by slot, wait order by slot, wait
"""

_Shares = Mapping[str, Sequence[float]]


def make_time_parts(database: "duckdb.DuckDBPyConnection", span: Span | None) -> Section:
    """The section of time by part."""
    rows = [] if span is None else fetch(database, _PARTS, {**span.values, "slots": SLOTS})
    if span is None or not rows:
        return Section(name="parts", title="Where the time went", says=("No complete calls.",))
    work, waits = _by_part(rows)
    charts = [
        Chart(
            name="parts-chart",
            drawings=(_stack(span, work, _WORK),),
            label=f"Calls in flight over time, by part: {', '.join(_WORK[name] for name in work)}.",
            legend=_legend(work, _WORK),
        )
    ]
    if waits:
        charts.append(
            Chart(
                name="waits-chart",
                drawings=(_stack(span, waits, _WAITS),),
                label=f"Calls in deliberate waits, for: {', '.join(_words(name) for name in waits)}.",
                legend=_legend(waits, _WAITS),
            )
        )
    return Section(
        name="parts",
        title="Where the time went",
        says=(
            "Average number of calls in flight, by part.",
            _ON_PURPOSE if waits else "No deliberate waits.",
        ),
        charts=charts,
        tables=[_table(work, waits)],
    )


def _words(name: str) -> str:
    return _WAITS.get(name, name.replace("_", " "))


def _by_part(rows: Sequence[Mapping[str, Any]]) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    """Nanoseconds per slot for each part above zero, and for each deliberate wait."""
    work: dict[str, list[float]] = {name: [0.0] * SLOTS for name in _WORK}
    waits: dict[str, list[float]] = defaultdict(lambda: [0.0] * SLOTS)
    for row in rows:
        slot = min(max(row["slot"], 0), SLOTS - 1)
        for name in _WORK:
            work[name][slot] += row[name]
        if row["waited"]:
            waits[row["wait"]][slot] += row["waited"]
    ordered = sorted(waits, key=lambda name: -sum(waits[name]))
    return {name: each for name, each in work.items() if any(each)}, {name: waits[name] for name in ordered}


def _legend(shares: _Shares, words: Mapping[str, str]) -> list[tuple[str, str]]:
    return [(COLOURS[place % len(COLOURS)], words.get(name, name)) for place, name in enumerate(shares)]


def _stack(span: Span, shares: _Shares, words: Mapping[str, str]) -> Drawing:
    slot_ns = span.width * 1000
    parts = {words.get(name, name): [each / slot_ns for each in spent] for name, spent in shares.items()}
    lines = [
        [f"{name}: {calls[slot]:.2f}" for name, calls in parts.items() if calls[slot]]
        for slot in range(SLOTS)
    ]
    return draw_stack(span, range(SLOTS), parts, height=230, unit="calls in flight", lines=lines)


def _table(work: _Shares, waits: _Shares) -> Table:
    sums = [("", _WORK[name], sum(spent)) for name, spent in work.items()]
    sums += [("waited for", _words(name), sum(spent)) for name, spent in waits.items()]
    total = sum(spent for _, _, spent in sums) or 1.0
    return Table(
        caption="Totals",
        columns=("kind", "part", "total time", "share"),
        rows=[
            [text(kind), text(name), number(spent, in_time(spent)), number(spent, in_percent(spent / total))]
            for kind, name, spent in sorted(sums, key=lambda each: -each[2])
        ],
        folded=True,
    )
