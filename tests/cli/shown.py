"""Running ``kwsniff show`` in a test. `python -m tests.cli.shown` makes the examples of docs/show.md anew."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from kwsniff.cli.main import run
from tests.traffic.files import frames, pcap
from tests.traffic.tcp import Packet

CAPTURES = Path(__file__).parents[2] / "captures"
PAGE = CAPTURES.parent / "docs" / "show.md"
FIRST_STEPS = str(CAPTURES / "first_steps" / "capture.pcap")


def about(name: str) -> dict[str, Any]:
    return tomllib.loads((CAPTURES / name / "about.toml").read_text("utf-8"))


def recorded(name: str) -> str:
    return str(CAPTURES / name / about(name)["file"])


def written(path: Path, packets: list[Packet]) -> str:
    path.write_bytes(pcap(frames(packets)))
    return str(path)


def lines(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> list[str]:
    assert run(["show", *arguments]) == status
    return capsys.readouterr().out.splitlines()


def headings(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> list[str]:
    return [line for line in lines(capsys, *arguments, status=status) if line and not line.startswith(" ")]


def messages(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines(capsys, *arguments, "--json", status=status)]


def apis(found: list[str]) -> list[str]:
    return [line.split()[2] for line in found]


def page() -> str:
    """docs/show.md with the output that its commands have."""

    def example(match: re.Match[str]) -> str:
        command = [sys.executable, "-m", "kwsniff.cli.main", "show", *match[2].split()]
        done = subprocess.run(command, cwd=PAGE.parents[1], capture_output=True, text=True, check=True)
        return f"{match[1]}{match[2]}\n{done.stdout}{match[3]}"

    blocks = r"(^```text\n\$ kwsniff show )(.*)\n[\s\S]*?(^```$)"
    return re.sub(blocks, example, PAGE.read_text("utf-8"), flags=re.MULTILINE)


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
