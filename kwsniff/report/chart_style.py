"""The common style of charts; each section draws its own. page.js has the colours of both themes."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kwsniff.report.span import Span

if TYPE_CHECKING:
    from bokeh.plotting import figure

COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#ee7733", "#009988", "#999999")
"""Safe for colour-blind readers, on white and on black (Paul Tol's bright scheme)."""
TROUBLE = "#d6404e"
_TOOLS = "xpan,xbox_zoom,reset"


def timed_figure(span: Span, height: int, **options: Any) -> "figure":
    """A figure whose x axis is the time of the page, in its zone."""
    from bokeh.models import DatetimeTicker, DatetimeTickFormatter, Range1d
    from bokeh.plotting import figure

    options.setdefault("x_range", Range1d(span.first_ms, span.last_ms, bounds="auto"))
    plot = figure(
        height=height,
        sizing_mode="stretch_width",
        tools=_TOOLS,
        toolbar_location="above",
        x_axis_type="datetime",
        **options,
    )
    plot.xaxis.ticker = DatetimeTicker(desired_num_ticks=4)  # more would overlap on a phone
    plot.xaxis.formatter = DatetimeTickFormatter(
        milliseconds="%H:%M:%S.%3N", seconds="%H:%M:%S", minsec="%H:%M:%S", minutes="%H:%M", hourmin="%H:%M"
    )
    return style_figure(plot)


def style_figure(plot: "figure") -> "figure":
    """No logo, tools only on hover, and no wheel zoom that would block scrolling."""
    plot.toolbar.logo = None
    plot.toolbar.autohide = True
    plot.min_border_right = 12
    plot.output_backend = "svg"
    return plot


def add_hover(plot: "figure", renderers: Sequence[Any], lines: Sequence[tuple[str, str]]) -> None:
    """The tooltip. `lines` are title and `@column`; values are plain text."""
    from bokeh.models import HoverTool

    plot.add_tools(HoverTool(renderers=list(renderers), tooltips=list(lines), point_policy="follow_mouse"))
