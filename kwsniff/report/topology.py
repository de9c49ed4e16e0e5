"""A map of clients and brokers: calls, round trips, retransmissions, refused connections."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kwsniff.findings.evaluate import fetch
from kwsniff.report.chart_labels import labels
from kwsniff.report.drawing import COLOURS, TROUBLE, Drawing, Mark
from kwsniff.report.section import Chart, Section, Table, number, text
from kwsniff.texts import clean, in_percent, in_time, plural

if TYPE_CHECKING:
    import duckdb

_MOST = 60
_LOSSY = 0.005
_LOSS_COLOUR = COLOURS[6]

_EDGES = """
with edges as (
select client, client_address, broker, count(*) as connections, sum(calls)::bigint as calls,
    count(*) filter (refused) as refused, sum(coalesce(syn_retries, 0))::bigint as syn_retries,
    median(round_trip_ns)::bigint as round_trip_ns,
    sum(client_bytes + broker_bytes)::bigint as bytes,
    sum(client_retransmitted_bytes + broker_retransmitted_bytes)::bigint as again_bytes,
    count(*) filter (ending = 'reset') as resets,
    any_value(client_software_name || ' ' || coalesce(client_software_version, '')) as software,
    string_agg(distinct capture_point, ', ' order by capture_point)
        filter (capture_point <> 'unknown') as capture_point,
    string_agg(distinct protocol, ', ' order by protocol) as protocols
from connection
where protocol in ('kafka', 'tls') or refused or syn_retries > 0
group by client, client_address, broker
)
select *, count(*) over () as edges from edges
order by refused > 0 desc, again_bytes > 0 desc, calls desc, client, client_address, broker limit $most
"""


def make_topology(database: "duckdb.DuckDBPyConnection") -> Section:
    """The section of the map."""
    rows = fetch(database, _EDGES, {"most": _MOST})
    if not rows:
        return Section(name="map", title="Clients and brokers", says=("No connections.",))
    lefts, rights = {_label_client(row) for row in rows}, {row["broker"] for row in rows}
    label = f"{plural(len(lefts), 'client')} and {plural(len(rights), 'broker')}."
    left = rows[0]["edges"] - len(rows)
    return Section(
        name="map",
        title="Clients and brokers",
        says=("Clients on the left, brokers on the right; the more calls, the wider the line.",),
        charts=(
            Chart(
                name="map-chart",
                label=f"A map of {label} The table below has the figures.",
                drawings=(_map(rows),),
                legend=(
                    (COLOURS[0], "connected"),
                    (_LOSS_COLOUR, "more than 0.5 % of bytes retransmitted"),
                    (TROUBLE, "refused connections"),
                ),
            ),
        ),
        tables=(_table(rows, left),),
    )


def _label_client(row: Mapping[str, Any]) -> str:
    client, address = row["client"] or "", row["client_address"]
    return str(address) if client == address else f"{client} {address}"


def _loss(row: Mapping[str, Any]) -> float:
    sent = row["bytes"] + row["again_bytes"]
    return row["again_bytes"] / sent if sent else 0.0


def _colour(row: Mapping[str, Any]) -> str:
    if row["refused"]:
        return TROUBLE
    return _LOSS_COLOUR if _loss(row) > _LOSSY else COLOURS[0]


def _heights(names: Sequence[str], tall: int) -> dict[str, float]:
    return {name: tall * (len(names) - place - 0.5) / len(names) for place, name in enumerate(names)}


def _map(rows: Sequence[Mapping[str, Any]]) -> Drawing:
    lefts = list(dict.fromkeys(_label_client(row) for row in rows))
    rights = list(dict.fromkeys(row["broker"] for row in rows))
    tall = max(len(lefts), len(rights))
    left, right = _heights(lefts, tall), _heights(rights, tall)
    near, far = labels(lefts, 24), labels(rights, 22)
    drawing = Drawing(
        x=(-0.02, 1.02),
        y=(0.0, float(tall)),
        height=40 + 26 * tall,
        y_ticks=[(left[name], near[name]) for name in lefts],
        right_ticks=[(right[name], far[name]) for name in rights],
    )
    for row in rows:
        ends = left[_label_client(row)], right[row["broker"]]
        edge = Mark(
            colour=_colour(row),
            kind="line",
            points=((0.0, ends[0]), (1.0, ends[1])),
            name=_explain(row),
            opacity=0.8,
            width=1.5 + math.log10(1 + row["calls"]),
            dashed=bool(row["refused"]),
        )
        drawing.marks.append(edge)
    for at, heights, colour in ((0.0, left, COLOURS[2]), (1.0, right, COLOURS[3])):
        points = [(at, height) for height in heights.values()]
        drawing.marks.append(Mark(colour=colour, kind="dots", points=points, width=9))
    return drawing


def _explain(row: Mapping[str, Any]) -> str:
    return "\n".join(
        (
            f"client: {clean(_label_client(row))}",
            f"broker: {row['broker']}",
            f"calls: {row['calls']:,} on {row['connections']:,} connections",
            f"round trip: {in_time(row['round_trip_ns']) or 'not seen'}",
            f"sent again: {in_percent(_loss(row))}",
            f"refused: {row['refused']:,}",
        )
    )


def _table(rows: Sequence[Mapping[str, Any]], left: int) -> Table:
    return Table(
        caption="Figures",
        columns=(
            "client",
            "address",
            "broker",
            "software",
            "connections",
            "calls",
            "bytes",
            "round trip",
            "sent again",
            "refused",
            "SYN retries",
            "resets",
            "captured at",
            "protocol",
        ),
        rows=[
            [
                text(clean(row["client"] or "")),
                text(row["client_address"]),
                text(row["broker"]),
                text(clean((row["software"] or "").strip())),
                number(row["connections"]),
                number(row["calls"]),
                number(row["bytes"]),
                number(row["round_trip_ns"], in_time(row["round_trip_ns"])),
                number(row["again_bytes"], in_percent(_loss(row))),
                number(row["refused"]),
                number(row["syn_retries"]),
                number(row["resets"]),
                text((row["capture_point"] or "not known").replace("_", " ")),
                text(row["protocols"]),
            ]
            for row in rows
        ],
        note=f"And {left:,} more client-broker pairs." if left > 0 else "",
    )
