"""A session over a source made of a file gives what `analyze` gives for that file."""

from __future__ import annotations

import subprocess
import sys
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kwsniff
from kwsniff.errors import CaptureError, OutputError
from kwsniff.findings.views import FOUND
from kwsniff.live import files as files_module
from kwsniff.live import session as session_module
from kwsniff.live.files import RollingTables, Rotation
from kwsniff.live.ring_buffer import PacketRing
from kwsniff.live.session import Session
from kwsniff.tables.column import RUN
from kwsniff.tables.schema import TABLES, arrow_schema
from kwsniff.tables.write import TableFiles
from tests.pipeline.compare import analyzed_packets
from tests.tables.runs import inside, of_any_run
from tests.traffic import messages
from tests.traffic.records import batch
from tests.traffic.scenes import one_by_one

from .running import PATIENCE_S, ROOT, FileSource, table

pytestmark = pytest.mark.sample_tests(8)

CAPTURES = ROOT / "captures"
MANY = [
    *("first_steps/capture.pcap", "codecs/capture.pcapng", "transaction/capture.pcap"),
    "handovers/capture.pcap",
]
RANDOM = {"call_id", "connection_id"}
SHOWING = ("api_calls", "partitions", "record_batches")
"""Tables of calls that move records, and that show topics."""


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small pieces are read as they come: nobody needs to wait for more."""
    monkeypatch.setattr(session_module, "_GATHER_S", 0.0)


def plain(name: str, rows: pa.RecordBatch | pa.Table) -> list[dict[str, Any]]:
    found = rows if isinstance(rows, pa.Table) else pa.Table.from_batches([rows])
    names = [field for field in arrow_schema(TABLES[name]) if field.name != RUN]
    rows = of_any_run(found).cast(pa.schema(names)).to_pylist()
    return [{key: value for key, value in row.items() if key != "capture"} for row in rows]


def without_numbering(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{key: value for key, value in row.items() if key not in RANDOM} for row in rows]


def in_order(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(map(repr, without_numbering(rows)))


@pytest.fixture(params=MANY)
def capture(request: pytest.FixtureRequest) -> Path:
    path = CAPTURES / str(request.param)
    assert path.is_file()
    return path


def taken(session: Session) -> Iterator[dict[str, pa.RecordBatch]]:
    while not session.wait(0.01):
        yield dict(session.drain())
    yield dict(session.finish())


@pytest.mark.sample(3)
@pytest.mark.parametrize("pieces", [101, 4096, 65_536])
def test_a_session_gives_the_rows_of_analyze(capture: Path, pieces: int) -> None:
    expected = kwsniff.analyze(capture)
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in TABLES}
    with Session(FileSource(capture, pieces=pieces)) as session:
        for batches in taken(session):
            for name, batch in batches.items():
                if name in found:  # or it is for figures of the moment
                    found[name] += plain(name, batch)
        assert session.summary.as_dict()["calls"] == expected.summary["calls"]
    for name in TABLES.keys() - FOUND:  # those are of a folder; see below
        assert in_order(found[name]) == in_order(plain(name, expected.table(name))), name


def test_packets_are_counted_while_it_runs_and_compared_at_the_end(capture: Path) -> None:
    source = FileSource(capture)
    with Session(source) as session:
        assert session.wait(PATIENCE_S)
        packets = kwsniff.analyze(capture).captures["packets"][0].as_py()
        assert session.progress().packets == packets
        assert session.progress().dropped_here is None, "nobody has said yet how many there were"
        source.captured, source.dropped = packets + 3, 7
        session.finish()
        assert session.progress().dropped_here == 3
        assert session.progress().dropped_by_kernel == 7


def test_rows_that_nobody_takes_hold_the_reading_up_and_none_is_lost(
    capture: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_module, "MOST_ROWS", 3)
    expected = kwsniff.analyze(capture).api_calls.num_rows
    with Session(FileSource(capture, pieces=200)) as session:
        assert not session.wait(0.2), "it read on although nobody took the rows"
        rows = session.finish()
        assert rows["api_calls"].num_rows == expected


def test_leaving_without_the_last_rows_does_not_hang(capture: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_module, "MOST_ROWS", 1)
    with Session(FileSource(capture, pieces=64)):
        pass


def test_what_is_no_capture_is_said_by_take(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(b"GET / HTTP/1.1\r\n" * 100)
    with Session(FileSource(path)) as session:
        assert session.wait(PATIENCE_S)
        with pytest.raises(CaptureError, match="not a pcap"):
            session.drain()


def test_a_capture_without_a_byte_has_no_rows(tmp_path: Path) -> None:
    path = tmp_path / "empty"
    path.touch()
    with Session(FileSource(path)) as session:
        assert session.finish() == {}


def test_files_hold_what_analyze_holds_and_are_named_only_when_complete(
    capture: Path, tmp_path: Path
) -> None:
    expected = kwsniff.analyze(capture)
    out = tmp_path / "out"
    source = FileSource(capture, pieces=512)
    with (
        Session(source) as session,
        RollingTables(out, tuple(TABLES), Rotation(seconds=0.02), session.late_topics) as files,
    ):
        for batches in taken(session):
            files.write(batches)
            assert all(pq.read_metadata(path) for path in out.glob("*/*.parquet"))
        files.finish()
    assert sorted(path.name for path in out.iterdir()) == sorted(TABLES)
    for name in TABLES:
        rows = table(out, name)
        assert rows.schema == arrow_schema(TABLES[name])
        if name in FOUND:  # those that a watch has found: see test_findings.py
            assert rows.num_rows == 0
            continue
        wanted = expected.table(name)
        assert in_order(plain(name, rows)) == in_order(plain(name, wanted)), name


def test_files_are_closed_by_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files_module, "ROW_GROUP_ROWS", 1)
    path = CAPTURES / MANY[0]
    rows = kwsniff.analyze(path).api_calls
    batches = inside("api_calls", rows).to_batches(max_chunksize=10)
    with RollingTables(tmp_path, ("api_calls",), Rotation(seconds=1e6, file_bytes=1)) as files:
        for batch in batches:
            files.write({"api_calls": batch})
        files.finish()
    assert len(list((tmp_path / "api_calls").iterdir())) == len(batches) > 1
    found = of_any_run(table(tmp_path, "api_calls"))
    assert found.sort_by("request_frame") == of_any_run(rows).sort_by("request_frame")


def test_rows_that_wait_for_a_row_group_take_little_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = kwsniff.analyze(CAPTURES / MANY[0])
    calls, latencies = (
        inside(name, found.table(name)).to_batches()[0] for name in ("api_calls", "latencies")
    )
    monkeypatch.setattr(files_module, "_HELD_BYTES", calls.nbytes + latencies.nbytes)
    with RollingTables(tmp_path, ("api_calls", "latencies"), Rotation(seconds=1e6)) as files:
        files.write({"api_calls": calls})
        files.write({"latencies": latencies})
        assert files.rows == 0
        files.write({"latencies": latencies.slice(0, 1)})  # the larger table goes
        assert files.rows == calls.num_rows
        files.finish()
    assert table(tmp_path, "latencies").num_rows == latencies.num_rows + 1


def test_files_are_written_anew_only_where_they_show_the_id_of_a_topic_that_was_named_late(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    anew: list[str] = []
    rewrite = TableFiles.rewrite

    def noted(files: TableFiles, name: str, change: Any) -> None:
        anew.append(name)
        rewrite(files, name, change)

    monkeypatch.setattr(TableFiles, "rewrite", noted)
    by_id = messages.fetch(16, 1, {"orders": {0: batch([b"one"])}})
    by_name = messages.fetch(12, 2, {"orders": {0: batch([b"one"])}})
    topic = urlsafe_b64encode(messages.topic_uuid("orders")).decode().rstrip("=")
    out = tmp_path / "out"
    with RollingTables(out, tuple(TABLES), late_topics=lambda: {topic: "orders"}) as files:
        for name, call in (("1", by_name), ("2", by_id), ("3", by_name)):
            (tmp_path / name).mkdir()
            analyzed_packets(tmp_path / name, one_by_one([call]).packets())
            found = kwsniff.analyze(tmp_path / name / "capture.pcap")
            files.write({each: inside(each, found.table(each)).to_batches()[0] for each in SHOWING})
            files.close_files()
            assert sorted(anew) == ([] if name == "1" else sorted(SHOWING))
    assert table(out, "api_calls")["topics"].to_pylist() == [["orders"]] * 3
    assert table(out, "partitions")["topic"].to_pylist() == ["orders"] * 3


def test_leaving_without_finish_leaves_no_open_file(tmp_path: Path) -> None:
    with (
        Session(FileSource(CAPTURES / MANY[0])) as session,
        RollingTables(tmp_path, ("api_calls",), Rotation()) as files,
    ):
        files.write(session.finish())
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_run_left_open_is_removed_by_the_next(tmp_path: Path) -> None:
    left = tmp_path / f".kwsniff-{0:032x}"
    (left / "new" / "api_calls").mkdir(parents=True)
    (left / "new" / "api_calls" / "x.parquet").write_bytes(b"PAR1")
    other = tmp_path / "mine"
    other.mkdir()
    with RollingTables(tmp_path, ("api_calls",)):
        assert not left.exists()
    assert other.is_dir()


@pytest.mark.sample(4)
@pytest.mark.parametrize("pieces", [7, 100, 1000, 3000])
def test_ring_files_put_behind_each_other_are_the_capture(capture: Path, tmp_path: Path, pieces: int) -> None:
    ring = PacketRing(tmp_path, files=10_000, file_bytes=2000)
    with Session(FileSource(capture, pieces=pieces), ring=ring) as session:
        session.finish()
    files = sorted(tmp_path.iterdir())
    assert len(files) > 2
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in files)
    whole, parts = kwsniff.analyze(capture), kwsniff.analyze(files)
    assert sum(parts.captures["packets"].to_pylist()) == whole.captures["packets"][0].as_py()
    assert not any(parts.captures["truncated"].to_pylist())
    frames = {"capture", *(name for name in parts.api_calls.column_names if name.endswith("frame"))}
    assert in_order(of_any_run(parts.api_calls).drop_columns(list(frames)).to_pylist()) == in_order(
        of_any_run(whole.api_calls).drop_columns(list(frames)).to_pylist()
    )


def test_the_ring_keeps_the_last_files_and_touches_no_others(tmp_path: Path) -> None:
    stranger = tmp_path / "packets.pcap"
    stranger.touch()
    ring = PacketRing(tmp_path, files=2, file_bytes=1000)
    with Session(FileSource(CAPTURES / MANY[0], pieces=500), ring=ring) as session:
        session.finish()
    files = sorted(path for path in tmp_path.iterdir() if path != stranger)
    assert len(files) == 2
    assert stranger.exists()
    last = kwsniff.analyze(files[-1:]).captures["last_time"][0]
    assert last == kwsniff.analyze(CAPTURES / MANY[0]).captures["last_time"][0]


@pytest.mark.slow
def test_spark_reads_the_directories_while_files_are_open(tmp_path: Path) -> None:
    """An open file lies beside the complete ones, and the directory of a table is a table."""
    pytest.importorskip("pyspark", reason="pyspark is not installed")
    script = (
        "import sys, warnings; warnings.simplefilter('ignore')\n"
        "from kwsniff.spark.session import start_session\n"
        "spark = start_session('local[1]', {'spark.driver.memory': '512m'}, 'kwsniff-live-test')\n"
        "print(spark.read.parquet(sys.argv[1]).count()); spark.stop()\n"
    )
    calls = kwsniff.analyze(CAPTURES / MANY[0]).api_calls.num_rows
    with (
        Session(FileSource(CAPTURES / MANY[0])) as session,
        RollingTables(tmp_path, tuple(TABLES), Rotation(seconds=1e6)) as files,
    ):
        rows = session.finish()
        files.write(rows)
        files.close_files()
        files.write(rows)
        files._flush("api_calls")
        assert any(tmp_path.glob(".kwsniff-*/new/api_calls/*.parquet")), "a file is open"
        done = subprocess.run(
            [sys.executable, "-c", script, str(tmp_path / "api_calls")],
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        if "No Java" in done.stderr or "UsageError" in done.stderr:
            pytest.skip(done.stderr.strip().splitlines()[-1])
        assert done.returncode == 0, done.stderr
        assert done.stdout.split()[-1] == str(calls)


def test_a_second_run_into_the_folder_of_another_is_told(tmp_path: Path) -> None:
    with RollingTables(tmp_path, ("api_calls",)) as first:
        with pytest.raises(OutputError, match="another kwsniff is writing there"):
            RollingTables(tmp_path, ("api_calls",))
        first.finish()
    with RollingTables(tmp_path, ("api_calls",)) as second:
        second.finish()
    assert len(list((tmp_path / "api_calls").iterdir())) == 2
