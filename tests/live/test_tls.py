"""Live with a key log that is still being written: what came before its secrets is opened when they come."""

from __future__ import annotations

import io
import json
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from rich.console import Console

import kwsniff
from kwsniff.cli.live.header import wrong
from kwsniff.cli.live.lines import interval_json, interval_line
from kwsniff.cli.live.model import ViewState
from kwsniff.cli.live.pages import page
from kwsniff.live.connections import not_opened_words, open_connections
from kwsniff.live.session import Session
from kwsniff.live.window import Window
from tests.live.running import PATIENCE_S, FileSource
from tests.pipeline.compare import analyzed
from tests.pipeline.opened import BOTH, facts, wide
from tests.traffic import files, messages, tls
from tests.traffic.files import pcap
from tests.traffic.records import batch
from tests.traffic.tcp import MILLISECOND, Scene

pytestmark = pytest.mark.skipif(tls.missing() is not None, reason=str(tls.missing()))

CAPTURES = Path(__file__).parents[2] / "captures"
# Calls that became known late have other numbers; what they are is the same.
LOOSE = {"call_id", "capture", "run_id"}


@pytest.fixture
def keys(tmp_path: Path) -> tls.KeyLog:
    return tls.KeyLog(tmp_path)


def two_connections(size: int, calls: int, *, closed: bool = False) -> Scene:
    """They stay open, or are closed in the end."""
    scene = Scene()
    for number in range(2):
        script = scene.connection()
        script.open(at=number * 1000)
        for call in range(1, calls + 1):
            ask = messages.produce(7, call, {"orders": {0: batch([b"z" * size])}})
            at = 10 * call * MILLISECOND + number * 333
            script.call(ask, at=at, answer_at=at + 4 * MILLISECOND)
        if closed:
            script.close(at=10 * (calls + 2) * MILLISECOND + number)
    return scene


def rows(batches: list[dict[str, pa.RecordBatch]]) -> list[dict[str, Any]]:
    return [row for each in batches if "api_calls" in each for row in each["api_calls"].to_pylist()]


def told(found: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    names = (
        "client_port",
        "correlation_id",
        "api_key",
        "status",
        "request_bytes",
        "response_bytes",
        "latency_ns",
    )
    return sorted(tuple(row[name] for name in names) for row in found)


@BOTH
@pytest.mark.parametrize("when", ["before", "in_the_middle", "at_the_end"])
def test_secrets_may_come_late(tmp_path: Path, keys: tls.KeyLog, version: Any, when: str) -> None:
    path = tmp_path / "tls.pcap"
    path.write_bytes(pcap(files.frames(keys.encrypt(two_connections(200, 5), version).packets())))
    growing = tmp_path / "growing.log"
    text = keys.path.read_bytes()
    growing.write_bytes(text if when == "before" else b"")
    with Session(FileSource(path, pieces=300), tls_keylog=growing) as session:
        batches = []
        while not session.wait(0.01):
            batches.append(dict(session.drain()))
            if when == "in_the_middle" and session.progress().packets > 12:
                growing.write_bytes(text[: len(text) * 2 // 3])  # half a line among them
        growing.write_bytes(text)
        batches.append(dict(session.finish()))
    assert told(rows(batches)) == told(analyzed(path, tls_keylog=keys.path)["api_calls"])
    assert len(rows(batches)) == 10


def test_what_waits_is_bounded_and_what_comes_later_is_found(tmp_path: Path, keys: tls.KeyLog) -> None:
    path = tmp_path / "tls.pcap"
    encrypted = keys.encrypt(two_connections(9000, 20), tls.VERSIONS[1])
    path.write_bytes(pcap(files.frames(encrypted.packets())))
    growing = tmp_path / "growing.log"
    growing.write_bytes(b"")
    limits = {"tls_buffer_bytes": 30_000}
    with Session(FileSource(path), tls_keylog=growing, limits=limits) as session:
        while not session.wait(0.01):
            session.drain()
        growing.write_bytes(keys.path.read_bytes())
        batches = [dict(session.finish())]
    true = analyzed(path, tls_keylog=keys.path)["api_calls"]
    answered = [row for row in rows(batches) if row["status"] == "answered"]
    assert 2 <= len(answered) < len(true)
    assert set(told(answered)) <= set(told(true))
    names = [row["name"] for each in batches if "anomalies" in each for row in each["anomalies"].to_pylist()]
    assert "not_decrypted" in names


def test_a_key_log_that_is_there_gives_the_rows_of_analyze(tmp_path: Path, keys: tls.KeyLog) -> None:
    path = tmp_path / "tls.pcap"
    path.write_bytes(pcap(files.frames(keys.encrypt(wide(), tls.VERSIONS[1]).packets())))
    with Session(FileSource(path, pieces=4096), tls_keylog=keys.path) as session:
        while not session.wait(0.01):
            pass
        found = rows([dict(session.finish())])
    assert told(found) == told(analyzed(path, tls_keylog=keys.path)["api_calls"])
    assert len(facts(found, LOOSE)) == 8


def test_what_nobody_opens_is_told_in_the_view_in_lines_and_json() -> None:
    """Connections, bytes and records of each side: sums over what tshark shows of the recording."""
    path = CAPTURES / "tls_1_3" / "capture.pcap"
    (batch_,) = kwsniff.analyze(path).connections.combine_chunks().to_batches()
    window = Window()
    window.connections = open_connections(batch_)
    words = (
        "5 connections, not decrypted: client sent 4.0 kB in 34 records, broker sent 17.3 kB in 40 records"
    )
    assert [line.plain for line in wrong(window, 120)] == [f"TLS  {words}"]
    with Session(FileSource(path)) as session:
        progress = session.progress()
    assert f"TLS {words}" in interval_line(window, progress)
    told = json.loads(interval_json(window, progress))["tls_not_opened"]
    assert (told["connections"], told["client_tls_records"], told["broker_tls_records"]) == (5, 34, 40)
    console = Console(width=200, file=io.StringIO())
    console.print(page(window, ViewState(page="connections"), 30, 200))
    assert isinstance(console.file, io.StringIO)
    shown = console.file.getvalue()
    assert shown.count("TLS_AES_256_GCM_SHA384") == 5
    assert shown.count("9 / 10") == 2


def test_opened_connections_are_not_among_those_that_nobody_opens() -> None:
    folder = CAPTURES / "tls_1_3"
    tables = kwsniff.analyze(folder / "capture.pcap", tls_keylog=folder / "keys.log")
    (batch_,) = tables.connections.combine_chunks().to_batches()
    assert not_opened_words(open_connections(batch_)) == ""


class Pipe(FileSource):
    """Packets that a test writes, one by one, and no end before it says so."""

    def _write(self, path: Path, pieces: int) -> None:
        pass

    def send(self, data: bytes) -> None:
        for at in range(0, len(data), 4096):
            self._in.send(data[at : at + 4096])

    def end(self) -> None:
        self._in.close()


@BOTH
def test_secrets_open_connections_that_have_ended_meanwhile(
    tmp_path: Path, keys: tls.KeyLog, version: Any
) -> None:
    path = tmp_path / "tls.pcap"
    path.write_bytes(
        pcap(files.frames(keys.encrypt(two_connections(200, 4, closed=True), version).packets()))
    )
    growing = tmp_path / "growing.log"
    growing.write_bytes(b"# nothing yet\n")
    with Session(FileSource(path), tls_keylog=growing) as session:
        while not session.wait(0.01):
            assert rows([dict(session.drain())]) == []
        growing.write_bytes(keys.path.read_bytes().rstrip(b"\n"))  # the last line has no end
        found = dict(session.finish())
    true = analyzed(path, tls_keylog=keys.path)
    assert told(rows([found])) == told(true["api_calls"])
    assert len(rows([found])) == 8
    ends = [(row["protocol"], row["ending"], row["calls"]) for row in found["connections"].to_pylist()]
    assert ends == [("kafka", "fin", 4)] * 2


@BOTH
def test_secrets_open_what_waits_without_a_packet(tmp_path: Path, keys: tls.KeyLog, version: Any) -> None:
    """No packet comes, and nobody asks how far it is: rows come all the same."""
    path = tmp_path / "tls.pcap"
    path.write_bytes(
        pcap(files.frames(keys.encrypt(two_connections(200, 4, closed=True), version).packets()))
    )
    growing = tmp_path / "growing.log"
    growing.write_bytes(b"")
    pipe = Pipe(path)
    with Session(pipe, tls_keylog=growing) as session:
        pipe.send(path.read_bytes())
        growing.write_bytes(keys.path.read_bytes())
        found: list[dict[str, Any]] = []
        end = time.monotonic() + PATIENCE_S
        while len(found) < 8 and time.monotonic() < end:
            found += rows([dict(session.drain())])
            time.sleep(0.01)
        pipe.end()
        assert told(found) == told(analyzed(path, tls_keylog=keys.path)["api_calls"])


def test_packets_and_secrets_that_take_turns(tmp_path: Path, keys: tls.KeyLog) -> None:
    """Each connection's secrets come when it is over, and the next one has begun."""
    scene = Scene()
    for number in range(6):
        script = scene.connection()
        script.open(at=number * 100 * MILLISECOND)
        for call in range(1, 4):
            ask = messages.produce(7, call, {"orders": {0: batch([b"z" * 50])}})
            at = (number * 100 + 10 * call) * MILLISECOND
            script.call(ask, at=at, answer_at=at + 4 * MILLISECOND)
        script.close(at=(number * 100 + 60) * MILLISECOND)
    path = tmp_path / "tls.pcap"
    path.write_bytes(pcap(files.frames(keys.encrypt(scene, tls.VERSIONS[1]).packets())))
    growing = tmp_path / "growing.log"
    growing.write_bytes(b"")
    data, lines = path.read_bytes(), keys.path.read_bytes().splitlines(keepends=True)
    pipe = Pipe(path)
    with Session(pipe, tls_keylog=growing) as session:
        for turn in range(6):
            pipe.send(data[len(data) * turn // 6 : len(data) * (turn + 1) // 6])
            with growing.open("ab") as file:
                file.writelines(lines[len(lines) * turn // 6 : len(lines) * (turn + 1) // 6])
            session.progress()
        pipe.end()
        found = rows([dict(session.finish())])
    assert told(found) == told(analyzed(path, tls_keylog=keys.path)["api_calls"])
    assert len(found) == 18


@pytest.mark.parametrize(
    ("limits", "late_s"), [({"frame_kept_bytes_total": 200_000}, 0), ({"ended_seconds": 5}, 6)]
)
def test_ended_connections_wait_for_secrets_within_bounds(
    tmp_path: Path, keys: tls.KeyLog, limits: dict[str, int], late_s: int
) -> None:
    """Beyond them they end unopened, the first ones first, and their rows come without the secrets."""
    scene = Scene()
    for number in range(30):
        script = scene.connection()
        start = (number * 100 + (late_s * 1000 if number == 29 else 0)) * MILLISECOND
        script.open(at=start)
        ask = messages.produce(7, 1, {"orders": {0: batch([b"z" * 9000])}})
        script.call(ask, at=start + 10 * MILLISECOND, answer_at=start + 14 * MILLISECOND)
        script.close(at=start + 20 * MILLISECOND)
    path = tmp_path / "tls.pcap"
    path.write_bytes(pcap(files.frames(keys.encrypt(scene, tls.VERSIONS[1]).packets())))
    growing = tmp_path / "growing.log"
    growing.write_bytes(b"")
    with Session(FileSource(path), tls_keylog=growing, limits=limits) as session:
        early: list[dict[str, Any]] = []
        while not session.wait(0.01):
            early += connections(dict(session.drain()))
        early += connections(dict(session.drain()))
        growing.write_bytes(keys.path.read_bytes())
        late = connections(dict(session.finish()))
    assert early and {row["protocol"] for row in early} == {"tls"}
    assert late and {row["protocol"] for row in late} == {"kafka"}
    assert len(early) + len(late) == 30
    assert max(row["first_frame"] for row in early) < min(row["first_frame"] for row in late)


def connections(batches: dict[str, pa.RecordBatch]) -> list[dict[str, Any]]:
    return batches["connections"].to_pylist() if "connections" in batches else []
