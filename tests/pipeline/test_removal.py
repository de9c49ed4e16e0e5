"""Every so many message of recorded captures is taken out; `python -m tests.pipeline.removal` takes all."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pipeline.removal import ROOT, tried

CAPTURES = sorted((ROOT / "captures").glob("*/capture.pcap*"))
SHOWING = {"first_steps": 1, "no_acks": 1, "any_interface": 3, "large_messages": 3}
"""Captures of which more messages are taken: whole conversations, pipelines, no answers, many segments."""


@pytest.mark.sample(4)
@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.parent.name)
def test_a_missing_message_is_blamed_on_the_capture(path: Path) -> None:
    step = SHOWING.get(path.parent.name, 37)
    found = {name: faults for name, faults in tried(path, step=step) if faults}
    assert found == {}
