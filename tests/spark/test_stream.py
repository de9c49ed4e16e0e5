"""A directory that captures are written into: whatever happens on the way, every call comes out once."""

from __future__ import annotations

import gzip
import json
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.spark.compare import analyzed, rotated, written

pytest.importorskip("pyspark", reason="pyspark is not installed")
pytest.importorskip("kwsniff.core.capture.file_splits", reason="the core is not built")

from kwsniff.errors import KwsniffError
from kwsniff.spark import stream as streaming
from kwsniff.spark.stream import Stream

ROOT = Path(__file__).parents[2]


class Killed(Exception):
    """In the place of a signal: nothing after it happens."""


class Growing:
    """Files that are written piece by piece, and the output that follows them."""

    def __init__(self, folder: Path, seed: int, num_buckets: int = 1) -> None:
        self.num_buckets = num_buckets
        self.directory = folder / "captures"
        self.directory.mkdir()
        self.output = folder / "tables"
        self.dice = random.Random(seed)

    def write(self, files: list[tuple[str, bytes]]) -> None:
        for name, data in files:
            at = 0
            while at < len(data):
                size = self.dice.choice((1, 30, 700, 3000, 20_000))
                with (self.directory / name).open("ab") as file:
                    file.write(data[at : at + size])
                at += size
                self.follow()

    def _stream(self) -> Stream:
        return Stream(self.directory, self.output, spark=None, num_buckets=self.num_buckets)  # type: ignore[arg-type]

    def follow(self) -> None:
        """A process of its own, which is killed now and then, at any point."""
        try:
            with closing(self._stream()) as stream:
                self._kill_later(stream)
                while stream.advance(self.dice.choice((500, 5000, 1 << 30))):
                    pass
        except Killed:
            pass

    def _kill_later(self, stream: Stream) -> None:
        def kill(*_: Any, **__: Any) -> None:
            raise Killed

        def save_then_kill(record: Any) -> None:
            Stream._save(stream, record)
            raise Killed

        when = self.dice.choice(("_on_driver", "_place", "_save", "saved", "_settle", *["never"] * 10))
        if when == "saved":
            stream._save = save_then_kill  # type: ignore[method-assign]
        elif when != "never":
            setattr(stream, when, kill)

    def finish(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(streaming, "AGGREGATES", {})
        with closing(self._stream()) as stream:
            while stream.advance():
                pass
            stream.finish()


def pieces(name: str, number: int, folder: Path) -> list[Path]:
    (folder / "whole").mkdir()
    return rotated((ROOT / "captures" / name / "capture.pcap").read_bytes(), number, folder / "whole")


def of_this_folder(rows: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Rows with the captures named as if they lay elsewhere."""
    text = json.dumps(rows, default=str).replace(str(folder), "")
    return {name: sorted(found, key=repr) for name, found in json.loads(text).items()}


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
    assert found == of_this_folder(analyzed(*paths), tmp_path / "whole")
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
    wanted = of_this_folder(analyzed(*paths, without=["compression"]), tmp_path / "whole")
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
    found, wanted = written(growing.output, without=["capture"]), analyzed(*paths, without=["capture"])
    assert found == wanted


def test_a_later_file_in_the_name_order_is_read_by_its_time(
    in_process: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = pieces("transactions", 3, tmp_path)
    growing = Growing(tmp_path, 0)
    for path, name in zip(paths, ("c", "a", "b"), strict=True):
        (growing.directory / name).write_bytes(path.read_bytes())
    growing.finish(monkeypatch)
    assert written(growing.output, without=["capture"]) == analyzed(*paths, without=["capture"])


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
    with pytest.raises(KwsniffError, match="begun with other ports"):
        Stream(growing.directory, growing.output, spark=None, ports=[1])  # type: ignore[arg-type]


def test_a_folder_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "letter.txt").touch()
    with pytest.raises(KwsniffError, match="not begun by --stream"):
        Stream(tmp_path, tmp_path / "out", spark=None)  # type: ignore[arg-type]


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
    assert found == of_this_folder(analyzed(*paths), tmp_path / "whole")
    assert spark.read.parquet(str(output / "latency_minutes")).count() > 0


def _grow(captures: Path, paths: list[Path]) -> None:
    for path in paths:
        data = path.read_bytes()
        for at in range(0, len(data), 5000):
            with (captures / path.name).open("ab") as file:
                file.write(data[at : at + 5000])


def _wait_for_batch(output: Path) -> None:
    for _ in range(1200):
        if (output / "_stream" / "record.json").exists():
            return
        time.sleep(0.1)
    raise AssertionError("no batch in two minutes")
