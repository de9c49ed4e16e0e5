"""TLS handshakes that fail, by hand: who ended them, and why; the neighbour stays quiet."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.findings.stage import (
    BROKER,
    CLIENT,
    CLOSING,
    FINISHED,
    FLIGHT,
    HELLO,
    OPEN,
    RESET,
    SECOND,
    TICKET,
    TLS,
    Stage,
    alert,
    at,
    sealed,
)
from tests.traffic.tcp import MILLISECOND, Endpoint


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    "case",
    [
        ((HELLO, (FLIGHT,), alert(45)), True, "certain", "configuration", "certificate has expired"),
        ((HELLO, (FLIGHT,), alert(48)), True, "certain", "configuration", "does not know the CA"),
        ((HELLO, (FLIGHT,), alert(42)), True, "certain", "configuration", "another name than kafka.example"),
        ((HELLO, (FLIGHT,), sealed(19)), True, "likely", "configuration", "does not accept the broker's"),
        ((HELLO, (FLIGHT,), sealed(25) + FINISHED, (sealed(19),)), False, "likely", "client", "no cert"),
        ((HELLO, (FLIGHT,), sealed(900) + FINISHED, (sealed(19),)), False, "likely", "client", "accept"),
        ((HELLO, (alert(70),)), False, "certain", "configuration", "no TLS version in common"),
        ((HELLO, (alert(40),)), False, "certain", "configuration", "no cipher suite"),
        ((HELLO, (alert(112),)), False, "certain", "configuration", "the name kafka.example"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("end", [CLOSING, RESET, OPEN])
def test_a_handshake_that_fails(stage: Stage, case: tuple[Any, ...], end: str) -> None:
    """At the same listener another client's handshake completes."""
    said, by_client, confidence, blames, words = case
    stage.talk(HELLO, (FLIGHT,), FINISHED, (TICKET,), broker=TLS, address="10.1.0.8", by_client=True)
    for moment in at(1, 2):
        stage.talk(*said, at=moment, broker=TLS, by_client=by_client, end=end)
    assert stage.found() == [("tls_handshake_failed", confidence, blames, "10.1.0.92:9093")]
    text = stage.rows()[0]["text"]
    assert words in text
    assert f"{CLIENT} fails the TLS handshake with 10.1.0.92:9093: 2 of 2." in text


@pytest.mark.sample(2)
@pytest.mark.parametrize("times", [1, 2, 3])
def test_a_client_that_leaves_in_a_handshake_without_a_word(stage: Stage, times: int) -> None:
    for number in range(times):
        stage.talk(HELLO, (FLIGHT,), at=(number + 1) * SECOND, broker=TLS, by_client=True)
    found = [("tls_handshake_failed", "possible", "configuration", "10.1.0.92:9093")]
    assert stage.found() == (found if times > 1 else [])


@pytest.mark.parametrize(
    "said",
    [
        (HELLO, (FLIGHT,), FINISHED, (TICKET,), sealed(19)),  # a health check
        (HELLO, (FLIGHT,), FINISHED + sealed(200), (TICKET + sealed(400),), sealed(19), (sealed(19),)),
        (HELLO,),  # a client that gives up waiting
    ],
)
def test_a_handshake_that_succeeds_or_was_never_answered_is_no_failure(
    stage: Stage, said: Sequence[Any]
) -> None:
    for moment in at(1, 2, 3):
        stage.talk(*said, at=moment, broker=TLS, by_client=True)
    assert stage.found() == []


def test_tls_at_a_plaintext_listener_needs_a_client_hello(stage: Stage) -> None:
    stage.talk(HELLO, at=SECOND)
    assert stage.found() == [("tls_on_plaintext", "likely", "client", "10.1.0.92:9092")]


def test_tls_that_was_there_before_the_capture_and_closes_is_no_finding(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    script = stage.scene.connection(Endpoint(CLIENT, 50_999), BROKER)
    script.write(b"\x15\x03\x03\0\x1a" + bytes(26), SECOND, from_client=True)
    script.close(SECOND + MILLISECOND)
    assert stage.found() == []
