"""Proxies in front of Kafka: PROXY headers, SOCKS5 and CONNECT, in one piece and cut anywhere."""

from __future__ import annotations

import struct
from ipaddress import ip_address
from itertools import pairwise

import pytest

from tests.core.hand import (
    START_NS,
    Talk,
    ask,
    assert_answered,
    connection_of,
    names,
    request,
    response,
    tables_of,
)
from tests.pipeline.running import analyzer
from tests.traffic.files import Frame, pcap
from tests.traffic.hello import client_hello, records, server_hello

MAGIC = b"\r\n\r\n\x00\r\nQUIT\n"
TLV = b"\x04\x00\x03abc"
LONG = b"\x21\x07\xd0" + b"\r\n\x05\x01" * 500  # PP2_TYPE_SSL's place, with what begins other things
V4 = ip_address("192.0.2.7").packed + ip_address("192.0.2.8").packed + struct.pack(">HH", 41_000, 9092)
V6 = ip_address("2001:db8::7").packed + ip_address("2001:db8::8").packed + struct.pack(">HH", 41_000, 9092)


HEADERS = [
    (b"PROXY TCP4 192.0.2.7 192.0.2.8 41000 9092\r\n", "192.0.2.7", 41_000),
    (b"PROXY TCP6 2001:db8::7 2001:db8::8 41000 9092\r\n", "2001:db8::7", 41_000),
    (b"PROXY UNKNOWN\r\n", None, None),
    (MAGIC + b"\x21\x11" + struct.pack(">H", len(V4 + TLV)) + V4 + TLV, "192.0.2.7", 41_000),
    (MAGIC + b"\x21\x21" + struct.pack(">H", len(V6)) + V6, "2001:db8::7", 41_000),
    (MAGIC + b"\x20\x00\x00\x00", None, None),
    (MAGIC + b"\x21\x11" + struct.pack(">H", 12 + len(LONG)) + V4 + LONG, "192.0.2.7", 41_000),
]


@pytest.mark.parametrize("opened", [True, False])
@pytest.mark.parametrize(("header", "address", "port"), HEADERS)
def test_a_proxy_names_its_client(header: bytes, address: str | None, port: int | None, opened: bool) -> None:
    """The PROXY protocol, versions 1 and 2 (2.1, 2.2), with TLVs."""
    talk = Talk().open() if opened else Talk()
    talk.send(True, header + request(1))
    talk.send(False, response(1))
    tables = tables_of(talk.packets)
    assert_answered(tables, 1)
    row = connection_of(tables)
    assert (row["proxied_address"], row["proxied_port"]) == (address, port)


@pytest.mark.parametrize("step", [1, 7, 60])
@pytest.mark.parametrize("opened", [True, False])
@pytest.mark.parametrize(("header", "address", "port"), HEADERS)
def test_a_header_in_pieces(
    header: bytes, address: str | None, port: int | None, opened: bool, step: int
) -> None:
    talk = Talk().open() if opened else Talk()
    in_pieces(talk, True, header + request(1), step)
    talk.send(False, response(1))
    ask(talk, 2)
    tables = tables_of(talk.packets)
    assert_answered(tables, 1, 2)
    row = connection_of(tables)
    assert (row["proxied_address"], row["proxied_port"], row["protocol"]) == (address, port, "kafka")
    assert names(tables) == []


def in_pieces(talk: Talk, from_client: bool, data: bytes, step: int) -> None:
    for at in range(0, len(data), step):
        talk.send(from_client, data[at : at + step])


def test_nothing_behind_a_header() -> None:
    talk = Talk().open()
    talk.send(True, HEADERS[0][0])
    row = connection_of(tables_of(talk.packets))
    assert (row["protocol"], row["proxied_address"]) == ("proxy", "192.0.2.7")


Said = list[tuple[bool, bytes]]

NAME = b"broker.example"
V4_END = b"\x01" + ip_address("192.0.2.8").packed + b"\x23\x84"
V6_END = b"\x04" + ip_address("2001:db8::8").packed + b"\x23\x84"
NAME_END = b"\x03" + bytes([len(NAME)]) + NAME + b"\x23\x84"
PLAIN: Said = [(True, b"\x05\x01\x00"), (False, b"\x05\x00")]
PASSWORD: Said = [
    (True, b"\x05\x02\x00\x02"),
    (False, b"\x05\x02"),
    (True, b"\x01\x05alice\x06secret"),
    (False, b"\x01\x00"),
]
SOCKS: list[Said] = [
    [*PLAIN, (True, b"\x05\x01\x00" + V4_END), (False, b"\x05\x00\x00" + V4_END)],
    [*PLAIN, (True, b"\x05\x01\x00" + NAME_END), (False, b"\x05\x00\x00" + V6_END)],
    [*PASSWORD, (True, b"\x05\x01\x00" + V6_END), (False, b"\x05\x00\x00" + NAME_END)],
]
CONNECT: list[Said] = [
    [
        (True, b"CONNECT broker.example:9092 HTTP/1.1\r\nHost: broker.example:9092\r\n\r\n"),
        (False, b"HTTP/1.1 200 Connection established\r\n\r\n"),
    ],
    [
        (True, b"CONNECT 192.0.2.8:9092 HTTP/1.0\r\nProxy-Authorization: Basic YTpi\r\n\r\n"),
        (False, b"HTTP/1.0 200 OK\r\nVia: 1.0 proxy\r\n\r\n"),
    ],
]
ASKED = CONNECT[0][0][1]
PASSWORD_TOLD = ASKED[:-2] + b"Proxy-Authorization: Basic YTpi\r\n\r\n"
ASKED_AGAIN: list[Said] = [
    [(True, ASKED), (False, answer), (True, PASSWORD_TOLD), CONNECT[0][1]]
    for answer in (
        b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 5\r\n\r\nHello",
        b"HTTP/1.1 407 Who\r\ncontent-length:0 \r\n\r\n",
        b"HTTP/1.0 407 Who\r\nProxy-Connection: keep-alive\r\n\r\n",
    )
]
ASKED_AGAIN.append([*ASKED_AGAIN[0][:2], *ASKED_AGAIN[1]])
TUNNELS = [*(("socks5", said) for said in SOCKS), *(("connect", said) for said in CONNECT)]
AGAIN = [("connect", said) for said in ASKED_AGAIN]


@pytest.mark.parametrize("step", [1, 5, 1000])
@pytest.mark.parametrize("opened", [True, False])
@pytest.mark.parametrize(("word", "said"), TUNNELS + AGAIN)
def test_kafka_through_a_tunnel(word: str, said: Said, opened: bool, step: int) -> None:
    """RFC 1928 3 to 6, RFC 1929 2, RFC 9110 9.3.6."""
    talk = Talk().open() if opened else Talk()
    for from_client, data in said:
        in_pieces(talk, from_client, data, step)
    ask(talk, 1)
    ask(talk, 2)
    tables = tables_of(talk.packets)
    assert_answered(tables, 1, 2)
    row = connection_of(tables)
    assert (row["encapsulation"], row["protocol"], row["role_source"]) == (
        word,
        "kafka",
        "handshake" if opened else "content",
    )
    assert names(tables) == []


@pytest.mark.parametrize(("word", "said"), TUNNELS)
def test_a_client_that_does_not_wait_for_its_proxy(word: str, said: Said) -> None:
    talk = Talk().open()
    talk.send(True, b"".join(data for from_client, data in said if from_client) + request(1))
    talk.send(False, b"".join(data for from_client, data in said if not from_client) + response(1))
    tables = tables_of(talk.packets)
    assert_answered(tables, 1)
    assert connection_of(tables)["encapsulation"] == word


@pytest.mark.parametrize(("word", "said"), TUNNELS + AGAIN)
def test_tls_through_a_tunnel_behind_a_header(word: str, said: Said) -> None:
    talk = Talk().open()
    talk.send(True, HEADERS[0][0])
    for from_client, data in [*said, (True, records(client_hello())), (False, records(server_hello()))]:
        talk.send(from_client, data)
    row = connection_of(tables_of(talk.packets))
    assert (row["protocol"], row["tls_cipher"] is not None) == ("tls", True)
    assert (row["encapsulation"], row["proxied_address"]) == (word, "192.0.2.7")


@pytest.mark.parametrize(
    ("said", "protocol"),
    [
        ([(True, b"\x05\x01\x00"), (False, b"\x05\xff")], "socks"),
        ([*PASSWORD[:3], (False, b"\x01\x01")], "socks"),
        ([*PLAIN, (True, SOCKS[0][2][1]), (False, b"\x05\x05\x00" + V4_END)], "socks"),
        ([(True, CONNECT[0][0][1]), (False, b"HTTP/1.1 407 Who\r\nContent-Length: 0\r\n\r\n")], "http"),
        ([*ASKED_AGAIN[0][:3], (False, b"HTTP/1.1 403 No\r\n\r\n")], "http"),
        ([*ASKED_AGAIN[0][:2], (True, b"GET / HTTP/1.1\r\n\r\n")], "http"),
        (
            [(True, ASKED), (False, b"HTTP/1.1 407 Who\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")],
            "http",
        ),
        ([(True, CONNECT[0][0][1]), (False, b"SSH-2.0-x\r\n")], "http"),
        ([(True, b"GET / HTTP/1.1\r\n\r\n"), (False, b"HTTP/1.1 200 OK\r\n\r\n")], "http"),
    ],
)
def test_a_tunnel_that_does_not_come_about(said: Said, protocol: str) -> None:
    talk = Talk().open()
    for from_client, data in said:
        talk.send(from_client, data)
    ask(talk, 1)
    tables = tables_of(talk.packets)
    assert (connection_of(tables)["protocol"], tables["api_calls"]) == (protocol, [])


@pytest.mark.parametrize("lost", range(4))
def test_a_hole_in_what_comes_before(lost: int) -> None:
    """The calls behind it are found."""
    talk = Talk().open()
    for number, (from_client, data) in enumerate(SOCKS[0]):
        talk.send(from_client, data, keep=number != lost)
    for number in range(1, 30):
        ask(talk, number)
    tables = tables_of(talk.packets)
    answered = {row["correlation_id"] for row in tables["api_calls"] if row["status"] == "answered"}
    assert answered >= set(range(3, 30))
    assert connection_of(tables)["protocol"] == "kafka"


def test_bytes_like_a_greeting_in_the_middle_of_a_stream() -> None:
    """Without the SYN, three bytes that nobody answers as a proxy would are no proof."""
    talk = Talk()
    talk.send(True, b"\x05\x01\x00")
    for number in range(1, 6):
        ask(talk, number)
    tables = tables_of(talk.packets)
    assert {row["correlation_id"] for row in tables["api_calls"] if row["status"] == "answered"} >= {3, 4, 5}


FIRST = b"PROXY TCP4 192.0.2.7 192.0.2.8 41000 9092\r\n" + request(1)


@pytest.mark.parametrize("parts", [2, 3, 4])
@pytest.mark.parametrize("opened", [True, False])
@pytest.mark.parametrize("data", [FIRST, request(1), b"SSH-2.0-OpenSSH_9.6\r\n" * 3])
def test_first_bytes_count_to_the_capture_they_came_in(data: bytes, opened: bool, parts: int) -> None:
    """Rotated captures: each has some bytes of what shows what the connection carries."""
    talk = Talk().open() if opened else Talk()
    cuts = [len(data) * part // parts for part in range(parts + 1)]
    files = [list(talk.packets)]
    for start, end in pairwise(cuts):
        files.append([talk.send(True, data[at : at + 3]) for at in range(start, end, 3)])
    files.append([talk.send(False, response(1)[:2]), talk.send(False, response(1)[2:])])
    assert_counted(files)


def assert_counted(files: list[list[bytes]]) -> None:
    """Every capture counts the bytes that it has."""
    engine = analyzer()
    payload = []
    for number, packets in enumerate(files):
        engine.open_capture(f"{number}.pcap")
        engine.feed(pcap([Frame(START_NS + number, each, len(each)) for each in packets], 101))
        payload.append(engine.close_capture()["tcp_payload_bytes"])
    engine.finish()
    assert [sum(engine.accounting(number).values()) for number in range(len(files))] == payload


def test_an_answer_that_a_rotation_cuts() -> None:
    """In the middle of a connection: few bytes in one capture, the rest in the next ones."""
    for cuts in ([2], [2, 4], [1, 2, 3]):
        talk = Talk(1, 1)
        talk.send(True, request(1))
        files = [list(talk.packets)]
        for start, end in pairwise([0, *cuts, len(response(1))]):
            files.append([talk.send(False, response(1)[start:end])])
        assert_counted(files)


@pytest.mark.parametrize("step", [1, 2, 3])
@pytest.mark.parametrize("hole", [False, True])
def test_answers_that_came_before_anybody_knew_who_asks(step: int, hole: bool) -> None:
    """In the middle of a connection: an answer in small pieces, whose question was not captured, and the rest
    of it, or a hole, behind the question that tells."""
    answer = response(1)
    talk = Talk(1, 1)
    talk.send(True, request(1), keep=False)
    in_pieces(talk, False, answer[:9], step)
    talk.send(True, request(2))
    talk.send(False, answer[9:], keep=not hole)
    talk.send(False, response(2))
    for number in range(3, 6):
        ask(talk, number)
    assert_counted([talk.packets, []])
    assert_counted([talk.packets[:2], talk.packets[2:]])
    assert_answered(tables_of(talk.packets), 2, 3, 4, 5)


@pytest.mark.parametrize("step", [1, 2, 3])
def test_an_answer_of_which_a_part_was_recorded_before_its_question(step: int) -> None:
    talk = Talk(1, 1)
    asked = talk.send(True, request(1), keep=False)
    in_pieces(talk, False, response(1)[:9], step)
    talk.packets.append(asked)
    talk.send(False, response(1)[9:])
    ask(talk, 2)
    assert_answered(tables_of(talk.packets), 1, 2)
