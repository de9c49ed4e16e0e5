"""Which folders of vendors' layouts hold for every server: a setting, or the environment."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from kwsniff.layout.dissectors import dissectors_folder

ENVIRONMENT: Final = "KWSNIFF_LAYOUTS"
"""Environment variable with folders of vendors, used without another setting; separated as in PATH."""

VENDORS: Final = "vendors"
"""Of the folder `dissectors`, the one with kwsniff's own layouts of vendors."""

Layouts = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
"""A vendor's folder, or the name of one of kwsniff's own; or several of them."""


def named_folders(layouts: Layouts | None) -> tuple[str, ...]:
    """Absolute paths, each once; of kwsniff's own those that are named."""
    chosen = os.environ.get(ENVIRONMENT, "") if layouts is None else layouts
    if isinstance(chosen, str | os.PathLike):
        text = os.fspath(chosen)
        chosen = [text] if os.path.isdir(text) else text.split(os.pathsep)  # noqa: PTH112
    return tuple(dict.fromkeys(_place(os.fspath(each)) for each in chosen if each))


def _place(chosen: str) -> str:
    shipped = dissectors_folder() / VENDORS / chosen
    if chosen.isidentifier() and shipped.is_dir():
        return str(shipped.absolute())
    return str(Path(chosen).absolute())
