"""quirks.txt: it names products, APIs and errors that there are, and wrong lines are refused."""

from __future__ import annotations

import pytest

from kwsniff.errors import LayoutError
from kwsniff.layout.catalog import load_catalog
from kwsniff.layout.quirks import MOST_VERSIONS, load_quirks, parse_quirks
from kwsniff.layout.spoken import error_codes

BLOCK = "late\n    rule    A broker must be on time.\n"
PLACE = "    at      {}\n    why     it is slow\n    source  a thread\n"


def test_it_names_apis_versions_and_errors_that_there_are() -> None:
    catalog = load_catalog("")
    codes = error_codes(catalog)
    for quirk in load_quirks().values():
        assert quirk.rule.endswith(".")
        for place in quirk.places:
            assert place.why
            assert place.source
            assert place.error is None or place.error in codes
            api = catalog.api(place.api or "Produce")
            assert api is not None
            assert place.versions[0] <= api.max_version


@pytest.mark.parametrize(
    ("at", "read"),
    [
        ("a_b", ("a_b", None, (0, MOST_VERSIONS), None)),
        ("a_b EndTxn", ("a_b", "EndTxn", (0, MOST_VERSIONS), None)),
        ("a_b EndTxn 4", ("a_b", "EndTxn", (4, 4), None)),
        ("a_b EndTxn 4-6", ("a_b", "EndTxn", (4, 6), None)),
        ("a_b EndTxn 4+", ("a_b", "EndTxn", (4, MOST_VERSIONS), None)),
        ("a_b EndTxn NOT_LEADER", ("a_b", "EndTxn", (0, MOST_VERSIONS), "NOT_LEADER")),
        ("a_b EndTxn 2 NOT_LEADER", ("a_b", "EndTxn", (2, 2), "NOT_LEADER")),
    ],
)
def test_where_it_is_normal(at: str, read: tuple[object, ...]) -> None:
    (quirk,) = parse_quirks(f"# quirks\n\n{BLOCK}{PLACE.format(at)}", "q.txt", ["a_b"]).values()
    assert (quirk.name, quirk.rule) == ("late", "A broker must be on time.")
    (place,) = quirk.places
    assert place[:4] == read
    assert place[4:] == ("it is slow", "a thread")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("    rule    A rule.\n", 1),
        ("late\n    because  of it\n", 2),
        ("late\n", 1),
        (BLOCK + "    at      a_b\n    why     it is slow\n", 1),
        (BLOCK + BLOCK, 3),
        (BLOCK + PLACE.format("nobody"), 3),
        (BLOCK + PLACE.format("a_b 4+"), 3),
        (BLOCK + PLACE.format("a_b Fetch x"), 3),
    ],
)
def test_a_wrong_line(text: str, line: int) -> None:
    with pytest.raises(LayoutError, match=rf"^q\.txt:{line}: "):
        parse_quirks(text, "q.txt", ["a_b"])
