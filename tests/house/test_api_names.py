"""Names of APIs are in the layouts only: elsewhere their traits decide. Texts for people may have them."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from kwsniff.layout.catalog import load_catalog

from .tree import ROOT

NAMES = "|".join(sorted((api.name for api in load_catalog().apis.values()), key=len, reverse=True))
KEY = re.compile(rf"(?:{NAMES})")
"""A string that is the name of an API and nothing else is compared with one."""
IN_SQL = re.compile(rf"(?<!')'(?:{NAMES})'(?!')")
"""In doubled quotes it is part of a text, such as a command that a finding shows."""
_STRING = re.compile(r""""((?:[^"\\\n]|\\.)*)"|'((?:[^'\\\n]|\\.)*)'""")
_LONG = re.compile(r'"{3}[\s\S]*?"{3}')
TEXTS = ("does", "matters", "silent", "mistaken_for", "timeline", "settings", "text", "advice", "command")
"""Parts of a rule that people read."""
OF_COLUMNS = ("doc", "source", "null")
"""What the docs say of a column."""
READ = {"kwsniff/findings/questions": "queries that `kwsniff sql` prints, for people to take and change"}


def _in_python(source: str) -> Iterator[tuple[int, str]]:
    tree = ast.parse(source)
    alone = [node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)]
    alone += [
        node.value for node in ast.walk(tree) if isinstance(node, ast.keyword) and node.arg in OF_COLUMNS
    ]
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "_column":
            alone += node.args[2:]
    docs = {id(value) for value in alone if isinstance(value, ast.Constant)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            if KEY.fullmatch(node.value):
                yield node.lineno, node.value
            for found in IN_SQL.finditer(node.value):
                yield node.lineno, found[0]


def _in_cython(source: str) -> Iterator[tuple[int, str]]:
    blank = _LONG.sub(lambda found: "\n" * found[0].count("\n"), source)
    for number, line in enumerate(blank.splitlines(), 1):
        for found in _STRING.finditer(line.partition("#")[0]):
            if KEY.fullmatch(found[1] or found[2] or ""):
                yield number, found[0]


def _in_rule(source: str) -> Iterator[tuple[int, str]]:
    for part, value in tomllib.loads(source).items():
        if part not in TEXTS:
            for found in IN_SQL.finditer(re.sub("--.*", "", str(value))):
                yield 0, f"{part}: {found[0]}"


def _in_sql(source: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(source.splitlines(), 1):
        for found in IN_SQL.finditer(line.partition("--")[0]):
            yield number, found[0]


READERS = {".py": _in_python, ".pyx": _in_cython, ".pxd": _in_cython, ".toml": _in_rule, ".sql": _in_sql}


def _found(folder: Path) -> list[str]:
    return [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path in sorted(folder.rglob("*"))
        if path.suffix in READERS and not any(place in str(path) for place in READ)
        for line, name in READERS[path.suffix](path.read_text("utf-8"))
    ]


def test_no_code_and_no_rule_names_an_api() -> None:
    assert _found(ROOT / "kwsniff") == []


@pytest.mark.parametrize(
    ("end", "source", "names"),
    [
        (".py", 'if name == "Fetch":\n    """Fetch"""\n    print("a Fetch waits")  # "Fetch"', ["Fetch"]),
        (
            ".py",
            "QUERY = f\"api_name in ('Produce', 'Metadata')\"",
            ["'Produce'", "'Metadata'"],
        ),
        (".pyx", 'cdef str one = "JoinGroup"  # "Fetch"\n"""a "Fetch" waits"""', ['"JoinGroup"']),
        (".sql", "-- 'Fetch'\nselect api_name = 'Fetch'", ["'Fetch'"]),
        (".toml", "text = \"'Fetch'\"\nquery = \"api_name = 'Fetch' or 'Fetch waits'\"", ["query: 'Fetch'"]),
    ],
)
def test_names_that_are_compared_are_found_and_texts_are_not(end: str, source: str, names: list[str]) -> None:
    assert [name for _, name in READERS[end](source)] == names
