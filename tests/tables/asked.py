"""The answers in docs/questions.md. `python -m tests.tables.asked` makes them anew."""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import duckdb

import kwsniff

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "questions.md"
_QUESTION = re.compile(
    r"(?P<head>^<!-- (?P<captures>captures/.*) -->\n```sh\n(?P<command>[\s\S]*?)```\n\n```text\n)"
    r"[\s\S]*?(?P<tail>^```$)",
    re.MULTILINE,
)
_DUCKDB = """#!{python}
import sys
sys.path.insert(0, {root!r})
from tests.tables.asked import answer
assert sys.argv[1] == "-c" and len(sys.argv) == 3, sys.argv
sys.stdout.write(answer(sys.argv[2]))
"""


def page() -> str:
    """docs/questions.md with the answers that its queries have."""
    return _QUESTION.sub(
        lambda found: found["head"] + _answer(found) + found["tail"], PAGE.read_text("utf-8")
    )


def questions() -> list[str]:
    """The command of every question, as it stands on the page."""
    return [found["command"] for found in _QUESTION.finditer(PAGE.read_text("utf-8"))]


def answer(query: str) -> str:
    """What the query finds, as the page shows it."""
    with duckdb.connect() as database:
        database.execute("set TimeZone = 'UTC'")
        found = database.execute(query)
        return _aligned([column[0] for column in found.description or ()], found.fetchall())


def _answer(question: re.Match[str]) -> str:
    """What the command puts out in a shell, where the tables are in `out` and DuckDB is on the PATH."""
    with tempfile.TemporaryDirectory() as folder:
        captures = [_capture(name) for name in question["captures"].split()]
        kwsniff.analyze(captures, output=Path(folder, "out"))
        duck = Path(folder, "duckdb")
        duck.write_text(_DUCKDB.format(python=sys.executable, root=str(ROOT)), "utf-8")
        duck.chmod(0o755)
        path = f"{folder}:{os.environ['PATH']}"
        done = subprocess.run(
            # Interactive, as where a command is pasted: ! means something there.
            ["bash", "--norc", "-i"],
            input=question["command"],
            cwd=folder,
            env={**os.environ, "PATH": path, "PS1": "", "PS2": "", "HISTFILE": "/dev/null"},
            capture_output=True,
            text=True,
            check=False,
            start_new_session=True,
        )
        if not done.stdout:
            raise ValueError(f"{question['command']} fails:\n{done.stderr}")
        return done.stdout


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
