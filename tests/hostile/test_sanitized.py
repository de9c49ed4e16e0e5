"""A small budget of every target under sanitizers."""

from pathlib import Path

import pytest

from tests.hostile import sanitize
from tests.hostile.build import SANITIZERS, build
from tests.hostile.targets import TARGETS


@pytest.mark.slow
def test_every_target_under_sanitizers(tmp_path: Path):
    lacking = sanitize.missing()
    if lacking:
        pytest.skip(f"no sanitized core: {lacking}")
    # Compiled in a third of the time, which so few executions do not lose again.
    build(tmp_path, (*SANITIZERS, "-O0"))
    done = sanitize.run(tmp_path, ["--seconds", "0", "--seed", "77"])
    assert done.returncode == 0, done.stderr[-4000:]
    for name, (_, executions) in TARGETS.items():
        assert f"{name}: {executions} executions" in done.stdout
    crashes = sorted((Path(__file__).parent / "crashes").iterdir())
    done = sanitize.feed(tmp_path, crashes)
    assert done.returncode == 0, done.stderr[-4000:]
