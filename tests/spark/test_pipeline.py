"""However captures are cut, rotated, named, damaged: the pipeline's rows are those of `kwsniff analyze`."""

from __future__ import annotations

import gzip
import random
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.spark.compare import analyzed, analyzed_once, parts, records, rotated, written
from tests.traffic import damage, files, scenes
from tests.traffic.tcp import Scene

pytest.importorskip("pyspark", reason="pyspark is not installed")
pytest.importorskip("kwsniff.core.capture.file_splits", reason="the core is not built")

from kwsniff.errors import CaptureError, KwsniffError, OutputError, UsageError
from kwsniff.spark import pipeline, scan
from kwsniff.spark.pipeline import Result, run_pipeline
from kwsniff.spark.storage import Place
from kwsniff.tables.schema import TABLES

pytestmark = pytest.mark.sample_tests(7)

CAPTURES = Path(__file__).parents[2] / "captures"
RECORDED = (
    "any_interface", "begun_late", "compression", "group_classic", "group_consumer", "group_share",
    "killed_broker", "large_messages", "no_acks", "proxied", "rebalance", "sasl_scram", "snaplen_96",
    "three_brokers", "transactions", "versions_4_4", "zookeeper_0_8", "field/poison_record",
    "field/l_stuck_consumer",
)  # fmt: skip
PACKETS = damage.reorder(scenes.pipelined(depth=3, calls=9, mss=100).packets(), 3, seed=5)


def run(paths: Any, output: Path, spark: Any = None, **options: Any) -> Result:
    """Without Spark: the tables alone, in few buckets."""
    options.setdefault("tables", tuple(TABLES))
    options.setdefault("num_buckets", 3)
    return run_pipeline(paths, output, spark=spark or object(), **options)


def recorded(name: str) -> Path:
    if "/" in name:
        return CAPTURES / f"{name}.pcap"
    (path,) = (path for path in (CAPTURES / name).iterdir() if path.name.startswith("capture."))
    return path


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", RECORDED)
@pytest.mark.parametrize(("split_bytes", "here"), [(1500, True), (1500, False), (1 << 30, True)])
def test_a_recording_gives_the_tables_of_analyze(  # noqa: PLR0917
    in_process: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    split_bytes: int,
    here: bool,
) -> None:
    """Where tasks run on one machine packets are named by their place, elsewhere they are copied."""
    monkeypatch.setattr(scan, "is_here", lambda _: here)
    capture = recorded(name)
    made = run(capture, tmp_path / "out", split_bytes=split_bytes)
    assert written(tmp_path / "out") == analyzed_once(capture)
    named, kept = (made.facts[name] for name in ("bytes_named", "bytes_kept"))
    plain = capture.suffix in {".pcap", ".pcapng"}
    assert (named > 0, kept > named) == ((True, False) if here and plain else (False, True))


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("little.pcap", files.pcap(files.frames(PACKETS))),
        ("big_ns.pcap", files.pcap(files.frames(PACKETS), big=True, nanoseconds=True)),
        ("noise.pcapng", files.pcapng(files.frames(PACKETS), noise=True)),
        ("big.pcapng", files.pcapng(files.frames(PACKETS), noise=True, custom=True, big=True)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
@pytest.mark.parametrize("split_bytes", [1, 50, 130, 200, 333, 1000, 4096, 10_000])
def test_splits_of_any_size_down_to_one_packet_change_nothing(
    in_process: None, tmp_path: Path, name: str, data: bytes, split_bytes: int
) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    made = run(path, tmp_path / "out", split_bytes=split_bytes)
    assert written(tmp_path / "out") == analyzed(path)
    # In pcapng not every boundary can be told from the bytes behind it alone.
    assert split_bytes > 1 or made.facts["splits"] >= (2 if name.endswith("ng") else len(PACKETS))


@pytest.mark.slow
@pytest.mark.sample(1)
@pytest.mark.parametrize("num_buckets", [1, 2, 7, 64])
def test_any_number_of_buckets_gives_the_same(in_process: None, tmp_path: Path, num_buckets: int) -> None:
    capture = recorded("versions_4_4")
    run(capture, tmp_path / "out", num_buckets=num_buckets, split_bytes=20_000)
    assert written(tmp_path / "out") == analyzed(capture)


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", ["transactions", "group_consumer", "versions_4_4", "rebalance"])
def test_rotated_files_in_any_order_are_one_capture(in_process: None, tmp_path: Path, name: str) -> None:
    """Calls over the edges come out once; the order is that of the first packets, not of the command line."""
    paths = rotated(recorded(name).read_bytes(), 7, tmp_path)
    shuffled = random.Random(name).sample(paths, len(paths))
    assert shuffled != paths
    run(shuffled, tmp_path / "out", split_bytes=3000)
    assert written(tmp_path / "out") == analyzed(*paths)


def test_a_pattern_as_a_file_uri_means_what_it_matches(in_process: None, tmp_path: Path) -> None:
    paths = rotated(recorded("transactions").read_bytes(), 12, tmp_path)
    run(f"{tmp_path.as_uri()}/rotated.pcap*", tmp_path / "out")
    assert written(tmp_path / "out") == analyzed(*paths)
    with pytest.raises(CaptureError, match="no such file"):
        run(f"{tmp_path.as_uri()}/*.cap", tmp_path / "out")


@pytest.mark.slow
def test_files_between_the_stages_lie_where_one_says(
    in_process: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a folder of the run's own, which goes with it, also where the run fails."""
    scan, seen = pipeline.scan_captures, []

    def told(*arguments: Any, folder: Any, **options: Any) -> Any:
        seen.append(folder.folder)
        done = scan(*arguments, folder=folder, **options)
        assert [*folder.folder.glob("*.packets")]
        return done

    monkeypatch.setattr(pipeline, "scan_captures", told)
    capture = recorded("transactions")
    run(capture, tmp_path / "out", scratch=tmp_path / "fast" / "disk")
    assert written(tmp_path / "out") == analyzed(capture)
    assert seen[0].parent == tmp_path / "fast" / "disk"
    monkeypatch.setattr(pipeline, "capture_rows", None)
    with pytest.raises(TypeError):
        run(capture, tmp_path / "out", scratch=(tmp_path / "fast" / "disk").as_uri())
    assert not [*(tmp_path / "fast" / "disk").iterdir()]
    (tmp_path / "file").touch()
    with pytest.raises(KwsniffError, match="file"):
        run(capture, tmp_path / "out", scratch=tmp_path / "file")


@pytest.mark.slow
def test_compressed_and_plain_files_are_mixed(in_process: None, tmp_path: Path) -> None:
    paths = rotated(recorded("transactions").read_bytes(), 4, tmp_path)
    for number in (1, 3):
        data = paths[number].read_bytes()
        paths[number].unlink()
        paths[number] = paths[number].with_name(f"{paths[number].name}.gz")
        paths[number].write_bytes(gzip.compress(data))
    run(paths, tmp_path / "out", split_bytes=3000)
    assert written(tmp_path / "out") == analyzed(*paths)


@pytest.mark.slow
def test_a_damaged_file_costs_what_is_damaged(in_process: None, tmp_path: Path) -> None:
    """Its good part, and all of the others, are there; captures and anomalies say what happened."""
    paths = rotated(recorded("versions_4_4").read_bytes(), 5, tmp_path)
    data = paths[2].read_bytes()
    middle = 24 + len(b"".join(records(data)[: len(records(data)) // 2]))
    paths[2].write_bytes(data[:middle] + bytes(range(1, 255)) * 20 + data[middle:])
    run(paths, tmp_path / "out", split_bytes=2000)
    found = written(tmp_path / "out")
    assert found == analyzed(*paths)
    assert [row["capture"] for row in found["captures"] if row["damaged"]] == [str(paths[2])]
    assert [row["capture"] for row in found["anomalies"] if row["name"] == "capture_damaged"] == [
        str(paths[2])
    ]


@pytest.mark.sample(1)
@pytest.mark.parametrize("cut", [-1, -7, -60])
def test_a_file_that_ends_too_early_is_said_to(in_process: None, tmp_path: Path, cut: int) -> None:
    paths = rotated(recorded("transactions").read_bytes(), 3, tmp_path)
    paths[1].write_bytes(paths[1].read_bytes()[:cut])
    run(paths, tmp_path / "out", split_bytes=2000)
    found = written(tmp_path / "out")
    assert found == analyzed(*paths)
    assert [row["truncated"] for row in sorted(found["captures"], key=lambda row: row["first_time"])] == [
        False, True, False,
    ]  # fmt: skip


@pytest.mark.slow
def test_files_that_are_no_captures_are_reported_and_cost_nothing_else(
    in_process: None, tmp_path: Path
) -> None:
    good = rotated(recorded("transactions").read_bytes(), 2, tmp_path)
    odd = [tmp_path / name for name in ("empty.pcap", "short.pcap", "other.pcap")]
    for path, data in zip(odd, (b"", good[0].read_bytes()[:20], b"GIF89a, not packets" * 100), strict=True):
        path.write_bytes(data)
    run([*odd, *good], tmp_path / "out")
    found = written(tmp_path / "out")
    assert found == analyzed(*odd, *good)
    strange = {str(path) for path in odd}
    assert {row["capture"] for row in found["captures"] if row["format"] is None} == strange
    assert all(row["notes"] for row in found["captures"] if row["capture"] in strange)
    assert {row["capture"] for row in found["anomalies"] if row["name"] == "capture_damaged"} == strange
    for rows in found.values():
        rows[:] = [row for row in rows if strange.isdisjoint((row.get("capture"), row.get("subject")))]
    assert found == analyzed(*good)


def test_a_directory_gives_the_rows_that_its_files_give(in_process: None, tmp_path: Path) -> None:
    folder = tmp_path / "rotated"
    folder.mkdir()
    rotated(recorded("transactions").read_bytes(), 2, folder)
    (folder / "empty.pcap").touch()
    (folder / "short.pcap").write_bytes(b"\xd4\xc3\xb2\xa1" + bytes(8))
    (folder / "broken.pcap.gz").write_bytes(b"\x1f\x8b" + b"\xff" * 40)
    (folder / "deeper").mkdir()
    result = run(folder, tmp_path / "out")
    found = written(tmp_path / "out")
    assert found == analyzed(folder)
    assert len(found["captures"]) == 6
    unread = {Path(each.name).name for each in result.unread}
    assert unread == {"empty.pcap", "short.pcap", "broken.pcap.gz", "deeper"}
    rows = {Path(row["capture"]).name: row for row in found["captures"]}
    assert all(rows[name]["notes"] and rows[name]["format"] is None for name in unread)
    assert not rows["deeper"]["damaged"]


def test_a_missing_file_is_an_error_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match="no such file"):
        run([recorded("transactions"), tmp_path / "nowhere.pcap"], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_when_nothing_can_be_read_it_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.pcap").write_bytes(b"")
    with pytest.raises(CaptureError, match="empty"):
        run(tmp_path / "a.pcap", tmp_path / "out")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"tables": ["calls"]}, "unknown table 'calls'; did you mean stalls or api_calls"),
        ({"ports": [0]}, "port 0"),
        ({"limits": {"speed": 1}}, "unknown limit 'speed'"),
    ],
)
def test_bad_usage_says_what_there_is(tmp_path: Path, options: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        run(recorded("transactions"), tmp_path / "out", **options)


@pytest.mark.parametrize("how", ["elsewhere", "half"])
def test_parts_that_are_not_where_they_were_reported_are_an_error(
    in_process: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """As on a cluster whose workers have a folder of that name on their own disks."""
    from kwsniff.spark import pipeline

    def decode_elsewhere(number: int, *, work: Any) -> Any:
        if how == "half":
            done = pipeline_decode(number, work=work)
            for place in (Path(work.staging.root, part.path) for part in done.parts[:1]):
                place.write_bytes(place.read_bytes()[:-1])
            return done
        (tmp_path / "worker").mkdir(exist_ok=True)
        return pipeline_decode(number, work=replace(work, staging=Place(str(tmp_path / "worker"))))

    pipeline_decode = pipeline.decode_bucket
    monkeypatch.setattr(pipeline, "decode_bucket", decode_elsewhere)
    with pytest.raises(OutputError, match=r"a task wrote (it, but it is missing|.* bytes, but the file has)"):
        run(recorded("first_steps"), tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert not list(tmp_path.glob(".out*"))


@pytest.mark.parametrize("stage", ["scan_split", "decode_bucket"])
def test_a_task_does_not_make_the_folder_that_it_does_not_see(
    in_process: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stage: str
) -> None:
    from kwsniff.spark import pipeline, scan

    module: Any = scan if stage == "scan_split" else pipeline
    task = getattr(module, stage)

    def unseen(*arguments: Any, **options: Any) -> Any:
        for folder in tmp_path.glob(".out.*"):
            shutil.rmtree(folder)
        return task(*arguments, **options)

    monkeypatch.setattr(module, stage, unseen)
    with pytest.raises(
        OutputError, match=r"workers do not see the output folder; .* storage that all workers share"
    ):
        run(recorded("first_steps"), tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_chosen_tables_are_made_and_no_others(in_process: None, tmp_path: Path) -> None:
    made = run(recorded("transactions"), tmp_path / "out", tables=["transactions", "latencies"])
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "_kwsniff.json", "latencies", "transactions",
    ]  # fmt: skip
    assert list(made.rows) == ["latencies", "transactions"]
    assert written(tmp_path / "out")["transactions"] == analyzed(recorded("transactions"))["transactions"]


def test_rows_lie_in_the_folder_of_their_day(in_process: None, tmp_path: Path) -> None:
    """A capture over midnight: each day's calls in its folder."""
    from tests.traffic.tcp import MILLISECOND

    day = 86_400_000 * MILLISECOND
    rows = files.frames(scenes.one_by_one(scenes.vocabulary()[:6]).packets())
    first = min(row.time_ns for row in rows)
    noon = (first // day + 1) * day
    half = sorted(row.time_ns for row in rows)[len(rows) // 2]
    moved = [replace(row, time_ns=row.time_ns - half + noon) for row in rows]
    path = tmp_path / "midnight.pcap"
    path.write_bytes(files.pcap(moved))
    run(path, tmp_path / "out")
    found = written(tmp_path / "out")
    assert found == analyzed(path)
    days = {str(row["request_time"].date()) for row in found["api_calls"]}
    assert len(days) == 2
    assert {part.parent.name for part in parts(tmp_path / "out", "api_calls")} == {
        f"date={each}" for each in days
    }


def test_secrets_are_in_no_file(in_process: None, tmp_path: Path) -> None:
    """What scripted connections say in confidence; the tables they are in are not empty."""
    import pyarrow.parquet as pq

    from tests.pipeline.test_secrets import leaks, well_formed

    scene = Scene()
    well_formed(scene)
    path = tmp_path / "capture.pcap"
    path.write_bytes(files.pcap(files.frames(scene.packets())))
    made = run(path, tmp_path / "out")
    assert made.rows["api_calls"] > 5
    for file in (tmp_path / "out").rglob("*.parquet"):
        assert leaks(repr(pq.ParquetFile(file).read().to_pylist())) == []
