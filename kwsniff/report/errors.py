"""Errors over time, and the clients that received them."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kwsniff.findings.evaluate import fetch
from kwsniff.report.drawing import COLOURS, Drawing, draw_stack
from kwsniff.report.proof import Commands
from kwsniff.report.section import Chart, Section, Table, code, number, text
from kwsniff.report.span import SLOTS, Span
from kwsniff.texts import clean
from kwsniff.zones import Zone

if TYPE_CHECKING:
    import duckdb

_MOST_NAMES = len(COLOURS) - 1
_MOST_ROWS = 60

_OVER_TIME = """
select coalesce(error_name, error_code::varchar) as error,
    ((epoch_us(response_time) - $begin) // $width)::int as slot, count(*) as errors
from refusal where response_time is not null group by error, slot order by slot
"""

_BY_CLIENT = """
with refused as (
    select client, any_value(client_address) as address, broker, coalesce(api_name, api_key::varchar) as api,
        coalesce(error_name, error_code::varchar) as error, count(*) as errors,
        count(distinct call_id) as calls, min(response_time) as first_time, max(response_time) as last_time,
        arg_min(call_id, response_time) as call_id, any_value(error_message) as message
    from refusal group by all
),
asked as (
    select client, broker, coalesce(api_name, api_key::varchar) as api, count(*) as all_calls
    from client_call group by all
)
select *, count(*) over () as combinations from refused left join asked using (client, broker, api)
order by errors desc, client, broker, api, error limit $most
"""


def make_errors(
    database: "duckdb.DuckDBPyConnection", span: Span | None, commands: Commands, zone: Zone
) -> Section:
    """The section of errors."""
    rows = fetch(database, _BY_CLIENT, {"most": _MOST_ROWS})
    if not rows:
        return Section(name="errors", title="Errors over time", says=("No errors in responses to clients.",))
    charts = []
    if span is not None and (slots := fetch(database, _OVER_TIME, span.values)):
        per_name = _by_name(slots)
        label = f"Errors over time: {', '.join(per_name)}."
        legend = [(COLOURS[place], name) for place, name in enumerate(per_name)]
        charts = [Chart(name="errors-chart", label=label, drawings=(_bars(span, per_name),), legend=legend)]
    return Section(
        name="errors",
        title="Errors over time",
        says=("Error codes in responses to clients. Some are routine; the findings name the harmful ones.",),
        charts=charts,
        tables=(_table(rows, commands, zone),),
    )


def _table(rows: Sequence[Mapping[str, Any]], commands: Commands, zone: Zone) -> Table:
    left = rows[0]["combinations"] - len(rows)
    return Table(
        caption="Errors by client, broker and API",
        columns=(
            "client",
            "address",
            "broker",
            "API",
            "error",
            "errors",
            "calls",
            "share of its calls there",
            "first",
            "last",
            "broker's message",
            "first call",
        ),
        rows=[
            [
                text(clean(row["client"] or "")),
                text(row["address"]),
                text(row["broker"]),
                text(row["api"]),
                text(row["error"]),
                number(row["errors"]),
                number(row["calls"]),
                number(row["all_calls"]),
                text(zone.moment(row["first_time"])),
                text(zone.moment(row["last_time"])),
                text(clean(row["message"] or "")[:200]),
                code(commands.show(row["call_id"])),
            ]
            for row in rows
        ],
        note=f"And {left:,} more combinations." if left else "",
    )


def _by_name(slots: Sequence[Mapping[str, Any]]) -> dict[str, list[int]]:
    """Errors per slot for the most frequent names, and for all others together."""
    sums: dict[str, int] = {}
    for row in slots:
        sums[row["error"]] = sums.get(row["error"], 0) + row["errors"]
    ordered = sorted(sums, key=lambda name: (-sums[name], name))
    kept = set(ordered[:_MOST_NAMES])
    found = {name: [0] * SLOTS for name in ordered[:_MOST_NAMES]}
    for row in slots:
        name = row["error"] if row["error"] in kept else "others"
        found.setdefault(name, [0] * SLOTS)[min(max(row["slot"], 0), SLOTS - 1)] += row["errors"]
    return found


def _bars(span: Span, per_name: Mapping[str, Sequence[int]]) -> Drawing:
    used = [slot for slot in range(SLOTS) if any(each[slot] for each in per_name.values())]
    parts = {name: [counts[slot] for slot in used] for name, counts in per_name.items()}
    lines = [[f"{name}: {each[slot]:,}" for name, each in per_name.items() if each[slot]] for slot in used]
    return draw_stack(span, used, parts, height=210, unit="errors", lines=lines)
