"""TLS with its keys, in captures that repeat, shuffle and lose packets."""

from __future__ import annotations

import random
import ssl
import struct
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from kwsniff.errors import UsageError
from tests.pipeline.compare import analyzed
from tests.pipeline.opened import BOTH, PLACES, facts, timings, wide, written
from tests.pipeline.running import analyzer
from tests.traffic import damage, tls
from tests.traffic.tcp import Packet

TLS_1_2, TLS_1_3 = tls.VERSIONS

pytestmark = pytest.mark.skipif(tls.missing() is not None, reason=str(tls.missing()))


@pytest.fixture
def keys(tmp_path: Path) -> tls.KeyLog:
    return tls.KeyLog(tmp_path)


def after_handshakes(
    packets: Sequence[Packet], hurt: Callable[[Sequence[Packet]], list[Packet]]
) -> list[Packet]:
    """tshark needs every handshake in one piece."""
    start = next(
        index for index, packet in enumerate(packets) if packet.time_ns - packets[0].time_ns > 9_000_000
    )
    return [*packets[:start], *hurt(packets[start:-6]), *packets[-6:]]


DAMAGE: dict[str, Callable[[Sequence[Packet]], list[Packet]]] = {
    "retransmitted": lambda packets: damage.duplicate(packets, lambda packet: len(packet.payload) % 3 == 0),
    "all_retransmitted": lambda packets: damage.duplicate(
        packets, lambda packet: bool(packet.payload), later=1
    ),
    "overlapping": lambda packets: damage.overlap(packets, 20),
}


@BOTH
@pytest.mark.parametrize("name", DAMAGE)
def test_repeated_segments_change_nothing(
    tmp_path: Path, keys: tls.KeyLog, version: ssl.TLSVersion, name: str
) -> None:
    plain = wide(5000)
    encrypted = keys.encrypt(plain, version)
    clear = analyzed(written(tmp_path / "plain.pcap", plain.packets()))
    opened = analyzed(
        written(tmp_path / "tls.pcap", after_handshakes(encrypted.packets(), DAMAGE[name])),
        tls_keylog=keys.path,
    )
    loose = PLACES | timings(clear["api_calls"])
    assert facts(opened["api_calls"], loose) == facts(clear["api_calls"], loose)
    if name == "all_retransmitted":
        assert all(row["client_retransmitted_bytes"] > 5000 for row in opened["connections"])


@BOTH
@pytest.mark.parametrize("seed", range(3))
def test_segments_out_of_order_change_nothing(
    tmp_path: Path, keys: tls.KeyLog, version: ssl.TLSVersion, seed: int
) -> None:
    plain = wide(9000)
    packets = keys.encrypt(plain, version).packets()
    clear = analyzed(written(tmp_path / "plain.pcap", plain.packets()))
    shuffled = after_handshakes(packets, lambda some: damage.reorder(some, 4, seed))
    moved = sum(one.seq != other.seq for one, other in zip(packets, shuffled, strict=True))
    assert moved > 5
    opened = analyzed(written(tmp_path / "tls.pcap", shuffled), tls_keylog=keys.path)
    kept = ("client_port", "api_key", "correlation_id", "request_bytes", "response_bytes", "record_count")
    found = {tuple(row[name] for name in kept) for row in opened["api_calls"] if row["status"] == "answered"}
    assert found == {tuple(row[name] for name in kept) for row in clear["api_calls"]}


@BOTH
@pytest.mark.parametrize("seed", range(4))
def test_after_a_loss_no_call_is_invented_and_none_called_unanswered(
    tmp_path: Path, keys: tls.KeyLog, version: ssl.TLSVersion, seed: int
) -> None:
    plain = wide(9000, calls=10)
    packets = keys.encrypt(plain, version).packets()
    data = [index for index, packet in enumerate(packets) if len(packet.payload) > 100]
    lost = data[len(data) // 3 + 17 * seed]
    opened = analyzed(written(tmp_path / "tls.pcap", damage.drop(packets, {lost})), tls_keylog=keys.path)
    clear = analyzed(written(tmp_path / "plain.pcap", plain.packets()))
    name = ("client_port", "api_key", "api_version", "correlation_id", "request_bytes")
    true = {tuple(row[column] for column in name) for row in clear["api_calls"]}
    asked = [row for row in opened["api_calls"] if row["request_bytes"] is not None]
    assert {tuple(row[column] for column in name) for row in asked} <= true
    assert {row["status"] for row in opened["api_calls"]} <= {
        "answered",
        "response_not_captured",
        "response_only",
    }
    cost = [row for row in opened["api_calls"] if row["status"] != "answered"]
    assert {row["reason"] for row in cost} <= {"not_decrypted", "segment_not_captured", "segment_lost"}
    assert "packet_cut" not in {row["name"] for row in opened["anomalies"]}
    hurt = next(packet for index, packet in enumerate(packets) if index == lost)
    behind = [
        packet for packet in packets[lost + 1 :] if packet.payload and packet.connection == hurt.connection
    ]
    if any(len(packet.payload) > 300 for packet in behind if packet.from_client == hurt.from_client):
        told = [row for row in opened["anomalies"] if row["name"] == "not_decrypted"]
        assert [row["direction"] for row in told] == ["client" if hurt.from_client else "broker"]
        assert "not_decrypted" in {row["reason"] for row in cost}
    whole = [row for row in opened["api_calls"] if row["status"] == "answered"]
    assert len(whole) >= len(plain.calls) / 2 + 2, "the other connection is whole"


def test_every_payload_byte_is_accounted_for(tmp_path: Path, keys: tls.KeyLog) -> None:
    packets = damage.duplicate(keys.encrypt(wide(), TLS_1_3).packets(), lambda packet: packet.seq % 5 == 0)
    (row,) = analyzed(written(tmp_path / "tls.pcap", packets), tls_keylog=keys.path)["captures"]
    bins = sum(
        value or 0 for name, value in row.items() if name.endswith("_bytes") and name != "tcp_payload_bytes"
    )
    assert bins == row["tcp_payload_bytes"]
    assert row["packets"] == row["tcp_packets"] == len(packets)


def test_pieces_that_make_no_sense_do_no_harm(tmp_path: Path, keys: tls.KeyLog) -> None:
    data = written(tmp_path / "tls.pcap", keys.encrypt(wide(3000), TLS_1_3).packets()).read_bytes()
    for seed in range(40):
        dice = random.Random(seed)
        batches = []
        for frame in range(1, 120):
            records = [
                (dice.randrange(1 << dice.choice((5, 12, 32))),) * 2 + (0,) for _ in range(dice.randrange(4))
            ]
            body = b"".join(struct.pack("=III", *record) for record in records) + dice.randbytes(
                dice.randrange(90)
            )
            batches.append(struct.pack("=QII", frame, len(records), dice.randrange(200)) + body)
        batches += [dice.randbytes(50), b""]
        engine = analyzer()
        engine.decrypt(iter(batches).__next__)
        engine.open_capture("tls")
        engine.feed(data)
        assert engine.close_capture()["packets"] > 60
        engine.finish()


def test_what_fails_while_decrypting_is_raised(tmp_path: Path, keys: tls.KeyLog) -> None:
    data = written(tmp_path / "tls.pcap", keys.encrypt(wide(100), TLS_1_3).packets()).read_bytes()
    engine = analyzer()

    def fail() -> bytes:
        raise RuntimeError("no more")

    engine.decrypt(fail)
    with pytest.raises(UsageError, match="cannot be saved"):
        engine.save()
    engine.open_capture("tls")
    with pytest.raises(UsageError, match="between captures"):
        engine.decrypt(fail)
    with pytest.raises(RuntimeError, match="no more"):
        engine.feed(data)
