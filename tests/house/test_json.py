"""One function writes JSON for others to read: kwsniff.texts.json_text."""

import ast

from tests.house.tree import ROOT, relative

_OUTSIDE = ("cli", "findings", "live", "report", "view", "analysis")


def test_nobody_else_writes_json() -> None:
    found = [
        f"{relative(path)}:{node.lineno}"
        for room in _OUTSIDE
        for path in (ROOT / "kwsniff" / room).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Attribute) and node.attr in ("dumps", "dump")
    ]
    assert found == []
