"""TLS with its keys, in captures that repeat, shuffle and lose packets."""

from __future__ import annotations

import ssl
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import groupby
from pathlib import Path

import pytest

from tests.broker.requestlog import read
from tests.pipeline.compare import decoded
from tests.pipeline.opened import BOTH, PLACES, facts, timings, wide, written
from tests.pipeline.test_damage import long_scene
from tests.pipeline.test_loss import outcome
from tests.spark.compare import records
from tests.traffic import damage, scenes, tls
from tests.traffic.tcp import Packet, Scene

TLS_1_2, TLS_1_3 = tls.VERSIONS

pytestmark = pytest.mark.skipif(tls.missing() is not None, reason=str(tls.missing()))


@pytest.fixture
def keys(tmp_path: Path) -> tls.KeyLog:
    return tls.KeyLog(tmp_path)


def after_handshakes(
    packets: Sequence[Packet], hurt: Callable[[Sequence[Packet]], list[Packet]]
) -> list[Packet]:
    """The handshakes stay as they are."""
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
    clear = decoded(written(tmp_path / "plain.pcap", plain.packets()))
    opened = decoded(
        written(tmp_path / "tls.pcap", after_handshakes(encrypted.packets(), DAMAGE[name])),
        tls_keylog=keys.path,
    )
    loose = PLACES | timings(clear["api_calls"])
    assert facts(opened["api_calls"], loose) == facts(clear["api_calls"], loose)
    if name == "all_retransmitted":
        (capture,) = opened["captures"]
        sent = sum(len(packet.payload) for packet in after_handshakes(encrypted.packets(), DAMAGE[name]))
        twice = sent - sum(len(packet.payload) for packet in encrypted.packets())
        assert capture["retransmitted_bytes"] + capture["captured_twice_bytes"] == twice > 10_000


@BOTH
@pytest.mark.parametrize("seed", range(3))
def test_segments_out_of_order_change_nothing(
    tmp_path: Path, keys: tls.KeyLog, version: ssl.TLSVersion, seed: int
) -> None:
    plain = wide(9000)
    packets = keys.encrypt(plain, version).packets()
    clear = decoded(written(tmp_path / "plain.pcap", plain.packets()))
    shuffled = after_handshakes(packets, lambda some: damage.reorder(some, 4, seed))
    moved = sum(one.seq != other.seq for one, other in zip(packets, shuffled, strict=True))
    assert moved > 5
    opened = decoded(written(tmp_path / "tls.pcap", shuffled), tls_keylog=keys.path)
    kept = ("client_port", "api_key", "correlation_id", "request_bytes", "response_bytes", "record_count")
    found = {tuple(row[name] for name in kept) for row in opened["api_calls"] if row["status"] == "answered"}
    assert found == {tuple(row[name] for name in kept) for row in clear["api_calls"]}


def kept_whole(packets: Sequence[Packet], share: float, seed: int) -> list[Packet]:
    """Loses some, but none of the handshakes: without its hellos a connection stays closed."""
    start = packets[0].time_ns
    lost = set(packets) - set(damage.drop_share(packets, share, seed))
    return [packet for packet in packets if packet not in lost or packet.time_ns - start < 9_000_000]


LOSSES: dict[str, Callable[[], Scene]] = {
    "one_packet_each": lambda: long_scene(calls=80, mss=1448),
    "some_segments": lambda: long_scene(calls=80),
    "pipelined": lambda: scenes.pipelined(3, 120),
    "large": lambda: wide(9000, calls=60),
}


@pytest.mark.slow
@pytest.mark.sample(2)
@BOTH
@pytest.mark.parametrize("share", [0.01, 0.05])
@pytest.mark.parametrize("name", LOSSES)
def test_calls_that_no_loss_touched_are_right(
    tmp_path: Path, keys: tls.KeyLog, version: ssl.TLSVersion, name: str, share: float
) -> None:
    """Untouched: every record that holds a part of the call is there. None is invented, none comes twice.
    A record may hold several messages, of which the second one begins a packet later than the record."""
    encrypted = keys.encrypt(LOSSES[name](), version)
    packets = encrypted.packets()
    counts: Counter[str] = Counter()
    for seed in range(4):
        counts += outcome(tmp_path, encrypted, kept_whole(packets, share, seed), 1_000, tls_keylog=keys.path)
    # Where every second call loses something, mostly in both directions, some answers lie out of step.
    assert counts["right"] >= (0.97 if (name, share) == ("large", 0.05) else 0.99) * counts.total()
    assert counts["right"] > 100


def flights(packets: Sequence[Packet]) -> list[set[int]]:
    """Places of the first connection's handshake: hello, broker's hello, client's rest, broker's rest. A
    hello with keys that quantum computers do not break takes two packets."""
    start = packets[0].time_ns
    shaken = (
        index
        for index, packet in enumerate(packets)
        if packet.payload and packet.connection == 0 and packet.time_ns - start < 9_000_000
    )
    return [set(flight) for _, flight in groupby(shaken, lambda index: packets[index].from_client)]


@pytest.mark.parametrize(
    ("version", "lost"),
    [(TLS_1_2, 0), (TLS_1_2, 2), (TLS_1_2, 3), *((TLS_1_3, flight) for flight in range(4))],
)
def test_a_handshake_may_lose_a_packet(
    tmp_path: Path, keys: tls.KeyLog, version: ssl.TLSVersion, lost: int
) -> None:
    """All calls are right all the same; but keys of TLS 1.2 need what the broker's hello says."""
    plain = long_scene(calls=20, mss=1448)
    packets = keys.encrypt(plain, version).packets()
    clear = decoded(written(tmp_path / "plain.pcap", plain.packets()))
    hurt = damage.drop(packets, flights(packets)[lost])
    opened = decoded(written(tmp_path / "tls.pcap", hurt), tls_keylog=keys.path)
    order, loose = ("client_port", "correlation_id"), PLACES | {"call_id", "connection_id", "queued_behind"}
    mine, theirs = (
        sorted(facts(tables["api_calls"], loose), key=lambda row: [row[name] for name in order])
        for tables in (opened, clear)
    )
    assert mine == theirs
    named = "1 TLS connection without a handshake in the captures: found their secrets by trial"
    assert (named in opened["captures"][0]["notes"]) is (lost == 0 or (version, lost) == (TLS_1_3, 1))


def test_without_the_brokers_hello_tls_1_2_stays_closed(tmp_path: Path, keys: tls.KeyLog) -> None:
    packets = keys.encrypt(long_scene(calls=20, mss=1448), TLS_1_2).packets()
    hurt = damage.drop(packets, flights(packets)[1])
    opened = decoded(written(tmp_path / "tls.pcap", hurt), tls_keylog=keys.path)
    assert Counter(row["protocol"] for row in opened["connections"]) == {"tls": 1, "kafka": 2}
    assert {row["client_port"] for row in opened["api_calls"]} == {50_001, 50_002}


def test_a_loss_costs_the_calls_whose_records_it_hit(tmp_path: Path, keys: tls.KeyLog) -> None:
    packets = keys.encrypt(wide(9000, calls=10), TLS_1_3).packets()
    data = [index for index, packet in enumerate(packets) if len(packet.payload) > 1000]
    opened = decoded(
        written(tmp_path / "tls.pcap", damage.drop(packets, {data[len(data) // 3]})), tls_keylog=keys.path
    )
    assert [row["status"] for row in opened["api_calls"]].count("answered") == 19
    (cost,) = [row for row in opened["api_calls"] if row["status"] != "answered"]
    assert cost["reason"] == "segment_not_captured"
    assert "not_decrypted" not in {row["name"] for row in opened["anomalies"]}


@BOTH
def test_what_takes_too_many_tries_is_given_up_and_named(
    tmp_path: Path, keys: tls.KeyLog, version: ssl.TLSVersion
) -> None:
    packets = keys.encrypt(wide(9000, calls=10), version).packets()
    first = next(i for i, packet in enumerate(packets) if packet.time_ns - packets[0].time_ns > 30_000_000)
    some = {i for i in range(first, first + 40) if packets[i].from_client and packets[i].connection == 0}
    path = written(tmp_path / "tls.pcap", damage.drop(packets, some))
    opened = decoded(path, tls_keylog=keys.path, limits={"tls_tries": 1})
    told = [row for row in opened["anomalies"] if row["name"] == "not_decrypted"]
    assert [row["direction"] for row in told] == ["client"]
    lost = [row for row in opened["api_calls"] if row["status"] != "answered"]
    assert len(lost) > 5
    assert {row["reason"] for row in lost} <= {"not_decrypted", "segment_not_captured", "segment_lost"}
    assert len(decoded(path, tls_keylog=keys.path)["api_calls"]) > 10


def test_every_payload_byte_is_accounted_for(tmp_path: Path, keys: tls.KeyLog) -> None:
    packets = damage.duplicate(keys.encrypt(wide(), TLS_1_3).packets(), lambda packet: packet.seq % 5 == 0)
    (row,) = decoded(written(tmp_path / "tls.pcap", packets), tls_keylog=keys.path)["captures"]
    bins = sum(
        value or 0 for name, value in row.items() if name.endswith("_bytes") and name != "tcp_payload_bytes"
    )
    assert bins == row["tcp_payload_bytes"]
    assert row["packets"] == row["tcp_packets"] == len(packets)


def test_connections_that_began_before_the_capture_are_found_by_trying(
    tmp_path: Path, keys: tls.KeyLog
) -> None:
    """TLS 1.3: neither hello nor number is known. The calls are those of the same packets in the clear."""
    plain = long_scene(calls=80, mss=1448)
    encrypted = keys.encrypt(plain, TLS_1_3)
    late = [
        packet
        for packet in encrypted.packets()
        if packet.time_ns - encrypted.packets()[0].time_ns > 300_000_000
    ]
    opened = decoded(written(tmp_path / "tls.pcap", late), tls_keylog=keys.path)
    name = ("client_port", "api_key", "correlation_id", "status", "request_bytes", "response_bytes")
    whole = decoded(written(tmp_path / "plain.pcap", plain.packets()))
    true = {tuple(row[column] for column in name) for row in whole["api_calls"]}
    found = {
        tuple(row[column] for column in name) for row in opened["api_calls"] if row["status"] == "answered"
    }
    assert found <= true
    assert len(found) >= 0.6 * len(true)
    assert [row["protocol"] for row in opened["connections"]] == ["kafka"] * 3
    assert {row["client_port"] for row in opened["connections"]} == {
        row["client_port"] for row in whole["connections"]
    }
    (capture,) = opened["captures"]
    assert (
        "3 TLS connections without a handshake in the captures: found their secrets by trial"
        in capture["notes"]
    )


def test_of_tls_1_2_nothing_is_found_without_the_handshake(tmp_path: Path, keys: tls.KeyLog) -> None:
    packets = keys.encrypt(long_scene(calls=20, mss=1448), TLS_1_2).packets()[40:]
    opened = decoded(written(tmp_path / "tls.pcap", packets), tls_keylog=keys.path)
    assert opened["api_calls"] == []
    assert {row["protocol"] for row in opened["connections"]} == {"tls"}


@pytest.mark.slow
@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("name", "port", "packets"),
    [
        ("tls_1_3", 42_960, range(5, 15)),
        ("tls_1_3", 42_962, range(25, 39)),
        ("tls_go", None, range(47, 54)),
        ("tls_mutual", 54_276, range(31, 41)),
        ("tls_key_update", None, range(5, 18)),
    ],
)
def test_a_capture_may_begin_inside_a_handshake(
    tmp_path: Path, name: str, port: int | None, packets: range
) -> None:
    """Calls behind what is missing are those of the whole recording, and of the broker's own log."""
    folder = Path(__file__).parents[2] / "captures" / name
    data = (folder / "capture.pcap").read_bytes()
    logged = {(each.client_port, each.api_key, each.correlation_id) for each in read(folder / "witness.tsv")}
    whole = decoded(folder / "capture.pcap", tls_keylog=folder / "keys.log")["api_calls"]
    path = tmp_path / "late.pcap"
    for missing in packets:
        path.write_bytes(data[:24] + b"".join(records(data)[missing:]))
        rows = decoded(path, tls_keylog=folder / "keys.log")["api_calls"]
        found = {
            (row["client_port"], row["api_key"], row["correlation_id"], row["status"])
            for row in rows
            if port in {None, row["client_port"]}
        }
        behind = {
            (row["client_port"], row["api_key"], row["correlation_id"], row["status"])
            for row in whole
            if port in {None, row["client_port"]} and row["request_frame"] > missing
        }
        assert found
        assert found == behind, missing
        assert {each[:3] for each in found} <= logged
