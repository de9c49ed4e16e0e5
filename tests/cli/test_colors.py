"""Severity is colored on a terminal, and nowhere else."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.terminal import run_on_terminal

CAPTURE = Path(__file__).parents[2] / "captures" / "incidents" / "broker_stalled" / "broker.pcap"
COMMAND = [sys.executable, "-m", "kwsniff.cli.main", "why", str(CAPTURE)]
RED = "\x1b[1;31mPROBLEM broker_stalled\x1b[0m"


def shown(**more: str) -> str:
    """What a terminal gets; the progress goes elsewhere."""
    size = {"TERM": "xterm-256color", "COLUMNS": "80", "LINES": "24"}
    status, text = run_on_terminal("why", CAPTURE, environment=size | more)
    assert status == 1
    return text


def test_a_terminal_gets_severity_in_color() -> None:
    assert RED in shown()


@pytest.mark.parametrize("more", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_who_wants_no_color_gets_none(more: dict[str, str]) -> None:
    text = shown(**more)
    assert "PROBLEM broker_stalled" in text
    assert "31m" not in text


def test_a_pipe_gets_plain_text() -> None:
    done = subprocess.run(COMMAND, capture_output=True, text=True, check=False)
    assert "PROBLEM broker_stalled (certain) owner: broker" in done.stdout
    assert "\x1b" not in done.stdout
