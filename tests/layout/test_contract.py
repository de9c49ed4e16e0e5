"""The numbers that Python writes into programs are those the compiled rooms read."""

import re
from pathlib import Path

from kwsniff.layout.meaning import TYPES, Meaning
from kwsniff.layout.program import Flag, Kind

_CORE = Path(__file__).resolve().parents[2] / "kwsniff" / "core"


def _numbers(file: str, prefix: str) -> dict[str, int]:
    text = (_CORE / file).read_text("utf-8")
    return {
        name: int(value) for name, value in re.findall(rf"^\s+{prefix}_(\w+) = (\d+)$", text, re.MULTILINE)
    }


def test_kinds_are_those_of_the_engine() -> None:
    assert _numbers("wire/tape.pxd", "KIND") == {kind.name: kind.value for kind in Kind}


def test_flags_are_those_of_the_engine() -> None:
    assert _numbers("wire/tape.pxd", "FLAG") == {flag.name: flag.value for flag in Flag}


def test_meanings_the_core_knows_have_the_same_numbers() -> None:
    numbers = _numbers("wire/meaning.pxd", "MEANING")
    assert numbers
    assert numbers == {name: Meaning[name].value for name in numbers}


def test_every_meaning_is_one_byte_and_has_its_types() -> None:
    assert sorted(Meaning) == list(range(len(Meaning)))
    assert len(Meaning) <= 256
    assert set(TYPES) == set(Meaning) - {Meaning.NONE, Meaning.SECRET}
