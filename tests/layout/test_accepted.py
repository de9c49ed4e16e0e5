"""accepted.txt: it names products, releases and APIs that there are, and wrong lines are refused."""

from __future__ import annotations

import pytest

from kwsniff.errors import LayoutError
from kwsniff.layout.accepted import SAME, load_accepted, parse_accepted
from kwsniff.layout.catalog import load_catalog


def test_it_names_apis_versions_and_releases_that_there_are() -> None:
    catalog = load_catalog("")
    for each in load_accepted():
        assert each.same_as in (None, SAME) or catalog.releases.newest_of(str(each.same_as))
        for name, span in each.ranges.items():
            api = catalog.api(name)
            assert api is not None
            assert api.name == name
            assert span is None or span[0] <= span[1] <= api.max_version


def test_what_a_block_says() -> None:
    text = "# who\n\na_b 2.1\n    accepts  Fetch 4-11\n    accepts  Produce 3\n    accepts  EndTxn none\n"
    (one, other) = parse_accepted(
        text + "    rest     none\n    source   x\nc\n    as       3.9\n    source   y\n",
        "a.txt",
        ["a_b", "c"],
    )
    assert one == ("a_b", "2.1", None, {"Fetch": (4, 11), "Produce": (3, 3), "EndTxn": None}, True)
    assert other == ("c", None, "3.9", {}, False)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("    as  3.9\n", 1),
        ("nobody 1.0\n", 1),
        ("a_b 1.0\n    as  3.9\n", 1),
        ("a_b 1.0\n    source  x\n", 1),
        ("a_b 1.0\n    as  3.9\n    source  x\na_b 1.0\n", 4),
        ("a_b 1.0\n    accepts  Fetch\n    source  x\n", 2),
        ("a_b 1.0\n    accepts  Fetch 1-x\n    source  x\n", 2),
        ("a_b 1.0\n    rest  some\n    source  x\n", 2),
        ("a_b 1.0\n    because  x\n", 2),
    ],
)  # fmt: skip
def test_a_wrong_line(text: str, line: int) -> None:
    with pytest.raises(LayoutError, match=rf"^a\.txt:{line}: "):
        parse_accepted(text, "a.txt", ["a_b"])
