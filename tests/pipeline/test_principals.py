"""Which user a SASL token names (RFC 4616, RFC 5802), and what is no name."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pipeline.compare import analyzed_packets
from tests.traffic import groups
from tests.traffic.scenes import one_by_one
from tests.traffic.tcp import MILLISECOND, Scene


def principal(folder: Path, mechanism: str, token: bytes) -> str | None:
    """Of a connection whose client sends this token first."""
    calls = [
        groups.sasl_handshake(1, 1, mechanism),
        groups.sasl_authenticate(2, 2, token, b""),
        groups.heartbeat(3, 3, "g"),
    ]
    tables = analyzed_packets(folder, one_by_one(calls).packets())
    (connection,) = tables["connections"]
    name: str | None = connection["principal"]
    assert {row["principal"] for row in tables["api_calls"] if row["correlation_id"] == 3} == {name}
    return name


@pytest.mark.parametrize("binding", [b"n", b"y", b"p=tls-server-end-point"])
@pytest.mark.parametrize("authorized", [b"", b"a=somebody"])
def test_a_scram_client_is_named_whatever_it_says_of_channels(
    binding: bytes, authorized: bytes, tmp_path: Path
) -> None:
    """RFC 5802 7: gs2-cbind-flag is n, y or p=."""
    token = binding + b"," + authorized + b",n=user,r=fyko+d2lbbFgONRv9qkxdawL"
    assert principal(tmp_path, "SCRAM-SHA-256", token) == "user"


@pytest.mark.parametrize(
    ("written", "name"),
    [
        (b"a=2Cb", "a,b"),
        (b"=3D=2C=3D", "=,="),
        (b"a=3D2Cb", "a=2Cb"),
        (b"=2C", ","),
        (b"a=2", "a=2"),  # what is no escape stays as it is: nobody knows what was meant
        (b"a=2cb=", "a=2cb="),
        (b"x" * 100 + b"=2C", "x" * 100 + ","),
    ],
)
def test_commas_and_equals_signs_of_a_scram_name(written: bytes, name: str, tmp_path: Path) -> None:
    """RFC 5802 5.1."""
    assert principal(tmp_path, "SCRAM-SHA-512", b"n,,n=" + written + b",r=fyko") == name


@pytest.mark.parametrize("token", [b"x,,n=user,r=fyko", b"n,,m=user,r=fyko", b"c=biws,r=fyko3rf,p=v0X8"])
def test_what_is_no_first_scram_message_names_nobody(token: bytes, tmp_path: Path) -> None:
    assert principal(tmp_path, "SCRAM-SHA-256", token) is None


def test_a_plain_token_without_a_password_names_nobody(tmp_path: Path) -> None:
    """RFC 4616 2: two NULs; behind one alone nobody knows where the name ends."""
    assert principal(tmp_path, "PLAIN", b"\0alice\0secret") == "alice"
    assert principal(tmp_path, "PLAIN", b"admin\0alice\0secret") == "alice"
    assert principal(tmp_path, "PLAIN", b"\0alice") is None


@pytest.mark.parametrize(
    ("mechanism", "token", "name"),
    [("PLAIN", b"\0alice\0secret", "alice"), ("SCRAM-SHA-256", b"n,,n=bob,r=fyko", "bob")],
)
def test_a_token_without_a_request_around_it_names_its_user(
    mechanism: str, token: bytes, name: str, tmp_path: Path
) -> None:
    """As clients send it behind SaslHandshake 0."""
    scene = Scene()
    script = scene.connection()
    script.open()
    script.call(groups.sasl_handshake(0, 1, mechanism), at=MILLISECOND, answer_at=2 * MILLISECOND)
    script.write(len(token).to_bytes(4, "big") + token, 3 * MILLISECOND, from_client=True)
    script.write(bytes(4), 4 * MILLISECOND, from_client=False)
    script.call(groups.heartbeat(3, 2, "g"), at=5 * MILLISECOND, answer_at=6 * MILLISECOND)
    tables = analyzed_packets(tmp_path, scene.packets())
    assert [row["principal"] for row in tables["connections"]] == [name]
