"""Running ``kwsniff show`` in a test. `python -m tests.cli.shown` makes the examples of PAGES anew."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from kwsniff.cli.main import BAD_NEWS, DONE, run
from tests.traffic.files import frames, pcap
from tests.traffic.tcp import Packet

CAPTURES = Path(__file__).parents[2] / "captures"
ROOT = CAPTURES.parent
PAGE = ROOT / "docs" / "show.md"
PAGES = (PAGE, ROOT / "docs" / "upgrade.md", ROOT / "docs" / "compare.md")
FIRST_STEPS = str(CAPTURES / "first_steps" / "capture.pcap")


def about(name: str) -> dict[str, Any]:
    return tomllib.loads((CAPTURES / name / "about.toml").read_text("utf-8"))


def recorded(name: str) -> str:
    return str(CAPTURES / name / about(name)["file"])


def written(path: Path, packets: list[Packet]) -> str:
    path.write_bytes(pcap(frames(packets)))
    return str(path)


def tshark(path: Path, *arguments: str) -> list[str]:
    program = shutil.which("tshark")
    if program is None:
        pytest.skip("tshark is not installed")
    done = subprocess.run(
        [program, "-n", "-r", str(path), *arguments], capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()


def lines(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> list[str]:
    assert run(["show", *arguments]) == status
    return capsys.readouterr().out.splitlines()


def headings(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> list[str]:
    return [line for line in lines(capsys, *arguments, status=status) if line and not line.startswith(" ")]


def messages(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines(capsys, *arguments, "--json", status=status)]


def apis(found: list[str]) -> list[str]:
    return [line.split()[2] for line in found]


def page(path: Path = PAGE) -> str:
    """A page of the docs with the output that its commands have, on a screen of 80 columns."""

    def example(match: re.Match[str]) -> str:
        command = [sys.executable, "-m", "kwsniff.cli.main", *match[2].split()]
        screen = {**os.environ, "COLUMNS": "80"}
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, env=screen)
        assert done.returncode in (DONE, BAD_NEWS), done.stderr
        return f"{match[1]}{match[2]}\n{done.stdout}{match[3]}"

    blocks = r"(^```text\n\$ kwsniff )((?:show|upgrade|compare) .*)\n[\s\S]*?(^```$)"
    return re.sub(blocks, example, path.read_text("utf-8"), flags=re.MULTILINE)


if __name__ == "__main__":
    for each in PAGES:
        each.write_text(page(each), "utf-8")
