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


def networks(kind: str) -> str:
    """One row per recording of captures/clocks or captures/incidents."""
    incidents = kind == "incidents"
    middle = ("finding", "blames", "subject") if incidents else ("what for",)
    head = ("folder", "broker", "clients' round trip, loss", *middle, "what was done")
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for path in sorted((CAPTURES / kind).glob("*/about.toml")):
        facts = tomllib.loads(path.read_text("utf-8"))
        broker = f"{facts['broker']['name'].replace('Apache Kafka ', '')}, {len(facts['broker']['ports'])}"
        ways = "; ".join(_way(way) for way in facts["clients"])
        subject = f"{facts['subject_kind']} {facts['subject']}".strip() if incidents else ""
        what = (facts["finding"] or "none", facts["blames"], subject) if incidents else (facts["purpose"],)
        lines.append(f"| {' | '.join((f'`{path.parent.name}`', broker, ways, *what, facts['did']))} |")
    return "\n".join(lines) + "\n"


def _way(way: dict[str, float]) -> str:
    loss = f", {100 * way['loss']:.0f} %" if way["loss"] else ""
    return f"{way['round_trip_ms']:.0f} ms{loss}"


def _measured(name: str) -> str:
    """How many requests the clients of a recording measured."""
    path = CAPTURES / name / "client.tsv"
    return str(len(clientlog.read(path))) if path.exists() else ""


def page() -> str:
    """captures/README.md with the tables that belong there now."""
    text = PAGE.read_text("utf-8")
    made = {"brokers": table(False), "mocks": table(True)}
    for mark, lines in (made | {kind: networks(kind) for kind in ("clocks", "incidents")}).items():
        pattern = rf"(<!-- {mark}: [^\n]*-->\n)(\|[^\n]*\n)*"
        text = re.sub(pattern, r"\g<1>" + lines.replace("\\", r"\\"), text, count=1)
    return text


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
