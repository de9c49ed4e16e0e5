"""The answers in docs/questions.md. `python -m tests.tables.asked` makes them anew."""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import kwsniff
from kwsniff.findings.sql import load_questions

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "questions.md"
LONGEST_QUERY = 30
"""Maximum lines of a query on the page."""
_QUESTION = re.compile(
    r"(?P<head>^<!-- (?P<captures>captures/.*) -->\n"
    r"```sh\n(?P<command>kwsniff sql out --question (?P<name>\w+))\n```\n\n)"
    r"(?:```sql\n[\s\S]*?^```\n\n)?```text\n[\s\S]*?^```$",
    re.MULTILINE,
)


def page() -> str:
    """docs/questions.md with the queries that the package has, and the answers they give."""
    return _QUESTION.sub(
        lambda found: (
            f"{found['head']}{_shown(load_questions()[found['name']].query)}"
            f"```text\n{_answer(found['command'], found['captures'])}```"
        ),
        PAGE.read_text("utf-8"),
    )


def _shown(query: str) -> str:
    """A query that nobody would type is left out: the package has it."""
    return "" if query.count("\n") > LONGEST_QUERY else f"```sql\n{query}```\n\n"


def questions() -> list[str]:
    """The names of the page's questions."""
    return [found["name"] for found in _QUESTION.finditer(PAGE.read_text("utf-8"))]


def _answer(command: str, names: str) -> str:
    """What the command puts out in a shell, where the tables are in `out` and kwsniff is on the PATH."""
    with tempfile.TemporaryDirectory() as folder:
        kwsniff.analyze([_capture(name) for name in names.split()], output=Path(folder, "out"))
        Path(folder, "kwsniff").write_text(
            f'#!/bin/sh\nexec {sys.executable} -m kwsniff.cli.main "$@"\n', "utf-8"
        )
        Path(folder, "kwsniff").chmod(0o755)
        done = subprocess.run(
            # Interactive, as where a command is pasted: ! means something there.
            ["bash", "--norc", "-i"],
            input=command,
            cwd=folder,
            env={
                **os.environ,
                "PATH": f"{folder}:{os.environ['PATH']}",
                "PYTHONPATH": str(ROOT),
                "PS1": "",
                "PS2": "",
                "HISTFILE": "/dev/null",
            },
            capture_output=True,
            text=True,
            check=False,
            start_new_session=True,
        )
        if not done.stdout:
            raise ValueError(f"{command} fails:\n{done.stderr}")
        return done.stdout


def _capture(folder: str) -> Path:
    """The recording; of an incident that of the brokers' side."""
    return min((ROOT / folder).glob("*.pcap*"))


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
