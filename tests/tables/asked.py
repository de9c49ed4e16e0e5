"""The answers in docs/questions.md. `python -m tests.tables.asked` makes them anew."""

import re
from collections.abc import Sequence
from pathlib import Path

import duckdb

import kwsniff
from kwsniff.tables.schema import TABLES

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "questions.md"
_QUESTION = re.compile(
    r"(?P<head>^<!-- (?P<captures>captures/.*) -->\n```sql\n(?P<sql>[\s\S]*?)```\n\n```text\n)"
    r"[\s\S]*?(?P<tail>^```$)",
    re.MULTILINE,
)


def page() -> str:
    """docs/questions.md with the answers that its queries have."""
    return _QUESTION.sub(
        lambda found: found["head"] + _answer(found) + found["tail"], PAGE.read_text("utf-8")
    )


def questions() -> list[str]:
    """The SQL of every question."""
    return [found["sql"] for found in _QUESTION.finditer(PAGE.read_text("utf-8"))]


def _answer(question: re.Match[str]) -> str:
    captures = [_capture(name) for name in question["captures"].split()]
    tables = kwsniff.analyze(captures)
    with duckdb.connect() as database:
        database.execute("set TimeZone = 'UTC'")
        for name in TABLES:
            database.register(name, getattr(tables, name))
        found = database.execute(question["sql"])
        return _aligned([column[0] for column in found.description or ()], found.fetchall())


def _capture(folder: str) -> Path:
    (capture,) = (ROOT / folder).glob("capture.pcap*")
    return capture


def _aligned(names: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    cells = [list(names)] + [["" if value is None else str(value) for value in row] for row in rows]
    numbers = [all(isinstance(row[at], int | float | None) for row in rows) for at in range(len(names))]
    widths = [max(len(row[at]) for row in cells) for at in range(len(names))]
    lines = [
        "  ".join(
            cell.rjust(width) if number else cell.ljust(width)
            for cell, width, number in zip(row, widths, numbers, strict=True)
        ).rstrip()
        for row in cells
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
