"""What cannot be captured is said in one line that helps."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from kwsniff.cli.main import run
from kwsniff.errors import CaptureError
from kwsniff.sources import rights
from kwsniff.sources.live import kernel_filter, open_live
from tests.pipeline.mirrored import recorded
from tests.traffic.files import Frame, pcap, read_frames
from tests.traffic.tunnels import WRAPS, Carrier, outer, udp

from .running import ROOT, needs_capture


def said(capsys: pytest.CaptureFixture[str], *options: str) -> str:
    """The one line of `kwsniff live` with these options, which must fail."""
    assert run(["live", *options]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    return lines[0].removeprefix("kwsniff: error: ")


def test_an_interface_that_is_not_there_is_answered_with_those_that_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    line = said(capsys, "-i", "nosuch7")
    assert line.startswith("no such interface: 'nosuch7'; interfaces: ")
    assert {name for _, name in socket.if_nameindex()} <= set(line.partition("interfaces: ")[2].split(", "))


@pytest.mark.live
@pytest.mark.parametrize("tool", ["dumpcap", "tcpdump", "scapy"])
def test_a_filter_that_libpcap_does_not_understand_is_named(
    tool: str, capsys: pytest.CaptureFixture[str]
) -> None:
    needs_capture()
    if tool == "scapy":
        pytest.importorskip("scapy")
    elif shutil.which(tool) is None:
        pytest.skip(f"{tool} is not installed")
    line = said(capsys, "-i", "lo", "--tool", tool, "-f", "porrt 9092")
    assert "filter 'porrt 9092'" in line
    assert "syntax error" in line


@pytest.mark.sample(4)
@pytest.mark.live
@pytest.mark.parametrize("tool", ["dumpcap", "tcpdump", "scapy"])
@pytest.mark.parametrize("start", ["-w", "--write=", "-F", "-z"])
def test_a_filter_is_never_an_option_of_the_tool(
    tool: str, start: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    needs_capture()
    if tool == "scapy":
        pytest.importorskip("scapy")
    elif shutil.which(tool) is None:
        pytest.skip(f"{tool} is not installed")
    path = tmp_path / "packets"
    line = said(capsys, "-i", "lo", "--tool", tool, f"--filter={start}{path}", "--duration", "1s")
    assert "filter" in line
    assert not path.exists()


@pytest.mark.live
@pytest.mark.parametrize("interface", ["-w", "--help", "-Z", "any/../../x", "anything"])
def test_an_interface_is_never_an_option_of_the_tool(
    interface: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said(capsys, f"--interface={interface}").startswith(
        ("no such interface: ", "no such interface and no such file: ")
    )


@pytest.mark.live
@pytest.mark.parametrize("tool", ["dumpcap", "tcpdump", "scapy"])
def test_who_may_not_capture_is_told_how_to(tool: str, tmp_path: Path) -> None:
    setpriv = shutil.which("setpriv")
    if setpriv is None or os.geteuid() != 0:
        pytest.skip("becoming somebody else needs root and setpriv")
    if tool == "scapy":
        pytest.importorskip("scapy")
    elif shutil.which(tool) is None:
        pytest.skip(f"{tool} is not installed")
    nobody = [setpriv, "--reuid", "65534", "--regid", "65534", "--clear-groups", "--bounding-set", "-all"]
    command = [sys.executable, "-m", "kwsniff.cli.main", "live", "-i", "lo", "--tool", tool]
    environment = {**os.environ, "HOME": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [*nobody, *command],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        env=environment,
        check=False,
    )
    if "No module named" in done.stderr or "Permission denied" in done.stderr:
        pytest.skip("nobody may not read this checkout or its libraries")
    assert done.returncode == 2
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert "capturing on lo is not permitted; run it with sudo" in line
    assert ("setcap cap_net_raw,cap_net_admin+eip" in line) == (tool != "scapy")


def test_without_any_tool_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(sys.modules, "kwsniff.sources.scapy_source", None)
    with pytest.raises(CaptureError, match=r"^neither dumpcap nor tcpdump nor scapy is installed; install "):
        open_live("lo", expression="tcp")
    with pytest.raises(CaptureError, match=r"^tcpdump is not installed$"):
        open_live("lo", expression="tcp", tool="tcpdump")


def test_a_tool_for_a_group_alone_is_told_apart_from_none(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "dumpcap").write_text("#!/bin/sh\n")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(sys.modules, "kwsniff.sources.scapy_source", None)
    monkeypatch.setattr(rights, "_group_of", lambda _: "wireshark")
    with pytest.raises(CaptureError, match=r"is for the group wireshark: sudo usermod -aG wireshark \$USER"):
        open_live("lo", expression="tcp")


def test_a_tool_that_fails_for_another_reason_is_quoted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tool = tmp_path / "dumpcap"
    tool.write_text("#!/bin/sh\necho 'dumpcap: the moon is full' >&2\nexit 3\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    with pytest.raises(CaptureError, match=r"^dumpcap cannot capture on lo: the moon is full$"):
        open_live("lo", expression="tcp", tool="dumpcap")


def test_a_tool_that_may_not_give_roots_rights_up_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As tcpdump says it in a container that has NET_RAW and nothing else: sudo is no help."""
    tool = tmp_path / "tcpdump"
    said = "tcpdump: Couldn't change to 'tcpdump' uid=105 gid=108: Operation not permitted"
    tool.write_text(f'#!/bin/sh\necho "{said}" >&2\nexit 1\n')
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    with pytest.raises(CaptureError, match=r"run kwsniff as another user, after setcap cap_net_raw\+ep /"):
        open_live("lo", expression="tcp", tool="tcpdump")


@pytest.mark.parametrize(
    ("ports", "given", "expected"),
    [
        ([], None, "tcp"),
        ([9092], None, "tcp and (port 9092)"),
        ([9092, 9093], None, "tcp and (port 9092 or port 9093)"),
        ([9092], "host 10.0.0.1", "host 10.0.0.1"),
    ],
)
def test_the_kernel_filters(ports: list[int], given: str | None, expected: str) -> None:
    assert kernel_filter(ports, given) == expected


@pytest.mark.parametrize("ports", [[], [9092]])
def test_a_filter_with_tunnels_lets_their_packets_through(ports: list[int], tmp_path: Path) -> None:
    """tcpdump applies the filter to packets of every tunnel, whole and in fragments, and to foreign ones."""
    if shutil.which("tcpdump") is None:
        pytest.skip("tcpdump is not installed")
    expression = kernel_filter(ports, None, tunnels=True)
    assert kernel_filter(ports, "host 10.0.0.1", tunnels=True) == "host 10.0.0.1"
    carriers = [
        frame
        for way in WRAPS
        for version in (4, 6)
        for carrier in (Carrier(version), Carrier(version, fragment_bytes=64))
        for (_, payloads) in [WRAPS[way]]
        for frame in outer(*payloads(recorded("first_steps")[9].data), carrier)
    ]
    foreign = [*outer(17, udp(53, bytes(40)), Carrier()), *outer(1, bytes(40), Carrier())]
    plain = [recorded("first_steps")[0].data]
    for frames, passes in ((carriers, len(carriers)), (foreign, 0), (plain, 0 if ports else 1)):
        path = tmp_path / "packets.pcap"
        path.write_bytes(pcap([Frame(0, data, len(data)) for data in frames]))
        command = [
            "tcpdump",
            "-n",
            "-t",
            "-r",
            str(path),
            "-w",
            str(tmp_path / "passed.pcap"),
            "--",
            expression,
        ]
        subprocess.run(command, capture_output=True, check=True)
        assert len(read_frames((tmp_path / "passed.pcap").read_bytes())[1]) == passes


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--stop-after", "0"], "--stop-after must be at least 1"),
        (["--ring", "3"], "--ring needs a directory to write to: add -o DIR"),
        (["-o", "x", "--ring", "0"], "--ring 0: give the number of files to keep"),
        (["-o", "x", "--ring", "3/12"], "--ring 12: give a size"),
        (["-o", "x", "--rotate", "often"], "--rotate often: give a time or a size"),
        (["--rotate", "5m"], "--rotate needs a directory"),
        (["-o", "x", "--table", "calls"], "unknown table 'calls'; did you mean stalls or api_calls"),
        (["--duration", "soon"], "--duration soon: give a time, for example 30s"),
        (["--interval", "0s"], "--interval 0s: give a time"),
        (["--metrics", "web"], "--metrics web: give a port"),
        (["--metrics", "70000"], "--metrics 70000: give a port"),
        (["--buffer", "0"], "--buffer must be from 1 to 2000 (MB), not 0"),
        (["--snaplen", "1"], "--snaplen must be from 64 to 262144 (bytes), not 1"),
        (["--port", "kafka"], "--port kafka: give a number"),
    ],
)
def test_options_that_make_no_sense(
    options: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert expected in said(capsys, "-i", "lo", *options)
