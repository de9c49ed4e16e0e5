"""Rebalances of groups as a Gantt chart: time, duration, members, reason."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kwsniff.findings.evaluate import fetch
from kwsniff.report.chart_labels import label, labels
from kwsniff.report.drawing import COLOURS, Box, Drawing, Mark, timed_drawing
from kwsniff.report.section import Chart, Section, Table, number, text
from kwsniff.report.span import Span
from kwsniff.tables.enums import DERIVED_ENUMS
from kwsniff.texts import clean, in_time, plural
from kwsniff.zones import Zone

if TYPE_CHECKING:
    import duckdb

_MOST_GROUPS = 24
_MOST = 1000
_MOST_ROWS = 100
_MOST_MEMBERS = 6
_REASONS = DERIVED_ENUMS["rebalance_reason"]

# The groups with the most rebalances; if there are too many for a chart, the longest of each.
_ROWS = """
with counted as (
    select *, count(*) over (partition by group_id) as of_group, count(*) over () as of_all
    from groups where begin_time is not null or end_time is not null
),
ranked as (
    select *, dense_rank() over (order by of_group desc, group_id) as place,
        row_number() over (order by duration_ns desc nulls first) as length
    from counted
)
select group_id, kind, generation, reason, reason_member, members, member_count,
    begin_time, end_time, duration_ns, calls, error_count, of_all
from ranked where place <= $groups and length <= $most order by coalesce(begin_time, end_time)
"""


def make_rebalances(database: "duckdb.DuckDBPyConnection", span: Span | None) -> Section:
    """The section of rebalances."""
    rows = fetch(database, _ROWS, {"groups": _MOST_GROUPS, "most": _MOST})
    if span is None or not rows:
        return Section(name="rebalances", title="Rebalances", says=("No rebalances.",))
    seen = {_reason(row) for row in rows}
    groups = list(dict.fromkeys(row["group_id"] for row in rows))
    said = f"{plural(rows[0]['of_all'], 'rebalance')}; {len(rows):,} of {plural(len(groups), 'group')} shown."
    chart = Chart(
        name="rebalances-chart",
        drawings=(_gantt(span, rows, groups),),
        label=f"Rebalances over time of the groups {', '.join(label(each) for each in groups)}.",
        legend=[
            (COLOURS[place], reason.replace("_", " "))
            for place, reason in enumerate(_REASONS)
            if reason in seen
        ],
    )
    return Section(
        name="rebalances",
        title="Rebalances",
        says=(said, "A bar is one rebalance, from the first join to the last response."),
        charts=(chart,),
        tables=(_table(rows, span.zone),),
    )


def _reason(row: Mapping[str, Any]) -> str:
    return str(row["reason"]) if row["reason"] in _REASONS else "unknown"


def _members(row: Mapping[str, Any]) -> str:
    named = [clean(each) for each in (row["members"] or ())[:_MOST_MEMBERS]]
    left = (row["member_count"] or len(named)) - len(named)
    return ", ".join(named) + (f" and {left} more" if left > 0 else "")


def _gantt(span: Span, rows: Sequence[Mapping[str, Any]], groups: Sequence[str]) -> Drawing:
    names = labels(groups, 20)
    drawing = timed_drawing(span, 20 + 34 * len(groups), 0)
    drawing.y = (0.0, float(len(groups)))
    lines = {group: len(groups) - place - 0.5 for place, group in enumerate(groups)}
    drawing.y_ticks = [(height, names[group]) for group, height in lines.items()]
    for place, reason in enumerate(_REASONS):
        chosen = [row for row in rows if _reason(row) == reason]
        boxes = [_box(span, row, lines[row["group_id"]]) for row in chosen]
        if boxes:
            drawing.marks.append(Mark(colour=COLOURS[place], kind="boxes", boxes=boxes, name=reason))
        drawing.regions += zip(boxes, (_explain(row, span.zone) for row in chosen), strict=True)
    return drawing


def _box(span: Span, row: Mapping[str, Any], height: float) -> Box:
    """The bar of a rebalance; one that the capture does not hold whole reaches its edge."""
    begin = span.first_ms if row["begin_time"] is None else span.time_ms(row["begin_time"])
    end = span.last_ms if row["end_time"] is None else span.time_ms(row["end_time"])
    return Box(begin, max(end, begin + span.width_ms / 4), height - 0.3, height + 0.3)


def _explain(row: Mapping[str, Any], zone: Zone) -> str:
    generation = "not reached" if row["generation"] is None else row["generation"]
    return "\n".join(
        (
            f"group: {clean(row['group_id'])}",
            f"began: {_began(row, zone)}",
            f"took: {in_time(row['duration_ns']) or 'not known'}",
            f"generation: {generation}",
            f"why: {row['reason'].replace('_', ' ')}",
            f"by: {clean(row['reason_member'] or '')}",
            f"members: {_members(row)}",
        )
    )


def _began(row: Mapping[str, Any], zone: Zone) -> str:
    return "before the capture" if row["begin_time"] is None else zone.moment(row["begin_time"])


def _table(rows: Sequence[Mapping[str, Any]], zone: Zone) -> Table:
    left = len(rows) - _MOST_ROWS
    return Table(
        caption="Rebalances as a table",
        columns=(
            "group",
            "kind",
            "generation",
            "began",
            "ended",
            "took",
            "why",
            "by",
            "members",
            "number",
            "errors",
        ),
        rows=[
            [
                text(clean(row["group_id"])),
                text(row["kind"]),
                number(row["generation"], str(row["generation"])),
                text(_began(row, zone)),
                text("" if row["end_time"] is None else zone.moment(row["end_time"])),
                number(row["duration_ns"], in_time(row["duration_ns"])),
                text(row["reason"].replace("_", " ")),
                text(clean(row["reason_member"] or "")),
                text(_members(row)),
                number(row["member_count"]),
                number(row["error_count"]),
            ]
            for row in rows[:_MOST_ROWS]
        ],
        folded=True,
        note=f"And {left:,} more." if left > 0 else "",
    )
