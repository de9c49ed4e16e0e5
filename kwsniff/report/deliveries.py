"""How long records take to their readers over time, by part of their way."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from kwsniff.findings.evaluate import fetch
from kwsniff.report.drawing import COLOURS, Drawing, draw_stack
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
        drawings=(_stack(span, rows, parts),),
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


def _stack(span: Span, rows: _Rows, parts: Sequence[str]) -> Drawing:
    means = {PARTS[name]: [row[name] / 1e6 for row in rows] for name in parts}
    lines = [
        [f"batches: {row['batches']:,}", *(f"{PARTS[name]}: {in_time(row[name])}" for name in parts)]
        for row in rows
    ]
    return draw_stack(span, [row["slot"] for row in rows], means, height=230, unit="ms", lines=lines)


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
