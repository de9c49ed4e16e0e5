"""What an API is for stands in its layout: no number of an API stands in the code."""

import ast
import re
from typing import Any

import pytest

from .tree import ROOT

PACKAGE = ROOT / "kwsniff"
_COMPILED = sorted([*PACKAGE.rglob("*.pyx"), *PACKAGE.rglob("*.pxd")])

# What holds an api key, by the last word of its name.
_KEY = re.compile(r"(^|_)(api|api_key|apis|api_keys|key|keys)$", re.IGNORECASE)

# What names an API in capitals would be a constant for its key.
_NAMES = frozenset(
    path.stem.partition("_")[2].upper() for path in (ROOT / "dissectors" / "kafka").glob("[0-9]*.layout")
)

# Keys of other things.
_OTHERS = {
    "sources/keylog.py", "sources/tls.py",  # TLS secrets
    "cli/live/model.py", "cli/live/keys.py",  # a keyboard
    "view/internal_topics.py",  # schemas of records
}  # fmt: skip

_SAME = (ast.Eq, ast.NotEq, ast.In, ast.NotIn)
_TEXT = re.compile(r'"""[\s\S]*?"""|#[^\n]*')
_COMPARED = re.compile(
    r"\b(?:api_)?key\b\s*(?:[=!]=|in\b)\s*\(?\s*-?\d|\bcase\s+when\s+api_key", re.IGNORECASE
)
_IN_SQL = re.compile(r"\bapi_key\s*(?:=|<>|in\s*\()\s*\(?\s*\d", re.IGNORECASE)
_CONSTANT = re.compile(r"^\s+([A-Z_]+)\s*=\s*\d+", re.MULTILINE)


def _last_name(node: ast.expr) -> str:
    if isinstance(node, ast.Subscript):
        inner = node.slice
        return str(inner.value) if isinstance(inner, ast.Constant) else ""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _has_number(node: ast.expr) -> bool:
    if isinstance(node, ast.Call):
        return _last_name(node.func) in ("set", "frozenset", "tuple") and any(map(_has_number, node.args))
    if not isinstance(node, ast.Constant | ast.Set | ast.Tuple | ast.List | ast.Dict):
        return False
    return any(
        isinstance(each, ast.Constant) and type(each.value) is int and each.value >= 0
        for each in ast.walk(node)
    )


def _targets(node: ast.Assign | ast.AnnAssign) -> list[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return [
        _last_name(name)
        for each in targets
        for name in (each.elts if isinstance(each, ast.Tuple) else [each])
    ]


def _is_number(node: ast.expr, numbers: set[str]) -> bool:
    return _has_number(node) or (isinstance(node, ast.Name) and node.id in numbers)


def _names_an_api(name: str) -> bool:
    return name.strip("_").upper() in _NAMES | {"APIS"}


def numbered_keys(source: str) -> list[int]:
    """Lines of Python that compare a key with a number, or with what stands for one, that name a number as an
    API's, or do so in SQL."""
    nodes = list(ast.walk(ast.parse(source)))
    assigned = [n for n in nodes if isinstance(n, ast.Assign | ast.AnnAssign) and n.value is not None]
    numbered = [node for node in assigned if node.value is not None and _has_number(node.value)]
    numbers = {name for node in numbered for name in _targets(node)}
    found = [node.lineno for node in numbered if any(map(_names_an_api, _targets(node)))]
    for node in nodes:
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], _SAME):
            sides = [node.left, *node.comparators]
            keyed = any(_KEY.search(_last_name(side)) for side in sides)
            if keyed and any(_is_number(side, numbers) for side in sides):
                found.append(node.lineno)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and _IN_SQL.search(node.value):
            found.append(node.lineno)
    return found


def numbered_keys_compiled(source: str) -> list[str]:
    """The same of a compiled file."""
    code = _TEXT.sub("", source)
    constants = [each[0] for each in _CONSTANT.finditer(code) if each[1] in _NAMES]
    return [each[0].strip() for each in _COMPARED.finditer(code)] + [each.strip() for each in constants]


@pytest.mark.parametrize(
    "line",
    [
        "if key == 7 and version == 0: pass",
        "if packet['api_key'] in (3, 19): pass",
        "_SASL_HANDSHAKE: Final = 17",
        "PRODUCE, INIT_PRODUCER_ID = 0, 22",
        "APIS = frozenset({11, 14})",
        "if call.api_key != 18: pass",
        "_METERED = 72; own = self.api == _METERED",
        "sql = 'sum(x) filter (where api_key = 0)'",
    ],
)
def test_a_number_of_an_api_is_found(line: str) -> None:
    assert numbered_keys(line) == [1]


@pytest.mark.parametrize(
    "line", ["    if call.key == 7:\n", "    return key in (17, 18)\n", "    SASL_HANDSHAKE = 17\n"]
)
def test_a_number_of_an_api_is_found_in_compiled_files(line: str) -> None:
    assert len(numbered_keys_compiled(line)) == 1


def test_no_number_of_an_api_stands_outside_the_layouts() -> None:
    found: dict[str, Any] = {
        path.relative_to(PACKAGE).as_posix(): lines
        for path in sorted(PACKAGE.rglob("*.py"))
        if (lines := numbered_keys(path.read_text("utf-8")))
    }
    found |= {
        path.relative_to(PACKAGE).as_posix(): marked
        for path in _COMPILED
        if (marked := numbered_keys_compiled(path.read_text("utf-8")))
    }
    assert {name: lines for name, lines in found.items() if name not in _OTHERS} == {}
