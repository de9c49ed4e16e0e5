"""TLS with its keys: the same tables as of the same messages in the clear, packet by packet."""

from __future__ import annotations

import json
import shutil
import ssl
import subprocess
import tomllib
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.broker.requestlog import read
from tests.pipeline.compare import decoded
from tests.pipeline.opened import BOTH, PLACES, TABLES, both, facts, timings, wide, written
from tests.pipeline.running import analyzer
from tests.sources.test_tls import secrets_block, with_secrets
from tests.traffic import files, messages, scenes, tls
from tests.traffic.messages import produce
from tests.traffic.records import batch
from tests.traffic.tcp import MILLISECOND, Scene

CAPTURES = Path(__file__).parents[2] / "captures"
TLS_1_2, TLS_1_3 = tls.VERSIONS

pytestmark = pytest.mark.skipif(tls.missing() is not None, reason=str(tls.missing()))


@pytest.fixture
def keys(tmp_path: Path) -> tls.KeyLog:
    return tls.KeyLog(tmp_path)


SCENES: dict[str, Callable[[], Scene]] = {
    "two_clients": scenes.two_clients,
    "two_clients_ipv6": lambda: scenes.two_clients("2001:db8::"),
    "pipelined": scenes.pipelined,
    "every_message": lambda: scenes.one_by_one(scenes.vocabulary()),
    "small_segments": lambda: scenes.one_by_one(scenes.vocabulary(), mss=48),
    "sequence_numbers_wrap": lambda: scenes.one_by_one(
        scenes.vocabulary(), client_isn=(1 << 32) - 900, broker_isn=(1 << 32) - 2500
    ),
}


@BOTH
@pytest.mark.parametrize("scene", SCENES)
def test_the_tables_are_those_of_the_plaintext(
    tmp_path: Path, keys: tls.KeyLog, version: ssl.TLSVersion, scene: str
) -> None:
    plain = SCENES[scene]()
    clear, opened = both(tmp_path, keys, plain, keys.encrypt(plain, version))
    for table in TABLES:
        # a wait is told by how long it was
        without = PLACES | (timings(clear[table]) | {"wait"} if scene == "small_segments" else set())
        assert facts(opened[table], without) == facts(clear[table], without), table
    assert Counter(row["name"] for row in opened["anomalies"]) == Counter(
        row["name"] for row in clear["anomalies"]
    )
    assert [row["protocol"] for row in opened["connections"]] == ["kafka"] * len(plain.scripts)


@BOTH
def test_messages_over_many_segments_are_timed_by_the_packets_they_came_in(
    tmp_path: Path, keys: tls.KeyLog, version: ssl.TLSVersion
) -> None:
    """Records make streams longer: a message may take a packet more (1 us here), but begins when it did."""
    plain = wide()
    clear, opened = both(tmp_path, keys, plain, keys.encrypt(plain, version))
    ends = {"request_end_time", "response_end_time", "latency_ns"}
    assert facts(opened["api_calls"], PLACES | ends) == facts(clear["api_calls"], PLACES | ends)
    for mine, theirs in zip(opened["api_calls"], clear["api_calls"], strict=True):
        assert 0 <= mine["latency_ns"] - theirs["latency_ns"] <= 2_000
    for mine, theirs in zip(opened["latencies"], clear["latencies"], strict=True):
        assert abs(mine["request_transmission_ns"] - theirs["request_transmission_ns"]) <= 2_000
        assert abs(mine["response_transmission_ns"] - theirs["response_transmission_ns"]) <= 2_000
        assert mine["wait"] == theirs["wait"]


@pytest.mark.parametrize("cipher", ["AES128-SHA", "AES256-SHA384", "CHACHA20-POLY1305", "AES128-CCM"])
def test_ciphers_of_tls_1_2(tmp_path: Path, cipher: str) -> None:
    plain = scenes.two_clients()
    keys = tls.KeyLog(tmp_path, ciphers=f"ECDHE-ECDSA-{cipher}")
    clear, opened = both(tmp_path, keys, plain, keys.encrypt(plain, TLS_1_2))
    assert facts(opened["api_calls"]) == facts(clear["api_calls"])
    assert opened["anomalies"] == []


@BOTH
def test_resumed_sessions(tmp_path: Path, keys: tls.KeyLog, version: ssl.TLSVersion) -> None:
    plain = Scene()
    for number in range(3):
        script = plain.connection()
        at = number * 100 * MILLISECOND
        script.open(at=at)
        script.call(
            messages.metadata(9, 5, ["orders"]), at=at + 10 * MILLISECOND, answer_at=at + 11 * MILLISECOND
        )
        script.close(at=at + 20 * MILLISECOND)
    encrypted = keys.encrypt(plain, version, resume=True)
    sizes = [sum(len(packet.payload) for packet in script.packets()) for script in encrypted.scripts]
    assert sizes[1] < sizes[0] - 300, "no session was resumed: the certificate came again"
    clear, opened = both(tmp_path, keys, plain, encrypted)
    assert facts(opened["api_calls"]) == facts(clear["api_calls"])


def test_key_updates_of_both_sides(tmp_path: Path, keys: tls.KeyLog) -> None:
    plain = scenes.one_by_one(scenes.vocabulary())
    try:
        encrypted = keys.encrypt(plain, TLS_1_3, update_after=(2, 3, 9, 20, 21))
    except (AttributeError, OSError) as error:
        pytest.skip(f"OpenSSL's SSL_key_update cannot be reached: {error}")
    clear, opened = both(tmp_path, keys, plain, encrypted)
    assert facts(opened["api_calls"]) == facts(clear["api_calls"])


@BOTH
def test_connections_without_their_keys_stay_as_they_are(
    tmp_path: Path, keys: tls.KeyLog, version: ssl.TLSVersion
) -> None:
    plain = scenes.two_clients()
    path = written(
        tmp_path / "tls.pcap", keys.encrypt(plain, version, logged=lambda number: number == 1).packets()
    )
    closed, opened = decoded(path), decoded(path, tls_keylog=keys.path)
    assert [row["protocol"] for row in closed["connections"]] == ["tls", "tls"]
    assert [row["protocol"] for row in opened["connections"]] == ["tls", "kafka"]
    assert opened["connections"][0] == closed["connections"][0]
    assert {row["client_port"] for row in opened["api_calls"]} == {50_001}
    assert len(opened["api_calls"]) == 5


def test_a_port_that_is_kafkas_does_not_make_its_handshakes_kafka(tmp_path: Path, keys: tls.KeyLog) -> None:
    plain = scenes.two_clients()
    clear, opened = both(tmp_path, keys, plain, keys.encrypt(plain, TLS_1_3), ports=[9092])
    assert facts(opened["api_calls"]) == facts(clear["api_calls"])
    assert opened["anomalies"] == clear["anomalies"] == []


def test_plain_connections_beside_are_untouched(tmp_path: Path, keys: tls.KeyLog) -> None:
    first = scenes.two_clients()
    packets = [*first.packets(), *keys.encrypt(scenes.two_clients("10.2.0."), TLS_1_3).packets()]
    opened = decoded(written(tmp_path / "both.pcap", packets), tls_keylog=keys.path)
    clear = decoded(written(tmp_path / "plain.pcap", first.packets()))
    beside = [row for row in opened["connections"] if row["broker_address"].startswith("10.1.0.")]
    assert len(beside) == 2
    assert facts(beside, {"capture"}) == facts(clear["connections"], {"capture"})
    assert len(opened["api_calls"]) == 20


def test_ports_used_again_begin_anew(tmp_path: Path, keys: tls.KeyLog) -> None:
    rounds = []
    for number in range(3):
        scene = scenes.two_clients()
        for script in scene.scripts:
            script.epoch_ns += number * 10**9
            script._sides[True].isn += number * 7_000_000
            script._sides[False].isn += number * 9_000_000
        rounds += keys.encrypt(scene, (TLS_1_3, TLS_1_2, TLS_1_3)[number]).packets()
    opened = decoded(written(tmp_path / "tls.pcap", rounds), tls_keylog=keys.path)
    assert len(opened["api_calls"]) == 30
    assert [row["protocol"] for row in opened["connections"]] == ["kafka"] * 6
    assert opened["anomalies"] == []


@pytest.mark.parametrize("cut", [1, 2])
def test_rotated_files_go_on_where_the_one_before_ended(tmp_path: Path, keys: tls.KeyLog, cut: int) -> None:
    packets = keys.encrypt(wide(), TLS_1_3).packets()
    whole = decoded(written(tmp_path / "whole.pcap", packets), tls_keylog=keys.path)
    middle = len(packets) // 3
    parts = [
        written(
            tmp_path / f"x.pcap{number}", packets[number * middle : (number + 1) * middle + 2 * (number == 2)]
        )
        for number in range(3)
    ]
    if cut == 2:  # another kind of file
        parts[1].write_bytes(files.pcapng(files.frames(packets[middle : 2 * middle])))
    opened = decoded(*parts, tls_keylog=keys.path)
    assert facts(opened["api_calls"]) == facts(whole["api_calls"])
    frames = [row["response_end_frame"] for row in opened["api_calls"]]
    assert max(frame for frame in frames if frame) <= middle + 2


@pytest.mark.parametrize(
    "form", ["pcap_us_big", "pcap_ns_little", "pcapng_little", "pcapng_three_interfaces"]
)
def test_capture_files_of_every_kind(tmp_path: Path, keys: tls.KeyLog, form: str) -> None:
    packets = keys.encrypt(scenes.two_clients(), TLS_1_2).packets()
    path = tmp_path / "tls"
    path.write_bytes(files.gzipped(files.FORMATS[form].write(files.frames(packets), 1)))
    assert len(decoded(path, tls_keylog=keys.path)["api_calls"]) == 10


@BOTH
@pytest.mark.parametrize("order", ["<", ">"])
def test_secrets_inside_a_capture_are_used_without_being_asked(
    tmp_path: Path, keys: tls.KeyLog, version: ssl.TLSVersion, order: str
) -> None:
    packets = keys.encrypt(scenes.two_clients(), version).packets()
    path = tmp_path / "tls.pcapng"
    plain = files.pcapng(files.frames(packets), big=order == ">")
    path.write_bytes(plain)
    assert decoded(path)["api_calls"] == []
    path.write_bytes(with_secrets(plain, keys.path.read_bytes(), order))
    assert decoded(path, tls_keylog=False)["api_calls"] == []
    tables = decoded(path)
    assert len(tables["api_calls"]) == 10
    assert tables["captures"][0]["notes"] == []


@BOTH
def test_secrets_may_come_with_the_sessions_they_are_of(
    tmp_path: Path, keys: tls.KeyLog, version: ssl.TLSVersion
) -> None:
    """Megabytes of other traffic first, then the secrets, then the handshakes."""
    other = scenes.one_by_one([produce(7, 1, {"t": {0: batch([b"z" * 1_500_000])}})], mss=60_000).packets()
    late = keys.encrypt(scenes.two_clients("10.2.0."), version).packets()
    moved = [replace(packet, time_ns=packet.time_ns + 10**9) for packet in late]
    whole = files.pcapng(files.frames([*other, *moved]))
    at = len(files.pcapng(files.frames(other)))
    path = tmp_path / "tls.pcapng"
    path.write_bytes(whole[:at] + secrets_block(keys.path.read_bytes()) + whole[at:])
    tables = decoded(path)
    assert at > 1_500_000
    assert len(tables["api_calls"]) == 11
    assert {row["protocol"] for row in tables["connections"]} == {"kafka"}


def test_a_key_log_of_other_sessions_is_mentioned(tmp_path: Path, keys: tls.KeyLog) -> None:
    path = written(tmp_path / "tls.pcap", keys.encrypt(scenes.two_clients(), TLS_1_3).packets())
    keys.encrypt(scenes.two_clients(), TLS_1_3, logged=lambda number: False)
    tables = decoded(path, tls_keylog=keys.path.with_suffix(".other"))
    assert [row["protocol"] for row in tables["connections"]] == ["tls", "tls"]
    assert any("the key log decrypted no TLS connection" in note for note in tables["captures"][0]["notes"])


def test_secrets_never_reach_what_is_written_or_said(
    tmp_path: Path, keys: tls.KeyLog, capsys: pytest.CaptureFixture[str]
) -> None:
    from kwsniff.cli.main import run

    path = written(tmp_path / "tls.pcap", keys.encrypt(scenes.two_clients(), TLS_1_3).packets())
    out = tmp_path / "out"
    options = ["--tls-keylog", str(keys.path)]
    assert run(["analyze", str(path), "-o", str(out), "--json", *options]) == 0
    assert json.loads(capsys.readouterr().out)["calls"] != []
    assert run(["show", str(path), "--secrets", "--payload", "--hexdump", *options]) == 0
    said = capsys.readouterr()
    secrets = [line.split()[2] for line in keys.path.read_text().splitlines() if not line.startswith("#")]
    assert len(secrets) >= 8
    blobs = [said.out.encode(), said.err.encode(), *(file.read_bytes() for file in out.iterdir())]
    for secret in secrets:
        assert not any(secret.encode() in blob or bytes.fromhex(secret) in blob for blob in blobs)


@BOTH
def test_show_shows_the_messages_of_the_plaintext(
    tmp_path: Path, keys: tls.KeyLog, version: ssl.TLSVersion, capsys: pytest.CaptureFixture[str]
) -> None:
    from kwsniff.cli.main import run

    plain = scenes.two_clients()
    shown = []
    for name, scene, options in (
        ("plain", plain, []),
        ("tls", keys.encrypt(plain, version), ["--tls-keylog", str(keys.path)]),
    ):
        assert run(["show", str(written(tmp_path / name, scene.packets())), "--json", *options]) == 0
        documents = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        shown.append([(one["direction"], one["api_key"], one["header"], one["body"]) for one in documents])
    assert shown[0] == shown[1]
    assert len(shown[0]) == 19


def test_the_size_of_chunks_changes_nothing(tmp_path: Path, keys: tls.KeyLog) -> None:
    packets = keys.encrypt(scenes.two_clients(), TLS_1_3).packets()
    path = written(tmp_path / "tls.pcap", packets)
    from kwsniff.sources.tls import Secrets

    rows = []
    for size in (1 << 20, 700, 1):
        engine = analyzer()
        engine.open_tls(Secrets(keys.path))
        engine.open_capture("tls")
        data = path.read_bytes()
        for at in range(0, len(data), size):
            engine.feed(data[at : at + size])
        engine.close_capture()
        engine.finish()
        rows.append(
            [
                bytes(part)
                for column in engine.drain("api_calls")
                for part in column
                if not isinstance(part, int | str | None)
            ]
        )
    assert rows[0] == rows[1] == rows[2]


@pytest.mark.parametrize(
    "name", ["tls_1_2", "tls_1_3", "tls_go", "tls_key_update", "tls_mutual", "tls_suites"]
)
def test_recorded_clients_of_a_real_broker(name: str) -> None:
    """Every request of the broker's own log, with its error and throttle time; nothing else."""
    folder = CAPTURES / name
    if not (folder / "about.toml").is_file():
        pytest.skip(f"captures/{name} has not been recorded")
    about = tomllib.loads((folder / "about.toml").read_text("utf-8"))
    tables = decoded(folder / about["file"], tls_keylog=folder / about["keylog"])
    assert Counter(row["api_name"] for row in tables["api_calls"]) == about["requests"]
    columns = ("broker_port", "client_port", "api_key", "api_version", "correlation_id", "error_code")
    logged = [tuple(getattr(row, column) for column in columns) for row in read(folder / about["witness"])]
    assert sorted(tuple(row[column] for column in columns) for row in tables["api_calls"]) == sorted(logged)
    assert {row["status"] for row in tables["api_calls"]} == {"answered"}
    assert tables["anomalies"] == []
    assert {row["protocol"] for row in tables["connections"]} == {"kafka"}
    assert (
        sum(row["record_count"] for row in tables["api_calls"] if row["api_key"] == 0)
        == about["report"]["produced"]
    )


def test_sasl_inside_tls_is_opened_by_the_brokers_secrets() -> None:
    """SASL_SSL: what the broker logs, and what it answers before it knows who asks, which it does not log."""
    folder = CAPTURES / "tls_sasl"
    about = tomllib.loads((folder / "about.toml").read_text("utf-8"))
    tables = decoded(folder / about["file"], tls_keylog=folder / about["keylog"])
    columns = ("client_port", "api_key", "api_version", "correlation_id")
    mine = Counter(tuple(row[column] for column in columns) for row in tables["api_calls"])
    witness = read(folder / about["witness"])
    logged = Counter(tuple(getattr(row, column) for column in columns) for row in witness)
    assert logged - mine == Counter()
    answered = Counter(
        tuple(row[column] for column in columns)
        for row in tables["api_calls"]
        if row["status"] == "answered"  # a client that leaves resets its connections
    )
    assert {key[1] for key in answered - logged} == {17, 18, 36}
    refused = [row for row in tables["api_calls"] if row["api_key"] == 36 and row["error_code"]]
    assert refused
    assert {row["error_code"] for row in refused} == {58}
    assert {row["principal"] for row in tables["connections"] if row["principal"]} == {"ann"}
    assert {row["protocol"] for row in tables["connections"]} == {"kafka"}
    assert tables["anomalies"] == []


def test_both_sides_of_a_recording_changed_their_keys() -> None:
    """As tshark sees it with the same secrets; the broker had to after every kilobyte."""
    if shutil.which("tshark") is None:
        pytest.skip("tshark not on the PATH")
    folder = CAPTURES / "tls_key_update"
    command = ["tshark", "-n", "-r", str(folder / "capture.pcap"), "-d", "tcp.port==9092,tls"]
    command += ["-o", f"tls.keylog_file:{folder / 'keys.log'}", "-Y", "tls.handshake.type == 24"]
    command += ["-T", "fields", "-e", "tcp.dstport"]
    told = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120).stdout.split()
    assert Counter(port == "9092" for port in told).keys() == {True, False}


def test_every_suite_of_a_recording_is_opened() -> None:
    """Those that both ends had in common, a client for each, which is named after it."""
    folder = CAPTURES / "tls_suites"
    tables = decoded(folder / "capture.pcap", tls_keylog=folder / "keys.log")
    chosen = {(row["client_id"], row["tls_version"], row["tls_cipher"]) for row in tables["connections"]}
    assert len(chosen) == 9
    for name, version, cipher in chosen:
        assert version == ("1.3" if name.startswith("TLS_") else "1.2")
        parts = name.replace("TLS_", "").replace("ECDHE-RSA-", "").replace("-", "_")
        assert parts.replace("AES128", "AES_128").replace("AES256", "AES_256")[:7] in cipher


@pytest.mark.parametrize("name", ["tls_1_2", "tls_1_3", "tls_mutual", "tls_suites"])
@pytest.mark.parametrize("with_keys", [False, True])
def test_records_are_counted_with_and_without_keys(name: str, with_keys: bool) -> None:
    """Per connection and side, as tshark counts records of application data by their headers."""
    if shutil.which("tshark") is None:
        pytest.skip("tshark not on the PATH")
    path = CAPTURES / name / "capture.pcap"
    command = ["tshark", "-n", "-r", str(path), "-d", "tcp.port==9092,tls", "-Y", "tls.record"]
    command += ["-T", "fields", "-E", "occurrence=a", "-e", "tcp.srcport", "-e", "tcp.dstport"]
    command += ["-e", "tls.record.content_type", "-e", "tls.record.opaque_type"]
    told = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120).stdout
    theirs: Counter[tuple[int, bool]] = Counter()
    for line in told.splitlines():
        source, target, clear, opaque = line.split("\t")
        types = [each for each in (clear + "," + opaque).split(",") if each == "23"]
        theirs[int(source if target == "9092" else target), target == "9092"] += len(types)
    rows = decoded(path, tls_keylog=CAPTURES / name / "keys.log" if with_keys else None)["connections"]
    mine = {(row["client_port"], True): row["client_tls_records"] for row in rows}
    mine |= {(row["client_port"], False): row["broker_tls_records"] for row in rows}
    assert {key: number for key, number in mine.items() if number} == dict(+theirs)
    assert {row["protocol"] for row in rows} == {"kafka" if with_keys else "tls"}
