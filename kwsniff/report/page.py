"""Writes sections to one HTML file with script, style and data inside; a browser fetches nothing."""

from collections.abc import Sequence
from importlib.resources import files
from typing import IO, TYPE_CHECKING, Any

from kwsniff.errors import UsageError
from kwsniff.report.section import Section

if TYPE_CHECKING:
    from jinja2 import Environment

_MISSING = "an HTML report needs bokeh, which is not installed: pip install '.[report]'"


def require_charts() -> None:
    """Raises UsageError with the install command if bokeh is missing."""
    try:
        import bokeh  # noqa: F401
        import jinja2  # noqa: F401
    except ImportError as error:
        raise UsageError(_MISSING) from error


def write_page(
    file: IO[str],
    *,
    title: str,
    summary: Sequence[str],
    sections: Sequence[Section],
    footer: Sequence[str] = (),
) -> None:
    """Writes a page of `sections`. All texts are escaped: markup in them is shown, not interpreted."""
    from bokeh.embed import json_item
    from markupsafe import Markup

    charts = [
        {"target": chart.name, "item": json_item(chart.plot, chart.name)}
        for section in sections
        for chart in section.charts
    ]
    page = (
        _templates()
        .get_template("page.html")
        .stream(
            title=title,
            summary=summary,
            sections=sections,
            footer=footer,
            style=Markup(_resource("page.css")),  # noqa: S704 - our own
            script=Markup(_resource("page.js")),  # noqa: S704 - our own
            library=Markup(_library() if charts else ""),  # noqa: S704 - the library's own
            data=Markup(embed(_renumber(charts, {}))),  # noqa: S704 - escaped by embedded
        )
    )
    file.writelines(page)


def _renumber(value: Any, numbers: dict[str, str]) -> Any:
    """`value` with ids that count from 1: Bokeh counts through a process, and equal pages would differ."""
    if isinstance(value, dict):
        return {
            key: numbers.setdefault(inner, f"p{len(numbers) + 1}")
            if key in ("id", "root_id") and isinstance(inner, str)
            else _renumber(inner, numbers)
            for key, inner in value.items()
        }
    if isinstance(value, list | tuple):
        return [_renumber(inner, numbers) for inner in value]
    return value


def embed(value: Any) -> str:
    """JSON whose texts can neither end nor open an element of HTML: `<`, `>` and `&` are escaped."""
    from bokeh.core.json_encoder import serialize_json

    shown: str = serialize_json(value)
    for char in "<>&\u2028\u2029":
        shown = shown.replace(char, f"\\u{ord(char):04x}")
    return shown


def _resource(name: str) -> str:
    return files("kwsniff.report").joinpath(name).read_text("utf-8")


def _library() -> str:
    """The script that draws charts, from the installed package; without tables, widgets, WebGL and TeX."""
    from bokeh.resources import Resources

    # Otherwise texts of the library would end its script element.
    return "\n".join(Resources(mode="inline", components=["bokeh"], minified=True).js_raw).replace(
        "</script", "<\\/script"
    )


def _templates() -> "Environment":
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    return Environment(
        loader=FunctionLoader(_resource),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
