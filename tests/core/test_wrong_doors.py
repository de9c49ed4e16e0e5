"""Clients at the wrong door, and proxies in front of it: TLS where there is none, none where there is."""

from __future__ import annotations

import struct
from ipaddress import ip_address

import pytest

from tests.core.hand import ACK, FIN, RST, Talk, assert_answered, connection_of, request, response, tables_of
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


MAGIC = b"\r\n\r\n\x00\r\nQUIT\n"
TLV = b"\x04\x00\x03abc"
V4 = ip_address("192.0.2.7").packed + ip_address("192.0.2.8").packed + struct.pack(">HH", 41_000, 9092)
V6 = ip_address("2001:db8::7").packed + ip_address("2001:db8::8").packed + struct.pack(">HH", 41_000, 9092)


@pytest.mark.parametrize("opened", [True, False])
@pytest.mark.parametrize(
    ("header", "address", "port"),
    [
        (b"PROXY TCP4 192.0.2.7 192.0.2.8 41000 9092\r\n", "192.0.2.7", 41_000),
        (b"PROXY TCP6 2001:db8::7 2001:db8::8 41000 9092\r\n", "2001:db8::7", 41_000),
        (b"PROXY UNKNOWN\r\n", None, None),
        (MAGIC + b"\x21\x11" + struct.pack(">H", len(V4 + TLV)) + V4 + TLV, "192.0.2.7", 41_000),
        (MAGIC + b"\x21\x21" + struct.pack(">H", len(V6)) + V6, "2001:db8::7", 41_000),
        (MAGIC + b"\x20\x00\x00\x00", None, None),
    ],
)
def test_a_proxy_names_its_client(header: bytes, address: str | None, port: int | None, opened: bool) -> None:
    """The PROXY protocol, versions 1 and 2 (2.1, 2.2), with TLVs."""
    talk = Talk().open() if opened else Talk()
    talk.send(True, header + request(1))
    talk.send(False, response(1))
    tables = tables_of(talk.packets)
    assert_answered(tables, 1)
    row = connection_of(tables)
    assert (row["proxied_address"], row["proxied_port"]) == (address, port)
