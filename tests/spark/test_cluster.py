"""On a cluster whose worker has file systems of its own."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import SHORT_LIVED_JAVA
from tests.spark.cluster import cluster
from tests.spark.compare import Rows, analyzed, in_order, rotated, written
from tests.spark.store import as_if_local, new_bucket, put, s3

pytest.importorskip("kwsniff.core.capture.file_splits", reason="the core is not built")

import pyarrow as pa

from kwsniff.spark.manifest import paths_of, read_published
from kwsniff.spark.storage import Place
from kwsniff.tables.schema import TABLES, arrow_schema

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
        "--conf", f"spark.executor.extraJavaOptions={SHORT_LIVED_JAVA}",
    ]  # fmt: skip
    commands = [["pipeline", *command, *options] for command in commands]
    script = [sys.executable, "-W", "ignore", "-c", _SCRIPT, json.dumps(commands)]
    done = subprocess.run(script, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.slow
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
    unseen = "workers do not see the output folder; it must be on storage that all workers share"
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


@pytest.mark.slow
def test_workers_that_share_nothing_read_a_store_and_fill_it(
    spark: Any, capture: Path, tmp_path: Path
) -> None:
    """Two of them, in mount namespaces of their own: where the driver has the captures and its session, each
    has an empty folder that nobody else sees. An address of a store is all that they are told."""
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    paths = rotated(capture.read_bytes(), 4, hidden)
    with s3(tmp_path) as settings, cluster(tmp_path, hidden=hidden, workers=2) as master:
        store = new_bucket(settings)
        for path in paths:
            put(store, path.name, path.read_bytes())
        conf = [word for name, value in settings for word in ("--conf", f"spark.hadoop.{name}={value}")]
        command = [f"{store.root}/rotated.pcap*", "-o", f"{store.root}/tables", *conf]
        (done,) = run_on(master, hidden, [command])
        assert done[0] == 0, done[2]
        rows = rows_of(store.inside("tables"))
        assert as_if_local(rows, store, hidden) == analyzed(*paths)
    for number in range(2):
        assert [*(tmp_path / f"work-{number}").glob("app-*/*/stderr")], "a worker had nothing to do"


def rows_of(place: Place) -> Rows:
    """Those of the files that a store's manifest names."""
    named = sorted(paths_of(read_published(place)))
    found = {}
    for name, table in TABLES.items():
        files = []
        for path in (each for each in named if each.startswith(f"{name}/")):
            with place.open_parquet(path) as file:
                files.append(file.read())
        found[name] = in_order(pa.concat_tables([arrow_schema(table).empty_table(), *files]), ())
    return found
