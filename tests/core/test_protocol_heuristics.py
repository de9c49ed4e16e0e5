"""What makes a connection Kafka's, and what does not."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import kwsniff
from tests.core.hand import (
    ACK,
    START_NS,
    Rows,
    Talk,
    ask,
    assert_answered,
    connection_of,
    response,
    tables_of,
)
from tests.traffic.files import Frame, pcap
from tests.traffic.hello import client_hello, records
from tests.traffic.wire import sized


def header(key: int, version: int, number: int, client_id: bytes | None = b"rdkafka") -> bytes:
    """RequestHeader v1 (Kafka's protocol guide)."""
    size = -1 if client_id is None else len(client_id)
    return struct.pack(">hhih", key, version, number, size) + (client_id or b"")


def api_versions(number: int, behind: bytes = b"", client_id: bytes = b"rdkafka") -> bytes:
    """ApiVersions v0: a header, no body."""
    return sized(header(18, 0, number, client_id) + behind)


def versions(number: int, behind: bytes = b"") -> bytes:
    """Its response: no error, one API."""
    return sized(struct.pack(">ihihhh", number, 0, 1, 18, 0, 3) + behind)


def calls_of(tables: Rows) -> list[tuple[Any, ...]]:
    return [(row["correlation_id"], row["status"], row["reason"]) for row in tables["api_calls"]]


def test_two_frames_that_do_not_decode_make_no_connection_kafka() -> None:
    """SMPP 3.4: length, command_id 9 (bind_transceiver), status, sequence: it reads as a Produce v9."""
    talk = Talk().open()
    for number in (1, 2, 3):
        body = b"ESME\x00secret\x00CP\x00\x34\x00\x00\x00"
        talk.send(True, struct.pack(">IIII", 16 + len(body), 9, 0, number) + body)
        talk.send(False, struct.pack(">IIII", 21, 9 | 1 << 31, 0, number) + b"SMSC\x00")
    tables = tables_of(talk.packets)
    assert (tables["api_calls"], connection_of(tables)["protocol"] == "kafka") == ([], False)


@pytest.mark.parametrize("opened", [True, False])
def test_bytes_behind_a_message_that_decodes_harm_nothing(opened: bool) -> None:
    """librdkafka puts four behind ApiVersions v0."""
    talk = Talk().open() if opened else Talk()
    for number in (1, 2):
        talk.send(True, api_versions(number, bytes(4)))
        talk.send(False, versions(number, bytes(number - 1)))
    tables = tables_of(talk.packets)
    assert calls_of(tables) == [(1, "answered", None), (2, "answered", None)]
    told = [(row["name"], row["value"], row["direction"]) for row in tables["anomalies"]]
    assert told == [
        ("trailing_bytes", 4, "client"),
        ("trailing_bytes", 4, "client"),
        ("trailing_bytes", 1, "broker"),
    ]


def test_much_behind_what_was_never_answered_is_no_request() -> None:
    talk = Talk().open()
    for number in (1, 2, 3):
        talk.send(True, api_versions(number, b"x" * 100))
    tables = tables_of(talk.packets)
    assert (tables["api_calls"], connection_of(tables)["protocol"]) == ([], "undecided")


@pytest.mark.parametrize("opened", [True, False])
@pytest.mark.parametrize("ports", [(), (9092,)])
def test_a_client_may_have_control_characters_in_its_name(opened: bool, ports: tuple[int, ...]) -> None:
    talk = Talk().open() if opened else Talk()
    for number in (1, 2):
        talk.send(True, sized(header(3, 0, number, b"a\tb\x00c") + struct.pack(">i", 0)))
        talk.send(False, sized(struct.pack(">iii", number, 0, 0)))
    tables = tables_of(talk.packets, ports=ports)
    assert calls_of(tables) == [(1, "answered", None), (2, "answered", None)]
    assert connection_of(tables)["client_id"] == "a\tb\x00c"


HTTP = b"GET /metrics HTTP/1.1\r\nHost: broker\r\n\r\n"


@pytest.mark.parametrize("opened", [True, False])
@pytest.mark.parametrize(("first", "protocol"), [(HTTP, "http"), (records(client_hello()), "tls")])
def test_on_a_port_that_is_kafkas_others_keep_their_names(opened: bool, first: bytes, protocol: str) -> None:
    talk = Talk().open() if opened else Talk()
    talk.send(True, first)
    assert connection_of(tables_of(talk.packets, ports=[9092]))["protocol"] == protocol


def test_in_the_middle_of_a_stream_the_first_word_of_a_log_line_is_not_http() -> None:
    talk = Talk()
    talk.send(True, b"GET out of here, said the record")
    ask(talk, 1)
    assert_answered(tables_of(talk.packets, ports=[9092]), 1)


def test_one_response_without_a_request_is_a_response_where_the_port_says_so() -> None:
    talk = Talk().open()
    talk.send(True, versions(1), keep=False)
    talk.send(False, versions(7))
    talk.send(True, flags=ACK)
    tables = tables_of(talk.packets, ports=[9092])
    assert calls_of(tables) == [(7, "response_only", "segment_not_captured")]


def test_responses_to_requests_that_were_not_captured_are_responses() -> None:
    """The client's acknowledgements are there, its requests are not."""
    talk = Talk().open()
    for number in (7, 8, 9):
        talk.send(True, versions(1), keep=False)
        talk.send(False, versions(number))
        talk.send(True, flags=ACK)
    tables = tables_of(talk.packets)
    assert [row[:2] for row in calls_of(tables)] == [(number, "response_only") for number in (7, 8, 9)]
    assert connection_of(tables)["protocol"] == "kafka"


@pytest.mark.parametrize("ports", [(), (9092,)])
def test_responses_in_mid_stream_beside_bare_acknowledgements_are_responses(ports: tuple[int, ...]) -> None:
    """What the broker acknowledges grows: the requests were sent while the capture ran."""
    talk = Talk()
    for number in range(7, 12):
        talk.send(True, versions(1), keep=False)
        talk.send(False, versions(number))
        talk.send(True, flags=ACK)
    tables = tables_of(talk.packets, ports=ports)
    assert calls_of(tables) == [(n, "response_only", "segment_not_captured") for n in range(7, 12)]
    row = connection_of(tables)
    assert (row["protocol"], row["client_port"]) == ("kafka", 50_000)


def test_frames_of_one_side_whose_second_word_does_not_count_up_are_no_responses() -> None:
    talk = Talk()
    for number in (7, 7, 30, 2, 90):
        talk.send(False, versions(number))
        talk.send(True, flags=ACK)
    tables = tables_of(talk.packets)
    assert (tables["api_calls"], connection_of(tables)["protocol"]) == ([], "undecided")


@pytest.mark.parametrize("ports", [(), (9092,)])
def test_a_request_without_a_body_and_with_an_odd_name_is_whole(ports: tuple[int, ...]) -> None:
    """In the middle of a connection: all of the frame is its name, and the answer is not missed meanwhile."""
    talk = Talk(1, 1)
    for number in (1, 2, 3):
        talk.send(True, api_versions(number, client_id=b"we\x01ird\x1b\n"))
        talk.send(False, versions(number))
    tables = tables_of(talk.packets, ports=ports)
    assert calls_of(tables) == [(number, "answered", None) for number in (1, 2, 3)]


def zookeeper(types: tuple[int, ...], dice: random.Random) -> list[tuple[bool, bytes]]:
    """A session: frames with a size, small numbers where Kafka has key, version and correlation id, no client
    id. Each answer is a header alone, an empty list, or what a node holds (ZooKeeper's zookeeper.jute)."""
    said = [
        (True, sized(struct.pack(">iqiqi", 0, 0, 30_000, 0, 16) + bytes(17))),
        (False, sized(struct.pack(">iiqi", 0, 30_000, 0x1234567890, 16) + bytes(17))),
    ]
    for number in range(1, 40):
        kind = dice.choice(types)
        path = b"/brokers/ids/7"
        said.append((True, sized(struct.pack(">iii", number, kind, len(path)) + path + b"\0")))
        fails = dice.random() < 0.5
        body = b"" if fails else dice.choice((bytes(4), bytes(4) + dice.randbytes(68)))
        said.append((False, sized(struct.pack(">iqi", number, 77 + number, -101 if fails else 0) + body)))
        if dice.random() < 0.1:
            said += [
                (True, sized(struct.pack(">ii", -2, 11))),
                (False, sized(struct.pack(">iqi", -2, 77, 0))),
            ]
    return said


@pytest.mark.parametrize("opened", [True, False])
@pytest.mark.parametrize("seed", range(20))
def test_zookeeper_is_not_kafka(seed: int, opened: bool) -> None:
    """Its numbers make requests of Kafka's lowest key, and answers that count up."""
    talk = Talk().open() if opened else Talk()
    for from_client, data in zookeeper((2, 3, 4, 8, 12), random.Random(seed)):
        talk.send(from_client, data)
    tables = tables_of(talk.packets)
    assert tables["api_calls"] == []
    assert connection_of(tables)["protocol"] == "zookeeper" if opened else "undecided"


@pytest.mark.parametrize("name", [b"", None])
def test_a_client_without_a_name_is_one(name: bytes | None) -> None:
    """The shortest request that Kafka knows, and the shortest answer."""
    talk = Talk().open()
    for number in (1, 2, 3):
        talk.send(True, sized(header(18, 0, number, name)))
        talk.send(False, response(number))
    assert [row[:2] for row in calls_of(tables_of(talk.packets))] == [(n, "answered") for n in (1, 2, 3)]


@pytest.mark.parametrize("kept", [1, 3, 4, 5, 8, 13, 14, 20])
def test_a_first_request_that_a_capture_cut_hides_no_call_behind_it(kept: int) -> None:
    """From its whole header on it is a request, too; before, only its response is known."""
    talk = Talk().open()
    for number in (1, 2, 3):
        talk.send(True, sized(header(12, 0, number, b"a-client") + b"\0\1g" + bytes(4) + b"\0\1m"))
        talk.send(False, sized(struct.pack(">ih", number, 0)))
    talk.packets[3] = talk.packets[3][: 40 + kept]
    tables = tables_of(talk.packets)
    first = (1, "answered" if kept >= 14 else "response_only", "cut_by_snaplen")
    assert sorted(calls_of(tables)) == [first, (2, "answered", None), (3, "answered", None)]
    assert connection_of(tables)["client_missing_bytes"] == 4 + 10 + 8 + 10 - kept


@pytest.mark.parametrize("kept", [14, 28, 53])
def test_a_long_client_name_that_a_capture_cuts_hides_nothing(kept: int) -> None:
    talk = Talk().open()
    for number in (1, 2, 3):
        talk.send(True, api_versions(number, client_id=b"c" * 40))
        talk.send(False, versions(number))
    tables = tables_of([packet[: 40 + kept] for packet in talk.packets])
    assert calls_of(tables) == [(number, "answered", "cut_by_snaplen") for number in (1, 2, 3)]
    assert connection_of(tables)["client_missing_bytes"] == 3 * (4 + 10 + 40 - kept)


def early_summary(number: int) -> tuple[bytes, bytes]:
    """ReadShareGroupStateSummary v0 of 3.9 and 4.0: no leader's epoch in the answer."""
    topic = bytes(range(16))
    asked = b"\2g" + b"\2" + topic + b"\2" + struct.pack(">ii", 3, 4) + bytes(3)
    told = b"\2" + topic + b"\2" + struct.pack(">ih", 3, 0) + b"\0" + struct.pack(">iq", 5, 6) + bytes(3)
    return sized(header(87, 0, number) + b"\0" + asked), sized(struct.pack(">i", number) + b"\0" + told)


def early_heartbeat(number: int) -> tuple[bytes, bytes]:
    """ConsumerGroupHeartbeat v0 of 3.5 and 3.6, of a client with an assignor of its own."""
    assignor = b"\2r" + struct.pack(">hhbh", 0, 1, 0, 1) + b"\1\0"
    asked = b"\2g\2m" + struct.pack(">i", 7) + b"\0\0" + struct.pack(">i", 45_000) + b"\0\0\0"
    asked += b"\2" + assignor + b"\0\0"
    told = struct.pack(">ih", 0, 0) + b"\0\2m" + struct.pack(">i", 7) + b"\0"
    told += struct.pack(">i", 5_000) + b"\xff\0"
    return sized(header(68, 0, number) + b"\0" + asked), sized(struct.pack(">i", number) + b"\0" + told)


@pytest.mark.parametrize("spoken", [early_summary, early_heartbeat])
@pytest.mark.parametrize("opened", [True, False])
def test_what_was_spoken_before_a_release_is_known_in_the_middle_of_a_stream_too(
    spoken: Callable[[int], tuple[bytes, bytes]], opened: bool, tmp_path: Path
) -> None:
    talk = Talk().open() if opened else Talk()
    for number in (1, 2):
        for from_client, message in zip((True, False), spoken(number), strict=True):
            talk.send(from_client, message)
    place = tmp_path / "early.pcap"
    place.write_bytes(pcap([Frame(START_NS, packet, len(packet)) for packet in talk.packets], 101))
    found = kwsniff.analyze(place, tables=("api_calls", "anomalies"))
    assert calls_of({"api_calls": found.api_calls.to_pylist()}) == [
        (1, "answered", None),
        (2, "answered", None),
    ]
    assert found.anomalies.num_rows == 0
