"""docs/architecture.md names the folders there are."""

import re
from collections import Counter

from .test_circles import CORE_ROOMS
from .tree import DOCS, ROOT, relative, tracked_files

PLAN = (DOCS / "architecture.md").read_text("utf-8")
PLACES = re.findall(r"^\| `([\w/]+)` \|", PLAN, re.MULTILINE)


def test_every_folder_of_the_package_stands_in_the_floor_plan_once() -> None:
    folders = {
        relative(path.parent)
        for path in tracked_files()
        if relative(path).startswith(("kwsniff/", "dissectors/")) and path.parent != ROOT / "kwsniff"
    }
    assert Counter(PLACES) == Counter(folders)


def test_the_core_stands_there_in_the_order_that_its_cimports_keep() -> None:
    rooms = [place.removeprefix("kwsniff/core/") for place in PLACES if place.startswith("kwsniff/core/")]
    assert tuple(rooms) == CORE_ROOMS
