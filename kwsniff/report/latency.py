"""Latency over time, a heat map per API: number of calls by latency, and stalls of brokers."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kwsniff.findings.evaluate import fetch
from kwsniff.findings.finding import Finding
from kwsniff.report.drawing import TROUBLE, Box, Drawing, Mark, timed_drawing
from kwsniff.report.section import Chart, Section, Table, number, text
from kwsniff.report.span import Span
from kwsniff.texts import clean, in_time, plural
from kwsniff.zones import Zone

if TYPE_CHECKING:
    import duckdb

_STALLS = ("broker_stalled", "client_silent", "path_dead", "replication_slow", "receiver_full")
_MOST_APIS = 6
_STEPS = 4  # per power of ten
_LEAST_NS = 1000
_HEAT = (
    "#3b528b", "#31688e", "#26828e", "#1f9e89", "#35b779", "#6ece58", "#b5de2b", "#fde725",
)  # fmt: skip
"""Few calls to many (viridis)."""

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

_Cells = Sequence[dict[str, Any]]


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
        charts = [Chart(name="latency-chart", label=label, drawings=_maps(cells, order, span, stalls))]
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
    cells: _Cells, order: Sequence[str], span: Span, stalls: Sequence[tuple[int, Finding]]
) -> list[Drawing]:
    panels = [_panel(api, [cell for cell in cells if cell["api"] == api], span, stalls) for api in order]
    for panel in panels[:-1]:
        panel.x_ticks = ()
    return panels


def _panel(api: str, cells: _Cells, span: Span, stalls: Sequence[tuple[int, Finding]]) -> Drawing:
    steps = [cell["step"] for cell in cells] or [0]
    ticks = [step for step in range(min(steps), max(steps) + 2) if step % _STEPS == 0]
    drawing = timed_drawing(span, 64, 0, title=api)
    drawing.y = (min(steps) - 0.5, max(steps) + 1.5)
    drawing.y_ticks = [(step, in_time(_edge(step))) for step in ticks or [min(steps), max(steps) + 1]]
    most = max((math.log10(cell["calls"]) for cell in cells), default=0.0) or 1.0
    levels: dict[int, list[Box]] = {}
    columns: dict[int, list[str]] = {}
    for cell in cells:
        middle, half, step = span.middle_ms(cell["slot"]), span.width_ms / 2, cell["step"]
        level = round(math.log10(cell["calls"]) / most * (len(_HEAT) - 1))
        levels.setdefault(level, []).append(Box(middle - half, middle + half, step, step + 1))
        took = f"{in_time(_edge(step))} to {in_time(_edge(step + 1))}"
        columns.setdefault(cell["slot"], []).append(f"{took}: {plural(cell['calls'], 'call')}")
    for level, boxes in sorted(levels.items()):
        drawing.marks.append(Mark(colour=_HEAT[level], kind="boxes", boxes=boxes))
    drawing.marks += _mark_stalls(drawing, span, stalls)
    for slot, lines in sorted(columns.items()):
        middle, half = span.middle_ms(slot), span.width_ms / 2
        box = Box(middle - half, middle + half, *drawing.y)
        drawing.regions.append((box, "\n".join([span.at(middle), *reversed(lines)])))
    return drawing


def _mark_stalls(drawing: Drawing, span: Span, stalls: Sequence[tuple[int, Finding]]) -> list[Mark]:
    boxes = []
    for _, each in stalls:
        if each.first_time is not None and each.last_time is not None:
            first, last = span.time_ms(each.first_time), span.time_ms(each.last_time)
            boxes.append(Box(first, max(last, first + span.width_ms / 4), *drawing.y))
    return [Mark(colour=TROUBLE, kind="boxes", boxes=boxes, name="stalls", opacity=0.35)] if boxes else []


def _edge(step: int) -> float:
    return _LEAST_NS * 10 ** (step / _STEPS)
