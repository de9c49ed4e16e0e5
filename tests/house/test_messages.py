"""Messages name what an installation has: `kwsniff explain`, never a page of this repository."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "kwsniff"
PAGES = re.compile(r"\bdocs/|(?<!\]\()(?<![\w./])[\w./]+\.md\b")
"""A page; a link of Markdown is on the pages that tables make, and `kwsniff explain` shows its text."""
MAKES_PAGES = {"docs.py"}
"""Modules that write pages, which may name others."""


def _texts_of(path: Path) -> Iterator[str]:
    """String constants of a module but for docstrings, or the lines of another file without comments."""
    text = path.read_text("utf-8")
    if path.suffix != ".py":
        yield from (line for line in text.splitlines() if not line.lstrip().startswith("#"))
        return
    tree = ast.parse(text)
    described = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in described:
            yield node.value


def _shown() -> list[Path]:
    files = [*PACKAGE.rglob("*.py"), *PACKAGE.rglob("*.toml"), *PACKAGE.rglob("*.1")]
    return sorted(path for path in files if path.name not in MAKES_PAGES)


@pytest.mark.parametrize("path", _shown(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_message_names_a_page_of_the_repository(path: Path) -> None:
    assert [text for text in _texts_of(path) if PAGES.search(text)] == []


def test_a_page_in_a_message_is_found(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text(
        '"""See docs/tls.md."""\n\ndef refuse():\n    """See docs/tls.md."""\n    return "see docs/tls.md"\n'
    )
    assert [text for text in _texts_of(module) if PAGES.search(text)] == ["see docs/tls.md"]
