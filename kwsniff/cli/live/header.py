"""Header and footer of the live view: the capture, current problems, and the keys."""

from collections.abc import Iterable

from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.text import Text

from kwsniff.cli.live.lines import in_short, in_words, overdue_words, pressing
from kwsniff.cli.live.model import PAGES, ViewState
from kwsniff.live.connections import not_opened_words
from kwsniff.live.findings import CurrentFinding
from kwsniff.live.session import Progress
from kwsniff.live.window import Window
from kwsniff.texts import clean, in_time, plural
from kwsniff.zones import UTC_ZONE, Zone

_MOST_WRONG = 3
_MOST_GROUPS = 2
_STYLES = {"problem": "bold red", "warning": "bold magenta"}


def header(window: Window, progress: Progress, about: str, state: ViewState, width: int) -> RenderableType:
    """Two lines with the capture, rates, calls in flight and losses; current problems; an empty line."""
    brokers = window.figures("brokers")
    calls = sum(found.calls for found in brokers.values())
    errors = sum(found.errors for found in brokers.values())
    dropped = progress.dropped_by_kernel
    typed = f"filter: {clean(state.filter)}{'_' if state.typing else ''}"
    first = [
        ("kwsniff live", "bold"),
        ("PAUSED" if state.paused else "", "bold magenta"),
        (typed if state.filter or state.typing else "", "bold blue"),
        *((part, "") for part in about.split("  ")),
        (state.zone.moment(int(window.clock() * 1e9), 0), ""),
        (f"{window.calls:,} calls, {window.errors:,} with errors, {progress.packets:,} packets", ""),
    ]
    waited = progress.oldest_wait_ns
    second = [
        (f"{calls / window.span:,.1f} calls/s", "bold"),
        (f"{errors / window.span:,.1f} errors/s", "bold red" if errors else ""),
        (f"waiting {progress.waiting_calls:,}", ""),
        (f"(oldest {in_time(waited)})" if waited else "", ""),
        (_describe_drops(dropped, about), "bold red" if dropped else ""),
        (f"unanswered {window.unanswered:,}", ""),
        (f"not captured {window.not_captured:,}" if window.not_captured else "", "red"),
    ]
    return Group(_fitting(first, width), _fitting(second, width), *wrong(window, width, state.zone), "")


def _describe_drops(dropped: int | None, about: str) -> str:
    if dropped is not None:
        return f"dropped {dropped:,}"
    return "drops known at end" if " through " in about else ""


def wrong(window: Window, width: int, zone: Zone = UTC_ZONE) -> list[Text]:
    """Overdue responses, groups in a rebalance, and other current findings, a line each: the worst few."""
    lines = []
    if words := overdue_words(window.overdue):
        lines.append(_line("LATE", words, "bold red", width))
    groups = [in_words(each, window.overdue.now) for each in window.under_way[:_MOST_GROUPS]]
    if len(window.under_way) > _MOST_GROUPS:
        groups.append(plural(len(window.under_way) - _MOST_GROUPS, "more group"))
    lines += [_line("REBALANCING", text, "bold magenta", width) for text in groups]
    if sealed := not_opened_words(window.connections):
        lines.append(_line("TLS", sealed, "bold blue", width))
    held = pressing(window.held)
    lines += [_wrong(each, width, zone) for each in held[:_MOST_WRONG]]
    if len(held) > _MOST_WRONG:
        lines[-1] = _fitting(
            [(f"and {len(held) - _MOST_WRONG + 1} more", "bold"), ("`kwsniff why` shows all", "dim")], width
        )
    return lines


def _line(word: str, text: str, style: str, width: int) -> Text:
    line = Text(word, style, no_wrap=True)
    line.append(f"  {text}", "default")
    line.truncate(width, overflow="ellipsis")
    return line


def _wrong(held: CurrentFinding, width: int, zone: Zone) -> Text:
    return _line(in_short(held, zone), clean(held.finding.text), _STYLES[held.finding.severity], width)


def _fitting(parts: Iterable[tuple[str, str]], width: int) -> Text:
    """Parts with two spaces between them, as many as fit; only the first is ever shortened."""
    line = Text(no_wrap=True)
    for text, style in parts:
        gap = " " if text.startswith("(") else "  " if line else ""
        if text and line.cell_len + len(gap) + cell_len(text) <= width:
            line.append(gap)
            line.append(text, style)
    return line


def footer(state: ViewState, width: int) -> Text:
    """The name of the page, and the keys, in one or two lines."""
    names = [f"[{name}]" if name == state.page else f"{key or 'o'} {name}" for key, name in enumerate(PAGES)]
    keys = f"s sort: {state.order}  / filter  p pause  ? help  q quit"
    short = f"s {state.order}  / filter  p pause  ? help  q quit"
    keys = keys if len(keys) <= width else short
    for pages in ("  ".join(names), " ".join(names), f"[{state.page}]  o, 1 to 8, Tab: other pages"):
        if len(pages) + 3 + len(keys) <= width:
            return Text(f"{pages}   {keys}", "dim", no_wrap=True)
        if len(pages) <= width:
            return Text(f"{pages}\n{keys}", "dim", no_wrap=True)
    return Text(keys, "dim", no_wrap=True)
