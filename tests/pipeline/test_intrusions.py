"""A segment that nobody took is put into recorded captures: some of `python -m tests.pipeline.intrusions`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pipeline.intrusions import places, tried
from tests.pipeline.removal import ROOT
from tests.pipeline.segments import conversations, read

CAPTURES = sorted((ROOT / "captures").glob("*/capture.pcap*"))
SHOWING = {"large_messages": 1, "zookeeper_2_8": 9}
"""Captures of which more places are tried: with holes of their own, and with a FIN soon behind."""


@pytest.mark.sample(10)
@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.parent.name)
def test_what_nobody_took_changes_nothing(path: Path) -> None:
    found = {
        name: differences
        for name, _, differences in tried(path, step=SHOWING.get(path.parent.name, 101))
        if differences
    }
    assert found == {}


def test_there_are_places_where_both_sides_go_on() -> None:
    _, segments = read(ROOT / "captures" / "first_steps" / "capture.pcap")
    assert sum(len(places(talk)) for talk in conversations(segments)) > 10
