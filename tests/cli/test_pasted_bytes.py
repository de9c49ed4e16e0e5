"""Bytes are read however people paste them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kwsniff.cli.main import run
from kwsniff.cli.pasted_bytes import read_pasted, without_size
from kwsniff.errors import UsageError
from tests.traffic import messages
from tests.traffic.records import batch

REQUEST = bytes.fromhex("00120000000000070003") + b"foo"
WITH_SIZE = len(REQUEST).to_bytes(4, "big") + REQUEST
HEX = REQUEST.hex()
CAPTURE = Path(__file__).parents[2] / "captures" / "first_steps" / "capture.pcap"


def classic(data: bytes, offset: str, pair: int = 1, gap: str = "  ") -> str:
    """A dump with 16 bytes a line, as xxd, hexdump and Wireshark make them."""
    lines = []
    for at in range(0, len(data), 16):
        part = data[at : at + 16]
        words = " ".join(part[each : each + pair].hex() for each in range(0, len(part), pair))
        text = "".join(chr(each) if 32 <= each < 127 else "." for each in part)
        lines.append(f"{offset.format(at)}{words:<48}{gap}{text}")
    return "\n".join(lines)


@pytest.mark.parametrize(
    "text",
    [
        HEX,
        HEX.upper(),
        f"0x{HEX}",
        " ".join(f"0x{each:02x}," for each in REQUEST),
        ":".join(f"{each:02X}" for each in REQUEST),
        "{" + ", ".join(f"0x{each:02x}" for each in REQUEST) + "};"[:-1],
        "".join(f"\\x{each:02x}" for each in REQUEST),
        f"{HEX[:8]} {HEX[8:]}\n",
        repr(REQUEST),
        classic(REQUEST, "{:08x}: ", 2),
        classic(REQUEST, "{:04x}   ", gap="   "),
        "00000000  00 12 00 00 00 00 00 07  00 03 66 6f 6f           |..........foo|\n0000000d",
    ],
)
def test_the_same_bytes_in_any_spelling(text: str) -> None:
    assert read_pasted(text).data == REQUEST


@given(st.binary(min_size=1, max_size=100))
def test_dumps_of_any_bytes_are_read(data: bytes) -> None:
    """Also where the text of the last line looks like hex digits."""
    assert read_pasted(classic(data, "{:08x}: ", 2)).data == data
    assert read_pasted(classic(data, "{:04x}   ", gap="   ")).data == data
    assert read_pasted(repr(data)).data == data
    assert read_pasted(data.hex(":")).data == data


@given(st.text(max_size=60))
def test_any_other_text_is_refused_in_one_line(text: str) -> None:
    try:
        read_pasted(text)
    except UsageError as error:
        assert "\n" not in str(error)


def test_the_size_is_left_out_where_it_is_there() -> None:
    assert without_size(read_pasted(HEX)).data == REQUEST
    assert without_size(read_pasted(WITH_SIZE.hex())) == (REQUEST, "hex", ("4 size bytes",))
    several = without_size(read_pasted((WITH_SIZE * 2).hex()))
    assert several == (REQUEST, "hex", ("4 size bytes", "17 bytes after the message"))


@pytest.mark.parametrize("ethernet", [b"", bytes(12) + b"\x08\x00", b"\x45" * 12 + b"\x08\x00"])
def test_headers_of_a_packet_are_left_out(ethernet: bytes) -> None:
    """RFC 791 and RFC 9293; the padding of Ethernet is no payload."""
    tcp = bytes(12) + b"\x80\x18" + bytes(6) + bytes(12) + WITH_SIZE
    ip = b"\x45\x00" + (20 + len(tcp)).to_bytes(2, "big") + bytes(5) + b"\x06" + bytes(10)
    dump = classic(ethernet + ip + tcp, "\t0x{:04x}:  ", 2)
    found = read_pasted(f"12:00:00.000001 IP 10.0.0.1.40000 > 10.0.0.2.9092: Flags [P.], length 17\n{dump}")
    assert found.data == WITH_SIZE
    assert found.form == ("tcpdump -XX" if ethernet else "tcpdump -X")


def test_a_packet_that_tcpdump_prints_is_decoded(capsys: pytest.CaptureFixture[str]) -> None:
    if shutil.which("tcpdump") is None:
        pytest.skip("tcpdump is not installed")
    command = ["tcpdump", "-nr", str(CAPTURE), "-c", "1", "tcp dst port 9092 and greater 90"]
    for option, name in (("-X", "tcpdump -X"), ("-XX", "tcpdump -XX")):
        dump = subprocess.run([*command, option], capture_output=True, text=True, check=True).stdout
        assert run(["decode", dump]) == 0
        shown = capsys.readouterr()
        assert shown.out.startswith("ApiVersions request")
        assert f"read as {name}, without " in shown.err


@pytest.mark.parametrize("version", [9, 11])
def test_an_api_key_and_version_are_no_size(version: int, capsys: pytest.CaptureFixture[str]) -> None:
    """Produce is API 0: a request begins with four bytes that could be a size."""
    request = messages.produce(version, 7, {"orders": {0: batch([b"an order"])}}).request
    size, message = request[:4], request[4:]
    assert int.from_bytes(message[:4], "big") == version < len(message)
    for data, said in ((message, ""), (size + message, "kwsniff: read as hex, without 4 size bytes\n")):
        assert run(["decode", data.hex()]) == 0
        shown = capsys.readouterr()
        assert shown.out.startswith(f"Produce request v{version}")
        assert shown.err == said


def test_a_correlation_id_is_no_size(capsys: pytest.CaptureFixture[str]) -> None:
    """ApiVersions v0 with one API: 12 bytes after correlation id 12."""
    message = "0000000c" + "0000" + "00000001" + "0012" + "0000" + "0003"
    for data, said in ((message, ""), ("00000010" + message, "kwsniff: read as hex, without 4 size bytes\n")):
        assert run(["decode", "--response", "--api", "api_versions", "--version", "0", data]) == 0
        shown = capsys.readouterr()
        assert "correlation_id: 12\n" in shown.out
        assert shown.err == said


def test_what_was_read_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["decode", WITH_SIZE.hex()]) == 0
    shown = capsys.readouterr()
    assert shown.out.startswith("ApiVersions request v0")
    assert shown.err == "kwsniff: read as hex, without 4 size bytes\n"
    assert run(["decode", HEX]) == 0
    assert capsys.readouterr().err == ""
