"""Parquet files: what readers see in them, and that they are all there or not at all."""

import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kwsniff.core.declared import ENUMS
from kwsniff.errors import OutputError
from kwsniff.layout.catalog import load_catalog
from kwsniff.tables.build import Builder
from kwsniff.tables.lock import take_lock
from kwsniff.tables.schema import TABLES, arrow_schema
from kwsniff.tables.write import TableWriter
from tests.tables.columns import table
from tests.tables.runs import of_any_run

FILES = {f"{name}.parquet" for name in TABLES}


def calls(rows: int = 3, first: int = 0) -> pa.RecordBatch:
    columns = table(
        "api_calls",
        rows,
        call_id=list(range(first, first + rows)),
        client_id=[None if n % 2 else b"client-%d" % n for n in range(rows)],
        topics=[[b"t", b"u"][: n % 3] for n in range(rows)],
    )
    return Builder(load_catalog(), ENUMS).build("api_calls", columns)


def write(directory: Path, *batches: pa.RecordBatch) -> dict[str, Path]:
    with TableWriter(directory) as writer:
        for batch in batches:
            writer.write("api_calls", batch)
        return writer.commit()


def names(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir()}


def test_every_table_is_one_file_with_exactly_the_declared_types(tmp_path: Path) -> None:
    paths = write(tmp_path / "made" / "for" / "it", calls())
    assert names(tmp_path / "made" / "for" / "it") == FILES
    for name, path in paths.items():
        schema, declared = pq.read_schema(path), arrow_schema(TABLES[name])
        assert schema.equals(declared)
        assert schema.metadata[b"pandas"] == declared.metadata[b"pandas"]


def test_what_is_read_is_what_was_written(tmp_path: Path) -> None:
    first, second = calls(5), calls(4, first=5)
    paths = write(tmp_path, first, second)
    expected = pa.Table.from_batches([first, second])
    found = of_any_run(pq.read_table(paths["api_calls"]))
    assert found.equals(expected.cast(found.schema))
    assert expected["topics"].to_pylist()[:3] == [[], ["t"], ["t", "u"]]


def test_pandas_sees_utc_times_plain_texts_and_numbers(tmp_path: Path) -> None:
    frame = pd.read_parquet(write(tmp_path, calls())["api_calls"])
    assert str(frame["request_time"].dtype) == "datetime64[us, UTC]"
    assert frame["request_time"][0] == pd.Timestamp("2023-11-14T22:13:20.123456Z")
    assert not isinstance(frame["client_id"].dtype, pd.CategoricalDtype)
    assert frame["client_id"][0] == "client-0"
    assert frame["client_id"].isna().tolist() == [False, True, False]
    assert str(frame["call_id"].dtype) == "int64"
    assert list(frame["topics"][2]) == ["t", "u"]


def test_people_can_skip_row_groups_by_time_and_id(tmp_path: Path) -> None:
    path = write(tmp_path, calls(5), calls(4, first=5))["api_calls"]
    groups = pq.ParquetFile(path).metadata
    assert groups.num_row_groups == 2
    for column in ("call_id", "request_time", "latency_ns"):
        place = arrow_schema(TABLES["api_calls"]).get_field_index(column)
        assert groups.row_group(1).column(place).statistics.has_min_max
    assert groups.row_group(1).column(0).statistics.min == 5


def test_a_second_run_replaces_the_first(tmp_path: Path) -> None:
    write(tmp_path, calls(5))
    (tmp_path / "notes.txt").write_text("mine")
    write(tmp_path)
    assert names(tmp_path) == {*FILES, "notes.txt"}
    assert pq.read_metadata(tmp_path / "api_calls.parquet").num_rows == 0


def test_a_failing_run_leaves_the_files_of_the_one_before(tmp_path: Path) -> None:
    write(tmp_path, calls(5))
    before = (tmp_path / "api_calls.parquet").read_bytes()
    with pytest.raises(ZeroDivisionError), TableWriter(tmp_path) as writer:
        writer.write("api_calls", calls(7))
        raise ZeroDivisionError
    assert names(tmp_path) == FILES
    assert (tmp_path / "api_calls.parquet").read_bytes() == before


_KILLED = """
import os, signal, sys
from pathlib import Path
from kwsniff.tables.write import TableWriter
from tests.tables.test_write import calls
writer = TableWriter(Path(sys.argv[1]))
writer.write("api_calls", calls(1000))
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_run_leaves_no_final_name_and_the_next_one_cleans_up(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _KILLED, tmp_path], cwd=Path(__file__).parents[2], check=False
    )
    assert done.returncode == -signal.SIGKILL
    left = names(tmp_path)
    assert left
    assert all(name.startswith(".") for name in left), left
    write(tmp_path, calls(2))
    assert names(tmp_path) == FILES


def test_what_is_not_provably_left_by_a_dead_run_is_let_be(tmp_path: Path) -> None:
    foreign = tmp_path / ".theirs.parquet.partial-999999999"
    foreign.write_bytes(b"x")
    living = tmp_path / f".kwsniff-{0:032x}"
    living.mkdir()
    lock = take_lock(living)
    assert lock is not None
    write(tmp_path)
    assert living.exists()
    assert foreign.exists()
    lock.release()
    write(tmp_path)
    assert names(tmp_path) == {*FILES, foreign.name}


def test_a_full_disk_is_one_line_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # Python would leave modules that are cut off
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, limit[1]))  # the kernel refuses, as on a full disk
    try:
        with pytest.raises(OutputError) as caught, TableWriter(tmp_path) as writer:
            for first in range(0, 100_000, 10_000):
                writer.write("api_calls", calls(10_000, first))
            writer.commit()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert "\n" not in str(caught.value)
    assert str(tmp_path) in str(caught.value)
    assert names(tmp_path) == set()


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small file system needs root")
def test_a_really_full_disk_is_said(tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "none", small], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"cannot mount here: {mounted.stderr.decode().strip()}")
    try:
        with pytest.raises(OutputError, match="No space left on device"), TableWriter(small) as writer:
            for first in range(0, 100_000, 10_000):
                writer.write("api_calls", calls(10_000, first))
            writer.commit()
        assert names(small) == set()
    finally:
        subprocess.run(["umount", small], check=True)


def test_a_directory_in_the_way_is_named_before_anything_is_written(tmp_path: Path) -> None:
    (tmp_path / "latencies.parquet").mkdir()
    with pytest.raises(OutputError, match=r"latencies\.parquet is a directory"):
        TableWriter(tmp_path)
    assert names(tmp_path) == {"latencies.parquet"}


def test_an_output_that_is_a_file_is_said(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("mine")
    with pytest.raises(OutputError, match="cannot write"):
        TableWriter(path)
    assert path.read_text() == "mine"
