"""Lag over time, by fetched offsets and by committed offsets."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kwsniff.findings.evaluate import fetch
from kwsniff.report.drawing import COLOURS, Box, Drawing, Mark, timed_drawing
from kwsniff.report.section import Chart, Section, Table, number, text
from kwsniff.report.span import SLOTS, Span
from kwsniff.texts import clean

if TYPE_CHECKING:
    import duckdb

_MOST = 8

_FETCHED = """
with read as (
    select client as reader, coalesce(topic, topic_id) as topic, partition, lag, p.time
    from partition_call p semi join client_call using (run_id, call_id)
    where is_fetch(api_name) and lag is not null and p.time is not null
),
"""

_COMMITTED = """
with read as (
    select group_id as reader, coalesce(topic, topic_id) as topic, partition, lag, c.time
    from commits c semi join client_call using (run_id, call_id)
    where lag is not null and c.time is not null
),
"""

_CURVES = """
summed as (
    select reader, topic, partition, max(lag) as greatest, arg_max(lag, time) as latest,
        arg_min(lag, time) as first, count(*) as readings, count(*) over () as curves
    from read group by reader, topic, partition order by greatest desc, reader, topic, partition limit $most
)
select s.*, ((epoch_us(r.time) - $begin) // $width)::int as slot, max(r.lag) as lag
from summed s join read r using (reader, topic, partition)
group by all order by s.greatest desc, s.reader, s.topic, s.partition, slot
"""

_Curves = Mapping[tuple[str, str, int], Sequence[Mapping[str, Any]]]


def make_lag(database: "duckdb.DuckDBPyConnection", span: Span | None) -> Section:
    """The section of lag."""
    charts, tables = [], []
    for name, query, reader, said in (
        ("committed", _COMMITTED, "group", "Committed offsets: lag behind the log end"),
        ("fetched", _FETCHED, "client", "Fetched offsets: lag behind the high watermark"),
    ):
        curves = {} if span is None else _curves(database, query, span)
        if span is None or not curves:
            continue
        names = [clean(f"{key[0]}: {key[1]}-{key[2]}") for key in curves]
        charts.append(
            Chart(
                name=f"lag-{name}-chart",
                drawings=(_lines(span, curves, said),),
                label=f"{said}: {', '.join(names)}.",
                legend=[(COLOURS[place % len(COLOURS)], each) for place, each in enumerate(names)],
            )
        )
        tables.append(_table(f"{said}, in figures", reader, curves))
    if not charts:
        return Section(name="lag", title="Lag", says=("No commit or fetch shows a lag.",))
    says = (
        "Clients fetch ahead of the records their application has processed; committed offsets show those.",
        f"Maximum per interval, for the {_MOST} partitions with the highest lag.",
    )
    return Section(name="lag", title="Lag", says=says, charts=charts, tables=tables)


def _curves(database: "duckdb.DuckDBPyConnection", query: str, span: Span) -> _Curves:
    found: dict[tuple[str, str, int], list[Mapping[str, Any]]] = {}
    for row in fetch(database, query + _CURVES, {**span.values, "most": _MOST}):
        found.setdefault((row["reader"] or "", row["topic"] or "", row["partition"]), []).append(row)
    return found


def _lines(span: Span, curves: _Curves, title: str) -> Drawing:
    top = max(row["lag"] for rows in curves.values() for row in rows)
    drawing = timed_drawing(span, 240, top, title=title, unit="offsets")
    said: dict[int, list[str]] = {}
    for place, (key, rows) in enumerate(curves.items()):
        name, colour = clean(f"{key[0]}: {key[1]}-{key[2]}"), COLOURS[place % len(COLOURS)]
        points = []
        for row in rows:
            slot = min(row["slot"], SLOTS - 1)
            points.append((span.middle_ms(slot), float(row["lag"])))
            said.setdefault(slot, []).append(f"{name}: {row['lag']:,}")
        drawing.marks.append(Mark(colour=colour, kind="line", points=points, name=name))
        drawing.marks.append(Mark(colour=colour, kind="dots", points=points, width=5))
    for slot, lines in sorted(said.items()):
        middle, half = span.middle_ms(slot), span.width_ms / 2
        box = Box(middle - half, middle + half, *drawing.y)
        drawing.regions.append((box, "\n".join([span.at(middle), *lines])))
    return drawing


def _table(caption: str, reader: str, curves: _Curves) -> Table:
    firsts = [(key, rows[0]) for key, rows in curves.items()]
    left = firsts[0][1]["curves"] - len(firsts)
    return Table(
        caption=caption,
        columns=(reader, "topic", "partition", "readings", "first", "greatest", "last"),
        rows=[
            [
                text(clean(key[0])),
                text(clean(key[1])),
                number(key[2]),
                number(row["readings"]),
                number(row["first"]),
                number(row["greatest"]),
                number(row["latest"]),
            ]
            for key, row in firsts
        ],
        folded=True,
        note=f"And {left:,} more." if left > 0 else "",
    )
