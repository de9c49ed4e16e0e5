"""The pages of the live view, as rich tables. Texts from the wire are cleaned before they reach the
terminal."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rich import box
from rich.cells import cell_len
from rich.console import Group, JustifyMethod, RenderableType
from rich.table import Table
from rich.text import Text

from kwsniff.cli.failures import failure_grids
from kwsniff.cli.grids import Grid, fitted, shortened, widths_in
from kwsniff.cli.live_lines import in_short, pressing
from kwsniff.cli.live_state import ORDERS, PAGES, ViewState
from kwsniff.live.session import Progress
from kwsniff.live.watch import Held
from kwsniff.live.window import Figures, Window, ranked
from kwsniff.texts import clean, in_time

_TITLES = {
    "apis": "APIs", "topics": "topics", "clients": "clients", "brokers": "brokers",
    "errors": "errors", "rebalances": "rebalances", "calls": "last calls",
}  # fmt: skip
_MOST_CALLS = 200
_MOST_WRONG = 3
_HEAD_LINES = 3  # of a table: its title, the names of its columns, a rule
_FIGURES = ("calls/s", "err/s", "p50", "p95", "p99")
_NUMBERS = frozenset((*_FIGURES, "count", "share", "members", "took", "latency"))
_LEAST_NUMBER = 7  # so that columns stay where they are while figures change
_LEAST_WORD = 16
_LEAST_ROWS = 4  # of one of several tables

HELP = (
    ("o, 1 to 7", "overview, APIs, topics, clients, brokers, errors, rebalances, last calls; Tab: the next"),
    ("s, S", "sort by calls, errors, p50, p95, p99, name"),
    ("/", "show only what contains a text; Enter keeps it, Esc clears it"),
    ("up, down, Enter", "choose an API, topic, client or broker and see its last calls; Esc: back"),
    ("p or space", "hold the picture; capturing and writing go on"),
    ("q or Ctrl-C", "end"),
)


def header(window: Window, progress: Progress, about: str, state: ViewState, width: int) -> RenderableType:
    """What is captured, rates, what waits, what was lost: two lines; what is wrong; an empty line."""
    apis = window.figures("apis")
    calls = sum(found.calls for found in apis.values())
    errors = sum(found.errors for found in apis.values())
    dropped = progress.dropped_by_kernel
    typed = f"filter: {clean(state.filter)}{'_' if state.typing else ''}"
    first = [
        ("kwsniff live", "bold"),
        ("PAUSED" if state.paused else "", "bold yellow"),
        (typed if state.filter or state.typing else "", "cyan"),
        *((part, "") for part in about.split("  ")),
        (f"{window.calls:,} calls, {window.errors:,} with errors, {progress.packets:,} packets", ""),
    ]
    waited = progress.oldest_wait_ns
    second = [
        (f"{calls / window.span:,.1f} calls/s", "bold"),
        (f"{errors / window.span:,.1f} errors/s", "bold red" if errors else ""),
        ("dropped " + ("at end" if dropped is None else f"{dropped:,}"), "bold red" if dropped else ""),
        (f"waiting {progress.waiting_calls:,}", ""),
        (f"(oldest {in_time(waited)})" if waited else "", ""),
        (f"unanswered {window.unanswered:,}", ""),
        (f"not captured {window.not_captured:,}" if window.not_captured else "", "red"),
    ]
    return Group(_fitting(first, width), _fitting(second, width), *wrong(window, width), "")


def wrong(window: Window, width: int) -> list[Text]:
    """What holds now, a line each: the worst few."""
    held = pressing(window.held)
    lines = [_wrong(each, width) for each in held[:_MOST_WRONG]]
    if len(held) > _MOST_WRONG:
        lines[-1] = _fitting(
            [(f"and {len(held) - _MOST_WRONG + 1} more", "bold"), ("`kwsniff why` tells all", "dim")], width
        )
    return lines


def _wrong(held: Held, width: int) -> Text:
    style = {"problem": "bold red", "warning": "bold yellow"}[held.finding.severity]
    line = Text(in_short(held), style, no_wrap=True)
    line.append(f"  {clean(held.finding.text)}", "default")
    line.truncate(width, overflow="ellipsis")
    return line


def _fitting(parts: Iterable[tuple[str, str]], width: int) -> Text:
    """Parts, two spaces between them, as far as they fit; none is cut but the first."""
    line = Text(no_wrap=True)
    for text, style in parts:
        gap = " " if text.startswith("(") else "  " if line else ""
        if text and line.cell_len + len(gap) + cell_len(text) <= width:
            line.append(gap)
            line.append(text, style)
    return line


def footer(state: ViewState, width: int) -> Text:
    """Which page, and the keys: in one line, or in two."""
    names = [f"[{name}]" if name == state.page else f"{key or 'o'} {name}" for key, name in enumerate(PAGES)]
    keys = f"s sort: {state.order}  / filter  p pause  ? help  q quit"
    for pages in ("  ".join(names), " ".join(names), f"[{state.page}]  o, 1 to 7, Tab: other pages"):
        if len(pages) + 3 + len(keys) <= width:
            return Text(f"{pages}   {keys}", "dim", no_wrap=True)
        if len(pages) <= width:
            return Text(f"{pages}\n{keys}", "dim", no_wrap=True)
    return Text(keys, "dim", no_wrap=True)


def page(window: Window, state: ViewState, height: int, width: int) -> RenderableType:
    """The part between header and footer, in so many lines; puts the keys of its rows into `state`."""
    if state.help:
        return Text("\n".join(["keys", *fitted(Grid("keys", ("key", "what it does"), HELP), width).lines]))
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
    """Two tables beside each other, in three bands or, where they would be of a row each, in two."""
    bands = 3 if height >= 3 * (_HEAD_LINES + 2) + 2 else 2
    loose = height >= 30
    room = max((height - loose * (bands - 1)) // bands - _HEAD_LINES, 1)
    slow = ViewState(order="p95", filter=state.filter)

    def figures(dimension: str, how: ViewState) -> Drawer:
        return lambda wide: _figures(window, dimension, _rows(window, dimension, how)[:room], how, wide)

    def errors(wide: int) -> RenderableType:
        return _errors(window, state, room + _HEAD_LINES, wide)

    def rebalances(wide: int) -> RenderableType:
        return _rebalances(window, state, room + _HEAD_LINES, wide)

    half = (width - 2) // 2
    names = [cell_len(error) for (error, _, _), _ in window.error_counts().most_common(room)]
    # Names of errors are longer than others.
    wide = max(half, min(max(names, default=0) + _LEAST_NUMBER + 2, width - half // 4 * 3))
    drawn = [_beside(figures("apis", state), figures("topics", slow), half, width)]
    if bands == 2:
        drawn.append(_beside(figures("clients", state), errors, width - 2 - wide, width))
    else:
        drawn.append(_beside(figures("clients", state), figures("brokers", state), half, width))
        drawn.append(_beside(errors, rebalances, wide, width))
    parts: list[RenderableType] = []
    for band in drawn:
        parts += ["", band] if loose and parts else [band]
    return Group(*parts)


Drawer = Callable[[int], RenderableType]


def _beside(left: Drawer, right: Drawer, left_width: int, width: int) -> Table:
    grid = Table.grid(padding=(0, 1), pad_edge=False)
    right_width = max(width - left_width - 2, 1)
    grid.add_column(width=max(left_width, 1))
    grid.add_column(width=right_width)
    grid.add_row(left(left_width), right(right_width))
    return grid


Row = tuple[str, Figures, list[int | None]]


def _rows(window: Window, dimension: str, state: ViewState) -> list[Row]:
    order = state.order if state.order in ORDERS else "calls"
    return [row for row in ranked(window.figures(dimension), order) if state.filter.lower() in row[0].lower()]


def _figures(
    window: Window, dimension: str, rows: Sequence[Row], state: ViewState, width: int, *, selected: int = -1
) -> RenderableType:
    title = ("slowest " if state.order.startswith("p") else "") + _TITLES[dimension]
    sorted_by = {"errors": "err/s", "calls": "calls/s"}.get(state.order, state.order)
    importance = ("name", *((sorted_by,) if sorted_by in _FIGURES else ()), "calls/s", "p95", "err/s", "p99")
    cells = [
        (
            clean(key),
            f"{found.calls / window.span:,.1f}",
            f"{found.errors / window.span:,.1f}" if found.errors else "",
            *(in_time(value) for value in percentiles),
        )
        for key, found, percentiles in rows
    ]
    styles = ["reverse" if number == selected else "" for number in range(len(cells))]
    return _table(Grid(title, ("name", *_FIGURES), cells, importance), width, styles, {"err/s": "red"})


def _errors(window: Window, state: ViewState, height: int, width: int) -> RenderableType:
    wanted = state.filter.lower()
    rows = [row for row in window.error_counts().most_common() if wanted in " ".join(row[0]).lower()]
    cells = [
        (clean(error), clean(api), clean(about), f"{number:,}")
        for (error, api, about), number in rows[: max(height - _HEAD_LINES, 1)]
    ]
    grid = Grid("errors", ("error", "api", "about", "count"), cells, ("error", "count", "about"))
    return _table(grid, width, styles={"error": "red"})


def _failures(window: Window, state: ViewState, height: int, width: int) -> RenderableType:
    """Errors by what, by client and by broker, each with the same room; in a low window what and client."""
    wanted = state.filter.lower()
    grids = list(failure_grids(window.failures().as_dict(), "errors"))
    parts = max(min(len(grids) + 1, (height + 1) // (_HEAD_LINES + 1 + _LEAST_ROWS)), 1)
    room = (height - (parts - 1)) // parts
    drawn: list[RenderableType] = [_errors(window, state, room, width)]
    for grid in grids[: parts - 1]:
        rows = [row for row in grid.rows if wanted in " ".join(row).lower()]
        title = grid.title.partition(",")[0]  # in one line
        part = replace(grid, title=title, rows=rows[: max(room - _HEAD_LINES, 1)])
        drawn += ["", _table(part, width, styles={"error": "red"})]
    return Group(*drawn)


def _rebalances(window: Window, state: ViewState, height: int, width: int) -> RenderableType:
    rows = [row for row in window.rebalances if state.filter.lower() in str(row["group_id"]).lower()]
    cells = [
        (
            f"{row['end_time']:%H:%M:%S}" if row["end_time"] else "",
            clean(row["group_id"]),
            str(row["reason"] or ""),
            str(row["member_count"]),
            in_time(row["duration_ns"]),
        )
        for row in rows[::-1][: max(height - _HEAD_LINES, 1)]
    ]
    importance = ("group", "took", "reason", "end")
    return _table(Grid("rebalances", ("end", "group", "reason", "members", "took"), cells, importance), width)


def _calls(window: Window, state: ViewState, height: int, width: int) -> RenderableType:
    title = "last calls" + (f" of {state.drill[0]} {clean(state.drill[1])}" if state.drill else "")
    wanted = {state.drill[0]: state.drill[1]} if state.drill else {}
    room = max(height - _HEAD_LINES, 1)
    rows: list[tuple[str, ...]] = []
    styles: list[str] = []
    for call in window.last_calls(_MOST_CALLS if state.filter else room, **wanted):
        cells = _call_cells(call)
        if state.filter.lower() in " ".join(cells).lower() and len(rows) < room:
            rows.append(cells)
            styles.append("red" if call["error_count"] or call["status"] == "unanswered" else "")
    names = ("time", "client", "broker", "call", "about", "outcome", "latency")
    importance = ("client", "call", "latency", "about", "outcome", "time")
    return _table(Grid(title, names, rows, importance), width, styles)


def _call_cells(call: dict[str, Any]) -> tuple[str, ...]:
    about = ", ".join(call["topics"] or ()) or call["group_id"] or ""
    outcome = call["error_name"] if call["error_count"] else call["reason"] or call["status"]
    cells = (
        clock(call["request_time"]),
        call["client_id"],
        f"{call['broker_address']}:{call['broker_port']}",
        f"{call['api_name'] or '?'} {'' if call['api_version'] is None else call['api_version']}",
        about,
        "" if outcome == "answered" else outcome,
        in_time(call["latency_ns"]),
    )
    return tuple(map(clean, cells))


def clock(microseconds: int | None) -> str:
    """Local time of day with milliseconds."""
    if microseconds is None:
        return ""
    seconds, fraction = divmod(microseconds, 1_000_000)
    return f"{time.strftime('%H:%M:%S', time.localtime(seconds))}.{fraction // 1000:03}"


def _table(
    grid: Grid,
    width: int,
    row_styles: Sequence[str] = (),
    styles: Mapping[str, str] | None = None,
) -> Table:
    """The columns there is room for. Names are whole where they can be; other words may be cut to a third."""
    first = grid.importance[0]
    most = max(width // 3, _LEAST_WORD)
    cut = [
        tuple(
            cell if name in (first, "error", *_NUMBERS) else shortened(cell, most, cell_len)
            for name, cell in zip(grid.names, row, strict=True)
        )
        for row in grid.rows
    ]
    head = tuple(name.rjust(_LEAST_NUMBER) if name in _NUMBERS else name for name in grid.names)
    renamed = dict(zip(grid.names, head, strict=True))
    sized = Grid(grid.title, head, cut, tuple(renamed[name] for name in grid.importance))
    widths = widths_in(sized, width, cell_len)
    spare = width - sum(widths.values()) - 2 * (len(widths) - 1)
    widths[renamed[first]] += max(spare, 0)
    table = Table(
        title=Text(grid.title), title_justify="left", title_style="bold", box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0), pad_edge=False, show_edge=False,
    )  # fmt: skip
    places = [(at, name) for at, name in enumerate(head) if name in widths]
    for at, name in places:
        justify: JustifyMethod = "right" if grid.names[at] in _NUMBERS else "left"
        table.add_column(grid.names[at], justify=justify, no_wrap=True, width=widths[name])
    for number, row in enumerate(cut):
        # Text: nothing in it is an order to the terminal, or to rich.
        cells = (
            Text(shortened(row[at], widths[name], cell_len), (styles or {}).get(grid.names[at], ""))
            for at, name in places
        )
        table.add_row(*cells, style=row_styles[number] if row_styles else "")
    return table


_WITHOUT_FIGURES = {"overview": _overview, "errors": _failures, "rebalances": _rebalances, "calls": _calls}
