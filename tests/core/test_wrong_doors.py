"""Clients at the wrong door: TLS where there is none, none where there is."""

from __future__ import annotations

import pytest

from tests.core.hand import ACK, FIN, RST, Talk, connection_of, request, tables_of
from tests.traffic.hello import client_hello, records, server_hello

TLS = ("tls_hello", "tls_cipher", "tls_alert", "tls_alert_by", "closed_by", "ending")


def test_a_kafka_request_answered_by_a_tls_alert() -> None:
    """unexpected_message (RFC 8446 6): a plaintext client at a TLS listener."""
    talk = Talk().open()
    talk.send(True, request(1))
    talk.send(False, b"\x15\x03\x03\x00\x02\x02\x0a")
    talk.send(False, flags=FIN | ACK)
    talk.send(True, flags=FIN | ACK)
    talk.send(False)
    tables = tables_of(talk.packets)
    row = connection_of(tables)
    assert [row[key] for key in TLS] == [None, None, "unexpected_message", "broker", "broker", "fin"]
    assert row["protocol"] == "kafka"
    (call,) = tables["api_calls"]
    assert (call["status"], call["reason"]) == ("unanswered", "connection_closed")


@pytest.mark.parametrize(("flags", "end"), [(FIN | ACK, "open"), (RST | ACK, "reset")])
def test_a_hello_that_gets_no_hello(flags: int, end: str) -> None:
    talk = Talk().open()
    talk.send(True, records(client_hello()))
    talk.send(False, flags=flags)
    row = connection_of(tables_of(talk.packets))
    assert [row[key] for key in TLS] == [True, None, None, None, "broker", end]


def test_a_hello_refused_by_an_alert() -> None:
    talk = Talk().open()
    talk.send(True, records(client_hello()))
    talk.send(False, b"\x15\x03\x01\x00\x02\x02\x46")
    row = connection_of(tables_of(talk.packets))
    assert [row[key] for key in TLS] == [True, None, "protocol_version", "broker", None, "open"]


ALERT = b"\x15\x03\x03\x00\x02\x02\x0a"
PIECES = [1, 3, 6, 7, 9_999]


def said(syn: bool, size: int, *parts: tuple[bool, bytes]) -> Talk:
    """These bytes in segments of `size`, then both FINs."""
    talk = Talk().open() if syn else Talk()
    for from_client, data in parts:
        for at in range(0, len(data), size):
            talk.send(from_client, data[at : at + size])
    talk.send(False, flags=FIN | ACK)
    talk.send(True, flags=FIN | ACK)
    talk.send(False)
    return talk


@pytest.mark.parametrize("ports", [(), (9092,)])
@pytest.mark.parametrize("syn", [True, False])
@pytest.mark.parametrize("size", PIECES)
def test_alerts_in_pieces_and_without_the_syn(size: int, syn: bool, ports: tuple[int, ...]) -> None:
    tables = tables_of(said(syn, size, (True, request(1)), (False, ALERT)).packets, ports=ports)
    row = connection_of(tables)
    assert [row[key] for key in TLS] == [None, None, "unexpected_message", "broker", "broker", "fin"]
    (call,) = tables["api_calls"]
    assert (call["status"], call["reason"]) == ("unanswered", "connection_closed")
    row = connection_of(
        tables_of(said(syn, size, (True, records(client_hello())), (False, ALERT)).packets, ports=ports)
    )
    assert [row[key] for key in TLS] == [True, None, "unexpected_message", "broker", "broker", "fin"]


@pytest.mark.parametrize("ports", [(), (9092,)])
@pytest.mark.parametrize("syn", [True, False])
@pytest.mark.parametrize("size", PIECES)
def test_an_alert_alone(size: int, syn: bool, ports: tuple[int, ...]) -> None:
    row = connection_of(tables_of(said(syn, size, (False, ALERT)).packets, ports=ports))
    assert (row["protocol"], row["tls_hello"], row["tls_alert"]) == ("tls", False, "unexpected_message")


@pytest.mark.parametrize("size", PIECES)
def test_the_beginning_of_an_alert_is_none(size: int) -> None:
    """Its bytes are counted all the same, as tables_of adds up."""
    tables = tables_of(said(True, size, (True, request(1)), (False, ALERT[:-1])).packets)
    assert connection_of(tables)["tls_alert"] is None


@pytest.mark.parametrize("size", PIECES)
def test_a_warning_before_a_hello(size: int) -> None:
    """unrecognized_name (RFC 6066 3): the handshake goes on."""
    warning = b"\x15\x03\x03\x00\x02\x01\x70"
    greeting = (True, records(client_hello()))
    row = connection_of(tables_of(said(True, size, greeting, (False, warning)).packets))
    assert (row["tls_cipher"], row["tls_alert"]) == (None, "unrecognized_name")
    answer = warning + records(server_hello())
    row = connection_of(tables_of(said(True, size, greeting, (False, answer)).packets))
    assert (row["tls_cipher"], row["tls_alert"]) == ("TLS_AES_256_GCM_SHA384", None)


def test_a_hello_that_is_answered() -> None:
    talk = Talk().open()
    talk.send(True, records(client_hello()))
    talk.send(False, records(server_hello()))
    row = connection_of(tables_of(talk.packets))
    assert (row["tls_hello"], row["tls_cipher"] is not None, row["tls_alert"]) == (True, True, None)
