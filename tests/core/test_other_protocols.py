"""What a connection carries, and what answers a Kafka client: by first bytes (dissectors/protocols.txt)."""

from __future__ import annotations

import random
from typing import Any

import pytest

from kwsniff.layout.protocols import Beginning, load_protocols
from tests.core.hand import (
    ACK,
    FIN,
    Talk,
    ask,
    assert_answered,
    connection_of,
    request,
    response,
    tables_of,
)
from tests.traffic.hello import client_hello, records

ALL = [(name, each) for name, found in load_protocols().items() for each in found.beginnings]
CLIENTS = [each for each in ALL if each[1].side != "server" and each[0] != "proxy"]
SERVERS = [each for each in ALL if each[1].side != "client"]
SIZES = [1, 3, 8, 9_999]


def named(pair: Any) -> str:
    return f"{pair[0]}-{pair[1].data[:12].hex()}"


def bytes_of(begin: Beginning, seed: int) -> bytes:
    """Bytes that begin so; what may be any byte is, and so is what follows."""
    dice = random.Random(seed)
    some = [byte if mask else dice.randrange(256) for byte, mask in zip(begin.data, begin.mask, strict=True)]
    return bytes(some) + dice.randbytes(40)


def said(*parts: tuple[bool, bytes], size: int = 9_999, closer: bool = False) -> Any:
    """What the analyzer says of a connection on which these bytes come in segments of `size`, and FINs."""
    talk = Talk().open()
    for from_client, data in parts:
        for at in range(0, len(data), size):
            talk.send(from_client, data[at : at + size])
    talk.send(closer, flags=FIN | ACK)
    talk.send(not closer, flags=FIN | ACK)
    talk.send(closer)
    return tables_of(talk.packets)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("pair", CLIENTS, ids=named)
def test_a_client_of_another_protocol_is_named_and_makes_no_call(pair: Any, size: int) -> None:
    name, begin = pair
    tables = said((True, bytes_of(begin, 1)), size=size)
    assert (connection_of(tables)["protocol"], tables["api_calls"]) == (name, [])


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("pair", SERVERS, ids=named)
def test_a_kafka_client_is_answered_in_another_protocol(pair: Any, size: int) -> None:
    name, begin = pair
    tables = said((True, request(7)), (False, bytes_of(begin, 2)), size=size)
    row = connection_of(tables)
    assert (row["protocol"], row["answered_in"]) == ("kafka", name)
    (call,) = tables["api_calls"]
    assert (call["status"], call["reason"]) == ("unanswered", "not_kafka")


@pytest.mark.parametrize("pair", SERVERS, ids=named)
def test_a_server_that_greets_before_a_kafka_client_asks(pair: Any) -> None:
    """SSH, MySQL, SMTP do."""
    name, begin = pair
    tables = said((False, bytes_of(begin, 3)), (True, request(7)), (False, b"go away\r\n" * 3))
    row = connection_of(tables)
    assert (row["protocol"], row["answered_in"]) == ("kafka", name)
    assert [call["reason"] for call in tables["api_calls"]] == ["not_kafka"]


@pytest.mark.parametrize("pair", SERVERS, ids=named)
def test_a_server_that_greets_says_what_the_connection_carries(pair: Any) -> None:
    """What its own client sends then may look like anything."""
    name, begin = pair
    tables = said((False, bytes_of(begin, 4)), (True, b"\x2c\0\0\1" + bytes(range(100))))
    row = connection_of(tables)
    assert (row["protocol"], row["answered_in"], tables["api_calls"]) == (name, None, [])


@pytest.mark.parametrize("pair", SERVERS, ids=named)
def test_a_client_hello_is_answered_in_another_protocol(pair: Any) -> None:
    name, begin = pair
    row = connection_of(said((True, records(client_hello())), (False, bytes_of(begin, 5))))
    assert (row["protocol"], row["answered_in"], row["tls_hello"]) == ("tls", name, True)


def test_bytes_that_are_no_response_have_no_name() -> None:
    row = connection_of(said((True, request(7)), (False, b"\x7f" * 60)))
    assert (row["protocol"], row["answered_in"]) == ("kafka", "other")


def test_an_answer_behind_bytes_that_are_none_shows_that_it_is_a_broker() -> None:
    talk = Talk().open()
    talk.send(True, request(1))
    talk.send(False, b"\x7f" * 60)
    for number in range(2, 8):
        ask(talk, number)
    row = connection_of(tables_of(talk.packets))
    assert (row["protocol"], row["answered_in"]) == ("kafka", None)


@pytest.mark.parametrize("size", [1, 2, 5, 9, 9_999])
@pytest.mark.parametrize("number", [0, 1, 0x7B22, 0x0802_1200, 0x2F_0000, 0x0001_0000])
def test_a_response_is_one_whatever_its_number_and_its_pieces(number: int, size: int) -> None:
    """Sizes and numbers of responses are the first words of Pulsar, RocketMQ, ZooKeeper, too."""
    tables = said((True, request(number)), (False, response(number)), size=size, closer=True)
    assert_answered(tables, number)
    assert connection_of(tables)["answered_in"] is None


@pytest.mark.parametrize("pair", CLIENTS, ids=named)
def test_in_the_middle_of_a_connection_they_prove_nothing(pair: Any) -> None:
    """Values of records begin like that. HTTP and SSH have been named there before."""
    name, begin = pair
    talk = Talk()
    talk.send(True, bytes_of(begin, 6))
    for number in range(1, 4):
        ask(talk, number)
    known = {name} if name in ("http", "ssh") else {"kafka", "undecided"}
    assert connection_of(tables_of(talk.packets))["protocol"] in known
