"""docs/architecture.md names the folders there are, and the layers."""

import re
import tomllib
from collections import Counter

import pytest

from .test_circles import CORE_ROOMS
from .tree import DOCS, ROOT, relative, tracked_files

PLAN = (DOCS / "architecture.md").read_text("utf-8")
PLACES = re.findall(r"^\| `([\w/]+)` \|", PLAN, re.MULTILINE)


def test_every_folder_of_the_package_stands_in_the_floor_plan_once() -> None:
    folders = {
        relative(path.parent.parent if path.match("rules/*/*.toml") else path.parent)
        for path in tracked_files()
        if relative(path).startswith(("kwsniff/", "dissectors/")) and path.parent != ROOT / "kwsniff"
    }
    assert Counter(PLACES) == Counter(folders)


def test_the_core_stands_there_in_the_order_that_its_cimports_keep() -> None:
    rooms = [place.removeprefix("kwsniff/core/") for place in PLACES if place.startswith("kwsniff/core/")]
    assert tuple(rooms) == CORE_ROOMS


def test_the_layers_are_those_that_the_linter_checks() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    layers = project["tool"]["importlinter"]["contracts"][0]["layers"]
    written = PLAN.partition("## Layers")[2].partition("`lint-imports`")[0].partition("    ")[2]
    assert " ".join(written.split()) == " > ".join(re.sub(r"[()]", "", layer) for layer in layers)


@pytest.mark.parametrize(
    ("call", "module"),
    [
        (r"(?<!class )\bAnalyzer(\.resume)?\(", "kwsniff/analyzers.py"),
        (r"(?<!class )\bBuilder\(", "kwsniff/timelines/row_path.py"),
        (r"(?<!def )\bhold_back\(", "kwsniff/timelines/row_path.py"),
        (r"(?<!def )\bextract_events\(", "kwsniff/timelines/row_path.py"),
    ],
)
def test_rows_take_one_path_from_the_core_to_tables(call: str, module: str) -> None:
    sources = [path for path in tracked_files() if relative(path).startswith("kwsniff/")]
    python = [path for path in sources if path.suffix == ".py"]
    assert [relative(path) for path in python if re.search(call, path.read_text("utf-8"))] == [module]
