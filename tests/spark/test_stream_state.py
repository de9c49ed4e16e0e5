"""What a stream leaves in its folder: all tables at any time, and a state that only its own can be."""

from __future__ import annotations

import os
import pickle
from contextlib import closing
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pytest

from tests.spark.compare import parts, records, written
from tests.spark.followed import ROOT, Growing

pytest.importorskip("pyspark", reason="pyspark is not installed")
pytest.importorskip("kwsniff.core.capture.file_splits", reason="the core is not built")

from kwsniff.errors import KwsniffError
from kwsniff.spark import stream as streaming
from kwsniff.spark.checkpoint import FOLLOWED
from kwsniff.spark.stream import Stream
from kwsniff.spark.stream_task import advance_bucket
from kwsniff.tables.aggregates import AGGREGATES


def test_tables_without_rows_are_there_before_during_and_after(in_process: None, tmp_path: Path) -> None:
    growing = Growing(tmp_path, 0)
    with closing(growing.stream()) as stream:
        assert stream.advance() == 0
        _all_tables_are_there(growing.output, empty=set(FOLLOWED))
        (growing.directory / "x").write_bytes((ROOT / "captures" / "no_acks" / "capture.pcap").read_bytes())
        assert stream.advance() == 1
        rows = stream.record.rows
    assert rows["api_calls"] > 0
    assert rows["groups"] == rows["transactions"] == 0
    _all_tables_are_there(growing.output, empty={name for name, count in rows.items() if not count})


def _all_tables_are_there(output: Path, empty: set[str]) -> None:
    assert {name for name in FOLLOWED if not parts(output, name)} == set()
    assert {name for name, rows in written(output).items() if not rows} == {
        *empty,
        "findings",
        "finding_calls",
    }
    assert {path.parts[-3] for path in output.glob("*/*/empty.parquet")} == empty


@pytest.mark.slow
def test_finished_on_spark_without_a_rebalance_the_aggregates_are_there(spark: Any, tmp_path: Path) -> None:
    captures = tmp_path / "captures"
    captures.mkdir()
    (captures / "x").write_bytes((ROOT / "captures" / "no_acks" / "capture.pcap").read_bytes())
    with closing(Stream(captures, tmp_path / "tables", spark=spark)) as stream:
        while stream.advance():
            pass
        stream.finish()
    counts = {
        table: spark.read.parquet(str(tmp_path / "tables" / table)).count()
        for table in (*FOLLOWED, *AGGREGATES)
    }
    assert {name: counts[name] for name in FOLLOWED} == stream.record.rows
    assert counts["groups"] == counts["transactions"] == counts["rebalances"] == 0
    assert counts["api_calls"] > 0
    assert counts["talkers"] > 0


@pytest.mark.slow
def test_of_an_empty_directory_finished_on_spark_all_tables_are_there(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "captures").mkdir()
    with closing(Stream(tmp_path / "captures", tmp_path / "tables", spark=spark)) as stream:
        stream.finish()
    for table in (*FOLLOWED, *AGGREGATES):
        assert spark.read.parquet(str(tmp_path / "tables" / table)).count() == 0


class Planted:
    """Bytes that, unpickled, make a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.folder),)


def begun(tmp_path: Path) -> Growing:
    growing = Growing(tmp_path, 0)
    (growing.directory / "x").write_bytes((ROOT / "captures" / "transactions" / "capture.pcap").read_bytes())
    with closing(growing.stream()) as stream:
        assert stream.advance() == 1
    return growing


@pytest.mark.parametrize("kind", ["timelines", "record.json", "state"])
@pytest.mark.parametrize("planted", ["pickle", "checked", "damaged"])
def test_a_planted_or_damaged_file_of_the_state_is_refused_and_runs_nothing(
    in_process: None, tmp_path: Path, kind: str, planted: str
) -> None:
    growing = begun(tmp_path)
    (path,) = (growing.output / "_stream").glob(f"*{kind}")
    bytes_ = pickle.dumps(Planted(tmp_path / "planted"))
    if planted == "checked":
        bytes_ = blake2b(bytes_, digest_size=16).digest() + bytes_
    elif planted == "damaged":
        bytes_ = path.read_bytes()[:-9] + b"x" + path.read_bytes()[-8:]
    path.write_bytes(bytes_)
    with (growing.directory / "x").open("ab") as file:
        file.write(records((growing.directory / "x").read_bytes())[-1])
    said = r"is damaged or not kwsniff's|not a state of this build"
    with pytest.raises(KwsniffError, match=said), closing(growing.stream()) as stream:
        stream.advance()
    assert not (tmp_path / "planted").exists()


def test_the_state_is_for_its_owner_alone(
    in_process: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    growing = begun(tmp_path)
    folder = growing.output / "_stream"
    assert folder.stat().st_mode & 0o777 == 0o700
    folder.chmod(0o755)  # as a copy may have it
    growing.stream().close()
    assert folder.stat().st_mode & 0o777 == 0o700
    folder.chmod(0o770)
    with pytest.raises(KwsniffError, match="can be written by other users"):
        growing.stream()
    folder.chmod(0o700)
    with monkeypatch.context() as patched:
        patched.setattr(os, "geteuid", lambda: os.getuid() + 1)
        with pytest.raises(KwsniffError, match="belongs to another user"):
            growing.stream()
    folder.rename(tmp_path / "elsewhere")
    folder.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(KwsniffError, match="is not a folder"):
        growing.stream()


@pytest.mark.parametrize("what", ["part", "state", "size"])
def test_what_a_task_wrote_has_to_be_there_before_it_counts(
    in_process: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """Tasks whose files the driver does not see, or sees half of."""

    def advance_elsewhere(number: int, **options: Any) -> Any:
        done = advance_bucket(number, **options)
        path = Path(done.state if what == "state" else Path(options["folder"]) / done.parts[0].path)
        if what == "size":
            path.write_bytes(path.read_bytes()[:-1])
        else:
            path.unlink()
        return done

    monkeypatch.setattr(streaming, "advance_bucket", advance_elsewhere)
    growing = Growing(tmp_path, 0)
    (growing.directory / "x").write_bytes((ROOT / "captures" / "no_acks" / "capture.pcap").read_bytes())
    with (
        closing(growing.stream()) as stream,
        pytest.raises(KwsniffError, match=r"a task wrote (it, but it is missing|.* bytes, but the file has)"),
    ):
        stream.advance()
    assert not (growing.output / "_stream" / "record.json").exists()
