"""A directory that captures are written into: whatever happens on the way, every call comes out once."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.spark.compare import followed, parts, records, written
from tests.spark.followed import ROOT, Growing, of_this_folder, pieces

pytest.importorskip("pyspark", reason="pyspark is not installed")
pytest.importorskip("kwsniff.core.capture.file_splits", reason="the core is not built")

from kwsniff.cli.main import run
from kwsniff.errors import KwsniffError
from kwsniff.spark import stream as streaming
from kwsniff.spark.stream import Stream
from kwsniff.tables.column import RUN
from kwsniff.tables.schema import TABLES

pytestmark = pytest.mark.sample_tests(6)


@pytest.mark.slow
@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "name", ["first_steps", "transactions", "group_consumer", "versions_4_4", "rebalance"]
)
@pytest.mark.parametrize("chance", [(1, 1), (2, 1), (3, 3)], ids=["one", "two", "three_buckets"])
def test_growing_files_and_deaths_on_the_way_give_the_rows_of_batch(
    in_process: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, chance: tuple[int, int]
) -> None:
    """`chance`: what seeds the sizes and deaths, and the number of buckets."""
    paths = pieces(name, 3, tmp_path)
    growing = Growing(tmp_path, *chance)
    growing.write([(path.name, path.read_bytes()) for path in paths])
    growing.finish(monkeypatch)
    found = of_this_folder(written(growing.output), growing.directory)
    assert found == of_this_folder(followed(*paths), tmp_path / "whole")
    left = sorted(path.name for path in (growing.output / "_stream").iterdir())
    assert [name for name in left if not name.endswith((".state", ".timelines"))] == ["lock", "record.json"]
    assert len(left) == 3 + chance[1]


def test_a_file_compressed_after_it_was_rotated_is_not_read_again(
    in_process: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One was read whole before it was compressed, one in part, one not at all."""
    paths = pieces("transactions", 4, tmp_path)
    growing = Growing(tmp_path, 0)
    for path, before in zip(paths, (1.0, 0.5, 0.0, 1.0), strict=True):
        data = path.read_bytes()
        plain = growing.directory / path.name
        if before:
            plain.write_bytes(data[: int(len(data) * before)])
            growing.follow()
        if path is not paths[-1]:
            plain.unlink(missing_ok=True)
            (growing.directory / f"{path.name}.gz").write_bytes(gzip.compress(data))
    growing.finish(monkeypatch)
    found = of_this_folder(written(growing.output, without=["compression"]), growing.directory)
    assert {row["capture"] for row in found["captures"]} == {
        f"/rotated.pcap{suffix}" for suffix in ("", "1", "2.gz", "3")
    }
    unpacked = json.loads(json.dumps(found).replace(".gz", ""))
    wanted = of_this_folder(followed(*paths, without=["compression"]), tmp_path / "whole")
    assert {name: sorted(rows, key=repr) for name, rows in unpacked.items()} == wanted


def test_a_name_that_is_used_again_is_another_file(
    in_process: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `tcpdump -W 2` does: x0, x1, x0, x1."""
    paths = pieces("transactions", 4, tmp_path)
    growing = Growing(tmp_path, 0)
    for number, path in enumerate(paths):
        (growing.directory / f"x{number % 2}").write_bytes(path.read_bytes())
        growing.follow()
        growing.follow()
    growing.finish(monkeypatch)
    found, wanted = written(growing.output, without=["capture"]), followed(*paths, without=["capture"])
    assert found == wanted


def test_a_later_file_in_the_name_order_is_read_by_its_time(
    in_process: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = pieces("transactions", 3, tmp_path)
    growing = Growing(tmp_path, 0)
    for path, name in zip(paths, ("c", "a", "b"), strict=True):
        (growing.directory / name).write_bytes(path.read_bytes())
    growing.finish(monkeypatch)
    assert written(growing.output, without=["capture"]) == followed(*paths, without=["capture"])


def test_files_that_never_had_a_packet_are_captures_once_nothing_more_comes(
    in_process: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = pieces("transactions", 2, tmp_path)
    head = paths[0].read_bytes()[:24]
    growing = Growing(tmp_path, 0)
    for name, data in (("a", head), ("b.gz", gzip.compress(head)), ("c", paths[0].read_bytes())):
        (growing.directory / name).write_bytes(data)
    growing.follow()
    growing.write([("d", paths[1].read_bytes()), ("e", head)])
    growing.finish(monkeypatch)
    found = written(growing.output, without=["compression"])
    wanted = followed(*sorted(growing.directory.iterdir()), without=["compression"])
    assert found == wanted
    assert {Path(row["capture"]).name: row["packets"] > 0 for row in found["captures"]} == {
        "a": False, "b.gz": False, "c": True, "d": True, "e": False,
    }  # fmt: skip


def test_what_cannot_be_read_is_told_once_nothing_more_comes(
    in_process: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until then it may be a capture whose beginning is being written."""
    (path,) = pieces("transactions", 1, tmp_path)
    growing = Growing(tmp_path, 0)
    for name, data in (
        ("a", path.read_bytes()),
        ("b.log", b"no capture"),
        ("c", b""),
        ("d", path.read_bytes()[:9]),
    ):
        (growing.directory / name).write_bytes(data)
    (growing.directory / "e").mkdir()
    growing.follow()
    assert {row["capture"] for row in written(growing.output)["captures"]} <= {str(growing.directory / "a")}
    growing.finish(monkeypatch)
    found, wanted = written(growing.output), followed(growing.directory)
    assert found == wanted
    assert len(found["captures"]) == 5
    assert sum(row["name"] == "capture_damaged" for row in found["anomalies"]) == 3


def test_two_processes_do_not_write_to_the_same_place(tmp_path: Path) -> None:
    first = Stream(tmp_path, tmp_path / "out", spark=None)  # type: ignore[arg-type]
    with closing(first), pytest.raises(KwsniffError, match="another process"):
        Stream(tmp_path, tmp_path / "out", spark=None)  # type: ignore[arg-type]
    Stream(tmp_path, tmp_path / "out", spark=None).close()  # type: ignore[arg-type]


def test_other_settings_than_at_the_start_are_refused(in_process: None, tmp_path: Path) -> None:
    growing = Growing(tmp_path, 0)
    growing.write([("x", (ROOT / "captures" / "first_steps" / "capture.pcap").read_bytes())])
    with closing(Stream(growing.directory, growing.output, spark=None)) as stream:  # type: ignore[arg-type]
        stream.advance()
    with pytest.raises(KwsniffError, match="created with other ports"):
        Stream(growing.directory, growing.output, spark=None, ports=[1])  # type: ignore[arg-type]


def test_a_folder_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "letter.txt").touch()
    with pytest.raises(KwsniffError, match="not created by --stream"):
        Stream(tmp_path, tmp_path / "out", spark=None)  # type: ignore[arg-type]


@pytest.mark.parametrize("ending", ["follow", "finish"])
def test_two_files_that_grow_at_a_time_are_an_error_not_a_loss(
    in_process: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    """Two brokers' captures in one directory: when the first goes on, it says why it does not."""
    monkeypatch.setattr(streaming, "AGGREGATES", {})
    growing = Growing(tmp_path, 0)
    data = (ROOT / "captures" / "transactions" / "capture.pcap").read_bytes()
    packets = records(data)
    first, second = (growing.directory / name for name in ("first.pcap", "second.pcap"))
    first.write_bytes(data[:24] + b"".join(packets[:10]))
    with closing(growing.stream()) as stream:
        assert stream.advance() == 1
        second.write_bytes(data[:24] + b"".join(packets[10:20]))
        assert stream.advance() == 2
        with first.open("ab") as file:
            file.write(packets[20])
        for _ in range(2):  # also when it is asked again
            with pytest.raises(KwsniffError, match=r"first\.pcap grew after \S+second\.pcap had begun"):
                stream.advance() if ending == "follow" else stream.finish()
        assert not stream.record.finished
    with closing(growing.stream()) as stream, pytest.raises(KwsniffError, match="grew after"):
        stream.advance()


def test_a_file_of_two_that_stays_as_it_is_does_not_stop_the_other(
    in_process: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = pieces("transactions", 2, tmp_path)
    growing = Growing(tmp_path, 0)
    (growing.directory / paths[0].name).write_bytes(paths[0].read_bytes())
    growing.write([(paths[1].name, paths[1].read_bytes())])
    growing.finish(monkeypatch)
    found = of_this_folder(written(growing.output), growing.directory)
    assert found == of_this_folder(followed(*paths), tmp_path / "whole")


@pytest.mark.slow
def test_killed_and_started_again_on_spark_it_gives_the_rows_of_batch(spark: Any, tmp_path: Path) -> None:
    """The command itself, killed with signal 9 in the middle, then to the end. (`spark`: where Java is.)"""
    paths = pieces("versions_4_4", 4, tmp_path)
    captures, output = tmp_path / "captures", tmp_path / "tables"
    captures.mkdir()
    command = [
        sys.executable, "-m", "kwsniff.spark", "--stream", str(captures), "-o", str(output),
        "--interval", "0.1",        "--master", "local[2]", "--conf", "spark.driver.memory=768m",
        "--conf", f"spark.local.dir={tmp_path / 'spark'}", "--json",
    ]  # fmt: skip
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    try:
        _grow(captures, paths[:2])
        data = paths[2].read_bytes()
        (captures / paths[2].name).write_bytes(data[: len(data) // 2])
        _wait_for_batch(output)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    (captures / paths[2].name).write_bytes(data)
    _grow(captures, paths[3:])
    done = subprocess.run([*command, "--finish"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = of_this_folder(written(output), captures)
    assert found == of_this_folder(followed(*paths), tmp_path / "whole")
    assert spark.read.parquet(str(output / "latency_minutes")).count() > 0


def _grow(captures: Path, paths: list[Path]) -> None:
    for path in paths:
        data = path.read_bytes()
        for at in range(0, len(data), 5000):
            with (captures / path.name).open("ab") as file:
                file.write(data[at : at + 5000])


def _wait_for_batch(output: Path) -> None:
    for _ in range(6000):
        if (output / "_stream" / "record.json").exists():
            return
        time.sleep(0.1)
    raise AssertionError("no batch in ten minutes")


def test_a_folder_is_one_run_however_often_its_stream_is_started(
    in_process: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    growing = Growing(tmp_path, seed=3)
    growing.write([(path.name, path.read_bytes()) for path in pieces("first_steps", 2, tmp_path)])
    growing.finish(monkeypatch)
    files = [path for name in TABLES for path in parts(growing.output, name)]
    found = {each for path in files for each in pq.read_table(path)[RUN].unique().to_pylist()}
    assert found == {json.loads((growing.output / "_stream" / "record.json").read_text())[RUN]}


@pytest.mark.slow
def test_why_finds_in_the_folder_of_a_stream_what_it_finds_in_the_captures(
    in_process: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A stream writes no findings: they are of all that is there, and made when somebody asks."""
    paths = pieces("killed_broker", 3, tmp_path)
    growing = Growing(tmp_path, 0)
    for path in paths:
        (growing.directory / path.name).write_bytes(path.read_bytes())
        growing.follow()
    growing.finish(monkeypatch)
    told = []
    for inputs in ([str(growing.output)], [str(path) for path in paths]):
        status = run(["why", "--json", *inputs])
        found = json.loads(capsys.readouterr().out)["findings"]
        told.append((status, [(each["finding"], each["subject"], each["frames"]) for each in found]))
    assert told[0] == told[1]
    assert told[0][1]
