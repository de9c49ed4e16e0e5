"""The same traffic in every file format and on every link type gives the same tables."""

from __future__ import annotations

import gzip
import struct
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.pipeline.compare import analyzed_packets, assert_calls, content, decoded, in_order, written
from tests.pipeline.running import run
from tests.traffic import files, scenes
from tests.traffic.links import LINKS, IpStyle
from tests.traffic.tcp import Endpoint

ALL_TIMES = (
    "request_time", "request_end_time", "response_time", "response_end_time", "latency_ns", "total_ns",
    "first_time", "last_time", "round_trip_ns", "time", "request_transmission_ns", "queue_wait_ns",
    "broker_ns", "deliberate_wait_ns", "response_transmission_ns", "wait", "client_round_trip_ns",
    "broker_round_trip_ns", "broker_round_trip_error_ns", "network_ns", "queued_behind", "queued_behind_wait",
    "capture_point", "client_zero_window_ns", "broker_zero_window_ns", "zero_window_ns",
    "begin_time", "end_time", "duration_ns", "first_join_time", "last_join_time",
    "joined_time", "left_time", "close_time", "connect_ns", "lag_ns",
    "produced_time", "acknowledged_time", "visible_time", "fetched_time", "committed_time", "before_wire_ns",
    "produce_ns", "replication_ns", "fetch_wait_ns", "fetch_ns", "processing_ns",
)  # fmt: skip


@pytest.mark.parametrize("form", files.FORMATS)
def test_every_format(form: str, tmp_path: Path) -> None:
    chosen = files.FORMATS[form]
    scene = scenes.two_clients()
    packets = scene.packets()
    path = tmp_path / form
    path.write_bytes(chosen.write(files.frames(packets), 1))
    tables = decoded(path)
    assert_calls(tables, scene.calls, packets, clock=chosen.clock, timed=chosen.timed)
    assert tables["captures"][0]["packets"] == len(packets)
    assert tables["captures"][0]["format"] == form.split("_", maxsplit=1)[0]
    if chosen.timed:
        plain = analyzed_packets(tmp_path, packets)
        assert content(tables, without=ALL_TIMES) == content(plain, without=ALL_TIMES)
    else:
        assert tables["latencies"] == []
        assert {row[key] for row in tables["api_calls"] for key in ("request_time", "latency_ns")} == {None}


@pytest.mark.sample(12)
@pytest.mark.parametrize("form", ["pcap_us_little", "pcap_ns_big", "pcapng_little", "pcapng_big"])
@pytest.mark.parametrize("link", LINKS)
def test_every_link_type(link: str, form: str, tmp_path: Path) -> None:
    chosen = files.FORMATS[form]
    for version in LINKS[link].versions:
        scene = scenes.two_clients("10.1.0." if version == 4 else "fd00::")
        packets = scene.packets()
        path = tmp_path / f"{link}-{version}"
        path.write_bytes(chosen.write(files.frames(packets, LINKS[link]), LINKS[link].number))
        tables = decoded(path)
        assert_calls(tables, scene.calls, packets, clock=chosen.clock)
        assert tables["captures"][0]["tcp_packets"] == len(packets)


@pytest.mark.parametrize("address", ["10.1.0.", "fd00::"], ids=["ipv4", "ipv6"])
@pytest.mark.parametrize(
    "style",
    [
        IpStyle(extension_headers=True, options=True),
        IpStyle(zero_length=True),
        IpStyle(tcp_timestamps=False),
        IpStyle(extension_headers=True, zero_length=True),
    ],
    ids=["extended", "offloaded", "padded", "extended_offloaded"],
)
def test_every_ip_header(address: str, style: IpStyle, tmp_path: Path) -> None:
    scene = scenes.two_clients(address)
    packets = scene.packets()
    path = written(tmp_path / "capture.pcap", files.frames(packets, LINKS["ethernet"], style))
    assert_calls(decoded(path), scene.calls, packets)


def test_ipv6_addresses_are_written_the_usual_way(tmp_path: Path) -> None:
    scene = scenes.one_by_one(
        scenes.vocabulary()[:4], client=Endpoint("2001:db8::7", 40_000), broker=Endpoint("::1", 9092)
    )
    tables = analyzed_packets(tmp_path, scene.packets())
    assert {(row["client_address"], row["broker_address"]) for row in tables["api_calls"]} == {
        ("2001:db8::7", "::1")
    }


def test_compressed_captures_are_read_as_they_are(tmp_path: Path) -> None:
    packets = scenes.two_clients().packets()
    plain = analyzed_packets(tmp_path, packets)
    data = files.pcapng(files.frames(packets))
    zipped = tmp_path / "capture.pcapng.gz"
    zipped.write_bytes(gzip.compress(data))
    members = tmp_path / "members.gz"
    members.write_bytes(gzip.compress(data[:999]) + gzip.compress(data[999:]))
    for path in (zipped, members):
        assert content(decoded(path)) == content(plain)


def test_zstd_captures_are_read_as_they_are(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    packets = scenes.two_clients().packets()
    path = tmp_path / "capture.pcap.zst"
    path.write_bytes(pyarrow.compress(files.pcap(files.frames(packets)), codec="zstd", asbytes=True))
    assert content(decoded(path)) == content(analyzed_packets(tmp_path, packets))


def test_a_connection_goes_on_in_the_next_file(tmp_path: Path) -> None:
    packets = scenes.pipelined(mss=60).packets()
    whole = analyzed_packets(tmp_path, packets)
    rows = files.frames(packets)
    parts = [
        written(tmp_path / f"part{number}", rows[start : start + 17])
        for number, start in enumerate(range(0, len(rows), 17))
    ]
    assert len(parts) > 3
    by_frame = [key for key in whole["api_calls"][0] if key.endswith("frame")] + [
        "frame",
        "first_frame",
        "last_frame",
        "close_frame",
    ]
    assert content(decoded(*parts), without=by_frame) == content(whole, without=by_frame)


def test_frames_are_counted_as_wireshark_counts_them(tmp_path: Path) -> None:
    """Wireshark shows custom blocks as frames of their own, so they take a number."""
    scene = scenes.two_clients()
    path = tmp_path / "custom.pcapng"
    path.write_bytes(files.pcapng(files.frames(scene.packets()), custom=True))
    plain = analyzed_packets(tmp_path, scene.packets())
    with_custom = decoded(path)
    assert [row["request_frame"] for row in in_order(with_custom["api_calls"])] == [
        2 * row["request_frame"] for row in in_order(plain["api_calls"])
    ]


@pytest.mark.parametrize("big", [False, True])
def test_packets_that_the_interface_lost_are_told_before_those_of_the_system(big: bool) -> None:
    """isb_ifdrop (5) counts what the capturing machine lost, isb_osdrop (7) what passed the filter of it;
    where both are written, in any order, the first one counts. Sections and interfaces add up."""

    def section(*statistics: tuple[int, Mapping[int, int]], interfaces: int = 1) -> bytes:
        order = ">" if big else "<"
        out = [files.block(order, 0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1))]
        out += [files.block(order, 1, struct.pack(order + "HHI", 1, 0, 0))] * interfaces
        for number, counts in statistics:
            options = [
                files.option(order, code, struct.pack(order + "Q", count)) for code, count in counts.items()
            ]
            out.append(files.block(order, 5, struct.pack(order + "III", number, 0, 0) + b"".join(options)))
        return b"".join(out)

    def dropped(data: bytes) -> Any:
        return run([data])[1]["dropped_by_kernel"]

    assert dropped(section()) is None
    assert dropped(section((0, {4: 1000}))) is None  # isb_ifrecv
    assert dropped(section((0, {5: 7, 7: 9}))) == 7
    assert dropped(section((0, {7: 9, 5: 7}))) == 7
    assert dropped(section((0, {7: 9}))) == 9
    assert dropped(section((0, {5: 0}))) == 0
    assert dropped(section((0, {5: 7}), (1, {7: 9}), interfaces=2)) == 16
    assert dropped(section((0, {5: 7}), (0, {5: 8}))) == 8  # the later count of one interface
    assert dropped(section((0, {5: 7})) + section((0, {5: 1}))) == 8


@pytest.mark.parametrize("cut", [1, 7, 15, 16, 17, 40, 400])
def test_truncated_file_gives_what_is_there(cut: int, tmp_path: Path) -> None:
    scene = scenes.two_clients()
    packets = scene.packets()
    rows = files.frames(packets)
    data = files.pcap(rows)
    last = 16 + len(rows[-1].data)
    whole = packets[:-1] if cut <= last else None
    path = tmp_path / "cut.pcap"
    path.write_bytes(data[:-cut])
    tables = decoded(path)
    assert tables["captures"][0]["truncated"] is True
    if whole is not None:
        assert_calls(tables, scene.calls, whole)


def test_what_is_not_a_capture_is_refused_in_one_line(tmp_path: Path) -> None:
    pytest.importorskip("kwsniff.core.analyzer", reason="the analyzer is not built")
    from kwsniff.errors import CaptureError

    for name, data in (("empty", b""), ("text", b"hello, this is a text\n" * 20), ("zeros", bytes(4096))):
        path = tmp_path / name
        path.write_bytes(data)
        with pytest.raises(CaptureError) as raised:
            decoded(path)
        assert str(path) in str(raised.value)
        assert "\n" not in str(raised.value)


def test_editcap_agrees_that_the_formats_are_the_same(tmp_path: Path) -> None:
    """A second writer: Wireshark's own conversion of our pcap to pcapng."""
    packets = scenes.two_clients().packets()
    source = written(tmp_path / "ours.pcap", files.frames(packets))
    converted = tmp_path / "theirs.pcapng"
    try:
        subprocess.run(
            ["editcap", "-F", "pcapng", str(source), str(converted)], check=True, capture_output=True
        )
    except FileNotFoundError:
        pytest.skip("editcap is not installed")
    assert content(decoded(converted)) == content(decoded(source))
