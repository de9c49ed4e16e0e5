"""Drawings: axes and shapes as HTML with SVG, which any browser shows without a script.

The area stretches with the page: x is in thousandths of its width, y in pixels. Texts are beside it, so that
they keep their size. The tooltip of a shape, or of a region above it, has its figures.

    title
    10 ms |         ##
     1 ms | ##   ## ##
          |____________
          12:01   12:02
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from html import escape
from importlib.resources import files
from typing import Final, Literal, NamedTuple

from kwsniff.report.span import Span

COLOURS: Final = (
    "#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#ee7733", "#009988", "#999999",
)  # fmt: skip
"""Safe for colour-blind readers, on white and on black (Paul Tol's bright scheme)."""
TROUBLE: Final = "#d6404e"
_WIDE: Final = 1000
_TICKS: Final = 4
_TIMES: Final = 5
"""Steps of an axis, at most: more would overlap on a phone."""
_MARGIN: Final = 56
_LETTER: Final = 7
"""Pixels of a letter of a tick, at most."""
_STEPS_MS: Final = (
    *(digit * 10**power for power in range(-3, 3) for digit in (1, 2, 5)),
    *(1000 * each for each in (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800)),
    *(3_600_000 * each for each in (1, 2, 3, 6, 12)),
)
_DAY_MS: Final = 86_400_000

Tick = tuple[float, str]
"""A value and its text."""


class Box(NamedTuple):
    """A rectangle, in values of both axes."""

    left: float
    right: float
    bottom: float
    top: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """Shapes of one colour. `boxes`, or `points` that a line joins, or dots."""

    colour: str
    kind: Literal["boxes", "line", "dots"]
    boxes: Sequence[Box] = ()
    points: Sequence[tuple[float, float]] = ()
    name: str = ""
    """Its part of a bar, or its tooltip."""
    opacity: float = 1.0
    width: float = 2.0
    """Of lines and dots, in pixels."""
    dashed: bool = False


@dataclass(slots=True, kw_only=True)
class Drawing:
    """One area with its axes. `x` and `y`: the values at their ends; heights in pixels."""

    x: tuple[float, float]
    y: tuple[float, float]
    height: int
    title: str = ""
    unit: str = ""
    """Of the y axis."""
    x_ticks: Sequence[Tick] = ()
    y_ticks: Sequence[Tick] = ()
    right_ticks: Sequence[Tick] = ()
    marks: list[Mark] = field(default_factory=list)
    regions: list[tuple[Box, str]] = field(default_factory=list)
    """Boxes with the tooltip that each has."""

    def _repr_html_(self) -> str:
        return Drawings([self]).html

    @property
    def html(self) -> str:
        """An element of a page that has `STYLE`."""
        shown = [f'<b class="title">{escape(self.title)}</b>' if self.title else ""]
        shown.append(f'<i class="unit">{escape(self.unit)}</i>' if self.unit else "")
        shown.append('<div class="area">')
        shown.append(
            f'<svg viewBox="0 0 {_WIDE} {self.height}" preserveAspectRatio="none" aria-hidden="true">'
        )
        shown += [f'<path class="grid" d="M0 {self._down(at)}h{_WIDE}"/>' for at, _ in self.y_ticks]
        shown += map(self._draw, self.marks)
        shown += [
            f'<path class="region" d="{self._path(box)}"><title>{escape(words)}</title></path>'
            for box, words in self.regions
        ]
        shown.append("</svg>")
        for side, ticks in (("left", self.y_ticks), ("right", self.right_ticks)):
            shown += [
                f'<span class="{side}" style="top:{self._down(at)}px">{escape(words)}</span>'
                for at, words in ticks
            ]
        shown += [
            f'<span class="below" style="left:{self._across(at) * 100 / _WIDE:.4g}%">{escape(words)}</span>'
            for at, words in self.x_ticks
        ]
        shown.append("</div>")
        return f'<div class="drawing" style="{self._layout()}">{"".join(shown)}</div>'

    def _layout(self) -> str:
        left, right = (
            max((_LETTER * len(words) + 12 for _, words in ticks), default=least)
            for ticks, least in ((self.y_ticks, _MARGIN), (self.right_ticks, 32))
        )
        above, below = 22 if self.title or self.unit else 6, 22 if self.x_ticks else 6
        sides = f"{above}px {right}px {below}px {max(left, _MARGIN)}px"
        return f"padding:{sides};height:{self.height + above + below}px"

    def _draw(self, mark: Mark) -> str:
        faint = f' opacity="{mark.opacity:g}"' if mark.opacity < 1 else ""
        if mark.kind == "boxes":
            return f'<path fill="{mark.colour}"{faint} d="{"".join(map(self._path, mark.boxes))}"/>'
        places = [f"{self._across(x):g} {self._down(y):g}" for x, y in mark.points]
        path = "".join(f"M{each}h0" for each in places) if mark.kind == "dots" else "M" + "L".join(places)
        dashes = ' stroke-dasharray="6 4"' if mark.dashed else ""
        stroke = f'stroke="{mark.colour}" stroke-width="{mark.width:.3g}"{dashes}{faint}'
        return f'<path class="{mark.kind}" {stroke} d="{path}"><title>{escape(mark.name)}</title></path>'

    def _path(self, box: Box) -> str:
        left, top = self._across(box.left), self._down(box.top)
        wide, tall = self._across(box.right) - left, self._down(box.bottom) - top
        return f"M{left:g} {top:g}h{max(wide, 0.5):.4g}v{max(tall, 0.5):.4g}h{-max(wide, 0.5):.4g}z"

    def _across(self, value: float) -> float:
        first, last = self.x
        share = (value - first) / (last - first or 1)
        return round(_WIDE * min(max(share, 0.0), 1.0), 1)

    def _down(self, value: float) -> float:
        first, last = self.y
        share = (value - first) / (last - first or 1)
        return round(self.height * (1 - min(max(share, 0.0), 1.0)), 1)


STYLE: Final = files("kwsniff.report").joinpath("drawing.css").read_text("utf-8")
"""The style sheet of drawings; without the page's, in the colours of a light page."""


class Drawings(tuple[Drawing, ...]):
    """Drawings below one another. A notebook shows them."""

    __slots__ = ()

    @property
    def html(self) -> str:
        """Elements with their style, for a page of your own."""
        return f"<style>{STYLE}</style>" + "".join(each.html for each in self)

    def _repr_html_(self) -> str:
        return self.html


def timed_drawing(span: Span, height: int, top: float, *, title: str = "", unit: str = "") -> Drawing:
    """A drawing whose x axis is the time of the page, in its zone, and whose y axis goes from 0 to `top`."""
    return Drawing(
        x=(span.first_ms, span.last_ms),
        y=(0.0, top * 1.04 or 1.0),
        height=height,
        title=title,
        unit=unit,
        x_ticks=find_times(span.first_ms, span.last_ms),
        y_ticks=find_numbers(top),
    )


def draw_stack(
    span: Span,
    slots: Sequence[int],
    parts: Mapping[str, Sequence[float]],
    *,
    height: int,
    unit: str,
    lines: Sequence[Sequence[str]],
) -> Drawing:
    """Bars, one per slot, of parts above one another. `parts`: name -> a value per slot; `lines`: more
    lines of each slot's tooltip."""
    tops = [0.0] * len(slots)
    drawing = timed_drawing(
        span, height, max(map(sum, zip(*parts.values(), strict=True)), default=0), unit=unit
    )
    edges = [
        (middle - span.width_ms / 2, middle + span.width_ms / 2) for middle in map(span.middle_ms, slots)
    ]
    for place, (name, values) in enumerate(parts.items()):
        boxes = []
        for at, value in enumerate(values):
            if value:
                boxes.append(Box(*edges[at], tops[at], tops[at] + value))
                tops[at] += value
        colour = COLOURS[place % len(COLOURS)]
        drawing.marks.append(Mark(colour=colour, kind="boxes", boxes=boxes, name=name))
    for at, slot in enumerate(slots):
        if tops[at]:
            words = "\n".join([span.at(span.middle_ms(slot)), *lines[at]])
            drawing.regions.append((Box(*edges[at], *drawing.y), words))
    return drawing


def find_numbers(top: float) -> list[Tick]:
    """Ticks from 0 to `top`, at steps of 1, 2 or 5."""
    if not (top > 0 and math.isfinite(top)):
        return [(0.0, "0")]
    power = 10.0 ** math.floor(math.log10(top / _TICKS))
    step = next(power * digit for digit in (1, 2, 5, 10) if power * digit * _TICKS >= top * 0.999)
    digits = max(-math.floor(math.log10(step)), 0)
    return [
        (step * place, f"{step * place:,.{digits}f}") for place in range(math.floor(top / step + 1e-9) + 1)
    ]


def find_times(first_ms: float, last_ms: float) -> list[Tick]:
    """Ticks of a time axis; milliseconds since 1970, shown as UTC."""
    long = last_ms - first_ms
    step = next(
        (each for each in _STEPS_MS if each * _TIMES >= long), math.ceil(long / _TIMES / _DAY_MS) * _DAY_MS
    )
    first, last = math.ceil(first_ms / step), math.floor(last_ms / step)
    return [(place * step, _show_time(place * step, step)) for place in range(first, last + 1)]


def _show_time(at_ms: float, step_ms: float) -> str:
    time = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=at_ms)
    if step_ms >= _DAY_MS:
        return f"{time:%m-%d}"
    if step_ms >= 60_000:
        return f"{time:%H:%M}"
    if step_ms >= 1000:
        return f"{time:%H:%M:%S}"
    return f"{time:%H:%M:%S.%f}"[: -3 if step_ms >= 1 else None]
