"""Key logs, secrets inside captures, captures handed to tshark as one: what is taken, what is refused."""

import struct
from pathlib import Path

import pytest

from kwsniff.cli.main import run
from kwsniff.errors import UsageError
from kwsniff.sources.joined import joinable, joined
from kwsniff.sources.keylog import check_keylog, holds_secrets
from kwsniff.sources.tls import Decryption
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


def test_without_tshark_a_key_log_is_of_no_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    capture, keys = tmp_path / "capture.pcap", tmp_path / "keys.log"
    capture.write_bytes(files.pcap(frames()))
    keys.write_text(LINE)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match="needs tshark, which is not on the PATH; install it"):
        Decryption([str(capture)], keys)


def test_without_tshark_secrets_inside_a_capture_are_pointed_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    capture = tmp_path / "capture.pcapng"
    capture.write_bytes(with_secrets(files.pcapng(frames()), LINE.encode()))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert run(["analyze", str(capture)]) == 0
    out = capsys.readouterr().out
    assert "holds TLS secrets, which need tshark; install it" in " ".join(out.split())
    assert run(["show", str(capture), "-n", "1"]) == 0
    assert "holds TLS secrets" in capsys.readouterr().err


def test_what_can_be_read_only_once_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = tmp_path / "keys.log"
    keys.write_text(LINE)
    (tmp_path / "tshark").write_text("#!/bin/sh\n")
    (tmp_path / "tshark").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match="-: tshark has to read it as well as kwsniff; write it to a file"):
        Decryption(["-"], keys)


def test_a_tshark_that_fails_is_quoted_without_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    capture, keys = tmp_path / "capture.pcap", tmp_path / "keys.log"
    capture.write_bytes(files.pcap(frames()))
    keys.write_text(LINE)
    (tmp_path / "tshark").write_text(f"#!/bin/sh\necho 'tshark: no such field, {SECRET}' >&2\nexit 1\n")
    (tmp_path / "tshark").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    assert run(["analyze", str(capture), "--tls-keylog", str(keys)]) == 2
    err = capsys.readouterr().err
    assert "tshark could not decrypt the capture (tshark: no such field, ...); version 4.0" in err
    assert SECRET not in err


@pytest.mark.parametrize("order", ["<", ">"])
def test_secrets_inside_pcapng_are_seen_in_both_byte_orders(tmp_path: Path, order: str) -> None:
    path = tmp_path / "capture"
    plain = files.pcapng(frames(), big=order == ">")
    path.write_bytes(plain)
    assert not holds_secrets(str(path))
    path.write_bytes(with_secrets(plain, LINE.encode(), order))
    assert holds_secrets(str(path))
    path.write_bytes(with_secrets(plain, LINE.encode(), order, kind=0x57474B4C))  # WireGuard's
    assert not holds_secrets(str(path))
    path.write_bytes(files.gzipped(with_secrets(plain, LINE.encode(), order)))
    assert holds_secrets(str(path))


def test_secrets_are_looked_for_in_pcapng_only(tmp_path: Path) -> None:
    path = tmp_path / "capture.pcap"
    path.write_bytes(files.pcap(frames()))
    assert not holds_secrets(str(path))
    assert not holds_secrets("-")
    path.write_bytes(b"\x0a\x0d\x0d\x0a" + bytes(40))
    assert not holds_secrets(str(path))


@pytest.mark.parametrize("big", [False, True])
def test_pcap_files_join_into_what_they_were_cut_from(tmp_path: Path, big: bool) -> None:
    rows = frames()
    names = []
    for number, start in enumerate(range(0, len(rows), 9)):
        path = tmp_path / f"x.pcap{number}"
        data = files.pcap(rows[start : start + 9], big=big)
        # The capturing program was stopped inside the next packet.
        path.write_bytes(data + (files.pcap(rows[:1], big=big)[24:60] if number == 1 else b""))
        names.append(str(path))
    assert joinable(names) == [names]
    assert b"".join(map(bytes, joined(names))) == files.pcap(rows, big=big)


def test_pcapng_files_join_section_by_section(tmp_path: Path) -> None:
    first, second = files.pcapng(frames(), noise=True), files.pcapng(frames(), big=True)
    paths = [tmp_path / "a", tmp_path / "b"]
    paths[0].write_bytes(first + second[:70])
    paths[1].write_bytes(files.gzipped(second))
    names = [str(path) for path in paths]
    assert joinable(names) == [names]
    section, interface = (struct.unpack_from(">I", second, at + 4)[0] for at in (0, 28))
    assert section + interface < 70
    assert b"".join(map(bytes, joined(names))) == first + second[: section + interface] + second


def test_captures_of_different_kinds_are_not_joined(tmp_path: Path) -> None:
    kinds = [
        files.pcap(frames()),
        files.pcap(frames(), big=True),
        files.pcap(frames(), nanoseconds=True),
        files.pcap(frames(), link=101),
        files.pcapng(frames()),
        files.pcapng(frames()),
    ]
    names = []
    for number, data in enumerate(kinds):
        (tmp_path / str(number)).write_bytes(data)
        names.append(str(tmp_path / str(number)))
    assert joinable(names) == [[name] for name in names[:4]] + [names[4:]]


def packed(count: int) -> bytes:
    """A pcapng capture with so many packets of 60,000 bytes."""
    frame = files.Frame(1_700_000_000 * 10**9, bytes(60_000), 60_000)
    return files.pcapng([frame] * count)


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("count", [1, 17, 18, 200])
def test_secrets_behind_packets_are_seen(tmp_path: Path, order: str, count: int) -> None:
    """As a tool that takes secrets from running processes writes them: when there are any."""
    path = tmp_path / "tls.pcapng"
    head = packed(count) if order == "<" else files.pcapng(frames() * count * 20, big=True)
    path.write_bytes(head + secrets_block(LINE.encode(), order))
    assert holds_secrets(str(path))
    path.write_bytes(head + secrets_block(LINE.encode(), order, kind=0x57474B4C))
    assert not holds_secrets(str(path))


def test_a_header_over_two_buffers_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "tls.pcapng"
    secrets = secrets_block(LINE.encode())
    head = files.pcapng([])
    for short in range(0, 28, 4):
        filler = (1 << 20) - len(head) - 12 - short
        path.write_bytes(head + block("<", 0x0BAD, bytes(filler)) + secrets)
        assert holds_secrets(str(path)), short


def test_letters_in_a_packet_are_no_secrets(tmp_path: Path) -> None:
    path = tmp_path / "tls.pcapng"
    frame = files.Frame(1_700_000_000 * 10**9, b"KSLT TLSK" * 100, 900)
    path.write_bytes(files.pcapng([frame] * 50))
    assert not holds_secrets(str(path))


def test_beyond_its_bound_nothing_is_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from kwsniff.sources import keylog

    path = tmp_path / "tls.pcapng"
    secrets = secrets_block(LINE.encode())
    path.write_bytes(packed(60) + secrets)
    monkeypatch.setattr(keylog, "LOOKED_AT", 2 << 20)
    assert not holds_secrets(str(path))
