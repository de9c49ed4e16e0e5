"""Findings with the calls that prove them, and the commands that show those calls."""

import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from kwsniff.findings.display_filters import frames_of
from kwsniff.findings.evaluate import fetch
from kwsniff.findings.finding import Finding
from kwsniff.report.chart_labels import label
from kwsniff.report.section import MOST_LETTERS, Cell, Item, Section, Table, code, number, text
from kwsniff.texts import clean, display_filter, in_percent, in_time
from kwsniff.zones import Zone

if TYPE_CHECKING:
    import duckdb

_PARTS = {
    "broker_ns": "broker",
    "network_ns": "network",
    "queue_wait_ns": "queued",
    "deliberate_wait_ns": "waited",
    "request_transmission_ns": "request transmission",
    "response_transmission_ns": "response transmission",
}
_COLUMNS = (
    "call", "time", "client", "broker", "API", "about", "took", "time spent", "outcome", "packets",
    "command", "display filter",
)  # fmt: skip
_MOST_CAPTURES = 8
_MARGIN = timedelta(seconds=1)
MOST_CALLS = 200
"""Calls with a row of their own, of all findings together; behind them a finding has one."""

_CALLS = """
select c.call_id, c.capture, c.client, c.client_address, c.client_port, c.broker,
    c.api_name, c.api_key, c.api_version, c.request_time, c.response_end_time, c.status, c.reason,
    c.error_name, c.error_code, c.request_frame, c.request_end_frame, c.response_frame,
    c.response_end_frame, c.topics, c.group_id,
    coalesce(l.total_ns, c.latency_ns) as took_ns, l.wait,
    l.broker_ns, l.network_ns, l.queue_wait_ns, l.deliberate_wait_ns,
    l.request_transmission_ns, l.response_transmission_ns
from call c left join latency l using (run_id, call_id)
where c.call_id in (select unnest($numbers))
order by c.call_id
"""


@dataclass(frozen=True, slots=True)
class Commands:
    """Shell commands for calls."""

    captures: str
    """The captures of the run, in its order: call_ids count packets across all of them."""

    def show(self, call_id: int) -> str:
        """Request and response as trees."""
        return f"kwsniff show {self.captures} --call {call_id}"

    @staticmethod
    def filter(frames: Iterable[tuple[int | None, int | None]], port: int | None = None) -> str:
        """A display filter for ranges of packets; `port`: for those of one connection."""
        return display_filter(frames, port)

    def wireshark(self, capture: str, frames: Iterable[tuple[int | None, int | None]]) -> str:
        """The command that opens the packets of a capture in Wireshark."""
        return f"wireshark -r {shlex.quote(clean(capture))} -Y '{self.filter(frames)}'"


def find_commands(database: "duckdb.DuckDBPyConnection", capture: str | None) -> Commands:
    """`capture`: the captures as the caller named them, None for tables."""
    if capture is not None:
        return Commands(clean(capture))
    rows = fetch(database, f"select distinct run_id, capture from captures limit {_MOST_CAPTURES}")  # noqa: S608
    return Commands(shlex.quote(clean(rows[0]["capture"])) if len(rows) == 1 else "CAPTURE...")


def read_calls(
    database: "duckdb.DuckDBPyConnection", wanted: Collection[int]
) -> dict[int, list[dict[str, Any]]]:
    """call_id -> the calls with that number, one per run."""
    calls: dict[int, list[dict[str, Any]]] = {}
    if wanted:
        for row in database.sql(_CALLS, params={"numbers": sorted(wanted)}).to_arrow_table().to_pylist():
            calls.setdefault(row["call_id"], []).append(row)
    return calls


def list_calls(caption: str, rows: Sequence[Mapping[str, Any]], commands: Commands, zone: Zone) -> Table:
    """Calls as a table that opens on click; `rows` as returned by read_calls."""
    return Table(
        caption=caption, columns=_COLUMNS, rows=[_row(row, commands, zone) for row in rows], folded=True
    )


def make_findings(
    database: "duckdb.DuckDBPyConnection", findings: Sequence[Finding], commands: Commands, zone: Zone
) -> Section:
    """The section of findings, worst first."""
    calls = read_calls(database, {number for each in findings for number in each.call_ids})
    items, left = [], MOST_CALLS
    for place, each in enumerate(findings):
        rows = [row for call_id in each.call_ids for row in _select_rows(each, calls.get(call_id, ()))]
        items.append(_item(place, each, rows, max(left, 1), commands, zone))
        left -= len(rows)
    says = () if items else ("No findings. The sections below show errors and where time was spent.",)
    return Section(name="findings", title="Findings", says=says, items=items)


def _item(  # noqa: PLR0917
    place: int,
    finding: Finding,
    rows: Sequence[Mapping[str, Any]],
    most: int,
    commands: Commands,
    zone: Zone,
) -> Item:
    lines = [("", label(finding.text, 4 * MOST_LETTERS)), ("Do", clean(finding.advice))]
    if finding.first_time is not None:
        lines.append(("When", zone.between(finding.first_time, finding.last_time)))
    if finding.time_share:
        lines.append(("Share", f"{in_percent(finding.time_share)} of total call latency"))
    if finding.explained_by:
        lines.append(("Follows from", finding.explained_by))
    shown = [("See", clean(finding.command))]
    for capture in dict.fromkeys(row["capture"] for row in rows):
        frames = [pair for row in rows if row["capture"] == capture for pair in frames_of(row)]
        shown.append(("The packets", commands.wireshark(capture, frames)))
    if finding.frames and not rows:
        shown.append(("Display filter", commands.filter((each, each) for each in finding.frames)))
    return Item(
        name=f"finding-{place}",
        heading=f"{finding.finding}: {label(finding.subject, MOST_LETTERS)}",
        weight=finding.severity,
        lines=[(finding.severity.capitalize(), _who(finding)), *lines],
        commands=shown,
        proof=_proof_table(finding, rows[:most], commands, zone),
    )


def _proof_table(
    finding: Finding, rows: Sequence[Mapping[str, Any]], commands: Commands, zone: Zone
) -> Table | None:
    if rows:
        of = f" of {finding.calls:,}" if finding.calls > len(rows) else ""
        return list_calls(f"The calls that prove it ({len(rows)}{of})", rows, commands, zone)
    if finding.frames:
        return Table(
            caption=f"The packets that prove it ({len(finding.frames)})",
            columns=("packet", "display filter"),
            rows=[[number(each), code(f"frame.number == {each}")] for each in finding.frames],
            folded=True,
        )
    return None


def _who(finding: Finding) -> str:
    if finding.severity == "info":
        return finding.confidence
    return f"{finding.confidence}; owner: {finding.blames}"


def _select_rows(finding: Finding, rows: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    """If several runs have calls with the same number, those within the finding's time."""
    if len(rows) < 2 or finding.first_time is None or finding.last_time is None:
        return rows
    first, last = finding.first_time - _MARGIN, finding.last_time + _MARGIN
    times = [(row, row["request_time"] or row["response_end_time"]) for row in rows]
    return [row for row, time in times if time is not None and first <= time <= last]


def _row(row: Mapping[str, Any], commands: Commands, zone: Zone) -> list[Cell]:
    address = f"{row['client_address']}:{row['client_port']}"
    name = clean(row["client"] or "")
    about = [*(row["topics"] or ()), *([row["group_id"]] if row["group_id"] else ())]
    return [
        number(row["call_id"], str(row["call_id"])),
        text(zone.moment(row["request_time"] or row["response_end_time"])),
        text(address if name == row["client_address"] else f"{name} ({address})"),
        text(row["broker"]),
        text(f"{row['api_name'] or row['api_key'] or 'unknown'} v{row['api_version']}"),
        text(clean(", ".join(about[:3]) + (f" and {len(about) - 3} more" if len(about) > 3 else ""))),
        number(row["took_ns"], in_time(row["took_ns"])),
        text(_where(row)),
        text(_outcome(row)),
        text(_format_frames(frames_of(row))),
        code(commands.show(row["call_id"])),
        code(commands.filter(frames_of(row), row["client_port"])),
    ]


def _where(row: Mapping[str, Any]) -> str:
    total = row["took_ns"]
    if not total or row["broker_ns"] is None:
        return ""
    parts = sorted(((row[name], words) for name, words in _PARTS.items()), reverse=True)
    said = [
        f"{words} {in_time(spent)}" + (f" ({row['wait'].replace('_', ' ')})" if words == "waited" else "")
        for spent, words in parts[:3]
        if spent > total / 20
    ]
    return ", ".join(said)


def _outcome(row: Mapping[str, Any]) -> str:
    if row["error_code"]:
        return str(row["error_name"] or row["error_code"])
    said = str(row["status"]).replace("_", " ")
    return f"{said}: {row['reason'].replace('_', ' ')}" if row["reason"] else said


def _format_frames(frames: Iterable[tuple[int | None, int | None]]) -> str:
    pairs = [(first, last) for first, last in frames if first is not None]
    return ", ".join(f"{first}" if last in (None, first) else f"{first} to {last}" for first, last in pairs)
