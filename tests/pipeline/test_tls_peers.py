"""What OpenSSL's own programs make of the same messages: suites, resumption, renegotiation, key updates."""

from __future__ import annotations

import shutil
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.pipeline.compare import Row, decoded
from tests.pipeline.opened import PLACES, both, facts, timings, wide, written
from tests.traffic import peers, scenes
from tests.traffic.peers import CERTIFICATE_ASKED, KEY_UPDATE, RENEGOTIATE, Peers, Talk
from tests.traffic.tcp import Scene

pytestmark = pytest.mark.skipif(peers.missing() is not None, reason=str(peers.missing()))

PSK = ("-psk", "c0ffee00" * 4)
WEAK = ":@SECLEVEL=0"


def suite(version: str, name: str, *options: str) -> Talk:
    """Tags of 8 bytes and old versions are beneath OpenSSL's usual level."""
    chosen = (
        ("-ciphersuites", name, "-cipher", f"DEFAULT{WEAK}")
        if name.startswith("TLS_")
        else ("-cipher", name + WEAK)
    )
    return Talk((version, *chosen, *options), chosen)


SUITES = {
    f"{number}_{name}{mac.replace('-', '_')}": suite(f"-tls{version}", name, *([mac] if mac else []))
    for version, number, names, mac in (
        ("1_2", "1.2", "AES128-CCM AES256-CCM AES128-CCM8 AES256-CCM8", ""),
        ("1_2", "1.2", "AES128-GCM-SHA256 AES256-GCM-SHA384 CHACHA20-POLY1305", ""),
        ("1_2", "1.2", "AES128-SHA AES256-SHA AES128-SHA256 AES256-SHA384", ""),
        ("1_2", "1.2", "AES128-SHA AES128-SHA256 AES256-SHA384", "-no_etm"),
        ("1_1", "1.1", "AES128-SHA", ""),
        ("1_1", "1.1", "AES256-SHA", "-no_etm"),
    )
    for name in (f"ECDHE-ECDSA-{each}" for each in names.split())
} | {
    f"1.3_{name}": suite("-tls1_3", f"TLS_{name}_SHA{384 if '256_G' in name else 256}")
    for name in ("AES_128_GCM", "AES_256_GCM", "CHACHA20_POLY1305", "AES_128_CCM", "AES_128_CCM_8")
}  # fmt: skip

SHAPES: dict[str, Talk] = {
    "1.2_client_renegotiates": Talk(
        ["-tls1_2"],
        ["-client_renegotiation"],
        {1: [(True, RENEGOTIATE[True])], 5: [(True, RENEGOTIATE[True])]},
    ),
    "1.2_broker_renegotiates": Talk(["-tls1_2"], (), {1: [(False, RENEGOTIATE[False])]}),
    "1.2_certificate_in_a_renegotiation": Talk(["-tls1_2", "CERT"], (), {1: [(False, CERTIFICATE_ASKED)]}),
    "1.2_client_certificate": Talk(["-tls1_2", "CERT"], ["-Verify", "1"]),
    "1.3_client_certificate": Talk(["-tls1_3", "CERT"], ["-Verify", "1"]),
    "1.2_resumed_by_ticket": Talk(["-tls1_2"], resume=True),
    "1.2_resumed_by_id": Talk(["-tls1_2", "-no_ticket"], ["-no_ticket"], resume=True),
    "1.3_resumed": Talk(["-tls1_3"], resume=True),
    "1.3_resumed_without_key_exchange": Talk(
        ["-tls1_3", "-allow_no_dhe_kex", "-groups", "X25519"],
        ["-allow_no_dhe_kex", "-groups", "X25519:P-256"],
        resume=True,
    ),
    # Go logs no secrets of a session of TLS 1.2 that is resumed.
    "1.2_resumed_by_ticket_first_logged": Talk(["-tls1_2"], resume=True, logged=lambda number: number == 0),
    "1.2_resumed_by_id_first_logged": Talk(
        ["-tls1_2", "-no_ticket"], ["-no_ticket"], resume=True, logged=lambda number: number == 0
    ),
    "1.2_shared_key": Talk(
        ["-tls1_2", *PSK, "-cipher", f"PSK{WEAK}"], [*PSK, "-cipher", f"PSK{WEAK}", "-nocert"]
    ),
    "1.3_shared_key": Talk(["-tls1_3", *PSK], [*PSK, "-nocert"]),
    "1.3_hello_retry": Talk(["-tls1_3", "-groups", "X25519:P-256"], ["-groups", "P-256"]),
    "1.3_hello_retry_resumed": Talk(
        ["-tls1_3", "-groups", "X25519:P-256"], ["-groups", "P-256"], resume=True
    ),
    "1.3_key_updates": Talk(
        ["-tls1_3"],
        (),
        {1: [(True, KEY_UPDATE)], 2: [(False, KEY_UPDATE)], 3: [(True, b"k\n"), (False, b"k\n")]}
        | {5: [(True, KEY_UPDATE)] * 3},
    ),
    "1.3_without_middlebox": Talk(["-tls1_3", "-no_middlebox"], ["-no_middlebox"]),
}

# A message takes packets more than in the clear.
LONGER: dict[str, Talk] = {
    "1.2_small_records": Talk(["-tls1_2", "-max_send_frag", "512"], ["-max_send_frag", "512"]),
    "1.3_small_records": Talk(["-tls1_3", "-max_send_frag", "512"], ["-max_send_frag", "512"]),
    "1.3_padded": Talk(["-tls1_3", "-record_padding", "500"], ["-record_padding", "1000"]),
}


def spoken(
    folder: Path, talk: Talk, scene: Callable[[], Scene] = scenes.two_clients
) -> tuple[Peers, Scene, Scene]:
    """The peers, the scene, and what they made of it."""
    plain, pair = scene(), Peers(folder)
    client = [each for word in talk.client for each in (pair.certificate if word == "CERT" else [word])]
    talk = Talk(client, talk.server, talk.after, talk.resume, talk.logged)
    return pair, plain, pair.encrypt(plain, talk)


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", [*SUITES, *SHAPES])
def test_the_calls_are_those_of_the_plaintext(tmp_path: Path, name: str) -> None:
    pair, plain, encrypted = spoken(tmp_path, (SUITES | SHAPES)[name])
    clear, opened = both(tmp_path, pair, plain, encrypted)
    for table in ("api_calls", "latencies", "error_codes", "partitions", "record_batches"):
        assert facts(opened[table]) == facts(clear[table]), table
    assert opened["anomalies"] == []
    assert {row["tls_version"] for row in opened["connections"]} == {name[:3]}
    by_tshark(tmp_path / "tls.pcap", pair.path, opened["api_calls"], name)


@pytest.mark.parametrize("name", LONGER)
def test_longer_messages_differ_in_times_alone(tmp_path: Path, name: str) -> None:
    pair, plain, encrypted = spoken(tmp_path, LONGER[name], lambda: wide(9_000))
    clear, opened = both(tmp_path, pair, plain, encrypted)
    for table in ("api_calls", "error_codes", "partitions", "record_batches"):
        loose = PLACES | timings(clear[table])
        assert facts(opened[table], loose) == facts(clear[table], loose), table
    assert opened["anomalies"] == []
    by_tshark(tmp_path / "tls.pcap", pair.path, opened["api_calls"], name)


# What tshark 4.0 does not open, or not all of it.
BEYOND_TSHARK = ("renegot", "1.2_resumed_by_id_first_logged")


def by_tshark(capture: Path, keylog: Path, calls: list[Row], name: str) -> None:
    """tshark, where it is installed, opens the same messages: by connection and correlation id."""
    if shutil.which("tshark") is None or any(part in name for part in BEYOND_TSHARK):
        return
    command = [
        "tshark",
        "-n",
        "-r",
        str(capture),
        "-o",
        f"tls.keylog_file:{keylog}",
        "-d",
        "tcp.port==9092,tls",
    ]
    command += ["-d", "tls.port==9092,kafka", "-Y", "kafka", "-T", "fields", "-E", "occurrence=a"]
    command += ["-e", "tcp.srcport", "-e", "tcp.dstport", "-e", "kafka.correlation_id"]
    told = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout
    theirs = Counter(
        (source, target, correlation_id)
        for source, target, ids in (line.split("\t") for line in told.splitlines())
        for correlation_id in ids.split(",")
    )
    mine = Counter((str(row["client_port"]), "9092", str(row["correlation_id"])) for row in calls)
    mine += Counter(
        ("9092", str(row["client_port"]), str(row["correlation_id"]))
        for row in calls
        if row["response_frame"] is not None
    )
    assert mine == theirs


def test_the_halves_of_a_renegotiation_may_be_recorded_the_wrong_way_round(tmp_path: Path) -> None:
    """The client's second flight before the broker's hello that it follows from."""
    pair, plain, encrypted = spoken(tmp_path, SHAPES["1.2_client_renegotiates"])
    packets = encrypted.packets()
    clear = decoded(written(tmp_path / "plain.pcap", plain.packets()))
    start = packets[0].time_ns
    swapped = 0
    for index in range(len(packets) - 1):
        one, other = packets[index : index + 2]
        again = (one.time_ns - start) % 1_000_000 > 500_000 and one.payload and other.payload
        if again and not one.from_client and other.from_client and one.connection == other.connection:
            packets[index : index + 2] = other, one
            swapped += 1
    assert swapped >= 2
    opened = decoded(written(tmp_path / "tls.pcap", packets), tls_keylog=pair.path)
    assert facts(opened["api_calls"]) == facts(clear["api_calls"])
