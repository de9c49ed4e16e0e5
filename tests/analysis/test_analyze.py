"""From capture files to tables, on traffic whose truth is known."""

import gzip
import json
import os
import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kwsniff
from kwsniff.core.declared import ENUMS
from kwsniff.errors import CaptureError, UsageError
from kwsniff.sources.files import Found
from kwsniff.tables.schema import TABLES, arrow_schema
from tests.tables.runs import of_any_run
from tests.traffic.files import frames, pcap
from tests.traffic.scenes import two_clients
from tests.traffic.truth import truth

pytestmark = pytest.mark.sample_tests(8)

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    path = tmp_path / "shop.pcap"
    path.write_bytes(pcap(frames(two_clients().packets())))
    return path


def rows_of(path: Path | list[Path], **options: Any) -> dict[str, list[dict[str, Any]]]:
    analysis = kwsniff.analyze(path, **options)
    return {name: of_any_run(analysis.table(name)).to_pylist() for name in TABLES}


def without(rows: list[dict[str, Any]], *names: str) -> list[dict[str, Any]]:
    return [{name: value for name, value in row.items() if name not in names} for row in rows]


def test_the_calls_are_the_ones_that_were_made(capture: Path) -> None:
    scene = two_clients()
    expected = []
    for call in truth(scene.calls, scene.packets()):
        exchange = call.call.exchange
        seen = call.request, call.response
        expected.append(
            {
                "api_key": exchange.api_key,
                "api_version": exchange.version,
                "correlation_id": exchange.correlation_id,
                "client_id": exchange.client_id,
                "status": call.status,
                "error_code": call.error_code,
                "request_time": EPOCH + timedelta(microseconds=seen[0].first_ns // 1000) if seen[0] else None,
                "latency_ns": seen[1].last_ns - seen[0].first_ns if seen[0] and seen[1] else None,
            }
        )
    got = kwsniff.analyze(capture).api_calls.select(list(expected[0])).to_pylist()

    def order(row: dict[str, Any]) -> Any:
        return row["client_id"], row["correlation_id"]

    assert sorted(got, key=order) == sorted(expected, key=order)


def test_tables_in_memory_and_on_disk_are_the_same(capture: Path, tmp_path: Path) -> None:
    memory = kwsniff.analyze(capture)
    output = tmp_path / "day=1"  # a directory name some readers make a column of
    disk = kwsniff.analyze(str(capture), output=output)
    for name, table in TABLES.items():
        assert memory.table(name).schema.equals(arrow_schema(table))
        assert of_any_run(memory.table(name)).equals(of_any_run(disk.table(name))), name
        assert pq.ParquetFile(output / f"{name}.parquet").read().equals(disk.table(name))
    assert memory.paths == {}
    assert disk.paths == {name: output / f"{name}.parquet" for name in TABLES}
    assert memory.summary["calls"] == disk.summary["calls"]


def test_attributes_are_the_tables(capture: Path) -> None:
    analysis = kwsniff.analyze([capture])
    for name in TABLES:
        assert isinstance(getattr(analysis, name), pa.Table)
        assert getattr(analysis, name) is analysis.table(name)
    assert "JoinGroup" in set(analysis.api_calls.to_pandas()["api_name"])
    with pytest.raises(UsageError, match="table 'calls' does not exist; there are api_calls"):
        analysis.table("calls")


def test_a_compressed_capture_gives_the_same_rows(capture: Path, tmp_path: Path) -> None:
    packed = tmp_path / "packed"
    packed.write_bytes(gzip.compress(capture.read_bytes()))
    plain, unpacked = rows_of(capture), rows_of(packed)
    for name in TABLES:
        dropped = ("capture", "compression")
        assert without(plain[name], *dropped) == without(unpacked[name], *dropped)
    assert unpacked["captures"][0]["compression"] == "gzip"


def test_a_rotated_capture_is_read_as_one(capture: Path, tmp_path: Path) -> None:
    packets = frames(two_clients().packets())
    parts = tmp_path / "rotated"
    parts.mkdir()
    half = len(packets) // 2
    (parts / "shop.pcap").write_bytes(pcap(packets[:half]))
    (parts / "shop.pcap1").write_bytes(pcap(packets[half:]))
    whole, rotated = rows_of(capture), rows_of(parts)
    here = (
        "capture",
        "request_frame",
        "request_end_frame",
        "response_frame",
        "response_end_frame",
        "first_frame",
    )
    here = (*here, "last_frame", "close_frame", "reset_frame", "frame")
    for name in ("api_calls", "latencies", "error_codes", "connections"):
        assert without(whole[name], *here) == without(rotated[name], *here)
    files = [str(parts / "shop.pcap"), str(parts / "shop.pcap1")]
    assert [row["capture"] for row in rotated["captures"]] == files
    assert {row["capture"] for row in rotated["api_calls"]} <= set(files)


def test_a_cut_compressed_capture_gives_its_beginning_and_says_so(tmp_path: Path) -> None:
    packets = frames(two_clients().packets())
    path = tmp_path / "cut.pcap.gz"
    path.write_bytes(gzip.compress(pcap(packets))[:-12])
    analysis = kwsniff.analyze(path)
    (row,) = analysis.captures.to_pylist()
    assert row["truncated"]
    assert row["notes"] == ["the gzip stream ends early"]
    assert analysis.api_calls.num_rows > 0


def test_the_captures_table_says_what_the_file_is(capture: Path) -> None:
    packets = two_clients().packets()
    (row,) = kwsniff.analyze(capture).captures.to_pylist()
    assert row["capture"] == str(capture)
    assert (row["format"], row["byte_order"], row["link_types"]) == ("pcap", "little", ["ethernet"])
    assert row["bytes"] == capture.stat().st_size
    assert row["packets"] == row["tcp_packets"] == len(packets)
    assert row["first_time"] == EPOCH + timedelta(microseconds=packets[0].time_ns // 1000)
    assert row["last_time"] == EPOCH + timedelta(microseconds=packets[-1].time_ns // 1000)
    assert row["tcp_payload_bytes"] == sum(len(packet.payload) for packet in packets)
    assert row["tcp_payload_bytes"] == sum(row[f"{name}_bytes"] for name in ENUMS["bin"])
    (acks_0,) = (c.exchange for c in two_clients().calls if not c.exchange.expects_response)
    assert row["no_response_expected_bytes"] == len(acks_0.request)
    assert not row["truncated"]
    assert not row["damaged"]


def test_progress_ends_at_the_total(capture: Path, tmp_path: Path) -> None:
    second = tmp_path / "second.pcap"
    # Of other packets: captures that share some are read a second time.
    second.write_bytes(gzip.compress(pcap(frames(two_clients("10.2.0.").packets()))))
    seen: list[tuple[str, int, int | None]] = []
    kwsniff.analyze([capture, second], progress=lambda *step: seen.append(step))
    total = capture.stat().st_size + second.stat().st_size
    assert [step[1] for step in seen] == sorted(step[1] for step in seen)
    assert seen[-1] == (str(second), total, total)


def test_the_summary_is_json(capture: Path, tmp_path: Path) -> None:
    summary = kwsniff.analyze(capture, output=tmp_path / "out").summary
    again = json.loads(json.dumps(summary))
    assert again == summary
    assert again["rows"]["api_calls"] == sum(item["calls"] for item in again["calls"])
    assert again["tables"]["api_calls"] == str(tmp_path / "out" / "api_calls.parquet")


def test_rows_that_fill_many_row_groups_all_arrive(
    capture: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = rows_of(capture)
    monkeypatch.setattr("kwsniff.timelines.row_path.ROW_GROUP_ROWS", 2)
    monkeypatch.setattr("kwsniff.sources.files.BUFFER_BYTES", 64)
    output = tmp_path / "out"
    pieces = rows_of(capture, output=output)
    assert pieces == whole
    assert pq.ParquetFile(output / "api_calls.parquet").num_row_groups > 2


def test_a_file_that_turns_out_to_be_no_capture_leaves_nothing_behind(capture: Path, tmp_path: Path) -> None:
    """What comes through a pipe cannot be looked into first."""
    broken = tmp_path / "broken"
    os.mkfifo(broken)
    writer = threading.Thread(target=broken.write_bytes, args=(capture.read_bytes()[:10],))
    writer.start()
    output = tmp_path / "out"
    with pytest.raises(CaptureError) as caught:
        kwsniff.analyze([capture, broken], output=output)
    writer.join()
    assert str(caught.value).startswith(f"{broken}: ")
    assert list(output.iterdir()) == []


def test_a_file_that_is_gone_before_it_is_read_costs_itself_only(
    capture: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As rotating tools remove the oldest."""
    gone = tmp_path / "gone.pcap"
    whole = kwsniff.analyze(capture)
    monkeypatch.setattr(
        "kwsniff.analysis.analyze.find_in_order", lambda _: Found([str(gone), str(capture)], [])
    )
    found = kwsniff.analyze([gone, capture])
    assert found.api_calls.num_rows == whole.api_calls.num_rows
    assert found.summary["unread"] == [{"capture": str(gone), "reason": "no such file; check the path"}]
    monkeypatch.setattr("kwsniff.analysis.analyze.find_in_order", lambda _: Found([str(gone)], []))
    with pytest.raises(CaptureError, match="no such file"):
        kwsniff.analyze(gone)


def test_wrong_ports_and_limits_are_usage_errors(capture: Path) -> None:
    with pytest.raises(UsageError, match="port 70000"):
        kwsniff.analyze(capture, ports=[70_000])
    with pytest.raises(UsageError, match="unknown limit 'speed'"):
        kwsniff.analyze(capture, limits={"speed": 1})


def test_a_file_name_that_is_not_utf8_does_not_stop_anything(capture: Path, tmp_path: Path) -> None:
    odd = Path(f"{tmp_path}/caf\udce9.pcap")
    odd.write_bytes(capture.read_bytes())
    analysis = kwsniff.analyze(odd, output=tmp_path / "out")
    assert analysis.captures["capture"].to_pylist() == [f"{tmp_path}/caf\ufffd.pcap"]
    assert analysis.api_calls["capture"].unique().to_pylist() == [f"{tmp_path}/caf\ufffd.pcap"]


def test_pandas_is_loaded_when_it_is_asked_for_and_not_before(capture: Path, tmp_path: Path) -> None:
    code = (
        "import sys, kwsniff\n"
        "analysis = kwsniff.analyze(sys.argv[1], output=sys.argv[2])\n"
        "analysis.summary, analysis.captures\n"
        "print('pandas' in sys.modules, len(analysis.api_calls.to_pandas()))"
    )
    command = [sys.executable, "-c", code, capture, tmp_path / "out"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "10"]


def test_tables_that_are_not_asked_for_are_not_made(capture: Path, tmp_path: Path) -> None:
    whole = rows_of(capture, output=tmp_path)
    analysis = kwsniff.analyze(capture, output=tmp_path, tables=["groups", "error_codes"])
    assert {path.name for path in tmp_path.iterdir()} == {
        "error_codes.parquet",
        "groups.parquet",
        capture.name,
    }
    assert of_any_run(analysis.groups).to_pylist() == whole["groups"] != []
    assert of_any_run(analysis.error_codes).to_pylist() == whole["error_codes"] != []
    with pytest.raises(UsageError, match="'api_calls' was not asked for; there are error_codes, groups"):
        analysis.table("api_calls")
    with pytest.raises(UsageError, match=r"unknown table 'calls'; did you mean .*api_calls"):
        kwsniff.analyze(capture, tables=["calls"])
    memory = kwsniff.analyze(capture, tables=["latencies"])
    assert of_any_run(memory.latencies).to_pylist() == whole["latencies"]
    json.dumps(memory.summary)
