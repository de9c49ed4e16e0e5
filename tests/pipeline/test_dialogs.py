"""What else goes over these ports: SASL tokens, other protocols, Kafka where nobody expects it."""

from __future__ import annotations

import random
import struct
from dataclasses import replace
from pathlib import Path

import pytest

from tests.pipeline.compare import analyzed_packets, assert_calls, assert_scene, in_order
from tests.traffic import damage, groups, messages, scenes
from tests.traffic.tcp import MILLISECOND, Endpoint, Scene

TOKEN = b"\0alice\0wonderland"


def token_frame(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


def test_sasl_handshake_0_is_followed_by_bare_tokens(tmp_path: Path) -> None:
    scene = Scene()
    script = scene.connection()
    script.open()
    script.call(groups.sasl_handshake(0, 1, "PLAIN"), at=MILLISECOND, answer_at=2 * MILLISECOND)
    script.write(token_frame(TOKEN), 3 * MILLISECOND, from_client=True)
    script.write(token_frame(b""), 4 * MILLISECOND, from_client=False)
    for number in range(2, 6):
        script.call(
            groups.heartbeat(3, number, "g"), at=number * 5 * MILLISECOND, answer_at=number * 6 * MILLISECOND
        )
    tables = assert_scene(tmp_path, scene)
    assert tables["connections"][0]["sasl_mechanism"] == "PLAIN"
    assert "wonderland" not in repr(tables)


def test_scram_tokens_go_both_ways_twice(tmp_path: Path) -> None:
    scene = Scene()
    script = scene.connection()
    script.open()
    script.call(groups.sasl_handshake(0, 1, "SCRAM-SHA-256"), at=MILLISECOND, answer_at=2 * MILLISECOND)
    for number, (mine, theirs) in enumerate(
        ((b"n,,n=user,r=fyko", b"r=fyko3rf,s=QSXC,i=4096"), (b"c=biws,r=fyko3rf,p=v0X8", b"v=rmF9"))
    ):
        script.write(token_frame(mine), (3 + 2 * number) * MILLISECOND, from_client=True)
        script.write(token_frame(theirs), (4 + 2 * number) * MILLISECOND, from_client=False)
    script.call(messages.metadata(9, 2, ["orders"]), at=20 * MILLISECOND, answer_at=21 * MILLISECOND)
    tables = assert_scene(tmp_path, scene)
    assert tables["connections"][0]["sasl_mechanism"] == "SCRAM-SHA-256"


@pytest.mark.parametrize("version", [0, 1, 2])
def test_sasl_authenticate_carries_its_tokens(version: int, tmp_path: Path) -> None:
    calls = [
        messages.api_versions(3, 1),
        groups.sasl_handshake(1, 2, "PLAIN"),
        groups.sasl_authenticate(version, 3, TOKEN, b"", error=58),
        groups.sasl_authenticate(version, 2147483640, TOKEN, b""),
        groups.heartbeat(3, 4, "g"),
    ]
    tables = assert_scene(tmp_path, scenes.one_by_one(calls))
    assert tables["connections"][0]["sasl_mechanism"] == "PLAIN"
    assert "wonderland" not in repr(tables)


def test_refused_sasl_handshake_is_not_followed_by_tokens(tmp_path: Path) -> None:
    calls = [
        groups.sasl_handshake(0, 1, "KERBEROS_V4", error=33),
        groups.sasl_handshake(0, 2, "ALSO-NOT", error=33),
        groups.heartbeat(3, 3, "g"),
    ]
    assert_scene(tmp_path, scenes.one_by_one(calls))


def test_behind_a_refused_sasl_handshake_nothing_is_a_token(tmp_path: Path) -> None:
    scene = Scene()
    script = scene.connection()
    script.open()
    script.call(groups.heartbeat(3, 1, "g"), at=1 * MILLISECOND, answer_at=2 * MILLISECOND)
    refused = groups.sasl_handshake(0, 2, "KERBEROS_V4", error=33)
    script.call(refused, at=3 * MILLISECOND, answer_at=4 * MILLISECOND)
    script.write(token_frame(b"\xff" * 40), 5 * MILLISECOND, from_client=True)
    tables = analyzed_packets(tmp_path, scene.packets())
    assert tables["captures"][0]["sasl_tokens_bytes"] == 0
    assert [row["name"] for row in tables["anomalies"]] == ["framing_lost"]


def test_api_versions_refused_in_the_layout_of_version_0(tmp_path: Path) -> None:
    calls = [
        messages.api_versions_fallback(1),
        messages.api_versions_fallback(2, version=3),
        messages.api_versions(0, 3),
    ]
    tables = assert_scene(tmp_path, scenes.one_by_one(calls))
    assert [row["error_code"] for row in in_order(tables["api_calls"])] == [35, 35, 0]
    assert [row["name"] for row in tables["anomalies"]] == ["api_versions_fallback"] * 2
    assert tables["connections"][0]["client_software_version"] == "9.9"


@pytest.mark.parametrize("handshake", [True, False], ids=["handshake", "mid_stream"])
@pytest.mark.parametrize("port", [1, 22, 80, 443, 9093, 40_000, 65_535])
def test_kafka_is_found_on_any_port(port: int, handshake: bool, tmp_path: Path) -> None:
    calls = scenes.vocabulary()[4:14]
    scene = scenes.one_by_one(calls, broker=Endpoint("10.1.0.92", port), handshake=handshake)
    tables = assert_scene(tmp_path, scene)
    assert [row["protocol"] for row in tables["connections"]] == ["kafka"]


def test_capture_without_handshake_may_begin_with_a_response(tmp_path: Path) -> None:
    scene = scenes.one_by_one(scenes.vocabulary()[4:10], handshake=False)
    packets = scene.packets()[1:]
    assert not packets[0].from_client
    tables = analyzed_packets(tmp_path, packets)
    found = in_order(row for row in tables["api_calls"] if row["status"] != "response_only")
    assert [row["correlation_id"] for row in found] == [
        call.exchange.correlation_id for call in scene.calls[1:]
    ]
    assert {row["client_port"] for row in tables["api_calls"]} == {50_000}
    early = [row for row in tables["api_calls"] if row["status"] == "response_only"]
    assert len(early) <= 1
    assert all(row["correlation_id"] == scene.calls[0].exchange.correlation_id for row in early)


CLIENT_HELLO = bytes.fromhex("16030100c8010000c40303") + bytes(range(189))
SERVER_HELLO = bytes.fromhex("160303005a020000560303") + bytes(range(79))
REQUEST = b"GET /metrics HTTP/1.1\r\nHost: broker-1:9092\r\nUser-Agent: curl/8\r\n\r\n"
REPLY = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"
OTHERS = {
    "tls": (CLIENT_HELLO, SERVER_HELLO, "tls"),
    "http": (REQUEST, REPLY, "http"),
    "http_post": (b"POST /v1 HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nabcd", REPLY, "http"),
    "ssh": (b"SSH-2.0-OpenSSH_9.6\r\n", b"SSH-2.0-OpenSSH_9.2p1 Debian\r\n", "ssh"),
    "text": (b"HELO mail.example.org\r\n", b"250 mail.example.com\r\n", "other"),
    "zeros": (bytes(300), bytes(300), "other"),
}


@pytest.mark.parametrize("handshake", [True, False], ids=["handshake", "mid_stream"])
@pytest.mark.parametrize("name", OTHERS)
def test_other_protocols_are_named_and_never_calls(name: str, handshake: bool, tmp_path: Path) -> None:
    asked, answered, protocol = OTHERS[name]
    scene = Scene()
    script = scene.connection()
    if handshake:
        script.open()
    for number in range(1, 5):
        script.write(asked, number * 5 * MILLISECOND, from_client=True)
        script.write(answered, (number * 5 + 1) * MILLISECOND, from_client=False)
    tables = analyzed_packets(tmp_path, scene.packets())
    assert tables["api_calls"] == []
    assert tables["error_codes"] == []
    named = {protocol} if handshake or protocol != "other" else {"other", "undecided"}
    assert {row["protocol"] for row in tables["connections"]} <= named


@pytest.mark.parametrize("seed", range(12))
def test_random_bytes_are_never_calls(seed: int, tmp_path: Path) -> None:
    dice = random.Random(seed)
    scene = Scene()
    script = scene.connection()
    if seed % 2:
        script.open()
    for number in range(1, 20):
        script.write(dice.randbytes(dice.randint(1, 3_000)), number * 5 * MILLISECOND, from_client=True)
        script.write(
            dice.randbytes(dice.randint(1, 3_000)), (number * 5 + 1) * MILLISECOND, from_client=False
        )
    tables = analyzed_packets(tmp_path, scene.packets())
    assert tables["api_calls"] == []
    assert tables["connections"][0]["protocol"] in {"other", "undecided"}


PROXY_1 = b"PROXY TCP4 192.0.2.1 10.1.0.92 5555 9092\r\n"
PROXY_2 = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\x00\x0c" + bytes([192, 0, 2, 1, 10, 1, 0, 92, 21, 179, 35, 132])


@pytest.mark.parametrize("header", [PROXY_1, PROXY_2])
@pytest.mark.parametrize("together", [False, True])
def test_what_follows_a_proxy_header_is_what_the_client_sent(
    header: bytes, together: bool, tmp_path: Path
) -> None:
    scene = Scene()
    script = scene.connection()
    script.open()
    script.write(header, MILLISECOND, from_client=True)
    at = MILLISECOND if together else 2 * MILLISECOND
    script.call(groups.heartbeat(3, 1, "g"), at=at, answer_at=3 * MILLISECOND)
    tables = assert_scene(tmp_path, scene)
    (row,) = tables["connections"]
    assert row["protocol"] == "kafka"
    (capture,) = tables["captures"]
    assert capture["not_kafka_bytes"] == len(header)


def test_tls_behind_a_proxy_header_is_tls(tmp_path: Path) -> None:
    scene = Scene()
    script = scene.connection()
    script.open()
    script.write(PROXY_1 + b"\x16\x03\x01\x00\x05hello", MILLISECOND, from_client=True)
    tables = analyzed_packets(tmp_path, scene.packets())
    assert [(row["protocol"], row["calls"]) for row in tables["connections"]] == [("tls", 0)]


def gssapi_token(body: bytes) -> bytes:
    """An initial token of RFC 2743 3.1: tag 0x60 and a DER length, then the rest."""
    return token_frame(b"\x60\x82" + struct.pack(">H", len(body)) + body)


def test_gssapi_tokens_without_a_handshake_come_before_requests(tmp_path: Path) -> None:
    scene = Scene()
    script = scene.connection()
    script.open()
    script.write(gssapi_token(b"k" * 700), MILLISECOND, from_client=True)
    script.write(token_frame(b"a" * 90), 2 * MILLISECOND, from_client=False)
    script.write(token_frame(b""), 3 * MILLISECOND, from_client=True)
    script.write(token_frame(b"s" * 32), 4 * MILLISECOND, from_client=False)
    script.write(token_frame(b"c" * 32), 5 * MILLISECOND, from_client=True)
    for number in range(3):
        script.call(
            groups.heartbeat(3, number, "g"),
            at=(10 + 2 * number) * MILLISECOND,
            answer_at=(11 + 2 * number) * MILLISECOND,
        )
    tables = assert_scene(tmp_path, scene)
    (capture,) = tables["captures"]
    assert capture["sasl_tokens_bytes"] == 4 + 704 + 4 + 90 + 4 + 36 + 36


@pytest.mark.parametrize("off", [0, 1])
@pytest.mark.parametrize("length", [60, 200, 700])
def test_a_gssapi_token_has_the_length_that_it_says(length: int, off: int, tmp_path: Path) -> None:
    """DER writes it in one, two or three bytes."""
    said = length + off
    head = (
        bytes([said])
        if length < 128
        else b"\x81" + bytes([said])
        if length < 256
        else b"\x82" + struct.pack(">H", said)
    )
    scene = Scene()
    script = scene.connection()
    script.open()
    script.write(token_frame(b"\x60" + head + b"k" * length), MILLISECOND, from_client=True)
    script.write(token_frame(b"a" * 90), 2 * MILLISECOND, from_client=False)
    script.call(groups.heartbeat(3, 1, "g"), at=5 * MILLISECOND, answer_at=6 * MILLISECOND)
    tables = analyzed_packets(tmp_path, scene.packets())
    found = [row["correlation_id"] for row in tables["api_calls"]]
    assert (found, tables["connections"][0]["protocol"]) == (([], "other") if off else ([1], "kafka"))


def test_gssapi_tokens_alone_are_no_calls(tmp_path: Path) -> None:
    scene = Scene()
    script = scene.connection()
    script.open()
    script.write(gssapi_token(b"k" * 700), MILLISECOND, from_client=True)
    script.write(token_frame(b"a" * 90), 2 * MILLISECOND, from_client=False)
    tables = analyzed_packets(tmp_path, scene.packets())
    assert tables["api_calls"] == []
    assert tables["connections"][0]["protocol"] != "kafka"


def test_connection_without_data_is_empty(tmp_path: Path) -> None:
    scene = Scene()
    script = scene.connection()
    script.open()
    script.close(at=5 * MILLISECOND)
    tables = analyzed_packets(tmp_path, scene.packets())
    assert [(row["protocol"], row["ending"], row["calls"]) for row in tables["connections"]] == [
        ("empty", "fin", 0)
    ]


def test_unknown_api_and_version_are_named_and_keep_their_place(tmp_path: Path) -> None:
    """A vendor's key and the version after the newest, each between two known calls."""
    known = [groups.heartbeat(4, number, "g") for number in range(4)]
    vendor = replace(known[1], request=known[1].request[:4] + struct.pack(">h", 501) + known[1].request[6:])
    future = replace(known[2], request=known[2].request[:6] + struct.pack(">h", 5) + known[2].request[8:])
    scene = scenes.one_by_one([known[0], vendor, future, known[3]])
    tables = analyzed_packets(tmp_path, scene.packets())
    rows = in_order(tables["api_calls"])
    assert [(row["api_key"], row["api_version"], row["correlation_id"]) for row in rows] == [
        (12, 4, 0), (501, 4, 1), (12, 5, 2), (12, 4, 3),
    ]  # fmt: skip
    assert [row["reason"] for row in rows] == [None, "unknown_api", "unknown_version", None]
    assert len({row["client_id"] for row in rows}) == 1  # the header says who asks
    assert [row["response_bytes"] for row in rows] == [len(call.response or b"") for call in known]
    assert {"unknown_api", "unknown_version"} <= {row["name"] for row in tables["anomalies"]}


@pytest.mark.parametrize(("version", "calls"), [(5, 3), (8, 3), (9, 0)])
def test_requests_of_a_newer_client_confirm_each_other(version: int, calls: int, tmp_path: Path) -> None:
    """Heartbeat goes up to version 4; up to four versions more are believed of requests alone."""
    known = [groups.heartbeat(4, number, "g") for number in range(3)]
    newer = [
        replace(call, request=call.request[:6] + struct.pack(">h", version) + call.request[8:])
        for call in known
    ]
    packets = damage.one_direction(scenes.one_by_one(newer).packets(), from_client=True)
    rows = in_order(analyzed_packets(tmp_path, packets)["api_calls"])
    assert [row["api_version"] for row in rows] == [version] * calls
    assert {row["status"] for row in rows} <= {"response_not_captured"}


@pytest.mark.parametrize(("version", "keys"), [(999, [12, 501, 12]), (1000, [12, 12])])
def test_versions_of_foreign_requests_have_three_digits(
    version: int, keys: list[int], tmp_path: Path
) -> None:
    known = [groups.heartbeat(3, number, "g") for number in range(3)]
    head = struct.pack(">hh", 501, version)
    vendor = replace(known[1], request=known[1].request[:4] + head + known[1].request[8:])
    tables = analyzed_packets(tmp_path, scenes.one_by_one([known[0], vendor, known[2]]).packets())
    found = [row["api_key"] for row in in_order(tables["api_calls"]) if row["status"] == "answered"]
    assert found == keys


def test_a_client_id_is_no_longer_than_its_request(tmp_path: Path) -> None:
    """Two requests of a version that is newer than known would confirm each other by their headers."""
    for said, calls in ((100, 2), (101, 0)):
        scene = Scene()
        script = scene.connection()
        script.open()
        for number in (1, 2):
            body = struct.pack(">hhih", 12, 8, number, said) + b"c" * 100
            script.write(token_frame(body), number * MILLISECOND, from_client=True)
        tables = analyzed_packets(tmp_path, scene.packets())
        assert len(tables["api_calls"]) == calls


def test_the_first_name_of_a_client_is_its_connections(tmp_path: Path) -> None:
    calls = [groups.heartbeat(3, n, "g", client_id=name) for n, name in enumerate(["one", "two", "three"])]
    tables = analyzed_packets(tmp_path, scenes.one_by_one(calls).packets())
    assert [row["client_id"] for row in tables["connections"]] == ["one"]
    assert [row["client_id"] for row in in_order(tables["api_calls"])] == ["one", "two", "three"]


def test_a_first_request_that_cannot_be_read_does_not_spoil_the_rest(tmp_path: Path) -> None:
    """The connection was seen from its beginning and everything behind the first frame is plain Kafka."""
    known = [groups.heartbeat(3, number, "g") for number in range(5)]
    vendor = replace(known[0], request=known[0].request[:4] + struct.pack(">h", 501) + known[0].request[6:])
    tables = analyzed_packets(tmp_path, scenes.one_by_one([vendor, *known[1:]]).packets())
    found = [row["correlation_id"] for row in in_order(tables["api_calls"]) if row["api_key"] == 12]
    assert found == [1, 2, 3, 4]


def test_forced_port_makes_no_calls_of_other_bytes(tmp_path: Path) -> None:
    scene = Scene()
    script = scene.connection()
    script.open()
    script.write(REQUEST, MILLISECOND, from_client=True)
    script.write(REPLY, 2 * MILLISECOND, from_client=False)
    tables = analyzed_packets(tmp_path, scene.packets(), ports=[9092])
    assert [row for row in tables["api_calls"] if row["status"] == "answered"] == []


def test_forced_port_tells_the_broker_apart(tmp_path: Path) -> None:
    scene = scenes.one_by_one(scenes.vocabulary()[4:8], handshake=False)
    packets = scene.packets()
    tables = analyzed_packets(tmp_path, packets, ports=[9092])
    assert_calls(tables, scene.calls, packets)
