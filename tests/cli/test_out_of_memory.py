"""Memory that the system refuses is one line and exit status 2, wherever it is refused."""

from __future__ import annotations

import errno
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import kwsniff
import kwsniff.cli.explain
from kwsniff.cli.main import run
from kwsniff.memory import is_refused_memory
from tests.traffic.files import frames, pcap
from tests.traffic.scenes import two_clients

REFUSALS = {
    "Python": MemoryError(),
    "Arrow": pa.ArrowMemoryError("malloc of size 64 failed"),
    "a thread": RuntimeError("can't start new thread"),
    "a thread of Arrow's": pa.ArrowException("Unknown error: Failed to launch worker thread: Resource"),
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
    assert capsys.readouterr().err.startswith("kwsniff: error: out of memory")


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


@pytest.mark.parametrize("bounded", [True, False])
def test_a_module_that_fails_without_a_word_lacked_memory_only_where_there_is_a_bound(
    monkeypatch: pytest.MonkeyPatch, bounded: bool
) -> None:
    monkeypatch.setattr("kwsniff.memory.has_address_limit", lambda: bounded)
    error = SystemError("<built-in function compile> returned NULL without setting an exception")
    assert is_refused_memory(error) == bounded


VERBS = {
    "analyze": ["analyze", "CAPTURE", "-o", "OUT"],
    "analyze a table": ["analyze", "CAPTURE", "-o", "OUT", "--table", "api_calls"],
    "why": ["why", "TABLES"],
    "sql": ["sql", "TABLES", "select count(*) from api_calls"],
    "show": ["show", "CAPTURE"],
    "explain": ["explain", "apis"],
}


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("shop")
    capture, tables = folder / "shop.pcap", folder / "tables"
    capture.write_bytes(pcap(frames(two_clients().packets())))
    kwsniff.analyze(capture, output=tables)
    return {"CAPTURE": str(capture), "TABLES": str(tables)}


def _within(bound: int, arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "kwsniff", *arguments],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (bound, bound)),
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.sample(3)
@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not bound addresses")
@pytest.mark.parametrize("megabytes", [110, 180, 280, 350, 420])
@pytest.mark.parametrize("verb", list(VERBS))
def test_a_process_that_may_have_few_addresses_does_its_work_or_says_one_line(
    tmp_path: Path, places: dict[str, str], verb: str, megabytes: int
) -> None:
    """What threads of DuckDB and Arrow, and OpenBLAS, were refused ended the process by a signal."""
    out = tmp_path / "out"
    done = _within(megabytes << 20, [{**places, "OUT": str(out)}.get(part, part) for part in VERBS[verb]])
    written = sorted(each.name for each in out.glob("*")) if out.exists() else []
    if not done.stderr:
        assert done.returncode == (verb == "why" and done.stdout != "")  # bad news
        assert ("api_calls.parquet" in written) == ("OUT" in VERBS[verb])
    else:
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
        assert done.stderr.startswith("kwsniff: error: out of memory")
        assert not [name for name in written if not name.startswith(".")]


@pytest.mark.sample(1)
@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not bound addresses")
@pytest.mark.parametrize("megabytes", [600, 1000, 1500])
def test_what_the_advice_names_is_enough(tmp_path: Path, places: dict[str, str], megabytes: int) -> None:
    """A small capture takes less. An allocator that reserves 1 GiB at once leaves too little of 1.5 GB."""
    done = _within(megabytes * 1_000_000, ["analyze", places["CAPTURE"], "-o", str(tmp_path / "out")])
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "out" / "findings.parquet").exists()
