"""Text tables in a given width: no longer line, no broken word, and names stay.

Columns that do not fit are left out, the least important first; before the more important columns go, a
sentence is wrapped at spaces. A name is shortened in its middle only if it and one figure do not fit.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

_INDENT: Final = "  "
_GAP: Final = "  "
_CUT: Final = "…"
_LEAST_NAME: Final = 16

# Aligned right.
_NUMBERS: Final = frozenset(
    {"count", "calls", "errors", "unanswered", "p50", "p95", "p99", "mean", "max", "connections", "longest"}
    | {"rebalances", "transactions", "throttled", "sum", "share"}
)
# Cells of several words, which may wrap between words.
_SENTENCES: Final = frozenset(
    {"meaning", "reason", "reasons", "outcomes", "mostly", "apis", "partitions", "software", "what it does"}
)

Measure = Callable[[str], int]


class Grid(NamedTuple):
    """A table on the screen. `importance`: names of columns, most important first, then the rest in order.
    `title_without`: another title for when a column is left out."""

    title: str
    names: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    importance: tuple[str, ...] = ()
    title_without: str | None = None


class Prose(NamedTuple):
    """Sentences below a grid: wrapped in the width of the terminal, or in a common width elsewhere."""

    text: str

    def lines(self, width: int = 78, measure: Measure = len) -> list[str]:
        """The text with the indent of a grid, in lines within the width."""
        return [_INDENT + line for line in wrap(self.text, width - len(_INDENT), measure)]


class Fitted(NamedTuple):
    """A table as lines; the first is the header. `left_out`: names of columns that did not fit."""

    title: str
    lines: list[str]
    left_out: list[str]


def plain(grid: Grid) -> Iterator[str]:
    """The lines of a table at full width, one line per row."""
    widths = {name: _natural(grid, name, len) for name in grid.names}
    yield from _lines(grid, widths, len)


def fit(grid: Grid, width: int, measure: Measure = len) -> Fitted:
    """The table in a width. `measure`: number of terminal cells a text takes."""
    widths = widths_in(grid, width - len(_INDENT), measure)
    left_out = [name for name in grid.names if name not in widths]
    title = grid.title_without if left_out and grid.title_without else grid.title
    return Fitted(title, list(_lines(grid, widths, measure)), left_out)


def without(grid: Grid, name: str) -> Grid:
    """The same table without one of its columns."""
    at = grid.names.index(name)
    rows = [(*row[:at], *row[at + 1 :]) for row in grid.rows]
    names, importance = (
        tuple(each for each in some if each != name) for some in (grid.names, grid.importance)
    )
    return Grid(grid.title, names, rows, importance, grid.title_without)


def widths_in(grid: Grid, room: int, measure: Measure = len) -> dict[str, int]:
    """Widths by name of the columns that fit, with two spaces between columns."""
    order = sorted(grid.names, key=(*grid.importance, *grid.names).index)
    natural = {name: _natural(grid, name, measure) for name in order}
    last = max((at for at, name in enumerate(order) if name in _SENTENCES), default=-1)
    for kept in range(len(order), max(last, 1), -1):
        if _total({name: natural[name] for name in order[:kept]}) <= room:
            return {name: natural[name] for name in order[:kept]}
    least = {name: _least(grid, name, measure) if name in _SENTENCES else natural[name] for name in order}
    while _total(least) > room and len(least) > 2:
        least.popitem()
    if _total(least) > room:
        first = order[0]
        others = _total(least) - least[first]
        if room - others < _LEAST_NAME:
            least, others = {first: least[first]}, 0
        least[first] = min(least[first], max(room - others, 1))
    spare = room - _total(least)
    for name in least:
        more = min(natural[name] - least[name], spare) if name in _SENTENCES else 0
        least[name] += more
        spare -= more
    return least


def _total(widths: dict[str, int]) -> int:
    return sum(widths.values()) + len(_GAP) * (len(widths) - 1)


def _natural(grid: Grid, name: str, measure: Measure) -> int:
    return max(map(measure, _cells(grid, name)))


def _least(grid: Grid, name: str, measure: Measure) -> int:
    return max(measure(word) for cell in _cells(grid, name) for word in cell.split() or [""])


def _cells(grid: Grid, name: str) -> list[str]:
    at = grid.names.index(name)
    return [name, *(row[at] for row in grid.rows)]


def _lines(grid: Grid, widths: dict[str, int], measure: Measure) -> Iterator[str]:
    places = [(at, name) for at, name in enumerate(grid.names) if name in widths]
    for row in (grid.names, *grid.rows):
        wrapped = [wrap(row[at], widths[name], measure) for at, name in places]
        for number in range(max(map(len, wrapped))):
            cells = []
            for (_, name), pieces in zip(places, wrapped, strict=True):
                text = pieces[number] if number < len(pieces) else ""
                padding = " " * (widths[name] - measure(text))
                cells.append(padding + text if name in _NUMBERS else text + padding)
            yield f"{_INDENT}{_GAP.join(cells)}".rstrip()


def wrap(text: str, width: int, measure: Measure = len, indent: str = "") -> list[str]:
    """Lines of a text, broken at spaces; a word longer than a line is shortened in its middle. All lines but
    the first begin with `indent`."""
    if measure(text) <= width:
        return [text]
    lines = []
    line = text[: len(text) - len(text.lstrip())]
    begun = False
    for word in text.split():
        short = shorten(word, width - len(indent), measure)
        if not begun:
            line += short
        elif measure(line) + 1 + measure(short) <= width:
            line += f" {short}"
        else:
            lines.append(line)
            line = indent + short
        begun = True
    return [*lines, line]


def shorten(text: str, width: int, measure: Measure = len) -> str:
    """A text shortened in its middle to fit."""
    if measure(text) <= width:
        return text
    kept = max(width - 1, 0)
    while kept > 0:
        cut = text[: kept - kept // 2] + _CUT + (text[-(kept // 2) :] if kept // 2 else "")
        if measure(cut) <= width:
            return cut
        kept -= 1
    return _CUT[:width]
