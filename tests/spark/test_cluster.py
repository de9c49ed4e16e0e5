"""On a cluster whose worker has file systems of its own."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.spark.cluster import cluster
from tests.spark.compare import analyzed, written

pytest.importorskip("kwsniff.core.capture.file_splits", reason="the core is not built")


ROOT = Path(__file__).parents[2]


_SCRIPT = """
import contextlib, io, json, sys
from kwsniff.cli.main import run
for command in json.loads(sys.argv[1]):
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        status = run(command)
    print(json.dumps([status, out.getvalue(), err.getvalue()]), flush=True)
"""


def run_on(master: str, folder: Path, commands: list[list[str]]) -> list[tuple[int, str, str]]:
    """The commands in one process, which has one session: status, output and errors of each."""
    options = [
        "--master", master, "--buckets", "2", "--conf", "spark.driver.memory=512m",
        "--conf", "spark.executor.memory=512m", "--conf", f"spark.local.dir={folder / 'spark'}",
    ]  # fmt: skip
    commands = [["pipeline", *command, *options] for command in commands]
    script = [sys.executable, "-W", "ignore", "-c", _SCRIPT, json.dumps(commands)]
    done = subprocess.run(script, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_where_workers_do_not_see_a_folder_it_says_so_and_makes_nothing(
    spark: Any, capture: Path, tmp_path: Path
) -> None:
    """The output, the input and a stream's output lie where the worker does not see them, then all where it
    does. (`spark`: where Java is.)"""
    hidden, common = tmp_path / "hidden", tmp_path / "common"
    for folder in (hidden, common, common / "stream"):
        folder.mkdir()
        shutil.copy(capture, folder / "capture.pcap")
    seen = common / "capture.pcap"
    commands = [
        [str(seen), "-o", str(hidden / "tables")],
        [str(hidden / "capture.pcap"), "-o", str(common / "tables")],
        ["--stream", str(common / "stream"), "-o", str(hidden / "followed"), "--once"],
        [str(seen), "-o", str(common / "tables"), "--table", "api_calls"],
    ]
    with cluster(tmp_path, hidden=hidden) as master:
        *failed, done = run_on(master, tmp_path, commands)
    unseen = "workers do not see the output folder; it has to be on storage that all share"
    said = (unseen, "workers do not see it; captures have to be under the same path on all machines", unseen)
    for (status, out, err), words in zip(failed, said, strict=True):
        assert (status, out) == (2, ""), err
        assert err.startswith("kwsniff: error: "), err
        assert err.count("\n") == 1
        assert words in err
    assert not (hidden / "tables").exists()
    assert not (hidden / "followed" / "_stream" / "record.json").exists()
    assert done[0] == 0, done[2]
    assert written(common / "tables")["api_calls"] == analyzed(seen)["api_calls"]
