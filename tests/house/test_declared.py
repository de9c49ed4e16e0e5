"""What the core has from the declarations is what they say today."""

import re
from pathlib import Path

import pytest

from kwsniff.core.declared import COLUMNS, ENUMS, INNER_COLUMNS
from kwsniff.tables.enums import CORE_WORDS, DERIVED_ENUMS, WORDS
from kwsniff.tables.schema import TABLES

from .declared import FILLED, declared_pxd, files, shapes_pxd
from .tree import CORE, relative

_FILES = files()


@pytest.mark.parametrize("path", _FILES, ids=relative)
def test_what_is_made_of_the_declarations_is_current(path: Path) -> None:
    assert path.read_text("utf-8") == _FILES[path], "python -m tests.house.declared"


def test_the_numbers_of_columns_are_their_places() -> None:
    """Counted here as C counts."""
    text = declared_pxd()
    columns = {**COLUMNS, **INNER_COLUMNS}
    assert list(columns) == list(FILLED)
    for table in FILLED:
        body = re.search(rf"# columns of {table}\n((?:    [^\n]*\n)+)", text)
        assert body
        members = re.findall(r"\w+", body[1])
        assert members == [f"{table}_{name}".upper() for name, _, _ in columns[table]] + [
            f"NUM_{table.upper()}_COLUMNS"
        ]


def test_no_number_is_declared_twice() -> None:
    names = re.findall(r"\b([A-Z]\w+)\b(?=[ ,\n])", re.sub(r"#[^\n]*", "", declared_pxd()))
    assert len(names) == len(set(names)) > 300


def test_no_word_of_a_closed_list_stands_in_the_core_again() -> None:
    """A list that somebody writes down beside the declared one: three of its words, one behind the other."""
    found = []
    for path in sorted([*CORE.rglob("*.pyx"), *CORE.rglob("*.pyi")]):
        text = path.read_text("utf-8")
        for name, words in ENUMS.items():
            for at in range(len(words) - 2):
                three = r'",\s*"'.join(words[at : at + 3])
                found += [f"{path.name}: {name}"] if re.search(f'"{three}"', text) else []
    assert found == []


def test_every_closed_list_of_a_table_is_declared() -> None:
    used = {column.enum for table in TABLES.values() for column in table.columns if column.enum}
    assert used <= set(WORDS)
    assert set(CORE_WORDS) & set(DERIVED_ENUMS) == set()
    assert {name: tuple(words) for name, words in CORE_WORDS.items()} == ENUMS


_BEFORE = "cdef struct Call:\n    int32_t first      # a byte\n    int32_t second\n\ncdef int other(int x)\n"


@pytest.mark.parametrize(
    ("after", "same"),
    [
        (_BEFORE.replace("first", "third"), False),
        ("cdef struct Call:\n    int32_t second\n    int32_t first\n\n", False),
        (_BEFORE.replace("# a byte", "# two bytes"), True),
        (_BEFORE.replace("int x", "int y"), True),
        (_BEFORE + "\ncdef enum:\n    MOST = 4\n", False),
    ],
)
def test_a_state_is_bound_to_the_order_of_fields_and_not_to_comments(after: str, same: bool) -> None:
    assert (shapes_pxd({"a.pxd": _BEFORE}) == shapes_pxd({"a.pxd": after})) is same


def test_every_struct_that_a_state_holds_counts() -> None:
    """The structs that state.pyx writes as they lie in memory."""
    written = set(re.findall(r"sizeof\((\w+)\)", (CORE / "state.pyx").read_text("utf-8"))) - {"void"}
    declared = set()
    for path in CORE.rglob("*.pxd"):
        declared |= set(re.findall(r"^cdef struct (\w+):", path.read_text("utf-8"), re.MULTILINE))
    assert {"ControlBlock", "KafkaConnection", "Call", "QueuedSegment"} <= written
    named = {name for name in written if name[0].isupper()} - {"Head"}
    assert named - declared == set()
