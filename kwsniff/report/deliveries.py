"""How long records take to their readers over time, by part of their way."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from kwsniff.findings.evaluate import fetch
from kwsniff.report.chart_style import COLOURS, add_hover, timed_figure
from kwsniff.report.section import Chart, Section, Table, number, text
from kwsniff.report.span import SLOTS, Span
from kwsniff.texts import clean, in_time

if TYPE_CHECKING:
    import duckdb

PARTS: Final = {
    "before_wire_ns": "in the producer",
    "produce_ns": "produce",
    "replication_ns": "replication",
    "fetch_wait_ns": "waiting to be fetched",
    "fetch_ns": "fetch",
    "processing_ns": "until the commit",
}
_MOST: Final = 100

_SLOTS = f"""
select least((epoch_us(produced_time) - $begin) // $width, $slots - 1)::int as slot, count(*) as batches,
    {", ".join(f"sum(coalesce({name}, 0))::double / count(*) as {name}" for name in PARTS)}
from deliveries
where produced_time is not null and fetched_time is not null and epoch_us(produced_time) >= $begin
group by slot order by slot
"""  # noqa: S608 - names of columns

_READERS = f"""
select topic, coalesce(group_id, client_id) as reader, count(*) as batches,
    {", ".join(f"sum(coalesce({name}, 0))::double / count(*) as {name}" for name in PARTS)}
from deliveries where produced_time is not null and fetched_time is not null
group by all order by batches desc, topic, reader limit $most
"""  # noqa: S608 - names of columns

_Rows = Sequence[Mapping[str, Any]]


def make_deliveries(database: "duckdb.DuckDBPyConnection", span: Span | None) -> Section:
    """The section of deliveries."""
    rows = [] if span is None else fetch(database, _SLOTS, {**span.values, "slots": SLOTS})
    title = "Where a record's time goes"
    if span is None or not rows:
        return Section(name="deliveries", title=title, says=("No batch was seen from Produce to Fetch.",))
    parts = [name for name in PARTS if any(row[name] for row in rows)]
    words = [PARTS[name] for name in parts]
    chart = Chart(
        name="deliveries-chart",
        plot=_stack(span, rows, parts),
        label=f"Time of record batches to their readers, by part: {', '.join(words)}.",
        legend=[(COLOURS[place], word) for place, word in enumerate(words)],
    )
    return Section(
        name="deliveries",
        title=title,
        says=("Mean time of a record batch to a reader, by part, over the time of its Produce.",),
        charts=(chart,),
        tables=(_table(fetch(database, _READERS, {"most": _MOST}), parts),),
    )


def _stack(span: Span, rows: _Rows, parts: Sequence[str]) -> Any:
    plot = timed_figure(span, 260, y_axis_label="ms")
    at = [span.middle_ms(row["slot"]) for row in rows]
    source: dict[str, Any] = {
        "x": at,
        "time": [span.at(each) for each in at],
        "batches": [row["batches"] for row in rows],
        **{name: [row[name] / 1e6 for row in rows] for name in parts},
    }
    colours = COLOURS[: len(parts)]
    drawn = plot.vbar_stack(
        parts, x="x", width=span.width_ms, source=source, line_color=None, color=list(colours)
    )
    plot.y_range.start = 0
    values = [(PARTS[name], f"@{name}{{0.00}} ms") for name in parts]
    add_hover(plot, drawn, [("time", "@time"), ("batches", "@batches"), *values])
    return plot


def _table(rows: _Rows, parts: Sequence[str]) -> Table:
    return Table(
        caption="Mean times, by topic and reader",
        columns=("topic", "reader", "batches", *(PARTS[name] for name in parts)),
        rows=[
            [
                text(clean(row["topic"] or "")),
                text(clean(row["reader"] or "")),
                number(row["batches"]),
                *(number(row[name], in_time(row[name])) for name in parts),
            ]
            for row in rows
        ],
        folded=True,
    )
