"""The list of planted faults fits the code; whether tests notice them, `python -m tests.faults` tells."""

from collections import Counter

import pytest

from tests.faults.listing import ROOT, Fault, faults_of_files, find_stale, load_faults
from tests.faults.plant import plant
from tests.faults.score import read_score

_FEWEST = 700
_FEWEST_OF_A_ROOM = 8
_ROOMS = (
    "analysis",
    "cli",
    "core",
    "findings",
    "live",
    "report",
    "sources",
    "spark",
    "tables",
    "timelines",
    "view",
)


def test_no_fault_is_stale() -> None:
    assert find_stale(load_faults()) == []


def test_every_fault_can_be_planted() -> None:
    faults = load_faults()
    assert len(faults) >= _FEWEST
    for name, here in faults_of_files(faults).items():
        is_compiled = name.endswith((".pyx", ".pxd"))
        text = plant((ROOT / name).read_text("utf-8"), here, compiled=is_compiled)
        assert all(f"planted_fault() == {fault.number}" in text for fault in here)
        if not is_compiled:
            compile(text, name, "exec")


def test_every_room_has_faults() -> None:
    rooms = Counter(fault.file.split("/")[1] for fault in load_faults())
    assert {room for room in _ROOMS if rooms[room] < _FEWEST_OF_A_ROOM} == set()


def test_the_score_is_of_faults_that_there_are() -> None:
    assert set(read_score()) <= {fault.number for fault in load_faults()}


def _fault(number: int, before: str, after: str) -> Fault:
    return Fault(number, "module.py", before, after, "", ())


def test_a_switch_turns_one_fault_on() -> None:
    source = (
        "def f(a):\n    total = a + 1\n    if a:\n        total += 2\n        total += 3\n    return total\n"
    )
    faults = [
        _fault(1, "a + 1", "a - 1"),
        _fault(2, "a + 1", "0"),
        _fault(3, "total += 2\n        total += 3", "total *= 2\n        total *= 3"),
    ]
    answers = []
    for number in range(4):
        space: dict[str, object] = {}
        text = plant(source, faults, compiled=False).replace(
            'environ.get("KWSNIFF_FAULT", "0")', f'"{number}"'
        )
        text = text.replace(f'_os_of_faults."{number}"', str(number))
        exec(compile(text, "module", "exec"), space)  # noqa: S102
        answers.append(space["f"](1))  # type: ignore[operator]
    assert answers == [7, 5, 5, 12]


def test_a_stale_fault_is_told() -> None:
    faults = [
        Fault(1, "README.md", "no such text in it", "x", "", ("tests/house",)),
        Fault(2, "no/such/file.py", "x", "y", "", ("tests/house",)),
        Fault(3, "README.md", "kwsniff", "x", "", ("tests/nowhere",)),
    ]
    told = find_stale(faults)
    assert [line.split(":")[0] for line in told] == ["1", "2", "3", "3"]


@pytest.mark.parametrize("part", ["counts.more += 1", "counts.more = 1", "counts[0] |= 1"])
def test_a_part_of_a_statement_is_refused(part: str) -> None:
    """It is no expression: compiled code would not build."""
    with pytest.raises(ValueError, match="part of a statement"):
        plant(f"if all:\n    own.{part}\n", [_fault(1, part, "pass")], compiled=True)


def test_what_has_an_else_of_its_own_is_switched_as_a_whole() -> None:
    """A conditional and a lambda would take the switch's own `if` or `else` as theirs."""
    source = "first = 1 if a else 2\nsecond = lambda: 3\n"
    faults = [
        _fault(1, "1 if a else 2", "5 if a else 6"),
        _fault(2, "lambda: 3", "lambda: 7"),
        _fault(3, "lambda: 3", "lambda: 8"),
    ]
    found = []
    for number in range(4):
        space: dict[str, object] = {"a": False, "planted_fault": lambda number=number: number}
        text = plant(source, faults, compiled=False)
        text = text[: text.index("import os")] + text[text.index("first = ") :]
        exec(compile(text, "module", "exec"), space)  # noqa: S102
        found.append((space["first"], space["second"]()))  # type: ignore[operator]
    assert found == [(2, 3), (6, 3), (2, 7), (2, 8)]
