"""The harness: what it reads from a broker's log, and one fresh recording where Kafka's jars are at hand."""

from __future__ import annotations

import tomllib
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.broker import artifacts, requestlog
from tests.broker.about import camel
from tests.broker.stage import NEWEST, SCENARIOS
from tests.pipeline.compare import analyzed
from tests.record.tcpdump import why_not

LINE = (
    '2026-11-20 17:30:00,500 Completed request:{"isForwarded":false,"requestHeader":{"requestApiKey":1,'
    '"requestApiVersion":16,"correlationId":8,"clientId":"a","requestApiKeyName":"FETCH"},"request":{},'
    '"response":{"throttleTimeMs":3,"errorCode":0,"responses":[{"errorCode":6,"highWatermark":9,"recordsSizeInBytes":5},'
    '{"errorCode":3,"recordsSizeInBytes":2}]},"connection":"127.0.0.1:9093-127.0.0.1:37618-0-0",'
    '"totalTimeMs":100.5,"requestQueueTimeMs":0.5,"localTimeMs":1.25,"remoteTimeMs":90.0,"throttleTimeMs":0,'
    '"responseQueueTimeMs":0.25,"sendTimeMs":8.5,"clientInformation":{"softwareName":"b"}}\n'
)


def at(seconds: float) -> datetime:
    return datetime(2026, 11, 20, 17, 30, tzinfo=UTC) + timedelta(seconds=seconds)


def test_a_line_of_the_log_is_a_row(tmp_path: Path) -> None:
    log = tmp_path / "requests.log"
    log.write_text(LINE + "something else\n")
    (row,) = requestlog.rows([log], at(0), at(1))
    assert (row.broker_port, row.client_port, row.api, row.api_version) == (9093, 37618, "FETCH", 16)
    assert (row.error_code, row.error_count, row.throttle_time_ms, row.record_bytes) == (6, 2, 3, 7)
    assert (row.served_us, row.offsets) == (91_750, (9,))
    assert (row.request_queue_us, row.local_us, row.remote_us, row.throttle_us) == (500, 1250, 90_000, 0)
    assert (row.response_queue_us, row.send_us, row.total_us) == (250, 8500, 100_500)
    requestlog.written(tmp_path / "witness.tsv", [row])
    assert requestlog.read(tmp_path / "witness.tsv") == [row]


def test_recordings_of_before_have_the_sum_only(tmp_path: Path) -> None:
    log = tmp_path / "requests.log"
    log.write_text(LINE)
    (row,) = requestlog.rows([log], at(0), at(1))
    requestlog.written(tmp_path / "witness.tsv", [row])
    lines = (tmp_path / "witness.tsv").read_text().splitlines()
    old = ["\t".join(line.split("\t")[: -len(requestlog.PARTS)]) for line in lines]
    (tmp_path / "witness.tsv").write_text("\n".join(old) + "\n")
    (found,) = requestlog.read(tmp_path / "witness.tsv")
    assert (found.served_us, found.local_us, found.total_us) == (91_750, None, None)


def test_a_request_that_came_before_or_ended_after_the_recording_is_left_out(tmp_path: Path) -> None:
    log = tmp_path / "requests.log"
    log.write_text(LINE)
    assert requestlog.rows([log], at(0.45), at(1)) == []
    assert requestlog.rows([log], at(0), at(0.49)) == []


def test_names_in_the_log_are_told_as_kwsniff_writes_them() -> None:
    assert [camel(name) for name in ("LEADER_AND_ISR", "FETCH")] == ["LeaderAndIsr", "Fetch"]


@pytest.mark.live
@pytest.mark.slow
def test_a_fresh_recording_of_a_real_broker(tmp_path: Path) -> None:
    pytest.importorskip("confluent_kafka")
    from tests.broker.__main__ import load, record

    if reason := artifacts.why_not() or why_not():
        pytest.skip(reason)
    if not artifacts.fetched(NEWEST):
        pytest.skip(
            f"Kafka's jars are not at hand: `python -m tests.broker` fetches them into {artifacts.CACHE}"
        )
    load()
    assert len(SCENARIOS) >= 30
    record("compression", tmp_path)
    folder = tmp_path / "compression"
    about = tomllib.loads((folder / "about.toml").read_text())
    assert about["report"]["produced"] == about["report"]["consumed"] == 20
    tables = analyzed(folder / about["file"])
    found = sorted((row["client_port"], row["correlation_id"], row["api_key"]) for row in tables["api_calls"])
    logged = requestlog.read(folder / "witness.tsv")
    assert found == sorted((row.client_port, row.correlation_id, row.api_key) for row in logged)
