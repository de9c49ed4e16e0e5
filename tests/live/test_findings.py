"""Findings while a capture goes on: what holds now, and nothing where nothing is wrong."""

from __future__ import annotations

import json
import struct
import threading
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kwsniff
from kwsniff.cli.live.header import wrong
from kwsniff.cli.live.lines import interval_json, interval_line
from kwsniff.findings.views import READ
from kwsniff.limits import Limits
from kwsniff.live import findings as watch_module
from kwsniff.live.batches import one_batch
from kwsniff.live.files import RollingTables
from kwsniff.live.findings import MOST_HELD, Watch
from kwsniff.live.metrics import Metrics
from kwsniff.live.prometheus import MOST_SERIES
from kwsniff.live.session import Session
from kwsniff.live.window import Window
from kwsniff.memory import foreign_bytes
from kwsniff.tables.harm import HeldHarm
from kwsniff.tables.schema import TABLES

from .running import PATIENCE_S, ROOT, FileSource

pytestmark = pytest.mark.sample_tests(8)

INCIDENTS = ROOT / "captures" / "incidents"
ROWS = 500_000


class HeldSource(FileSource):
    """Stops where the longest time passed without a packet, or where it is told to, until it is let go."""

    def __init__(self, path: Path, cut: int | None = None) -> None:
        self.go_on = threading.Event()
        self.cut = cut
        super().__init__(path)

    def _write(self, path: Path, pieces: int) -> None:
        data = path.read_bytes()
        cut = longest_silence(data) if self.cut is None else self.cut
        with self._in:
            self._in.send(data[:cut])
            self.go_on.wait(PATIENCE_S)
            self._in.send(data[cut:])

    def close(self) -> None:
        self.go_on.set()
        super().close()


def packets(data: bytes) -> Iterator[tuple[int, float]]:
    """Where each packet of a little-endian pcap begins, and its time in seconds."""
    nano = data[:4] == bytes.fromhex("4d3cb2a1")
    at = 24
    while at < len(data):
        seconds, rest, size, _ = struct.unpack_from("<IIII", data, at)
        yield at, seconds + rest / (1e9 if nano else 1e6)
        at += 16 + size


def longest_silence(data: bytes) -> int:
    places = list(packets(data))
    _, cut = max((later[1] - one[1], later[0]) for one, later in pairwise(places))
    return cut


def watched(path: Path, most_rows: int = ROWS) -> tuple[Watch, Session]:
    """A recording to its end, looked at now and then, and what holds at its end."""
    with (
        Session(FileSource(path, pieces=4096), tables=READ) as session,
        Watch(session.read_snapshot, most_rows=most_rows, every=0) as watch,
    ):
        while not session.wait(0.005):
            batches, picture = session.drain_with_snapshot()
            watch.add(batches)
            if watch.is_due:
                watch.evaluate(picture)
        watch.add(session.finish())
        watch.conclude()
    return watch, session


def go_to_the_end(session: Session, watch: Watch) -> None:
    """Without a further look."""
    while not session.wait(0.01):
        watch.add(session.drain())
    watch.add(session.finish())
    watch.conclude()


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "incident",
    [
        "broker_stalled",
        "poll_interval_exceeded",
        "connection_limit",
        "lag_kafkajs",
        "throttled",
        "unknown_topic",
    ],
)
def test_what_is_found_in_the_recording_holds_at_its_end(incident: str) -> None:
    path = INCIDENTS / incident / "broker.pcap"
    expected = kwsniff.analyze(path).findings
    watch, _ = watched(path)
    assert watch.trouble is None
    found = [(each.finding.finding, each.finding.subject) for each in watch.held]
    assert found == list(
        dict.fromkeys(zip(expected["finding"].to_pylist(), expected["subject"].to_pylist(), strict=True))
    )
    assert [each.finding.text for each in watch.held][:1] == expected["text"].to_pylist()[:1]


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "name", ["healthy_idle", "healthy_bursts", "healthy_rolling", "healthy_three_brokers"]
)
def test_of_a_healthy_one_nothing_is_said_at_any_time(name: str) -> None:
    said: list[str] = []

    class Listening(Watch):
        def _hold(self, *found: object) -> None:
            super()._hold(*found)  # type: ignore[arg-type]
            said.extend(each.finding.finding for each in self.held if each.finding.severity != "info")

    path = INCIDENTS / name / "broker.pcap"
    with (
        Session(FileSource(path, pieces=1024), tables=READ) as session,
        Listening(
            session.read_snapshot, most_rows=ROWS, memory=Limits().memory + foreign_bytes(), every=0
        ) as watch,
    ):
        while not session.wait(0.002):
            batches, picture = session.drain_with_snapshot()
            watch.add(batches)
            if watch.is_due:
                watch.evaluate(picture)
        watch.add(session.finish())
        watch.conclude()
    assert watch.trouble is None
    assert said == []


@pytest.mark.parametrize("first", [1, 24])
def test_looking_before_the_first_packet_is_no_trouble(first: int) -> None:
    """tcpdump in a pipe may say nothing, or half of the file's header, for minutes."""
    source = HeldSource(INCIDENTS / "broker_stalled" / "broker.pcap", first)
    with (
        Session(source, tables=READ) as session,
        Watch(session.read_snapshot, most_rows=ROWS, every=0) as watch,
    ):
        while not watch.is_due:
            session.wait(0.001)
        for _ in range(20):
            batches, picture = session.drain_with_snapshot()
            assert picture is None
            watch.add(batches)
            watch.evaluate(picture)
            session.wait(0.01)
        source.go_on.set()
        go_to_the_end(session, watch)
    assert watch.trouble is None
    assert "broker_stalled" in [each.finding.finding for each in watch.held]


def test_a_stall_is_named_while_it_lasts() -> None:
    source = HeldSource(INCIDENTS / "broker_stalled" / "broker.pcap")
    arrived = threading.Event()
    with (
        Session(source, tables=READ) as session,
        Watch(session.read_snapshot, most_rows=ROWS, every=0) as watch,
    ):
        for _ in range(int(PATIENCE_S / 0.05)):
            batches, picture = session.drain_with_snapshot()
            watch.add(batches)
            if watch.is_due:
                watch.evaluate(picture)
            if any(each.finding.finding == "broker_stalled" for each in watch.held):
                break
            arrived.wait(0.05)
        (held,) = (each for each in watch.held if each.finding.finding == "broker_stalled")
        since = held.since
        assert not session.wait(0), "the capture goes on"
        source.go_on.set()
        go_to_the_end(session, watch)
    assert watch.trouble is None
    (after,) = (each for each in watch.held if each.finding.finding == "broker_stalled")
    assert after.since == since
    assert after.finding.value is not None
    assert after.finding.value > 2  # it was stopped for 3 s


def test_the_window_is_bounded_in_rows_and_in_time() -> None:
    moment = [0.0]
    batch = {"api_calls": kwsniff.analyze(INCIDENTS / "throttled" / "broker.pcap").api_calls.to_batches()[0]}
    watch = Watch(lambda _: {}, most_rows=batch["api_calls"].num_rows * 3, seconds=10, now=lambda: moment[0])
    for _ in range(5):
        watch.add(batch)
        moment[0] += 1
    assert len(watch._steps) == 3
    assert watch.shortened
    moment[0] = 13.5
    watch.add({})
    assert len(watch._steps) == 1
    moment[0] = 100.0
    watch.add({})
    assert not watch._steps


def test_a_finding_that_no_longer_holds_is_no_longer_told() -> None:
    watch, _ = watched(INCIDENTS / "throttled" / "broker.pcap")
    metrics, window = Metrics(), Window()
    metrics.hold(watch.held)
    assert 'kwsniff_finding{finding="throttled",subject="shop"} 1\n' in metrics.text()
    metrics.hold(())
    assert "kwsniff_finding{" not in metrics.text()
    assert wrong(window, 80) == []


def test_findings_are_written_along(tmp_path: Path) -> None:
    """Each file has what held since the last one; nothing is written twice."""
    capture = INCIDENTS / "throttled" / "broker.pcap"
    watch, _ = watched(capture)
    with RollingTables(tmp_path, tuple(TABLES)) as files:
        files.findings = watch.pop_findings
        files.close_files()
        files.finish()
    (written,) = (tmp_path / "findings").iterdir()
    found = pq.read_table(written)["finding"].to_pylist()
    whole = kwsniff.analyze(capture)
    assert sorted(found) == sorted(whole.findings["finding"].to_pylist())
    (written,) = (tmp_path / "finding_calls").iterdir()
    columns = ["finding_id", "call_id", "connection_id"]
    assert pq.read_table(written).select(columns).equals(whole.finding_calls.select(columns))


HARMED = (("api_calls", "call_id"), ("connections", "connection_id"))


def _harm_in(rows: pa.Table, key: str) -> dict[int, str]:
    harm = dict(zip(rows[key].to_pylist(), rows["harm"].to_pylist(), strict=True))
    return {number: word for number, word in harm.items() if word is not None}


@pytest.mark.sample(1)
@pytest.mark.parametrize("capture", ["killed_broker/capture", "field/poison_record"])
def test_files_say_what_calls_and_connections_suffered(capture: str, tmp_path: Path) -> None:
    """As `analyze` does, which has all rows at once."""
    path = ROOT / "captures" / f"{capture}.pcap"
    whole = kwsniff.analyze(path)
    with (
        Session(FileSource(path, pieces=64), tables=READ) as session,
        Watch(session.read_snapshot, most_rows=ROWS, every=0, seconds=3600) as watch,
        RollingTables(tmp_path, tuple(TABLES)) as files,
    ):
        files.findings, files.harm = watch.pop_findings, watch.pop_harm
        while not session.wait(0.005):
            batches, picture = session.drain_with_snapshot()
            files.write(batches)
            watch.add(batches)
            if watch.is_due:
                watch.evaluate(picture)
        batches = session.finish()
        files.write(batches)
        watch.add(batches)
        watch.conclude()
        files.finish()
    for table, key in HARMED:
        expected = _harm_in(whole.table(table), key)
        assert _harm_in(pa.concat_tables(map(pq.read_table, (tmp_path / table).iterdir())), key) == expected
    assert _harm_in(whole.api_calls, "call_id") or _harm_in(whole.connections, "connection_id")


def test_a_file_that_is_closed_stays_as_it_is(tmp_path: Path) -> None:
    """What is found later is in no file: a file never changes once it has its name."""
    path = INCIDENTS / "not_authorized" / "broker.pcap"
    with (
        Session(FileSource(path), tables=READ) as session,
        Watch(session.read_snapshot, most_rows=ROWS) as watch,
        RollingTables(tmp_path, tuple(TABLES)) as files,
    ):
        files.findings, files.harm = watch.pop_findings, watch.pop_harm
        session.wait(PATIENCE_S)
        batches = session.finish()
        files.write(batches)
        files.close_files()
        (closed,) = (tmp_path / "api_calls").iterdir()
        before = closed.read_bytes()
        watch.add(batches)
        watch.conclude()
        files.finish()
    assert closed.read_bytes() == before
    assert _harm_in(pq.read_table(closed), "call_id") == {}
    assert _harm_in(kwsniff.analyze(path).api_calls, "call_id") != {}


def test_harm_that_a_later_look_does_not_find_is_taken_back() -> None:
    harm = HeldHarm(3)
    rows, none = np.array([1, 2, 3]), np.array([], np.int8)
    harm.judge("api_calls", rows, np.array([1, 3]), np.array([0, 2], np.int8))
    harm.judge("api_calls", np.array([3, 4]), np.array([4]), np.array([1], np.int8))
    assert harm.codes("api_calls", np.array([4, 3, 2, 1])).tolist() == [1, -1, -1, 0]
    harm.judge("api_calls", np.array([1, 4]), rows[:0], none)
    assert harm.codes("api_calls", np.array([1, 4])).tolist() == [-1, -1]
    harm.judge("api_calls", rows, np.array([1, 2, 3, 5]), np.zeros(4, np.int8))
    assert harm.codes("api_calls", np.array([1, 5])).tolist() == [-1, 0]  # three at most: the newest


def test_what_takes_too_much_memory_is_looked_for_in_fewer_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    batch = {"api_calls": kwsniff.analyze(INCIDENTS / "throttled" / "broker.pcap").api_calls.to_batches()[0]}
    monkeypatch.setattr("kwsniff.live.findings._LEAST_ROWS", 1)
    watch = Watch(lambda _: {}, most_rows=1_000_000, memory=500_000_000)
    for _ in range(10):
        watch.add(batch)
    steps = [*watch._steps]
    rows, size = steps[0].rows, steps[0].size
    assert watch._fitting(steps, 500_000_000) is steps
    assert (watch.lacked_memory, watch.shortened) == (False, False)
    fewer = watch._fitting(steps, 500_000_000 + 4 * size)  # of which half was never copied
    assert [*fewer] == steps[2:]
    assert watch._most_rows == 8 * rows
    assert (watch.lacked_memory, watch.shortened) == (True, True)
    watch.add(batch)
    assert [*watch._steps][:-1] == steps[3:]
    assert [*watch._fitting(steps[:2], 10**12)] == steps[1:2]  # the youngest always
    assert watch._most_rows == 1
    watch.add(batch)
    assert len(watch._steps) == 1


def test_a_look_leaves_rows_out_before_it_takes_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = kwsniff.analyze(INCIDENTS / "throttled" / "broker.pcap").api_calls
    looked_at: list[list[int]] = []

    def noted(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
        looked_at.append([batch.num_rows for batch in batches])
        return one_batch(batches)

    monkeypatch.setattr("kwsniff.live.findings._LEAST_ROWS", 1)
    monkeypatch.setattr("kwsniff.live.findings.one_batch", noted)
    monkeypatch.setattr("kwsniff.live.findings.resident_bytes", lambda: 100_000_000)
    memory = 100_000_000 + watch_module._TO_LOOK  # with nothing left for copies of rows
    watch = Watch(lambda _: {}, most_rows=1_000_000, memory=memory)
    for begin in (0, 9, 18):
        watch.add({"api_calls": calls.slice(begin, 9).to_batches()[0]})
    watch._judge([*watch._steps], None)
    assert looked_at == [[9]]  # a half, in whole steps


def test_names_from_the_wire_are_harmless_everywhere() -> None:
    watch, session = watched(INCIDENTS / "throttled" / "broker.pcap")
    (held,) = (each for each in watch.held if each.finding.finding == "throttled")
    held.finding.subject = 'a"b\\\n\x1b[2J' + "long" * 100
    held.finding.text = held.finding.subject
    window = Window()
    window.held = watch.held
    for width in (20, 60, 80):
        for line in wrong(window, width):
            assert line.cell_len <= width
            assert "\x1b" not in line.plain
            assert "\n" not in line.plain
    metrics = Metrics()
    metrics.hold(watch.held)
    (sample,) = (each for each in metrics.text().split("\n") if each.startswith("kwsniff_finding{"))
    assert 'subject="a\\"b' in sample
    assert len(sample) < 250
    progress = session.progress()
    assert "\x1b" not in interval_line(window, progress)
    told = json.loads(interval_json(window, progress))["findings"]
    assert told[0]["finding"] == "throttled"
    assert told[0]["severity"] == "warning"
    assert told[0]["since"]


def test_what_is_told_is_bounded() -> None:
    assert MOST_HELD <= MOST_SERIES


def test_a_rule_that_fails_ends_the_search_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("no room")

    monkeypatch.setattr("kwsniff.live.findings.evaluate", fail)
    watch, session = watched(INCIDENTS / "throttled" / "broker.pcap")
    assert watch.trouble == "the search for findings has stopped: no room"
    assert watch.held == ()
    assert session.summary.as_dict()["calls"]
