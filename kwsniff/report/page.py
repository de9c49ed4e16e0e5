"""Writes sections to one HTML file with script, style and drawings inside; a browser fetches nothing."""

from collections.abc import Sequence
from importlib.resources import files
from typing import IO, TYPE_CHECKING

from kwsniff.report.drawing import STYLE
from kwsniff.report.section import Section

if TYPE_CHECKING:
    from jinja2 import Environment


def write_page(
    file: IO[str],
    *,
    title: str,
    summary: Sequence[str],
    sections: Sequence[Section],
    footer: Sequence[str] = (),
) -> None:
    """Writes a page of `sections`. All texts are escaped: markup in them is shown, not interpreted."""
    from markupsafe import Markup

    page = (
        _templates()
        .get_template("page.html")
        .stream(
            title=title,
            summary=summary,
            sections=sections,
            footer=footer,
            style=Markup(STYLE + _resource("page.css")),  # noqa: S704 - our own
            script=Markup(_resource("page.js")),  # noqa: S704 - our own
            draw=lambda drawing: Markup(drawing.html),  # noqa: S704 - it escapes all texts
        )
    )
    file.writelines(page)


def _resource(name: str) -> str:
    return files("kwsniff.report").joinpath(name).read_text("utf-8")


def _templates() -> "Environment":
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    return Environment(
        loader=FunctionLoader(_resource),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
