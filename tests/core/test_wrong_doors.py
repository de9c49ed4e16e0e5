"""Clients at the wrong door: TLS where there is none, none where there is."""

from __future__ import annotations

import pytest

from tests.core.hand import ACK, FIN, RST, Talk, connection_of, request, tables_of
from tests.traffic.hello import client_hello, records, server_hello

TLS = ("tls_hello", "tls_cipher", "tls_alert", "tls_alert_by", "closed_by", "end")


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


def test_a_hello_that_is_answered() -> None:
    talk = Talk().open()
    talk.send(True, records(client_hello()))
    talk.send(False, records(server_hello()))
    row = connection_of(tables_of(talk.packets))
    assert (row["tls_hello"], row["tls_cipher"] is not None, row["tls_alert"]) == (True, True, None)
