"""Secrets in a capture are in nothing that kwsniff says of it; only `decode` and `--secrets` tell them."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kwsniff.cli.main import run
from tests.pipeline.compare import capture_of, decoded
from tests.traffic import security
from tests.traffic.exchange import Exchange
from tests.traffic.groups import sasl_authenticate, sasl_handshake
from tests.traffic.messages import metadata
from tests.traffic.tcp import MILLISECOND, Scene, Script
from tests.traffic.wire import sized

PASSWORD = "vErY-haRd+to=guess%Passw0rd"  # noqa: S105 it opens nothing
SALT = bytes.fromhex("9fe1c2b37a5d4e80f1aabb0c7d6e5f41")
PROOF = bytes.fromhex("d0c1b2a394857667788990a1b2c3d4e5f6071829")
SIGNATURE = bytes.fromhex("5b6c7d8e9fa0b1c2d3e4f5061728394a5b6c7d8e")
SALTED = bytes.fromhex("c3a5f01e2d3c4b5a69788796a5b4c3d2e1f00112233445566778899aabbccdde")
HMAC = bytes.fromhex("77e1d2c3b4a5968778695a4b3c2d1e0ff0e1d2c3b4a5968778695a4b3c2d1e0f")
STORE = "kEysToRe:s3cret/of#broker1"
JAAS = "PlainLoginModule required password=iNsiDe-jaas-c0nfig;"
BEARER = "eYjhbGciOiJub25lIn0.eYJzdWIiOiJhbGljZSJ9.c2lnbmF0dXJl"
CONFIGS = {"ssl.keystore.password": STORE, "sasl.jaas.config": JAAS}
SECRETS = (
    PASSWORD.encode(), SALT, PROOF, SIGNATURE, SALTED, HMAC, STORE.encode(),
    b"iNsiDe-jaas-c0nfig", BEARER.encode(),
)  # fmt: skip

PLAIN = b"\0alice\0" + PASSWORD.encode()
OAUTH = b"n,,\x01auth=Bearer " + BEARER.encode() + b"\x01\x01"


def _b64(data: bytes) -> bytes:
    return base64.b64encode(data)


SCRAM = (
    (b"n,,n=alice,r=nonce-1", b"r=nonce-1-2,s=" + _b64(SALT) + b",i=4096"),
    (b"c=biws,r=nonce-1-2,p=" + _b64(PROOF), b"v=" + _b64(SIGNATURE)),
)


def admin_calls(first: int) -> list[Exchange]:
    return [
        security.alter_configs(1, first, CONFIGS),
        security.alter_configs(2, first + 1, CONFIGS),
        security.incremental_alter_configs(0, first + 2, CONFIGS),
        security.incremental_alter_configs(1, first + 3, CONFIGS),
        security.describe_configs(first + 4, CONFIGS),
        security.create_delegation_token(first + 5, HMAC),
        security.renew_delegation_token(first + 6, HMAC),
        security.expire_delegation_token(first + 7, HMAC),
        security.describe_delegation_token(first + 8, HMAC),
        security.alter_scram(first + 9, SALT, SALTED),
        security.envelope(first + 10, security.incremental_alter_configs(1, 1, CONFIGS)),
        security.envelope(first + 11, security.alter_scram(2, SALT, SALTED)),
        security.envelope(first + 12, security.renew_delegation_token(3, HMAC)),
    ]


class Talk:
    """Calls one after the other on one connection."""

    def __init__(self, scene: Scene, mss: int = 1448) -> None:
        self.script: Script = scene.connection(mss=mss)
        self.script.open()
        self.at = MILLISECOND

    def say(self, *calls: Exchange) -> Talk:
        for call in calls:
            self.script.call(call, at=self.at, answer_at=self.at + MILLISECOND)
            self.at += 2 * MILLISECOND
        return self

    def bare(self, *tokens: tuple[bytes, bytes]) -> Talk:
        for token, answer in tokens:
            self.script.write(sized(token), self.at, from_client=True)
            self.script.write(sized(answer), self.at + MILLISECOND, from_client=False)
            self.at += 2 * MILLISECOND
        return self


def well_formed(scene: Scene) -> None:
    Talk(scene).say(sasl_handshake(1, 1, "PLAIN"), sasl_authenticate(2, 2, PLAIN, b"")).say(*admin_calls(10))
    Talk(scene).say(sasl_handshake(0, 1, "PLAIN")).bare((PLAIN, b"")).say(metadata(9, 2, ["orders"]))
    scram = [sasl_authenticate(1, 2 + number, *pair) for number, pair in enumerate(SCRAM)]
    Talk(scene).say(sasl_handshake(1, 1, "SCRAM-SHA-256"), *scram, metadata(9, 9, ["orders"]))
    Talk(scene).say(sasl_handshake(0, 1, "SCRAM-SHA-256")).bare(*SCRAM).say(metadata(9, 2, ["orders"]))
    Talk(scene).say(sasl_handshake(1, 1, "OAUTHBEARER"), sasl_authenticate(2, 2, OAUTH, b""))
    Talk(scene).say(sasl_handshake(0, 1, "OAUTHBEARER")).bare((OAUTH, b"")).say(metadata(9, 2, ["orders"]))
    Talk(scene).say(sasl_authenticate(2, 2, PLAIN, b"\0denied " + PASSWORD.encode(), error=58))


def refused(scene: Scene) -> None:
    """Messages that end too early, so that what is shown of them is what could be read."""
    for cut in (1, 2, 5, 9, 20):
        calls = [
            sasl_authenticate(2, 2, PLAIN, PLAIN),
            sasl_authenticate(0, 3, OAUTH, OAUTH),
            *admin_calls(10),
        ]
        for call in calls:
            if len(call.request) > cut + 30 and call.response and len(call.response) > cut + 12:
                Talk(scene).say(
                    metadata(9, 1, ["orders"]), security.broken(call, cut), metadata(9, 99, ["orders"])
                )


def in_pieces(scene: Scene) -> None:
    """Tiny segments, and one of each connection's is lost below."""
    Talk(scene, mss=13).say(sasl_handshake(1, 1, "PLAIN"), sasl_authenticate(2, 2, PLAIN, b"")).say(
        *admin_calls(10)
    )
    Talk(scene, mss=7).say(sasl_handshake(0, 1, "PLAIN")).bare((PLAIN, b"")).say(metadata(9, 2, ["orders"]))


SCENES: dict[str, Callable[[Scene], None]] = {
    "well_formed": well_formed, "refused": refused, "in_pieces": in_pieces
}  # fmt: skip


@pytest.fixture(params=[*SCENES, "with_losses", "begun_late"])
def capture(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    scene = Scene()
    written = {**SCENES, "with_losses": in_pieces, "begun_late": well_formed}[request.param]
    written(scene)
    packets = scene.packets()
    if request.param == "with_losses":
        packets = [packet for number, packet in enumerate(packets) if number % 17 or not packet.payload]
    elif request.param == "begun_late":
        packets = packets[len(packets) // 3 :]
    return capture_of(tmp_path / "capture.pcap", packets)


def forms(secret: bytes) -> Iterator[str]:
    """How any eight bytes of a secret could be told: as text, hex, base64 in its three positions."""
    for start in range(len(secret) - 7):
        piece = secret[start : start + 8]
        if piece.isascii():
            yield piece.decode()
        yield piece.hex()
    for shift in range(3):
        whole = base64.b64encode(bytes(shift) + secret).decode().rstrip("=")
        middle = whole[4 * (shift > 0) : len(whole) - len(whole) % 4 - 4 * (len(whole) % 4 == 0)]
        for start in range(len(middle) - 10):
            yield middle[start : start + 11]


FORMS = {form for secret in SECRETS for form in forms(secret)}
LEAK = re.compile("|".join(sorted(map(re.escape, FORMS))))


def leaks(text: str) -> list[str]:
    """Forms of secrets in a text, also in a hex dump, whose bytes stand apart."""
    plain = LEAK.findall(text)
    bytes_together = re.sub(r"(?<=\b[0-9a-f]{2}) +(?=[0-9a-f]{2}\b)", "", text.lower())
    return plain or LEAK.findall(bytes_together)


def test_the_search_finds_what_it_looks_for() -> None:
    dump = " ".join(f"{byte:02x}" for byte in PASSWORD.encode())
    assert leaks(f"0010  {dump}  |....|")
    for secret in SECRETS:
        assert leaks(secret.hex())
        assert leaks(base64.b64encode(secret).decode())
        assert leaks(base64.b64encode(b"\0alice\0" + secret).decode())
        assert leaks(base64.b64encode(b"x" + secret + b"yz").decode())
        assert not secret.isascii() or leaks(f"password: {secret.decode()}!")
    assert not leaks("alice authenticated with PLAIN, ssl.keystore.password was changed")


@pytest.mark.slow
@pytest.mark.sample(1)
def test_no_table_has_a_secret(capture: Path, tmp_path: Path) -> None:
    tables = decoded(capture, output=tmp_path / "out")
    for name, rows in tables.items():
        assert leaks("\n".join(map(repr, rows))) == [], name
    assert sum(map(len, tables.values())) > 10
    # The files themselves: names and statistics are not compressed.
    for path in (tmp_path / "out").iterdir():
        assert leaks(path.read_bytes().decode("latin-1")) == [], path.name


@pytest.mark.sample(10)
@pytest.mark.parametrize(
    "command",
    [
        ["analyze"],
        ["analyze", "--json"],
        ["show"],
        ["show", "--json"],
        ["show", "--hexdump"],
        ["show", "--payload"],
    ],
    ids=" ".join,
)
def test_nothing_on_the_screen_has_a_secret(
    capture: Path, command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([command[0], str(capture), *command[1:]]) == 0
    shown = capsys.readouterr()
    assert shown.out
    assert leaks(shown.out) == []
    assert leaks(shown.err) == []


def test_show_tells_them_when_it_is_told_to(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What the other tests do not find is there."""
    scene = Scene()
    well_formed(scene)
    path = capture_of(tmp_path / "capture.pcap", scene.packets())
    assert run(["show", "--secrets", str(path)]) == 0
    assert len(leaks(capsys.readouterr().out)) > 10


def test_the_user_is_named(tmp_path: Path) -> None:
    scene = Scene()
    well_formed(scene)
    rows = decoded(capture_of(tmp_path / "capture.pcap", scene.packets()))["connections"]
    rows.sort(key=lambda row: row["connection_id"])
    told: list[tuple[Any, Any]] = [(row["sasl_mechanism"], row["principal"]) for row in rows]
    assert told == [
        ("PLAIN", "alice"),
        ("PLAIN", "alice"),
        ("SCRAM-SHA-256", "alice"),
        ("SCRAM-SHA-256", "alice"),
        ("OAUTHBEARER", None),
        ("OAUTHBEARER", None),
        (None, told[-1][1]),  # no mechanism was named: the token may be understood or not
    ]
    assert told[-1][1] in (None, "alice")
