"""The answers in docs/troubleshooting.md. `python -m tests.findings.troubleshooting` makes them anew."""

import contextlib
import io
import itertools
import re
import shlex
import tempfile
from pathlib import Path
from typing import Final

from kwsniff.cli.main import BAD_NEWS, DONE, run
from tests.house.tree import ROOT

PAGE: Final = ROOT / "docs" / "troubleshooting.md"
_BLOCK: Final = re.compile(r"^(```text\n\$ kwsniff )(.*)\n[\s\S]*?(^```$)", re.MULTILINE)
_ROWS: Final = 11


def page() -> str:
    """The page, with the answers that its commands give."""
    return _BLOCK.sub(
        lambda found: f"{found[1]}{found[2]}\n{answer(found[2])}{found[3]}", PAGE.read_text("utf-8")
    )


def commands() -> list[str]:
    """The page's commands, without the name of the program."""
    return [found[2] for found in _BLOCK.finditer(PAGE.read_text("utf-8"))]


def answer(command: str) -> str:
    """What a command prints: of `why` the first finding up to its advice, of `sql` the first ten rows."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        Path("captures").symlink_to(ROOT / "captures")
        *before, last = command.split(" && kwsniff ")
        for each in before:
            _output(shlex.split(each))
        said = _output(shlex.split(last))
    if last.startswith("why "):
        return _cut(said)
    return "".join(said.splitlines(keepends=True)[:_ROWS]) if last.startswith("sql ") else said


def _cut(text: str) -> str:
    """The first finding, without its time and its proof; notes, where there is no other."""
    lines = text.splitlines()
    heads = [n for n, line in enumerate(lines) if line.startswith(("PROBLEM ", "WARNING ", "Notes:"))]
    kept = itertools.takewhile(
        lambda line: line and not line.lstrip().startswith("Proof:"), lines[heads[0] :]
    )
    return "".join(f"{line}\n" for line in kept if not line.startswith("  When:"))


def _output(words: list[str]) -> str:
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        status = run(words)
    if status not in (DONE, BAD_NEWS):
        raise ValueError(f"{words} ends with status {status}")
    return said.getvalue()


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
