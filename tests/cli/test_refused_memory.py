"""Memory that the system refuses is one line and exit status 2, wherever it is refused."""

from __future__ import annotations

import errno
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import kwsniff.cli.explain
from kwsniff.cli.main import run
from tests.traffic.files import frames, pcap
from tests.traffic.scenes import two_clients

REFUSALS = {
    "Python": MemoryError(),
    "Arrow": pa.ArrowMemoryError("malloc of size 64 failed"),
    "a thread": RuntimeError("can't start new thread"),
    "a library": ImportError("libarrow.so: failed to map segment from shared object"),
    "the system": OSError(errno.ENOMEM, os.strerror(errno.ENOMEM)),
}


def _raising(error: Exception) -> Callable[..., Any]:
    def fail(*_: object) -> None:
        raise error

    return fail


@pytest.mark.parametrize("who", list(REFUSALS))
def test_whoever_is_refused_memory_is_told_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], who: str
) -> None:
    monkeypatch.setattr(kwsniff.cli.explain, "run", _raising(REFUSALS[who]))
    assert run(["explain", "apis"]) == 2
    assert capsys.readouterr().err.startswith("kwsniff: error: the system refuses memory")


def test_memory_that_was_refused_further_in_is_told_as_well(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> None:
        try:
            raise MemoryError
        except MemoryError as error:
            raise RuntimeError("a batch") from error

    monkeypatch.setattr(kwsniff.cli.explain, "run", fail)
    assert run(["explain", "apis"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_another_error_is_not_taken_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kwsniff.cli.explain, "run", _raising(RuntimeError("a mistake")))
    with pytest.raises(RuntimeError, match="a mistake"):
        run(["explain", "apis"])


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not bound addresses")
@pytest.mark.parametrize("megabytes", [150, 300])
def test_a_process_that_may_have_little_leaves_nothing(tmp_path: Path, megabytes: int) -> None:
    capture = tmp_path / "shop.pcap"
    capture.write_bytes(pcap(frames(two_clients().packets())))
    bound = megabytes << 20
    done = subprocess.run(
        [sys.executable, "-m", "kwsniff", "analyze", str(capture), "-o", str(tmp_path / "out")],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (bound, bound)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert done.stderr.startswith("kwsniff: error: the system refuses memory")
    assert not list((tmp_path / "out").glob("*.parquet"))
