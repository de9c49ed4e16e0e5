"""The pages of the live view, as rich tables. Texts from the wire are cleaned before they reach the
terminal."""

import time
from collections.abc import Iterable, Sequence
from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from kwsniff.cli.live_state import ORDERS, PAGES, ViewState
from kwsniff.cli.texts import clean, in_time
from kwsniff.live.session import Progress
from kwsniff.live.window import Figures, Window, ranked

_TITLES = {
    "apis": "APIs", "topics": "topics", "clients": "clients", "brokers": "brokers",
    "errors": "errors", "rebalances": "rebalances", "calls": "last calls",
}  # fmt: skip
_MOST_CALLS = 200
_SHARES = {"error": 4, "outcome": 3, "about": 3, "broker": 3, "reason": 3, "time": 2, "end": 1}

HELP = (
    ("o, 1 to 7", "overview, APIs, topics, clients, brokers, errors, rebalances, last calls; Tab: the next"),
    ("s, S", "sort by calls, errors, p50, p95, p99, name"),
    ("/", "show only what contains a text; Enter keeps it, Esc clears it"),
    ("up, down, Enter", "choose an API, topic, client or broker and see its last calls; Esc: back"),
    ("p or space", "hold the picture; capturing and writing go on"),
    ("q or Ctrl-C", "end"),
)


def header(window: Window, progress: Progress, about: str, state: ViewState) -> RenderableType:
    """What is captured, rates, what waits, what was lost."""
    apis = window.figures("apis")
    calls = sum(found.calls for found in apis.values())
    errors = sum(found.errors for found in apis.values())
    dropped = progress.dropped_by_kernel
    first = Text.assemble(("kwsniff live  ", "bold"), about)
    if state.paused:
        first.append("  PAUSED", "bold yellow")
    if state.filter or state.typing:
        first.append(f"  filter: {clean(state.filter)}{'_' if state.typing else ''}", "cyan")
    waited = progress.oldest_wait_ns
    second = Text.assemble(
        (f"{calls / window.span:,.1f} calls/s", "bold"),
        "  ",
        (f"{errors / window.span:,.1f} errors/s", "bold red" if errors else ""),
        f"  waiting {progress.waiting_calls:,}",
        f" (oldest {in_time(waited)})" if waited else "",
        f"  unanswered {window.unanswered:,}",
        ("  dropped " + ("at end" if dropped is None else f"{dropped:,}"), "bold red" if dropped else ""),
        (f"  not captured {window.not_captured:,}", "red" if window.not_captured else ""),
    )
    first.append(f"  {window.calls:,} calls, {window.errors:,} with errors, {progress.packets:,} packets")
    first.no_wrap = second.no_wrap = True
    return Group(first, second, "")


def footer(state: ViewState) -> RenderableType:
    """Which page, and the keys."""
    pages = "  ".join(
        f"[{name}]" if name == state.page else f"{number or 'o'} {name}" for number, name in enumerate(PAGES)
    )
    return Text(f"{pages}   s sort: {state.order}  / filter  p pause  ? help  q quit", "dim", no_wrap=True)


def page(window: Window, state: ViewState, height: int) -> RenderableType:
    """The part between header and footer, in so many lines; puts the keys of its rows into `state`."""
    if state.help:
        return _grid("keys", ("key", "what it does"), HELP)
    if state.drill or state.page in _WITHOUT_FIGURES:
        state.rows = []
        draw = _calls if state.drill else _WITHOUT_FIGURES[state.page]
        return draw(window, state, height)
    rows = _rows(window, state.page, state)
    state.rows = [key for key, _, _ in rows]
    state.selected = min(state.selected, max(len(rows) - 1, 0))
    top = max(state.selected - (height - 4), 0)
    return _figures(window, state.page, rows[top : top + height - 3], state, state.selected - top)


def _overview(window: Window, state: ViewState, height: int) -> RenderableType:
    room = max((height - 11) // 3, 3)
    grid = Table.grid(expand=True, padding=(0, 1))
    grid.add_column(ratio=1)
    grid.add_column(ratio=1)
    slow = ViewState(order="p95", filter=state.filter)
    grid.add_row(
        _figures(window, "apis", _rows(window, "apis", state)[:room], state),
        _figures(window, "topics", _rows(window, "topics", slow)[:room], slow),
    )
    grid.add_row("", "")
    grid.add_row(
        _figures(window, "clients", _rows(window, "clients", state)[:room], state),
        _figures(window, "brokers", _rows(window, "brokers", state)[:room], state),
    )
    grid.add_row("", "")
    grid.add_row(_errors(window, state, room + 3), _rebalances(window, state, room + 3))
    return grid


Row = tuple[str, Figures, list[int | None]]


def _rows(window: Window, dimension: str, state: ViewState) -> list[Row]:
    order = state.order if state.order in ORDERS else "calls"
    return [row for row in ranked(window.figures(dimension), order) if state.filter.lower() in row[0].lower()]


def _figures(
    window: Window, dimension: str, rows: Sequence[Row], state: ViewState, selected: int = -1
) -> RenderableType:
    title = ("slowest " if state.order.startswith("p") else "") + _TITLES[dimension]
    table = _table(title, ("name",), ("calls/s", "err/s", "p50", "p95", "p99"))
    for number, (key, found, percentiles) in enumerate(rows):
        table.add_row(
            _plain(key),
            f"{found.calls / window.span:,.1f}",
            Text(f"{found.errors / window.span:,.1f}", "red") if found.errors else "",
            *(in_time(value) for value in percentiles),
            style="reverse" if number == selected else "",
        )
    return table


def _errors(window: Window, state: ViewState, height: int) -> RenderableType:
    table = _table("errors", ("error", "api", "about"), ("count",))
    wanted = state.filter.lower()
    rows = [row for row in window.error_counts().most_common() if wanted in " ".join(row[0]).lower()]
    for (error, api, about), number in rows[: max(height - 3, 1)]:
        table.add_row(Text(clean(error), "red"), api, _plain(about), f"{number:,}")
    return table


def _rebalances(window: Window, state: ViewState, height: int) -> RenderableType:
    table = _table("rebalances", ("end", "group", "reason"), ("members", "took"))
    rows = [row for row in window.rebalances if state.filter.lower() in str(row["group_id"]).lower()]
    for row in rows[::-1][: max(height - 3, 1)]:
        ended = row["end_time"]
        table.add_row(
            f"{ended:%H:%M:%S}" if ended else "",
            _plain(row["group_id"]),
            str(row["reason"] or ""),
            str(row["member_count"]),
            in_time(row["duration_ns"]),
        )
    return table


def _calls(window: Window, state: ViewState, height: int) -> RenderableType:
    title = Text("last calls")
    if state.drill:
        title.append(f" of {state.drill[0]} {clean(state.drill[1])}")
    table = _table(title, ("time", "client", "broker", "call", "about", "outcome"), ("latency",))
    wanted = {state.drill[0]: state.drill[1]} if state.drill else {}
    shown = 0
    for call in window.last_calls(_MOST_CALLS if state.filter else max(height - 3, 1), **wanted):
        cells = _call_cells(call)
        if state.filter.lower() in " ".join(map(str, cells)).lower() and shown < height - 3:
            shown += 1
            table.add_row(
                *cells, style="red" if call["error_count"] or call["status"] == "unanswered" else ""
            )
    return table


def _call_cells(call: dict[str, Any]) -> tuple[Text, ...]:
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
    return tuple(map(_plain, cells))


def clock(microseconds: int | None) -> str:
    """Local time of day with milliseconds."""
    if microseconds is None:
        return ""
    seconds, fraction = divmod(microseconds, 1_000_000)
    return f"{time.strftime('%H:%M:%S', time.localtime(seconds))}.{fraction // 1000:03}"


def _plain(text: str | None) -> Text:
    """A text from the wire: nothing in it is an order to the terminal, or to rich."""
    return Text(clean(text))


def _table(title: str | Text, words: Iterable[str], numbers: Iterable[str]) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, expand=True)
    table.pad_edge = table.show_edge = False
    for name in words:
        table.add_column(name, no_wrap=True, overflow="ellipsis", ratio=_SHARES.get(name, 2))
    for name in numbers:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def _grid(title: str, names: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    table = _table(title, names, ())
    for row in rows:
        table.add_row(*row)
    return table


_WITHOUT_FIGURES = {"overview": _overview, "errors": _errors, "rebalances": _rebalances, "calls": _calls}
