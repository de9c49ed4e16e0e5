"""Pages say what the code says: names, versions, limits."""

import re
from pathlib import Path

import pytest

from kwsniff.core.wire import engine
from kwsniff.layout.catalog import load_catalog
from kwsniff.tables.docs import EXPLAINED, tables_pages
from kwsniff.tables.enums import WORDS
from kwsniff.tables.schema import TABLES

from .pages import pages
from .tree import DOCS, ROOT, relative

WORDS_PAGE = DOCS / "anomalies.md"


def named(heading: str) -> list[str]:
    """Names of the lists under a heading of docs/anomalies.md."""
    pattern = rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)"
    section = re.search(pattern, WORDS_PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert section, f"docs/anomalies.md has no section {heading}"
    return re.findall(r"^- `(\w+)`(?: \(.*?\))?: \S", section[1], re.MULTILINE)


@pytest.mark.parametrize("name", EXPLAINED)
def test_every_word_of_an_explained_list_has_its_line(name: str) -> None:
    assert sorted(named(name)) == sorted(WORDS[name])


@pytest.mark.parametrize("name", sorted(set(WORDS) - {*EXPLAINED, "bin", "tunnel"}))
def test_every_other_list_is_on_the_page_of_a_table(name: str) -> None:
    lists = re.findall(rf"^## {name}\n\n((?:- .*\n)+)", "".join(tables_pages().values()), re.MULTILINE)
    assert [re.findall(r"^- `(\w+)`: \S", text, re.MULTILINE) for text in lists] == [list(WORDS[name])]


def test_bins_are_columns_and_tunnels_have_their_lines() -> None:
    columns = {column.name for column in TABLES["captures"].columns}
    assert {f"{word}_bytes" for word in WORDS["bin"]} <= columns
    assert sorted(named("Tunnels")) == sorted(WORDS["tunnel"])


def test_every_engine_status_has_its_line() -> None:
    assert tuple(named("engine status")) == engine.STATUSES


def test_generated_pages_are_up_to_date() -> None:
    old = [relative(path) for path, text in pages().items() if path.read_text("utf-8") != text]
    assert old == [], "run: python -m tests.house.pages"


def test_the_pages_of_tables_are_up_to_date() -> None:
    pages = tables_pages()
    old = [name for name, text in pages.items() if (DOCS / name).read_text("utf-8") != text]
    assert old == [], "run: python -m kwsniff.tables.docs docs"
    assert {path.name for path in (DOCS / "tables").iterdir()} == {Path(name).name for name in pages} - {
        "tables.md"
    }


def test_the_readme_counts_the_apis_that_there_are() -> None:
    counted = re.findall(r"\b(\d+) APIs", (ROOT / "README.md").read_text("utf-8"))
    assert counted == [str(len(load_catalog().apis))]


def test_nothing_is_said_to_come_from_an_index_that_does_not_have_it() -> None:
    """kwsniff is installed from a clone: pip install '.[spark]'."""
    paths = [
        ROOT / "README.md",
        *(path for path in DOCS.glob("*.*") if path.is_file()),
        *(ROOT / "kwsniff").rglob("*.py"),
    ]
    assert [path.name for path in paths if b"kwsniff[" in path.read_bytes()] == []
