"""The generator against tshark: what it writes is what another dissector reads."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.traffic import damage, files, scenes
from tests.traffic.exchange import Exchange
from tests.traffic.links import LINKS, IpStyle
from tests.traffic.messages import produce
from tests.traffic.records import batch, crc32c
from tests.traffic.tcp import Scene
from tests.traffic.truth import truth

# Newest version of each API that tshark 4.0 dissects (its table is that of Kafka 2.5).
KNOWN_TO_TSHARK = {
    0: 8,
    1: 11,
    2: 5,
    3: 9,
    8: 8,
    9: 7,
    10: 3,
    11: 7,
    12: 4,
    14: 5,
    17: 1,
    18: 3,
    22: 3,
    36: 2,
}
# tshark 4.0 reads the int32 length of classic bytes fields in these as int16 and calls the rest malformed.
BYTES_MISREAD_BY_TSHARK = {11, 14}

needs_tshark = pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")


def tshark_fields(path: Path, *fields: str, only: str = "kafka") -> list[list[str]]:
    command = ["tshark", "-r", str(path), "-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE"]
    command += ["-Y", only, "-T", "fields", *(part for name in fields for part in ("-e", name))]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    return [line.split("\t") for line in done.stdout.splitlines()]


def test_crc32c_is_castagnoli() -> None:
    """RFC 3720 B.4: 32 bytes of zeros, 32 bytes of ones, the bytes 0..31."""
    assert crc32c(bytes(32)) == 0x8A9136AA
    assert crc32c(b"\xff" * 32) == 0x62A8AB43
    assert crc32c(bytes(range(32))) == 0x46DD794E


def test_damage_keeps_and_loses_what_it_says() -> None:
    packets = scenes.pipelined().packets()
    assert damage.drop(packets, {0, 2}) == [packets[1], *packets[3:]]
    assert len(damage.duplicate(packets, lambda packet: bool(packet.payload))) > len(packets)
    shuffled = damage.reorder(packets, 4, seed=3)
    assert sorted(p.offset for p in shuffled) == sorted(p.offset for p in packets)
    assert [p.seq for p in shuffled] != [p.seq for p in packets]
    streams: dict[bool, bytearray] = {True: bytearray(), False: bytearray()}
    for packet in damage.overlap(packets, 20):
        stream = streams[packet.from_client]
        assert packet.payload[: len(stream) - packet.offset] == stream[packet.offset :][: len(packet.payload)]
        stream[packet.offset :] = packet.payload
    assert bytes(streams[True]) == b"".join(call.request for call in _exchanges(scenes.pipelined()))


def _exchanges(scene: Scene) -> list[Exchange]:
    return [call.exchange for call in scene.calls]


@needs_tshark
def test_tshark_reads_every_message_it_knows(tmp_path: Path) -> None:
    scene = scenes.one_by_one(scenes.vocabulary())
    packets = scene.packets()
    capture = tmp_path / "all.pcap"
    capture.write_bytes(files.pcap(files.frames(packets)))
    rows = {
        int(row[0]): row[1:]
        for row in tshark_fields(
            capture, "frame.number", "kafka.api_key", "kafka.api_version", "kafka.correlation_id",
            "kafka.client_id", "_ws.malformed", "kafka.error",
        )
    }  # fmt: skip
    checked = 0
    for row in truth(scene.calls, packets):
        said = row.call.exchange
        if said.version > KNOWN_TO_TSHARK[said.api_key]:
            continue
        assert row.request is not None
        key, version, correlation, client, malformed, _ = rows[row.request.first_frame]
        assert [int(key), int(version), int(correlation)] == [said.api_key, said.version, said.correlation_id]
        assert client == (said.client_id or "")
        assert not malformed or said.api_key in BYTES_MISREAD_BY_TSHARK
        if row.response is not None:
            answer = rows[row.response.first_frame]
            assert int(answer[2]) == said.correlation_id
            assert not answer[4] or said.api_key in BYTES_MISREAD_BY_TSHARK
            codes = [int(code) for code in answer[5].split(",") if code not in ("", "0")]
            assert codes == [error.code for error in said.facts.errors]
        checked += 1
    assert checked >= 20


@pytest.mark.sample(4)
@needs_tshark
@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize(
    "style", [IpStyle(), IpStyle(extension_headers=True, options=True)], ids=["plain", "long"]
)
def test_tshark_reads_every_link_type(link: str, style: IpStyle, tmp_path: Path) -> None:
    for version in LINKS[link].versions:
        scene = scenes.two_clients("10.1.0." if version == 4 else "fd00::")
        packets = scene.packets()
        capture = tmp_path / f"{link}{version}.pcap"
        capture.write_bytes(files.pcap(files.frames(packets, LINKS[link], style), LINKS[link].number))
        rows = tshark_fields(
            capture, "tcp.seq_raw", "tcp.len", "tcp.checksum.status", "ip.checksum.status", only="tcp"
        )
        assert [(int(row[0]), int(row[1])) for row in rows] == [(p.seq, len(p.payload)) for p in packets]
        assert {row[2] for row in rows} == {"1"}  # 1: good
        assert {row[3] for row in rows} == ({"1"} if version == 4 else {""})


@needs_tshark
@pytest.mark.parametrize("form", files.FORMATS)
def test_tshark_reads_every_format(form: str, tmp_path: Path) -> None:
    chosen = files.FORMATS[form]
    scene = scenes.two_clients()
    packets = scene.packets()
    capture = tmp_path / form
    capture.write_bytes(chosen.write(files.frames(packets), 1))
    rows = tshark_fields(capture, "frame.number", "frame.time_epoch", "tcp.len", only="frame")
    assert [int(row[2]) for row in rows] == [len(packet.payload) for packet in packets]
    if chosen.timed:
        for row, packet in zip(rows, packets, strict=True):
            seconds, _, rest = row[1].partition(".")
            assert abs(int(seconds) * 10**9 + int(rest.ljust(9, "0")) - chosen.clock(packet.time_ns)) <= 1


@needs_tshark
def test_tshark_reads_the_record_batches(tmp_path: Path) -> None:
    records = batch([b"a" * 40, b"b" * 40], gzipped=True)
    scene = scenes.one_by_one([produce(7, 1, {"orders": {0: records}})])
    capture = tmp_path / "records.pcap"
    capture.write_bytes(files.pcap(files.frames(scene.packets())))
    rows = tshark_fields(capture, "kafka.message_value", "kafka.batch_codec", only="kafka.batch_codec")
    assert rows == [[f"{b'a'.hex() * 40},{b'b'.hex() * 40}", "1"]]
