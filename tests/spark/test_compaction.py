"""Small files of a stream become larger ones, and old days go: no row is lost or doubled."""

from __future__ import annotations

import struct
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.spark.compare import analyzed, followed, parts, records, written
from tests.spark.followed import Growing, of_this_folder, pieces

pytest.importorskip("pyspark", reason="pyspark is not installed")
pytest.importorskip("kwsniff.core.capture.file_splits", reason="the core is not built")

from kwsniff.cli.main import run
from kwsniff.spark.compaction import Rules

_DAY_S = 86_400


@pytest.mark.slow
@pytest.mark.sample(1)
@pytest.mark.parametrize("name", ["transactions", "group_consumer", "versions_4_4"])
@pytest.mark.parametrize("chance", [(4, 1), (5, 3)], ids=["one", "three_buckets"])
def test_rows_stay_the_same_while_files_become_fewer(
    in_process: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, chance: tuple[int, int]
) -> None:
    """With deaths on the way. A batch adds a file for each bucket to a table's day."""
    paths = pieces(name, 3, tmp_path)
    growing = Growing(tmp_path, *chance, rules=Rules(compact=4))
    growing.write([(path.name, path.read_bytes()) for path in paths])
    growing.finish(monkeypatch)
    found = of_this_folder(written(growing.output), growing.directory)
    assert found == of_this_folder(followed(*paths), tmp_path / "whole")
    calls = parts(growing.output, "api_calls")
    assert len(calls) <= 3 + chance[1]
    assert any("-merged-" in path.name for path in calls)


def test_files_grow_without_the_rule(
    in_process: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = pieces("transactions", 3, tmp_path)
    growing = Growing(tmp_path, 4)
    growing.write([(path.name, path.read_bytes()) for path in paths])
    growing.finish(monkeypatch)
    assert len(parts(growing.output, "api_calls")) > 10


def test_days_before_those_that_are_kept_go(
    in_process: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same recording on three days in turn: of two that are kept the first one goes."""
    (path,) = pieces("first_steps", 1, tmp_path)
    first = path.read_bytes()
    growing = Growing(tmp_path, 0, rules=Rules(keep=2))
    for day in range(3):
        (growing.directory / f"day{day}").write_bytes(days_later(first, day))
        with closing(growing.stream()) as stream:
            while stream.advance():
                pass
    with closing(growing.stream()) as stream:
        told = dict(stream.record.rows)
    growing.finish(monkeypatch)
    begun = min(row["request_time"] for row in analyzed(path)["api_calls"] if row["request_time"]).date()
    dates = {each.parent.name for each in parts(growing.output, "api_calls")}
    assert dates == {f"date={begun + timedelta(days=days)}" for days in (1, 2)}
    assert {row["request_time"].date() for row in written(growing.output)["api_calls"]} == {
        begun + timedelta(days=days) for days in (1, 2)
    }
    with closing(growing.stream()) as stream:
        told = stream.record.rows
    for table in ("api_calls", "connections", "partitions"):
        assert told[table] == sum(pq.read_metadata(each).num_rows for each in parts(growing.output, table))


def test_a_day_to_come_takes_no_other_day_away(
    in_process: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The recording of one day, and the same with the clock of a machine that is a thousand days ahead."""
    (path,) = pieces("first_steps", 1, tmp_path)
    growing = Growing(tmp_path, 0, rules=Rules(keep=2))
    for name, days in (("now", 0), ("ahead", 1000)):
        (growing.directory / name).write_bytes(days_later(path.read_bytes(), days))
        with closing(growing.stream()) as stream:
            while stream.advance():
                pass
    growing.finish(monkeypatch)
    begun = min(row["request_time"] for row in analyzed(path)["api_calls"] if row["request_time"]).date()
    dates = {each.parent.name for each in parts(growing.output, "api_calls")}
    assert dates == {f"date={begun + timedelta(days=days)}" for days in (0, 1000)}


def days_later(data: bytes, days: int) -> bytes:
    """A little-endian pcap with the seconds of its packets put off."""
    return data[:24] + b"".join(
        struct.pack("<I", struct.unpack_from("<I", each)[0] + days * _DAY_S) + each[4:]
        for each in records(data)
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["x.pcap", "--compact", "8"], "--compact and --keep need --stream"),
        (["--stream", ".", "--compact", "1"], "2 or more"),
        (["--stream", ".", "--keep", "0"], "1 or more"),
    ],
)
def test_bad_usage_is_one_line(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert run(["pipeline", *arguments, "-o", str(tmp_path / "out")]) == 2
    said = capsys.readouterr()
    assert words in said.err
    assert said.err.count("\n") == 1
