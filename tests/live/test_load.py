"""The load program runs, and what it measures holds at a rate any machine keeps up with."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from .load import KINDS, main, measure
from .running import needs_capture


@pytest.mark.live
@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("tool", ["dumpcap", "tcpdump"])
def test_nothing_is_lost_and_everything_equals_the_recording(tool: str, kind: str, tmp_path: Path) -> None:
    needs_capture()
    pytest.importorskip("duckdb")
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is not installed")
    found = measure(kind, 2.0, tmp_path, tool=tool, rate=500)
    assert found.differing == {}
    assert found.yardstick.endswith("equal")
    assert found.lost_here == 0
    assert found.dropped_by_kernel == 0
    assert found.calls > 100
    assert found.packets > found.calls


def test_the_program_says_what_it_takes(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["--help"])
    assert stop.value.code == 0
    assert "--rate" in capsys.readouterr().out
