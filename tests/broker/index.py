"""The list of recordings in captures/README.md, made of what every about.toml says."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from tests.broker import clientlog

CAPTURES = Path(__file__).resolve().parents[2] / "captures"
PAGE = CAPTURES / "README.md"


def _facts(mocks: bool) -> dict[str, dict[str, Any]]:
    found = {
        path.parent.name: tomllib.loads(path.read_text("utf-8")) for path in CAPTURES.glob("*/about.toml")
    }
    return {name: facts for name, facts in sorted(found.items()) if mocks is ("witness" not in facts)}


def table(mocks: bool) -> str:
    """One row per recording."""
    head = ("folder", "broker", "client", "measured", "what for")
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for name, facts in _facts(mocks).items():
        broker = facts["broker"]
        kind = broker["name"].replace("Apache Kafka ", "")
        kind = "mock" if mocks else f"{kind} {broker['metadata']}, {broker['nodes']}"
        cells = (f"`{name}`", kind, facts["client"]["name"], _measured(name))
        lines.append(f"| {' | '.join((*cells, facts['purpose']))} |")
    return "\n".join(lines) + "\n"


def _measured(name: str) -> str:
    """How many requests the clients of a recording measured."""
    path = CAPTURES / name / "client.tsv"
    return str(len(clientlog.read(path))) if path.exists() else ""


def page() -> str:
    """captures/README.md with the tables that belong there now."""
    text = PAGE.read_text("utf-8")
    for mark, mocks in (("brokers", False), ("mocks", True)):
        pattern = rf"(<!-- {mark}: [^\n]*-->\n)[\s\S]*?(?=\n[^|]|\Z)"
        text = re.sub(pattern, r"\g<1>" + table(mocks).replace("\\", r"\\"), text, count=1)
    return text


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
