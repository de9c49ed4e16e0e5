"""The fact tables beside the layouts: errors in them are named like errors in layouts."""

import pytest

from kwsniff.errors import LayoutError
from kwsniff.layout.reference import parse_enums, parse_errors, parse_releases


def test_an_error_code_line() -> None:
    errors = parse_errors(
        "# words\n -1  UNKNOWN  final  0.8\n  7  TIMED_OUT  retriable  0.8  try again, later\n", "e.txt"
    )
    assert list(errors) == [-1, 7]
    assert (errors[-1].retriable, errors[-1].meaning) == (False, "")
    assert (errors[7].retriable, errors[7].meaning) == (True, "try again, later")


def test_release_ranges_hold_until_they_change() -> None:
    releases = parse_releases("release\t1.0\t1.1\t2.0\n3\t1.1:0-4\t2.0:none\n4\t1.0:2\n", "r.tsv")
    assert releases.ranges == {3: (None, (0, 4), None), 4: ((2, 2), (2, 2), (2, 2))}
    assert releases.speaks("1.1") == {3: (0, 4), 4: (2, 2)}
    assert releases.spoken_by(3, 4) == ("1.1",)


@pytest.mark.parametrize(
    "line", ["7 NAME final", "x NAME final 1.0", "7 NAME often 1.0", "6 AGAIN final 1.0"]
)
def test_a_wrong_error_line(line: str) -> None:
    with pytest.raises(LayoutError, match=r"^e\.txt:2: "):
        parse_errors("6 NAME final 1.0\n" + line, "e.txt")


@pytest.mark.parametrize("line", ["x 1.0:0-1", "3 9.9:0-1", "3 1.0:a-b", "3 1.0:"])
def test_a_wrong_release_line(line: str) -> None:
    with pytest.raises(LayoutError, match=r"^r\.tsv:2: "):
        parse_releases("release 1.0\n" + line, "r.tsv")


@pytest.mark.parametrize("line", ["color", "two words", "    x red", "    1 red blue"])
def test_a_wrong_enum_line(line: str) -> None:
    with pytest.raises(LayoutError, match=r"^n\.txt:3: "):
        parse_enums("color\n    0 none\n" + line, "n.txt")
