"""Wrong listeners and broken rules, by hand: the cause and its owner; the neighbour stays quiet."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import kwsniff
from tests.findings.stage import (
    ASK,
    CLIENT,
    CLOSING,
    FLIGHT,
    HELLO,
    OPEN,
    RESET,
    SECOND,
    TLS,
    Stage,
    alert,
    at,
    request,
    versions,
)
from tests.traffic import files
from tests.traffic.hello import client_hello, records
from tests.traffic.tcp import MILLISECOND, Endpoint
from tests.traffic.wire import sized

pytestmark = pytest.mark.sample_tests(14)


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


# -- requests that no broker takes -------------------------------------------------------------------------


@pytest.mark.sample(3)
@pytest.mark.parametrize("end", [CLOSING, RESET])
@pytest.mark.parametrize(
    ("garbage", "confidence", "words"),
    [
        (b"\xaa" * 40, "certain", "a frame of 2,863,311,530 bytes"),
        (b"\x3b\x9a\xca\x00" + b"x" * 36, "likely", "a frame of 1,000,000,000 bytes"),
        (sized(b"\xff\xff" + b"x" * 36), "likely", "bytes that do not begin a request"),
        (request(3, 0, 2, b"\x7f\xff\xff\xff"), "likely", "layout (Metadata version 0)"),
    ],
)  # fmt: skip
def test_a_client_that_sends_what_no_broker_takes(
    stage: Stage, garbage: bytes, confidence: str, words: str, end: str
) -> None:
    stage.talk(ASK, (versions(1, k3=(0, 12)),), garbage, at=SECOND, end=end)
    assert stage.found() == [("malformed_request", confidence, "client", "shop")]
    assert words in stage.rows()[0]["text"]


def test_a_client_that_begins_with_what_no_broker_takes(stage: Stage) -> None:
    for moment in at(1, 2):
        stage.talk(b"\xaa" * 40, at=moment, end=RESET)
    assert stage.found() == [("malformed_request", "likely", "client", CLIENT)]


def test_garbage_at_an_address_that_is_no_broker_is_no_finding(stage: Stage) -> None:
    for moment in at(1, 2):
        stage.talk(b"\xaa" * 40, at=moment, broker=ELSEWHERE, end=RESET)
    assert stage.found() == []


def test_garbage_that_the_broker_does_not_close_for_is_no_finding(stage: Stage) -> None:
    stage.talk(ASK, (versions(1),), b"\xaa" * 40, at=SECOND, by_client=True)
    assert stage.found() == []


# -- versions ----------------------------------------------------------------------------------------------


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("key", "version", "span", "words"),
    [
        (3, 12, (0, 8), "Metadata version 12 (offered: 0 to 8)"),
        (3, 0, (1, 12), "Metadata version 0 (offered: 1 to 12)"),
        (3, 9, None, "Metadata version 9 (not offered at all)"),
    ],
)
def test_a_version_that_the_broker_does_not_offer(
    stage: Stage, key: int, version: int, span: tuple[int, int] | None, words: str
) -> None:
    offered = {"k1": (0, 11)} if span is None else {f"k{key}": span}
    for moment in at(1, 2):
        stage.talk(ASK, (versions(1, **offered),), request(key, version, 2, b"\0\0\0\0"), at=moment)
    assert stage.found() == [("version_not_offered", "certain", "client", "shop")]
    assert words in stage.rows()[0]["text"]


def test_a_version_that_is_offered_says_nothing_of_versions(stage: Stage) -> None:
    """What else cut it off is not known: nothing is stated as a fact."""
    for moment in at(1, 2):
        stage.talk(ASK, (versions(1, k3=(0, 8)),), request(3, 1, 2, b"\0\0\0\0"), at=moment)
    (first, *_) = stage.rows()
    assert (first["finding"], first["confidence"]) == ("sasl_expected", "possible")
    assert "requires SASL." not in first["text"]


def test_a_version_that_the_broker_answers_elsewhere_is_offered(stage: Stage) -> None:
    answer = sized(struct.pack(">iii", 2, 0, 0))
    stage.talk(
        ASK, (versions(1, k3=(1, 8)),), request(3, 0, 2, b"\0\0\0\0"), (answer,), at=SECOND, by_client=True
    )
    stage.talk(ASK, (versions(1, k3=(1, 8)),), request(3, 0, 2, b"\0\0\0\0"), at=2 * SECOND)
    assert "version_not_offered" not in [name for name, *_ in stage.found()]


def test_api_versions_that_is_reset_and_answered_in_a_lower_version_harms_nobody(stage: Stage) -> None:
    """Azure Event Hubs resets version 4; a client asks again in version 0."""
    for moment in at(1, 4):
        stage.talk(request(18, 4, 1, b"\0\1\1\0"), at=moment, end=RESET)
        stage.talk(ASK, (versions(1),), at=moment + 3 * MILLISECOND, by_client=True)
    assert stage.found() == []


def test_api_versions_that_is_reset_and_never_answered_harms(stage: Stage) -> None:
    for moment in at(1, 2, 3, 4):
        stage.talk(request(18, 4, 1, b"\0\1\1\0"), at=moment, end=RESET)
    assert [name for name, *_ in stage.found()] != []


# -- other protocols ---------------------------------------------------------------------------------------

HTTP = b"HTTP/1.1 400 Bad Request\r\n\r\n"
ELSEWHERE = Endpoint("10.1.0.90", 8080)


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("said", "confidence", "words"),
    [
        ((ASK, (HTTP,)), "certain", "answers in HTTP"),
        (((b"SSH-2.0-OpenSSH_9.2\r\n",), ASK), "certain", "answers in SSH"),
        ((ASK, (b"-ERR unknown command\r\n",)), "certain", "answers in Redis"),
        ((ASK, (b"AMQP\0\0\x09\1",)), "certain", "answers in AMQP"),
        ((ASK, (b"\x7f\x7f\x7f\x7f nobody knows",)), "likely", "not a response of Kafka's"),
        ((records(client_hello()), (HTTP,)), "certain", "began TLS"),
    ],
)
@pytest.mark.parametrize("by_client", [True, False])
def test_a_server_that_is_no_broker(
    stage: Stage, said: Sequence[bytes | tuple[bytes]], confidence: str, words: str, by_client: bool
) -> None:
    for moment in at(1, 2):
        stage.talk(*said, at=moment, broker=ELSEWHERE, by_client=by_client)
    assert stage.found() == [("not_kafka", confidence, "configuration", "10.1.0.90:8080")]
    assert words in stage.rows()[0]["text"]


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("port", "confidence", "words"),
    [(2181, "likely", "Port 2181 is usual for ZooKeeper."), (4711, "possible", "")],
)
def test_a_server_that_only_closes(stage: Stage, port: int, confidence: str, words: str) -> None:
    there = Endpoint("10.1.0.90", port)
    for moment in at(1, 2, 3):
        stage.talk(ASK, at=moment, broker=there)
    assert stage.found() == [("not_kafka", confidence, "configuration", f"10.1.0.90:{port}")]
    assert words in stage.rows()[0]["text"]


def test_a_server_that_keeps_silent(stage: Stage) -> None:
    """Redis waits for the end of a line that never comes; the client gives up."""
    there = Endpoint("10.1.0.90", 6379)
    for moment in (SECOND, 4 * SECOND):
        script = stage.talk(ASK, at=moment, broker=there, end=OPEN)
        script.acknowledge(moment + 3 * MILLISECOND, from_client=False)
        script.close(at=moment + 2 * SECOND + 500 * MILLISECOND)
    assert stage.found() == [("not_kafka", "likely", "configuration", "10.1.0.90:6379")]
    assert "Port 6379 is usual for Redis." in stage.rows()[0]["text"]


def test_a_server_that_only_closes_and_speaks_zookeeper_with_others(stage: Stage) -> None:
    there = Endpoint("10.1.0.90", 4711)
    connect = sized(struct.pack(">iqiqi", 0, 0, 30_000, 0, 16) + bytes(17))
    stage.talk(connect, (sized(struct.pack(">iiqi", 0, 30_000, 7, 16) + bytes(17)),), broker=there, end=OPEN)
    for moment in at(1, 2, 3):
        stage.talk(ASK, at=moment, broker=there)
    assert stage.found() == [("not_kafka", "certain", "configuration", "10.1.0.90:4711")]
    assert "Others speak ZooKeeper there." in stage.rows()[0]["text"]


def test_a_server_that_has_answered_once_is_a_broker(stage: Stage) -> None:
    there = Endpoint("10.1.0.90", 2181)
    stage.talk(ASK, (versions(1),), broker=there, by_client=True)
    for moment in at(1, 2, 3):
        stage.talk(ASK, at=moment, broker=there)
    assert "not_kafka" not in [name for name, *_ in stage.found()]


def test_a_server_that_closes_before_it_was_asked_is_not_judged_by_that(stage: Stage) -> None:
    there = Endpoint("10.1.0.90", 4711)
    stage.talk(broker=there)
    for moment in at(1, 2, 3):
        stage.talk(ASK, at=moment, broker=there)
    assert "not_kafka" not in [name for name, *_ in stage.found()]


def test_an_old_client_at_a_new_broker_is_not_at_the_wrong_door(stage: Stage) -> None:
    """Produce version 1: brokers since 4.0 close."""
    there = Endpoint("10.1.0.90", 4711)
    body = struct.pack(">hii", 1, 1000, 0)
    for moment in at(1, 2, 3):
        stage.talk(request(0, 1, 1, body), at=moment, broker=there)
    assert "not_kafka" not in [name for name, *_ in stage.found()]


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("first", "words"),
    [
        (b"GET /metrics HTTP/1.1\r\nHost: broker\r\n\r\n", "speaks HTTP"),
        (b"*1\r\n$4\r\nPING\r\n", "speaks Redis"),
        (sized(struct.pack(">iqiqi", 0, 0, 30_000, 0, 16) + bytes(17)), "speaks ZooKeeper"),
    ],
)
def test_a_client_that_does_not_speak_kafka_at_a_broker(stage: Stage, first: bytes, words: str) -> None:
    for moment in at(1, 2):
        stage.talk(first, at=moment)
    assert stage.found() == [("not_kafka", "certain", "client", CLIENT)]
    assert words in stage.rows()[0]["text"]


def test_http_where_nothing_shows_a_broker_is_no_finding(tmp_path: Path) -> None:
    stage = Stage(tmp_path, neighbour=False)
    for moment in at(1, 2):
        stage.talk(b"GET / HTTP/1.1\r\n\r\n", at=moment, broker=ELSEWHERE)
    assert stage.found() == []


def test_an_http_server_that_answers_http_is_no_finding(stage: Stage) -> None:
    for moment in at(1, 2):
        stage.talk(b"GET / HTTP/1.1\r\n\r\n", (HTTP,), at=moment, broker=ELSEWHERE)
    assert stage.found() == []


# -- the PROXY protocol ------------------------------------------------------------------------------------

V1 = b"PROXY TCP4 192.0.2.1 10.1.0.92 40000 9092\r\n"
V2 = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\xc0\0\2\1\x0a\1\0\x5c\x9c\x40\x23\x84"


@pytest.mark.sample(1)
@pytest.mark.parametrize("header", [V1, V2])
@pytest.mark.parametrize("end", [CLOSING, RESET])
@pytest.mark.parametrize("neighbour", [True, False])
def test_a_proxy_header_that_the_broker_does_not_expect(
    tmp_path: Path, header: bytes, end: str, neighbour: bool
) -> None:
    stage = Stage(tmp_path, neighbour=neighbour)
    for moment in at(1, 2):
        stage.talk(header + ASK, at=moment, end=end)
    confidence = "certain" if neighbour else "likely"
    assert stage.found()[0] == ("proxy_protocol", confidence, "configuration", "10.1.0.92:9092")


@pytest.mark.sample(1)
@pytest.mark.parametrize("header", [V1, V2])
def test_a_proxy_header_that_is_missing(tmp_path: Path, header: bytes) -> None:
    stage = Stage(tmp_path, neighbour=False)
    for moment in at(1, 3):
        stage.talk(header + ASK, (versions(1),), at=moment, address="10.1.0.9", by_client=True)
    for moment in at(2, 4):
        stage.talk(ASK, at=moment)
    assert stage.found()[0] == ("proxy_protocol", "certain", "configuration", "10.1.0.92:9092")
    assert "sends no PROXY protocol header" in stage.rows()[0]["text"]


@pytest.mark.parametrize("header", [V1, V2])
def test_a_proxy_header_where_it_is_expected_is_no_finding(tmp_path: Path, header: bytes) -> None:
    stage = Stage(tmp_path, neighbour=False)
    for moment in at(1, 3):
        stage.talk(header + ASK, (versions(1),), at=moment, by_client=True)
    assert stage.found() == []


# -- broken rules ------------------------------------------------------------------------------------------


def response(number: int) -> bytes:
    return versions(number)


def asked(*numbers: int) -> bytes:
    return b"".join(request(18, 0, number) for number in numbers)


HEARTBEAT = request(12, 0, 2, b"\0\1g\0\0\0\1\0\1m")
CUT_SHORT = sized(struct.pack(">ib", 2, 0))


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("said", "confidence", "words"),
    [
        ((asked(1, 2, 3), (response(1) + response(3) + response(2),)), "certain", "out of order: 1 response"),
        ((ASK, (response(1),), asked(2), (response(1),)), "certain", "(id 1)"),
        ((asked(1), (response(1) + response(1),)), "likely", "(id 1)"),
        ((ASK, (response(1),), HEARTBEAT, (CUT_SHORT,)), "likely", "the layout of Heartbeat version 0"),
    ],
)
def test_a_broker_that_breaks_the_protocol(
    stage: Stage, said: Sequence[Any], confidence: str, words: str
) -> None:
    stage.talk(*said, at=SECOND, by_client=True)
    assert stage.found() == [("protocol_violation", confidence, "broker", "10.1.0.92:9092")]
    assert words in stage.rows()[0]["text"]


def test_one_response_that_cannot_be_read_and_harms_nobody_is_no_finding(stage: Stage) -> None:
    stage.talk(
        ASK, (response(1),), HEARTBEAT, (CUT_SHORT,), asked(3), (response(3),), by_client=True, at=SECOND
    )
    assert stage.found() == []


SYNC = request(14, 0, 2, b"\0\1g\0\0\0\1\0\1m\0\0\0\0")
NULL = sized(struct.pack(">ihi", 2, 0, -1))


def test_null_bytes_are_a_note_while_the_client_goes_on(stage: Stage) -> None:
    stage.talk(ASK, (response(1),), SYNC, (NULL,), asked(3), (response(3),), by_client=True, at=SECOND)
    assert stage.found() == []
    notes = [(row["finding"], row["severity"], row["blames"]) for row in stage.rows()]
    assert ("protocol_violation", "info", "broker") in notes


def test_null_bytes_that_the_client_closes_for_are_a_problem(stage: Stage) -> None:
    stage.talk(ASK, (response(1),), SYNC, (NULL,), by_client=True, at=SECOND)
    assert stage.found() == [("protocol_violation", "certain", "broker", "10.1.0.92:9092")]


# -- parts of a capture ------------------------------------------------------------------------------------

SCENES: dict[str, tuple[str, Callable[[Stage, int], object]]] = {
    "not_kafka": ("10.1.0.90:8080", lambda stage, when: stage.talk(ASK, (HTTP,), at=when, broker=ELSEWHERE)),
    "proxy_protocol": ("10.1.0.92:9092", lambda stage, when: stage.talk(V1 + ASK, at=when)),
    "malformed_request": (
        "shop",
        lambda stage, when: stage.talk(ASK, (versions(1),), b"\xaa" * 40, at=when, end=RESET),
    ),
    "version_not_offered": (
        "shop",
        lambda stage, when: stage.talk(ASK, (versions(1, k3=(0, 8)),), request(3, 12, 2, bytes(4)), at=when),
    ),
    "tls_handshake_failed": (
        "10.1.0.92:9093",
        lambda stage, when: stage.talk(HELLO, (FLIGHT,), alert(45), at=when, broker=TLS, by_client=True),
    ),
    "protocol_violation": (
        "10.1.0.92:9092",
        lambda stage, when: stage.talk(
            asked(1, 2, 3), (response(1) + response(3) + response(2),), at=when, by_client=True
        ),
    ),
}


@pytest.mark.sample(3)
@pytest.mark.parametrize("part", ["first half", "second half"])
@pytest.mark.parametrize("name", SCENES)
def test_half_of_a_capture_shows_it_as_well(tmp_path: Path, name: str, part: str) -> None:
    subject, play = SCENES[name]
    stage = Stage(tmp_path)
    for moment in at(1, 2, 3, 9, 10, 11):
        play(stage, moment)
    packets = stage.scene.packets()
    middle = packets[0].time_ns + 3 * SECOND
    kept = [each for each in packets if (each.time_ns < middle) == (part == "first half")]
    stage.path.write_bytes(files.pcap(files.frames(kept)))
    rows = kwsniff.analyze(stage.path).findings.to_pylist()
    named = [(row["finding"], row["subject"]) for row in rows if row["severity"] != "info"]
    assert named[0] == (name, subject)
