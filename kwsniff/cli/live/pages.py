"""The pages of the live view, as rich tables. Texts from the wire are cleaned before they reach the
terminal."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rich import box
from rich.cells import cell_len
from rich.console import Group, JustifyMethod, RenderableType
from rich.table import Table
from rich.text import Text

from kwsniff.cli.error_tables import failure_grids
from kwsniff.cli.live.model import ORDERS, ViewState
from kwsniff.cli.text_tables import Grid, fit, shorten, widths_in, without
from kwsniff.live.calls import endpoint
from kwsniff.live.window import Figures, Window, rank_figures
from kwsniff.texts import clean, in_bytes, in_time

_TITLES = {
    "apis": "APIs", "topics": "topics", "clients": "clients", "brokers": "brokers",
    "errors": "errors", "rebalances": "rebalances", "calls": "last calls",
}  # fmt: skip
_MOST_CALLS = 200
_WIDE = 100  # from this width on, tables are side by side
_LOOSE = 30
_HEAD_LINES = 3  # lines of a table's title, column names and rule
_FIGURES = ("late", "calls/s", "err/s", "p50", "p95", "p99", "queue", "network")
_NUMBERS = frozenset(
    (*_FIGURES, "count", "share", "members", "took", "latency", "way", "again", "sent", "received", "records")
)
_LEAST_NUMBER = 7  # keeps columns in place while figures change
_LEAST_WORD = 16
_LEAST_ROWS = 4  # rows of one of several tables

HELP = (
    (
        "o, 1 to 8",
        "overview, APIs, topics, clients, brokers, errors, rebalances, connections, calls; Tab",
    ),
    ("s, S", "sort by trouble (overdue responses, then errors), calls, errors, p50, p95, p99, name"),
    ("/", "filter rows by a text; Enter keeps the filter, Esc clears it"),
    ("up, down, Enter", "select an API, topic, client or broker and see its last calls; Esc: back"),
    ("p or space", "pause the view; kwsniff continues to capture and write"),
    ("q or Ctrl-C", "end"),
)


def page(window: Window, state: ViewState, height: int, width: int) -> RenderableType:
    """The part between header and footer, in the given number of lines; puts the keys of its rows into
    `state`."""
    if state.help:
        return Text("\n".join(["keys", *fit(Grid("keys", ("key", "what it does"), HELP), width).lines]))
    if state.drill or state.page in _WITHOUT_FIGURES:
        state.rows = []
        draw = _calls if state.drill else _WITHOUT_FIGURES[state.page]
        return draw(window, state, height, width)
    rows = _rows(window, state.page, state)
    state.rows = [key for key, _, _ in rows]
    state.selected = min(state.selected, max(len(rows) - 1, 0))
    room = max(height - _HEAD_LINES, 1)
    top = max(state.selected - (room - 1), 0)
    return _figures(window, state.page, rows[top : top + room], state, width, selected=state.selected - top)


def _overview(window: Window, state: ViewState, height: int, width: int) -> RenderableType:
    """Tables of a few rows each: two side by side, or one below the other on a narrow terminal."""
    slow = state if any(window.overdue.by_dimension["topics"]) else replace(state, order="p95")
    draw: dict[str, Drawer] = {
        name: _few_figures(window, name, slow if name == "topics" else state)
        for name in ("brokers", "clients", "topics", "apis")
    }
    draw["errors"] = lambda rows, wide: _errors(window, state, rows, wide, brief=True)
    draw["rebalances"] = lambda rows, wide: _rebalances(window, state, rows, wide, brief=True)
    if width < _WIDE:
        names = list(draw)[: max(min(len(draw) - 1, height // (_LEAST_ROWS - 1)), 1)]
        rows, more = divmod(max(height, 2 * len(names)), len(names))
        return Group(*(draw[name](rows - 1 + (at < more), width) for at, name in enumerate(names)))
    loose = height >= _LOOSE
    rows = max((height - 2 * loose) // 3 - 1, 1)
    half = (width - 2) // 2
    errors = [cell_len(error) for (error, _, _), _ in window.error_counts().most_common(rows)]
    # Names of errors are longer than others.
    wide = max(half, min(max(errors, default=0) + _LEAST_NUMBER + 2, width - half // 4 * 3))
    parts: list[RenderableType] = []
    for left, right, left_width in (
        ("apis", "brokers", half), ("clients", "topics", half), ("errors", "rebalances", wide),
    ):  # fmt: skip
        grid = Table.grid(padding=(0, 1), pad_edge=False)
        right_width = max(width - left_width - 2, 1)
        grid.add_column(width=left_width)
        grid.add_column(width=right_width)
        grid.add_row(draw[left](rows, left_width), draw[right](rows, right_width))
        parts += ["", grid] if loose and parts else [grid]
    return Group(*parts)


Drawer = Callable[[int, int], RenderableType]
"""A table of the given size."""


def _few_figures(window: Window, dimension: str, state: ViewState) -> Drawer:
    def draw(rows: int, width: int) -> RenderableType:
        return _figures(window, dimension, _rows(window, dimension, state)[:rows], state, width, brief=True)

    return draw


Row = tuple[str, Figures, list[int | None]]


def _rows(window: Window, dimension: str, state: ViewState) -> list[Row]:
    order = state.order if state.order in ORDERS else "trouble"
    figures = window.figures(dimension)
    for name in window.overdue.by_dimension[dimension]:
        figures.setdefault(name, Figures())
    found = rank_figures(figures, order, lambda name: window.overdue.late_ns(dimension, name))
    return [row for row in found if state.filter.lower() in row[0].lower()]


def _figures(
    window: Window,
    dimension: str,
    rows: Sequence[Row],
    state: ViewState,
    width: int,
    *,
    selected: int = -1,
    brief: bool = False,
) -> RenderableType:
    title = ("slowest " if state.order.startswith("p") else "") + _TITLES[dimension]
    sorted_by = {"errors": "err/s", "calls": "calls/s"}.get(state.order, state.order)
    chosen = (sorted_by,) if sorted_by in _FIGURES else ()
    importance = ("name", "late", *chosen, "p95", "calls/s", "err/s", "network", "queue", "p99")
    cells = [
        (
            clean(key),
            in_time(late) if (late := window.overdue.late_ns(dimension, key)) else "",
            f"{found.calls / window.span:,.1f}",
            f"{found.errors / window.span:,.1f}" if found.errors else "",
            *(in_time(value) for value in percentiles),
            *(in_time(found.percentiles((95,), part)[0]) for part in ("queue", "network")),
        )
        for key, found, percentiles in rows
    ]
    styles = ["reverse" if number == selected else "" for number in range(len(cells))]
    grid = Grid(title, ("name", *_FIGURES), cells, importance)
    if not any(row[1] for row in cells):
        grid = without(grid, "late")
    return _table(grid, width, styles, {"late": "bold red", "err/s": "red"}, brief=brief)


def _errors(
    window: Window, state: ViewState, height: int, width: int, *, brief: bool = False
) -> RenderableType:
    """`height`: number of lines, or of rows if `brief`."""
    wanted = state.filter.lower()
    rows = [row for row in window.error_counts().most_common() if wanted in " ".join(row[0]).lower()]
    cells = [
        (clean(error), clean(api), clean(about), f"{number:,}")
        for (error, api, about), number in rows[: height if brief else max(height - _HEAD_LINES, 1)]
    ]
    grid = Grid("errors", ("error", "api", "about", "count"), cells, ("error", "count", "about"))
    return _table(grid, width, styles={"error": "red"}, brief=brief)


def _failures(window: Window, state: ViewState, height: int, width: int) -> RenderableType:
    """Errors by code, by client and by broker, with equal space; on a low terminal only by code and
    client."""
    wanted = state.filter.lower()
    grids = list(failure_grids(window.failures().as_dict(), "errors"))
    parts = max(min(len(grids) + 1, (height + 1) // (_HEAD_LINES + 1 + _LEAST_ROWS)), 1)
    room = (height - (parts - 1)) // parts
    drawn: list[RenderableType] = [_errors(window, state, room, width)]
    for grid in grids[: parts - 1]:
        rows = [row for row in grid.rows if wanted in " ".join(row).lower()]
        title = grid.title.partition(",")[0]  # in one line
        part = grid._replace(title=title, rows=rows[: max(room - _HEAD_LINES, 1)])
        drawn += ["", _table(part, width, styles={"error": "red"})]
    return Group(*drawn)


def _rebalances(
    window: Window, state: ViewState, height: int, width: int, *, brief: bool = False
) -> RenderableType:
    """`height`: number of lines, or of rows if `brief`."""
    rows = [row for row in window.rebalances if state.filter.lower() in str(row["group_id"]).lower()]
    cells = [
        (
            clean(row["group_id"]),
            state.zone.clock(row["end_time"], 0),
            str(row["reason"] or ""),
            str(row["member_count"]),
            in_time(row["duration_ns"]),
        )
        for row in rows[::-1][: height if brief else max(height - _HEAD_LINES, 1)]
    ]
    names = ("group", "end", "reason", "members", "took")
    return _table(Grid("rebalances", names, cells, ("group", "took", "reason", "end")), width, brief=brief)


def _calls(window: Window, state: ViewState, height: int, width: int) -> RenderableType:
    title = "last calls" + (f" of {state.drill[0]} {clean(state.drill[1])}" if state.drill else "")
    wanted = {state.drill[0]: state.drill[1]} if state.drill else {}
    room = max(height - _HEAD_LINES, 1)
    rows: list[tuple[str, ...]] = []
    styles: list[str] = []
    for call in window.last_calls(_MOST_CALLS if state.filter else room, **wanted):
        cells = _call_cells(call, state)
        if state.filter.lower() in " ".join(cells).lower() and len(rows) < room:
            rows.append(cells)
            styles.append("red" if call["error_count"] or call["status"] == "unanswered" else "")
    names = ("time", "client", "broker", "call", "about", "outcome", "latency")
    importance = ("client", "call", "latency", "about", "outcome", "time")
    return _table(Grid(title, names, rows, importance), width, styles)


def _call_cells(call: dict[str, Any], state: ViewState) -> tuple[str, ...]:
    about = ", ".join(call["topics"] or ()) or call["group_id"] or ""
    outcome = call["error_name"] if call["error_count"] else call["reason"] or call["status"]
    cells = (
        "" if call["request_time"] is None else state.zone.clock(call["request_time"] * 1000),
        call["client_id"],
        f"{call['broker_address']}:{call['broker_port']}",
        f"{call['api_name'] or '?'} {'' if call['api_version'] is None else call['api_version']}",
        about,
        "" if outcome == "answered" else outcome,
        in_time(call["latency_ns"]),
    )
    return tuple(map(clean, cells))


def _table(
    grid: Grid,
    width: int,
    row_styles: Sequence[str] = (),
    styles: Mapping[str, str] | None = None,
    *,
    brief: bool = False,
) -> Table:
    """The columns that fit. Names stay whole if possible; other words may be shortened to a third.
    `brief`: the title replaces the first column's name, without a rule."""
    first = grid.importance[0]
    most = max(width // 3, _LEAST_WORD)
    cut = [
        tuple(
            cell if name in (first, "error", *_NUMBERS) else shorten(cell, most, cell_len)
            for name, cell in zip(grid.names, row, strict=True)
        )
        for row in grid.rows
    ]
    names = (grid.title, *grid.names[1:]) if brief else grid.names
    head = tuple(name.rjust(_LEAST_NUMBER) if name in _NUMBERS else name for name in names)
    renamed = dict(zip(grid.names, head, strict=True))
    sized = Grid(grid.title, head, cut, tuple(renamed[name] for name in grid.importance))
    widths = widths_in(sized, width, cell_len)
    spare = width - sum(widths.values()) - 2 * (len(widths) - 1)
    widths[renamed[first]] += max(spare, 0)
    table = Table(
        title=None if brief else Text(grid.title), title_justify="left", title_style="bold",
        box=None if brief else box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False,
        header_style="bold underline" if brief else "bold",
    )  # fmt: skip
    places = [(at, name) for at, name in enumerate(head) if name in widths]
    for at, column in places:
        justify: JustifyMethod = "right" if grid.names[at] in _NUMBERS else "left"
        table.add_column(names[at], justify=justify, no_wrap=True, width=widths[column])
    for number, row in enumerate(cut):
        # Text: neither the terminal nor rich interprets its content.
        cells = (
            Text(shorten(row[at], widths[name], cell_len), (styles or {}).get(grid.names[at], ""))
            for at, name in places
        )
        table.add_row(*cells, style=row_styles[number] if row_styles else "")
    return table


def _connections(window: Window, state: ViewState, height: int, width: int) -> RenderableType:
    """Open connections of any protocol: endpoints, protocol, round trip, retransmissions, bytes."""
    rows = []
    for row in window.connections:
        version = f" {row['tls_version']}" if row["tls_version"] else ""
        software = f"{row['client_software_name'] or ''} {row['client_software_version'] or ''}".strip()
        records = [row["client_tls_records"], row["broker_tls_records"]]
        trip = max(row["client_round_trip_ns"] or 0, row["broker_round_trip_ns"] or 0)
        again = row["client_retransmitted_bytes"] + row["broker_retransmitted_bytes"]
        cells = (
            endpoint(row["client_address"], row["client_port"]),
            endpoint(row["broker_address"], row["broker_port"]),
            f"{row['protocol']}{version}",
            clean(row["client_id"] or row["tls_server_name"]),
            clean(software or row["tls_cipher"]),
            in_time(trip) if trip else "",
            in_bytes(again) if again else "",
            in_bytes(row["client_bytes"]),
            in_bytes(row["broker_bytes"]),
            "" if None in records else f"{records[0]:,} / {records[1]:,}",
        )
        if state.filter.lower() in " ".join(cells).lower():
            rows.append(cells)
    names = ("peer", "broker", "carries", "name", "software", "way", "again", "sent", "received", "records")
    importance = ("peer", "carries", "name", "way", "again", "received", "sent", "broker", "records")
    title = f"open connections ({len(rows):,})"
    return _table(Grid(title, names, rows[: max(height - _HEAD_LINES, 1)], importance), width)


_WITHOUT_FIGURES = {
    "overview": _overview, "errors": _failures, "rebalances": _rebalances, "connections": _connections,
    "calls": _calls,
}  # fmt: skip
