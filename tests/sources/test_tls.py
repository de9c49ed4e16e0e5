"""Key logs, secrets inside captures, the keys that follow from them: what is taken, what is refused."""

import struct
from pathlib import Path

import pytest

from kwsniff.cli.main import run
from kwsniff.sources.key_schedule import Suite, expand_label, next_secret, suite_of
from kwsniff.sources.keylog import GrowingLog, Sessions, check_keylog
from kwsniff.sources.tls import Secrets
from tests.traffic import files, scenes

SECRET = "c0ffee" * 16
LINE = f"CLIENT_RANDOM {'ab' * 32} {SECRET}\n"


def frames() -> list[files.Frame]:
    return files.frames(scenes.two_clients().packets())


def block(order: str, kind: int, body: bytes) -> bytes:
    body += bytes(-len(body) % 4)
    size = struct.pack(order + "I", len(body) + 12)
    return struct.pack(order + "I", kind) + size + body + size


def secrets_block(text: bytes, order: str = "<", *, kind: int = 0x544C534B) -> bytes:
    return block(order, 10, struct.pack(order + "II", kind, len(text)) + text)


def with_secrets(capture: bytes, text: bytes, order: str = "<", *, kind: int = 0x544C534B) -> bytes:
    """A pcapng capture with a Decryption Secrets Block behind its section header."""
    (header,) = struct.unpack_from(order + "I", capture, 4)
    return capture[:header] + secrets_block(text, order, kind=kind) + capture[header:]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "cannot be read (No such file or directory)"),
        (b"", "is empty; set SSLKEYLOGFILE"),
        (b" \n\n", "is empty; set SSLKEYLOGFILE"),
        (b"-----BEGIN PRIVATE KEY-----\nMIGH\n", "no TLS secrets in it"),
        (files.pcap(frames()), "no TLS secrets in it"),
    ],
)
def test_a_key_log_that_is_none_is_refused_in_one_line(
    tmp_path: Path, content: bytes | None, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    capture, keys = tmp_path / "capture.pcap", tmp_path / "keys.log"
    capture.write_bytes(files.pcap(frames()))
    if content is not None:
        keys.write_bytes(content)
    for verb in ("analyze", "show"):
        assert run([verb, str(capture), "--tls-keylog", str(keys)]) == 2
        err = capsys.readouterr().err
        assert f"key log {keys}: {says}" in err
        assert err.count("\n") == 1


@pytest.mark.parametrize(
    "text",
    [
        LINE,
        f"# made by a client\n\n{LINE}",
        f"CLIENT_TRAFFIC_SECRET_0 {'cd' * 32} {'12' * 48}\r\n",
        f"RSA {'0011' * 4} {'12' * 48}\n",
        f"RSA Session-ID:{'00' * 32} Master-Key:{'12' * 48}\n",
    ],
)
def test_lines_of_every_kind_make_a_key_log(tmp_path: Path, text: str) -> None:
    keys = tmp_path / "keys of a client, first.log"
    keys.write_text(text)
    assert check_keylog(keys) == str(keys)


def test_without_the_library_a_key_log_is_refused_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    capture, keys = tmp_path / "capture.pcap", tmp_path / "keys.log"
    capture.write_bytes(files.pcap(frames()))
    keys.write_text(LINE)
    monkeypatch.setattr("kwsniff.sources.tls.has_library", lambda: False)
    assert run(["analyze", str(capture), "--tls-keylog", str(keys)]) == 2
    err = capsys.readouterr().err
    assert "cryptography, which is not installed here: pip install cryptography" in err
    assert err.count("\n") == 1


def test_without_the_library_secrets_inside_a_capture_are_pointed_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    capture = tmp_path / "capture.pcapng"
    capture.write_bytes(with_secrets(files.pcapng(frames()), LINE.encode()))
    monkeypatch.setattr("kwsniff.sources.tls.has_library", lambda: False)
    assert run(["analyze", str(capture)]) == 0
    assert "the captures hold TLS secrets; TLS is opened by" in " ".join(capsys.readouterr().out.split())


def test_a_key_log_that_others_may_read_is_pointed_at(tmp_path: Path) -> None:
    keys = tmp_path / "keys.log"
    keys.write_text(LINE)
    keys.chmod(0o640)
    assert "others than its owner may read it (mode 0640); chmod 600" in Secrets(keys).notes(1)[0]
    keys.chmod(0o600)
    assert Secrets(keys).notes(1) == []


def test_lines_are_taken_whole_and_once(tmp_path: Path) -> None:
    """As a process writes them: comments, CRLF, labels that nobody knows, half a line, the rest later."""
    keys = tmp_path / "keys.log"
    random, secret = "ab" * 32, "12" * 48
    text = f"# a client\r\nEXPORTER_SECRET {random} {secret}\r\nSERVER_TRAFFIC_SECRET_0 {random} {secret}\r\n"
    line = f"CLIENT_TRAFFIC_SECRET_0 {random} {secret}\n"
    log, sessions = GrowingLog(str(keys)), Sessions()
    keys.write_bytes(text.encode() + line[:150].encode())
    assert log.read(sessions) == 1
    assert set(sessions.secrets(bytes.fromhex(random))) == {4}
    assert log.read(sessions) == 0
    with keys.open("ab") as file:
        file.write(line[150:].encode())
    assert log.read(sessions) == 1
    assert sessions.secrets(bytes.fromhex(random)) == {4: bytes.fromhex(secret), 3: bytes.fromhex(secret)}
    keys.write_text(line.replace("ab", "cd"))  # written anew
    assert log.read(sessions) == 1
    assert len(sessions) == 2


def test_a_last_line_without_its_end_counts_in_a_file_that_is_complete(tmp_path: Path) -> None:
    keys = tmp_path / "keys.log"
    keys.write_text(LINE.rstrip())
    assert len(Secrets(keys).sessions) == 1
    assert len(Secrets(keys, follow=True).sessions) == 0


def test_sessions_are_bounded_and_the_oldest_go() -> None:
    sessions = Sessions(2)
    for number in range(4):
        sessions.take(f"CLIENT_RANDOM {number:064x} {SECRET}".encode())
    assert (len(sessions), sessions.dropped) == (2, 2)
    assert sessions.secrets((3).to_bytes(32)) == {0: bytes.fromhex(SECRET)}
    assert sessions.secrets((1).to_bytes(32)) == {}


def test_keys_of_tls_1_3_are_those_of_rfc_8448() -> None:
    """RFC 8448 3: the server's handshake traffic secret, its key and IV."""
    secret = bytes.fromhex("b67b7d690cc16c4e75e54213cb2d37b4e9c912bcded9105d42befd59d391ad38")
    assert expand_label(secret, b"key", 16, "sha256").hex() == "3fce516009c21727d0f2e4e86ee403bc"
    assert expand_label(secret, b"iv", 12, "sha256").hex() == "5d313eb2671276ee13000b30"


def test_cipher_suites_that_are_not_opened_have_no_keys() -> None:
    assert suite_of(0xC030) is not None
    for number in (0x0005, 0x000A, 0x003B, 0x00C6, 0xFFFF):  # RC4, 3DES, NULL, SM4, none
        assert suite_of(number) is None


def test_many_key_updates_cost_one_step_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever sends n of them is followed in n steps, not in n * n / 2, to the secrets of RFC 8446 7.2."""
    steps = 0

    def next_step(secret: bytes, suite: Suite) -> bytes:
        nonlocal steps
        steps += 1
        return next_secret(secret, suite)

    monkeypatch.setattr("kwsniff.sources.tls.next_secret", next_step)
    secrets = Secrets()
    secrets.take(f"CLIENT_TRAFFIC_SECRET_0 {'ab' * 32} {'12' * 32}".encode())
    hellos = (b"\xab" * 32, b"r" * 32, 0x1301, 0x0304, False, b"", 0, 0, False)
    by_hand = bytes.fromhex("12" * 32)
    for epoch in range(1, 2_000):
        secrets.find(hellos, 0, epoch + 1)  # as after a loss, when the next one may have come already
        parts = secrets.find(hellos, 0, epoch)
        assert parts is not None
        if epoch < 50:
            assert parts[2] == expand_label(by_hand, b"iv", 12, "sha256")
            by_hand = expand_label(by_hand, b"traffic upd", 32, "sha256")
    assert steps == 1_999
