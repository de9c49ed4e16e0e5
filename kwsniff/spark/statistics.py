"""Figures for findings, counted where rows are written, in every task; the driver adds them up."""

import uuid
from collections.abc import Iterable

from kwsniff.findings.prefilter.figures import Figures
from kwsniff.spark.parts import check_file
from kwsniff.spark.serialization import dump, load
from kwsniff.spark.storage import Place


def new_figures() -> Figures:
    """None yet. No bucket knows the names of all topics."""
    return Figures(nameless=True)


def write_figures(folder: Place, figures: Figures) -> str:
    """Writes them into a file, whose name it gives: of thousands of tasks they are too much to be sent."""
    path = f"{uuid.uuid4().hex}.figures"
    with folder.open_output(path) as file:
        file.write(dump(figures.state()))
    return path


def merge_figures(figures: Figures, folder: Place, paths: Iterable[str | None]) -> None:
    """Adds what tasks counted, of one file at a time; None: nothing was."""
    for path in filter(None, paths):
        check_file(folder, path)
        with folder.open_input(path) as file:
            figures.merge(load(file.read()))
