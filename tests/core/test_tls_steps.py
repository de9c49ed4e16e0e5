"""How far a TLS handshake came, who ended it, whether the client had a certificate: without keys."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core.hand import ACK, FIN, RST, Talk, connection_of, tables_of
from tests.traffic.hello import client_hello, message, records, server_hello, vector

CLIENT, BROKER = True, False
CHANGE = b"\x14\x03\x03\0\1\1"
Said = list[tuple[bool, bytes]]


def sealed(length: int, kind: int = 23) -> bytes:
    """An encrypted record."""
    return bytes([kind, 3, 3]) + vector(b"\xab" * length, 2)


def alert(description: int, level: int = 2) -> bytes:
    return bytes([21, 3, 3, 0, 2, level, description])


def certificate(inside: bytes) -> bytes:
    """TLS 1.2's message (RFC 5246 7.4.2)."""
    return records(message(11, vector(inside, 3)))


NEW: Said = [(CLIENT, records(client_hello())), (BROKER, records(server_hello()) + CHANGE + sealed(900))]
OLD: Said = [
    (CLIENT, records(client_hello())),
    (BROKER, records(server_hello(0xC02F, chosen=None) + message(11, bytes(800)) + message(14, b""))),
]
KEY = records(message(16, bytes(33)))
FINISHED = CHANGE + sealed(40, 22)


def seen(*said: tuple[bool, bytes], size: int = 9_999, closer: bool = CLIENT, flags: int = FIN | ACK) -> Any:
    """handshake, certificate, alert, by whom; bytes come in segments of `size`, then `closer` closes."""
    talk = Talk().open()
    for from_client, data in said:
        for at in range(0, len(data), size):
            talk.send(from_client, data[at : at + size])
    talk.send(closer, flags=flags)
    row = connection_of(tables_of(talk.packets))
    return tuple(
        row[name] for name in ("tls_handshake", "tls_client_certificate", "tls_alert", "tls_alert_by")
    )


SIZES = [1, 7, 300, 9_999]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ([NEW[0]], ("client_hello", None, None, None)),
        ([NEW[0], (BROKER, alert(70))], ("client_hello", None, "protocol_version", "broker")),
        ([*NEW], ("server_hello", None, None, None)),
        # OpenSSL's clients send it in the clear (RFC 8446 lets them: they have no keys yet)
        ([*NEW, (CLIENT, alert(45))], ("server_hello", None, "certificate_expired", "client")),
        ([*NEW, (CLIENT, CHANGE + sealed(19))], ("server_hello", None, "encrypted", "client")),
        ([*NEW, (CLIENT, CHANGE + sealed(35))], ("server_hello", None, "encrypted", "client")),  # the JDK's
        ([*NEW, (CLIENT, sealed(19) + sealed(19))], ("server_hello", None, "encrypted", "client")),
        ([*NEW, (CLIENT, CHANGE + sealed(53))], ("client_finished", None, None, None)),
        (
            [*NEW, (CLIENT, sealed(25) + sealed(53)), (BROKER, sealed(19))],
            ("client_finished", "none", "encrypted", "broker"),
        ),
        (
            [*NEW, (CLIENT, sealed(61)), (BROKER, sealed(19))],
            ("client_finished", "none", "encrypted", "broker"),
        ),
        (
            [*NEW, (CLIENT, sealed(41) + sealed(85)), (BROKER, sealed(35))],
            ("client_finished", "none", "encrypted", "broker"),
        ),
        (
            [*NEW, (CLIENT, sealed(800) + sealed(69)), (BROKER, sealed(19))],
            ("client_finished", "sent", "encrypted", "broker"),
        ),
        ([*NEW, (CLIENT, sealed(53)), (BROKER, sealed(239))], ("complete", None, None, None)),
        ([*NEW, (CLIENT, sealed(53)), (BROKER, sealed(239) + sealed(19))], ("complete", None, None, None)),
        (
            [*NEW, (CLIENT, sealed(53)), (BROKER, sealed(239)), (CLIENT, sealed(19))],
            ("complete", None, None, None),
        ),
    ],
)
def test_tls_1_3(said: Said, expected: tuple[str | None, ...], size: int) -> None:
    assert seen(*said, size=size) == expected


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ([*OLD], ("server_hello", None, None, None)),
        ([*OLD, (CLIENT, alert(46))], ("server_hello", None, "certificate_unknown", "client")),
        ([*OLD, (CLIENT, alert(0, 1))], ("server_hello", None, "close_notify", "client")),
        (
            [*OLD, (CLIENT, certificate(b"") + KEY), (BROKER, alert(42))],
            ("client_key", "none", "bad_certificate", "broker"),
        ),
        (
            [*OLD, (CLIENT, certificate(bytes(700)) + KEY + FINISHED), (BROKER, alert(48))],
            ("client_finished", "sent", "unknown_ca", "broker"),
        ),
        ([*OLD, (CLIENT, KEY + FINISHED)], ("client_finished", None, None, None)),
        ([*OLD, (CLIENT, KEY + CHANGE + sealed(26, 21))], ("client_key", None, "encrypted", "client")),
        ([*OLD, (CLIENT, KEY + FINISHED), (BROKER, FINISHED)], ("complete", None, None, None)),
        (
            [*OLD, (CLIENT, KEY + FINISHED), (BROKER, FINISHED + sealed(26, 21))],
            ("complete", None, None, None),
        ),
        # a client that begins again in the middle of it
        (
            [*OLD, (CLIENT, records(client_hello())), (BROKER, alert(10))],
            ("server_hello", None, "unexpected_message", "broker"),
        ),
        # resumed: the broker finishes first (RFC 5246 7.3)
        (
            [OLD[0], (BROKER, records(server_hello(0xC02F, chosen=None)) + FINISHED), (CLIENT, FINISHED)],
            ("complete", None, None, None),
        ),
    ],
)
def test_tls_1_2(said: Said, expected: tuple[str | None, ...], size: int) -> None:
    assert seen(*said, size=size) == expected


def test_a_warning_in_a_handshake_that_goes_on_ended_nothing() -> None:
    """unrecognized_name, level 1 (RFC 6066 3)."""
    answer = records(server_hello(0xC02F, chosen=None)) + alert(112, 1)
    said: Said = [OLD[0], (BROKER, answer), (CLIENT, KEY + FINISHED), (BROKER, FINISHED)]
    assert seen(*said) == ("complete", None, None, None)


@pytest.mark.parametrize("flags", [FIN | ACK, RST | ACK])
def test_without_a_client_hello_nothing_is_said(flags: int) -> None:
    """A connection that was there before the capture: an alert, and the end."""
    talk = Talk()
    talk.send(CLIENT, sealed(26, 21))
    talk.send(CLIENT, flags=flags)
    row = connection_of(tables_of(talk.packets))
    assert (row["tls_hello"], row["tls_handshake"], row["tls_alert"]) == (False, None, None)


def test_of_a_handshake_with_a_hole_nothing_is_said() -> None:
    talk = Talk().open()
    talk.send(CLIENT, NEW[0][1])
    talk.send(BROKER, NEW[1][1])
    talk.send(CLIENT, CHANGE + sealed(53), keep=False)
    talk.send(BROKER, sealed(19))
    talk.send(CLIENT, sealed(19))
    talk.send(CLIENT, flags=FIN | ACK)
    row = connection_of(tables_of(talk.packets))
    assert (row["tls_hello"], row["tls_handshake"], row["tls_alert"]) == (True, None, None)
