"""The page of `kwsniff compare --html`: the differences between GOOD and BAD, and their calls."""

from collections.abc import Sequence
from typing import IO, TYPE_CHECKING

from kwsniff.findings.compare import Difference
from kwsniff.findings.compare_effects import describe
from kwsniff.report.page import write_page
from kwsniff.report.proof import Commands, find_commands, list_calls, read_calls
from kwsniff.report.section import Cell, Item, Section, Table, number, text
from kwsniff.texts import clean, in_percent, plural
from kwsniff.zones import UTC_ZONE, Zone

if TYPE_CHECKING:
    import duckdb

_MOST_ITEMS = 20
_MOST_ROWS = 500
_COLUMNS = ("subject", "name", "measure", "GOOD", "BAD", "ratio", "contribution", "GOOD, 99 %", "BAD, 99 %")
_UNITS = (
    "_ms: mean per call, in milliseconds. errors: share of calls. retransmitted: share of bytes. "
    "contribution: share of total latency, or of calls, in BAD."
)


def write_comparison(
    file: IO[str],
    bad: "duckdb.DuckDBPyConnection",
    differences: Sequence[Difference],
    *,
    counts: Sequence[int],
    capture: str | None = None,
    notes: Sequence[str] = (),
    zone: Zone = UTC_ZONE,
) -> None:
    """Writes the page. `bad`: the database with the calls of the differences; `counts`: calls in GOOD and
    BAD;
    `capture`: the captures of BAD as commands name them, None for a folder of tables."""
    commands = find_commands(bad, capture)
    verdict = (
        describe(differences[0])
        if differences
        else "No significant difference."
        if all(counts)
        else "Nothing to compare."
    )
    stands = f"{plural(counts[0], 'call')} in GOOD, {counts[1]:,} in BAD."
    write_page(
        file,
        title="kwsniff: differences",
        summary=[verdict, stands, *notes],
        sections=[_table(differences), _calls(bad, differences[:_MOST_ITEMS], commands, zone)],
    )


def _table(differences: Sequence[Difference]) -> Section:
    rows = [
        [
            text(each.subject_kind),
            Cell(
                clean(each.subject),
                link=f"difference-{place}" if place < _MOST_ITEMS and each.call_ids else "",
            ),
            text(each.what),
            number(each.good, _figure(each.good)),
            number(each.bad, _figure(each.bad)),
            number(each.ratio, _figure(each.ratio)),
            Cell(in_percent(each.share), "number", share=each.share),
            text(_interval(each.good_interval)),
            text(_interval(each.bad_interval)),
        ]
        for place, each in enumerate(differences[:_MOST_ROWS])
    ]
    left = len(differences) - len(rows)
    table = Table(
        caption="Differences",
        columns=_COLUMNS,
        rows=rows,
        note=f"And {left:,} more: see --json." if left else "",
    )
    return Section(name="differences", title="Differences", says=(_UNITS,), tables=(table,) if rows else ())


def _calls(
    bad: "duckdb.DuckDBPyConnection", differences: Sequence[Difference], commands: Commands, zone: Zone
) -> Section:
    calls = read_calls(bad, {number for each in differences for number in each.call_ids})
    items = []
    for place, each in enumerate(differences):
        rows = [row for number in each.call_ids for row in calls.get(number, ())]
        if rows:
            lines = [
                ("GOOD", _bound(each.good, each.good_interval)),
                ("BAD", _bound(each.bad, each.bad_interval)),
            ]
            items.append(
                Item(
                    name=f"difference-{place}",
                    heading=f"{each.subject_kind} {clean(each.subject)}: {each.what}",
                    weight="info",
                    lines=lines,
                    proof=list_calls(f"Its calls ({len(rows)})", rows, commands, zone),
                )
            )
    return Section(name="calls", title="Its calls", items=items)


def _figure(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _bound(value: float, bounds: tuple[float, float]) -> str:
    within = _interval(bounds)
    return f"{_figure(value)} ({within})" if within else _figure(value)


def _interval(bounds: tuple[float, float]) -> str:
    # Only means have bounds.
    return "" if bounds[0] == bounds[1] else f"{_figure(bounds[0])} to {_figure(bounds[1])}"
