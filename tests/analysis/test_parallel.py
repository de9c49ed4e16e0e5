"""Several analyzers give what one gives: rows with the same ids in the same order, the same summary."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import kwsniff
from kwsniff.analysis import parallel, rows
from kwsniff.analysis.parallelism import OneAnalyzerNeeded, num_analyzers
from kwsniff.errors import CaptureError, UsageError
from kwsniff.findings.views import READ
from kwsniff.layout.catalog import Catalog
from kwsniff.limits import Limits
from kwsniff.sources import files as sources
from kwsniff.tables.schema import TABLES
from kwsniff.timelines import row_path
from tests.pipeline.mirrored import recorded
from tests.pipeline.test_buckets import CAPTURES, MADE
from tests.pipeline.test_eviction import SECOND, closed, three_connections
from tests.sources.test_tls import with_secrets
from tests.timelines.test_duplicate_connections import OUTSIDE, capture, talk, under
from tests.traffic import damage, files, messages, scenes, topics
from tests.traffic.tcp import MILLISECOND, Endpoint, Scene
from tests.traffic.tunnels import wrapped

RECORDED = (
    "any_interface", "begun_late", "compression", "group_classic", "group_consumer", "group_share", "idle",
    "killed_broker", "kraft_start", "large_messages", "no_acks", "quorum", "rebalance", "refusals",
    "replication", "sasl_scram", "snaplen_96", "three_brokers", "throttled", "tls_1_3", "transactions",
    "versions_3_9", "versions_4_4", "zookeeper_0_8",
)  # fmt: skip
RUN = "the-same-run"

Found = tuple[dict[str, list[dict[str, Any]]], dict[str, Any]]


@pytest.fixture
def in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are taken again and again, in the middle of calls."""
    monkeypatch.setattr(parallel, "BLOCK_BYTES", 7000)
    monkeypatch.setattr(parallel, "ROW_GROUP_ROWS", 20)
    for module in (rows, row_path):
        monkeypatch.setattr(module, "ROW_GROUP_ROWS", 30)
    monkeypatch.setattr(sources, "BUFFER_BYTES", 1500)


@pytest.fixture
def needed_one(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """How often one analyzer had to do it alone after all."""
    times: list[int] = []

    class Counted(OneAnalyzerNeeded):
        def __init__(self) -> None:
            times.append(1)

    monkeypatch.setattr(parallel, "OneAnalyzerNeeded", Counted)
    yield times


def found(paths: Any, jobs: int, **options: Any) -> Found:
    # Findings in memory are made of these rows, whoever read them; those in passing:
    # test_files_hold_the_same_rows.
    result = kwsniff.analyze(paths, jobs=jobs, run_id=RUN, tables=READ, **options)
    rows = {name: result.table(name).to_pylist() for name in READ}
    # Rows that other connections prove something of come once these had their say, or enough of them wait.
    rows["latencies"].sort(key=lambda row: row["call_id"])
    return rows, json.loads(json.dumps(dict(result.summary), default=str))


def assert_same(paths: Any, *numbers: int, **options: Any) -> Found:
    rows, summary = found(paths, 1, **options)
    for jobs in numbers:
        others, told = found(paths, jobs, **options)
        for table in READ:
            assert others[table] == rows[table], (jobs, table)
        assert told == summary, jobs
    return rows, summary


def put(folder: Path, parts: list[bytes]) -> list[str]:
    paths = [folder / f"part{number}.pcap" for number in range(len(parts))]
    for path, data in zip(paths, parts, strict=True):
        path.write_bytes(data)
    return [str(path) for path in paths]


def capture_of(name: str) -> Path:
    (path,) = (CAPTURES / name).glob("capture.pcap*")
    return path


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", RECORDED)
def test_a_recording_gives_the_same(in_turns: None, name: str) -> None:
    rows, _ = assert_same(capture_of(name), 2, 7)
    assert rows["connections"]


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", MADE)
def test_damage_loss_fragments_and_several_files_give_the_same(
    in_turns: None, tmp_path: Path, name: str
) -> None:
    rows, _ = assert_same(put(tmp_path, MADE[name]()), 3, 7)
    assert rows["connections"]


def test_tunnels_give_the_same(in_turns: None, tmp_path: Path) -> None:
    rows = recorded("first_steps")
    packets = [
        row.__class__(row.time_ns, data, len(data))
        for row, pieces in zip(rows, wrapped([row.data for row in rows], "vxlan"), strict=True)
        for data in pieces
    ]
    (path,) = put(tmp_path, [files.pcap(packets)])
    found, _ = assert_same(path, 2, 3)
    assert {row["encapsulation"] for row in found["connections"]} == {"vxlan"}


def test_twins_give_the_same(in_turns: None, tmp_path: Path, needed_one: list[int]) -> None:
    """The client's addresses are others behind the proxy: the two connections are of different buckets."""
    rows, summary = assert_same(capture(tmp_path, talk(), under(talk(), OUTSIDE)), 2, 3, 7)
    assert [row["twin_of"] is None for row in rows["connections"]].count(False) == 1
    assert summary["twins"]["left_out"] == 1
    assert not needed_one


def test_silent_connections_go_in_the_same_order(
    in_turns: None, tmp_path: Path, needed_one: list[int]
) -> None:
    (path,) = put(tmp_path, [files.pcap(files.frames(three_connections(10 * SECOND).packets()))])
    rows, _ = assert_same(path, 2, 3, 7, limits={"idle_seconds": 15})
    assert [row["ending"] for row in rows["connections"]].count("evicted") == 2
    assert not needed_one


def test_connections_that_ended_are_forgotten_at_the_same_moments(
    in_turns: None, tmp_path: Path, needed_one: list[int]
) -> None:
    scene = Scene()
    for number in range(60):
        closed(scene, 50_000 + number, number * 10 * SECOND, late=(number * 10) * SECOND)
    (path,) = put(tmp_path, [files.pcap(files.frames(scene.packets()))])
    rows, _ = assert_same(path, 2, 3, 7)
    assert [row["ending"] for row in rows["connections"]].count("open") == 35
    assert not needed_one


def test_where_time_goes_back_beyond_what_was_forgotten_one_follows_all(
    in_turns: None, tmp_path: Path, needed_one: list[int]
) -> None:
    scene = Scene()
    for number in range(90):
        closed(scene, 50_000 + number, number * 10 * SECOND)
    packets = scene.packets()
    (path,) = put(tmp_path, [files.pcap(files.frames([*packets[len(packets) // 2 :], *packets]))])
    assert_same(path, 2, 3)
    assert len(needed_one) == 2


@pytest.mark.sample(1)
@pytest.mark.parametrize("limits", [{"connections": 2}, {"topic_ids": 1}])
def test_bounds_that_connections_share_hold_as_for_one(
    in_turns: None, tmp_path: Path, needed_one: list[int], limits: dict[str, int]
) -> None:
    packets = [*three_connections(SECOND).packets(), *of_topic_ids().packets()]
    (path,) = put(tmp_path, [files.pcap(files.frames(packets))])
    assert_same(path, 2, 3, limits=limits)
    assert len(needed_one) == 2


@pytest.mark.parametrize("bound", ["in_flight_bytes_total", "reorder_bytes_total", "frame_kept_bytes_total"])
def test_bounds_that_are_lower_than_usual_are_for_one(in_turns: None, tmp_path: Path, bound: str) -> None:
    packets = damage.reorder(scenes.pipelined(4, 9, 100).packets(), 3, seed=3)
    (path,) = put(tmp_path, [files.pcap(files.frames(packets))])
    assert_same(path, 3, limits={bound: 9})
    assert num_analyzers(3, 1000, Limits.with_changes({bound: 9}), None) == 1


def of_topic_ids() -> Scene:
    """Five clients fetch by id what a sixth learns the name of, when they are half through."""
    scene = Scene()
    scripts = [
        scene.connection(Endpoint(f"10.7.0.{n}", 50_000 + n), Endpoint("10.7.1.1", 9092)) for n in range(6)
    ]
    for script in scripts:
        script.open(0)
    for number in range(1, 9):
        for place, script in enumerate(scripts[1:]):
            at = 10 * MILLISECOND * number + place * MILLISECOND
            script.call(
                messages.fetch(13, number, {"orders": {0: b""}}), at=at, answer_at=at + MILLISECOND // 2
            )
    at = 44 * MILLISECOND
    scripts[0].call(topics.describe_topic_partitions(1, ["orders"]), at=at, answer_at=at + MILLISECOND // 2)
    return scene


def test_ids_of_topics_that_others_learned_have_their_names(
    in_turns: None, tmp_path: Path, needed_one: list[int]
) -> None:
    (path,) = put(tmp_path, [files.pcap(files.frames(of_topic_ids().packets()))])
    rows, _ = assert_same(path, 2, 3, 7)
    fetched = [row for row in rows["partitions"] if row["api_key"] == 1]
    assert len(fetched) == 40
    assert {row["topic"] for row in fetched} == {"orders"}
    assert not needed_one


def test_secrets_in_a_capture_reach_all_that_they_are_for(
    in_turns: None, tmp_path: Path, needed_one: list[int]
) -> None:
    plain = files.pcapng(recorded("tls_1_3"))
    (path,) = put(tmp_path, [with_secrets(plain, (CAPTURES / "tls_1_3" / "keys.log").read_bytes())])
    rows, _ = assert_same(path, 2, 3)
    assert rows["api_calls"]
    assert len(needed_one) == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    "capture",
    [capture_of("versions_4_4"), *(CAPTURES / "incidents" / "not_authorized").glob("*.pcap")],
    ids=lambda path: path.parent.name,
)
def test_files_hold_the_same_rows(in_turns: None, tmp_path: Path, capture: Path) -> None:
    for jobs in (1, 3):
        kwsniff.analyze(capture, output=tmp_path / str(jobs), jobs=jobs, run_id=RUN)
    for name in TABLES:
        one, three = (pq.read_table(tmp_path / str(jobs) / f"{name}.parquet").to_pylist() for jobs in (1, 3))
        if name == "latencies":
            one, three = (sorted(rows, key=lambda row: row["call_id"]) for rows in (one, three))
        assert three == one, name
        assert one or name not in {"findings", "finding_calls"} or capture.parent.name == "versions_4_4"


@pytest.mark.slow
def test_a_part_by_time_and_some_tables_are_the_same(in_turns: None) -> None:
    capture = capture_of("group_classic")
    whole = found(capture, 1)[1]["captures"][0]
    assert_same(capture, 3, since=whole["first_time"], until=whole["last_time"])
    one, three = (
        kwsniff.analyze(capture, tables=["error_codes", "groups"], jobs=jobs, run_id=RUN) for jobs in (1, 3)
    )
    for name in ("error_codes", "groups"):
        assert three.table(name).to_pylist() == one.table(name).to_pylist()
    assert [*three.names] == [*one.names]


def running() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name.startswith("kwsniff-")}


def test_what_fails_in_a_thread_is_raised_and_ends_all(monkeypatch: pytest.MonkeyPatch) -> None:
    class Failure(Exception):
        pass

    def fail(*_: object) -> None:
        raise Failure("a layout that cannot be read")

    monkeypatch.setattr(Catalog, "program", fail)
    before = running()
    with pytest.raises(Failure, match="a layout that cannot be read"):
        kwsniff.analyze(capture_of("first_steps"), jobs=3)
    assert running() <= before


def test_ctrl_c_ends_all(in_turns: None) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = running()
    with pytest.raises(KeyboardInterrupt):
        kwsniff.analyze(capture_of("group_classic"), jobs=3, progress=interrupt)
    assert running() <= before


def test_a_file_that_is_no_capture_is_named(tmp_path: Path) -> None:
    path = tmp_path / "half.pcapng"
    path.write_bytes(b"\x0a\x0d\x0d\x0a" + bytes(60))
    for jobs in (1, 3):
        with pytest.raises(CaptureError, match=r"half\.pcapng"):
            kwsniff.analyze(path, jobs=jobs)


def test_one_does_it_where_only_one_can() -> None:
    """A pipe is read once; sessions that are resumed are those of other connections; and so on."""
    bounds = Limits()
    assert num_analyzers(3, 1000, bounds, None) == 3
    assert num_analyzers(3, None, bounds, None) == 1
    assert num_analyzers(3, 1000, bounds, "keys.log") == 1
    assert num_analyzers(3, 1000, Limits(memory=250_000_000), None) == 1
    assert num_analyzers(3, 1000, Limits(orphan_bytes=1 << 30), None) == 1
    assert num_analyzers(None, 1000, bounds, None) == 1


@pytest.mark.parametrize(("cores", "analyzers"), [(1, 1), (2, 1), (3, 2), (4, 3), (64, 3)])
def test_of_itself_one_core_is_left_to_rows(
    monkeypatch: pytest.MonkeyPatch, cores: int, analyzers: int
) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(cores)), raising=False)
    assert num_analyzers(None, 10**9, Limits(), None) == analyzers


@pytest.mark.parametrize("jobs", [0, -1, 65])
def test_jobs_out_of_bounds_are_refused(jobs: int) -> None:
    with pytest.raises(UsageError, match="jobs must be between 1 and 64"):
        kwsniff.analyze(capture_of("first_steps"), jobs=jobs)
