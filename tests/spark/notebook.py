"""Runs docs/slow_topic.ipynb. `python -m tests.spark.notebook` stores what it puts out."""

from __future__ import annotations

import re
import sys
from itertools import zip_longest
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).parents[2] / "docs" / "slow_topic.ipynb"


def executed(path: Path = NOTEBOOK) -> Any:
    """The notebook with new outputs: what a figure looks like, texts and tables, without warnings."""
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(
        notebook, timeout=1800, kernel_name="python3", resources={"metadata": {"path": path.parent}}
    ).execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
            for output in cell.outputs:
                getattr(output, "data", {}).pop("text/html", None)  # the text says the same
    notebook.metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    return notebook


def texts(notebook: Any) -> list[str]:
    """What the cells put out as text; of figures, that they are there."""
    found = []
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            said = output.get("text") or ("figure" if "image/png" in data else data.get("text/plain", ""))
            found.append(re.sub(r"0x[0-9a-f]+", "0x", said))
    return found


def alike(found: str, stored: str) -> bool:
    """Whether the words are the same, and numbers with a point nearly: sketches depend on chance."""
    words = [re.split(r"[\s|]+", text) for text in (found, stored)]
    pairs = list(zip_longest(*words, fillvalue=""))
    return all(one == other or (_number(one) and _near(one, other)) for one, other in pairs)


def _number(word: str) -> bool:
    return re.fullmatch(r"\d+\.\d+", word) is not None


def _near(one: str, other: str) -> bool:
    return _number(other) and abs(float(one) - float(other)) <= 0.25 * max(float(one), float(other))


if __name__ == "__main__":
    nbformat.write(executed(), NOTEBOOK)
    sys.stdout.write("\n".join(texts(nbformat.read(NOTEBOOK, as_version=4))) + "\n")
