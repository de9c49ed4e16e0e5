"""Latency over time, a heat map per API: number of calls by latency, and stalls of brokers."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kwsniff.findings.evaluate import fetch
from kwsniff.findings.finding import Finding
from kwsniff.report.chart_style import TROUBLE, add_hover, timed_figure
from kwsniff.report.section import Chart, Section, Table, number, text
from kwsniff.report.span import Span
from kwsniff.texts import clean, in_time
from kwsniff.zones import Zone

if TYPE_CHECKING:
    import duckdb
    from bokeh.plotting import figure

_STALLS = ("broker_stalled", "client_silent", "path_dead", "replication_slow", "receiver_full")
_MOST_APIS = 6
_STEPS = 4  # per power of ten
_LEAST_NS = 1000

# Deliberate waits do not count as slowness.
_CELLS = """
with timed as (
    select coalesce(api_name, api_key::varchar) as api, greatest(total_ns - deliberate_wait_ns, 1) as own_ns,
        (epoch_us(request_time) - $begin) // $width as slot
    from latency where request_time is not null
),
chosen as (select api, sum(own_ns) as time_ns from timed group by api order by time_ns desc, api limit $most)
select api, slot::int as slot, floor($steps * log10(greatest(own_ns, $least) / $least))::int as step,
    count(*) as calls, max(own_ns) as longest
from timed semi join chosen using (api)
group by api, slot, step order by api, slot, step
"""

_APIS = """
select coalesce(api_name, api_key::varchar) as api, count(*) as calls,
    approx_quantile(total_ns - deliberate_wait_ns, 0.5)::bigint as p50,
    approx_quantile(total_ns - deliberate_wait_ns, 0.99)::bigint as p99,
    max(total_ns - deliberate_wait_ns) as longest, sum(total_ns - deliberate_wait_ns)::bigint as time_ns
from latency group by api order by time_ns desc, api limit 40
"""


def make_latency(
    database: "duckdb.DuckDBPyConnection", span: Span | None, findings: Sequence[Finding], zone: Zone
) -> Section:
    """The section of latencies. Stalls among the `findings` are marked and link to their proof."""
    apis = fetch(database, _APIS)
    stalls = [
        (place, each)
        for place, each in enumerate(findings)
        if each.finding in _STALLS and each.first_time and each.last_time
    ]
    charts = []
    if span is not None and apis:
        asked = {**span.values, "most": _MOST_APIS, "steps": _STEPS, "least": _LEAST_NS}
        cells = fetch(database, _CELLS, asked)
        order = [row["api"] for row in apis[:_MOST_APIS]]
        label = f"Heat maps of latency over time of {', '.join(order)}, with {len(stalls)} stalls marked."
        charts = [Chart(name="latency-chart", label=label, plot=_maps(cells, order, span, stalls))]
    says = (
        "Number of calls by latency, without deliberate waits: brighter is more. "
        "A red band marks a stall of a broker, a client or a path."
        if apis
        else "No complete calls.",
    )
    links = [
        (f"{_label(each)}, {zone.between(each.first_time, each.last_time)}", f"finding-{place}")
        for place, each in stalls
    ]
    return Section(
        name="latency",
        title="Latency over time",
        says=says,
        charts=charts,
        links=links,
        tables=[_table(apis)] if apis else [],
    )


def _label(finding: Finding) -> str:
    return f"{finding.finding} {clean(finding.subject)}"


def _table(apis: Sequence[dict[str, Any]]) -> Table:
    return Table(
        caption="Latency per API, in figures",
        columns=("API", "calls", "p50", "p99", "longest", "all together"),
        rows=[
            [text(row["api"]), number(row["calls"])]
            + [number(row[name], in_time(row[name])) for name in ("p50", "p99", "longest", "time_ns")]
            for row in apis
        ],
        folded=True,
    )


def _maps(
    cells: Sequence[dict[str, Any]], order: Sequence[str], span: Span, stalls: Sequence[tuple[int, Finding]]
) -> Any:
    from bokeh.layouts import column
    from bokeh.models import Range1d

    shared = Range1d(span.first_ms, span.last_ms, bounds="auto")
    panels = [
        _panel(api, [cell for cell in cells if cell["api"] == api], span, shared, stalls) for api in order
    ]
    for panel in panels[:-1]:
        panel.xaxis.visible = False
    return column(panels, sizing_mode="stretch_width", spacing=2)


def _panel(
    api: str, cells: Sequence[dict[str, Any]], span: Span, shared: Any, stalls: Sequence[tuple[int, Finding]]
) -> "figure":
    from bokeh.models import BoxAnnotation, FixedTicker, LinearColorMapper
    from bokeh.palettes import Viridis256

    steps = [cell["step"] for cell in cells] or [0]
    plot = timed_figure(span, 112, x_range=shared, y_range=(min(steps) - 0.5, max(steps) + 1.5), title=api)
    source = {
        "x": [span.middle_ms(cell["slot"]) for cell in cells],
        "y": [cell["step"] + 0.5 for cell in cells],
        "heat": [math.log10(cell["calls"]) for cell in cells],
        "calls": [f"{cell['calls']:,}" for cell in cells],
        "took": [f"{in_time(_edge(cell['step']))} to {in_time(_edge(cell['step'] + 1))}" for cell in cells],
        "longest": [in_time(cell["longest"]) for cell in cells],
        "time": [span.at(span.middle_ms(cell["slot"])) for cell in cells],
    }
    mapper = LinearColorMapper(palette=Viridis256[70:245], low=0, high=max([*source["heat"], 1.0]))
    drawn = plot.rect(
        "x",
        "y",
        width=span.width_ms,
        height=1,
        line_color=None,
        source=source,
        fill_color={"field": "heat", "transform": mapper},
    )
    ticks = [step for step in range(min(steps), max(steps) + 2) if step % _STEPS == 0]
    ticks = ticks or [min(steps), max(steps) + 1]
    plot.yaxis.ticker = FixedTicker(ticks=ticks)
    plot.yaxis.major_label_overrides = {step: in_time(_edge(step)) for step in ticks}
    plot.min_border_left = 64
    for _, each in stalls:
        if each.first_time is None or each.last_time is None:
            continue
        first, last = span.time_ms(each.first_time), span.time_ms(each.last_time)
        plot.add_layout(
            BoxAnnotation(
                left=first,
                right=max(last, first + span.width_ms / 4),
                fill_color=TROUBLE,
                fill_alpha=0.25,
                line_color=TROUBLE,
                line_alpha=0.8,
            )
        )
    add_hover(
        plot, [drawn], [("time", "@time"), ("calls", "@calls"), ("took", "@took"), ("longest", "@longest")]
    )
    return plot


def _edge(step: int) -> float:
    return _LEAST_NS * 10 ** (step / _STEPS)
