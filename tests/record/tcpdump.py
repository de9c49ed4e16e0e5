"""Starts and stops tcpdump (or dumpcap, for pcapng) on loopback."""

from __future__ import annotations

import os
import re
import selectors
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

LAST_PACKETS_S = 0.5
BUFFER_KB = "131072"  # in immediate mode every packet takes as much of it as the snaplen
_DROPPED = re.compile(rb"(\d+) packets? dropped by kernel|/(\d+) \(pcap:")  # tcpdump, dumpcap


def why_not() -> str | None:
    """The reason why nothing can be recorded here, or None."""
    tcpdump = shutil.which("tcpdump")
    if tcpdump is None:
        return "tcpdump is not installed"
    done = subprocess.run(
        [tcpdump, "-i", "lo", "-c", "1", "-w", "/dev/null", "--immediate-mode", "-d"],
        capture_output=True,
        text=True,
        check=False,
        timeout=10,
    )
    return None if done.returncode == 0 else f"tcpdump may not capture: {done.stderr.strip()}"


@contextmanager
def recording(
    path: Path,
    ports: Sequence[int],
    *,
    nanoseconds: bool = False,
    snaplen: int = 262_144,
    interface: str = "lo",
    immediate: bool = True,
    buffer_kb: str = BUFFER_KB,
    before: Sequence[str] = (),
    icmp: bool = False,
) -> Iterator[None]:
    """Records TCP of these ports on loopback while the block runs; a name in .pcapng makes dumpcap do it.

    `icmp`: and ICMP, whatever it is about.
    """
    chosen = "tcp and (" + " or ".join(f"port {port}" for port in ports) + ")"
    if icmp:
        chosen = f"({chosen}) or icmp"
    if path.suffix == ".pcapng":
        command = ["dumpcap", "-i", interface, "-s", str(snaplen), "-w", str(path), "-f", chosen]
        ready = b"File: "
    else:
        command = ["tcpdump", "-i", interface, "-n", "-U", "-s", str(snaplen), "-B", buffer_kb]
        command += ["-w", str(path)]
        command += ["--immediate-mode"] if immediate else []
        command += ["--time-stamp-precision=nano", chosen] if nanoseconds else [chosen]
        ready = b"listening on"
    process = subprocess.Popen([*before, *command], stderr=subprocess.PIPE)
    try:
        _wait(process, ready)
        yield
        time.sleep(LAST_PACKETS_S)
    finally:
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=10)
    dropped = sum(int(number) for pair in _DROPPED.findall(said) for number in pair if number)
    if dropped:
        raise RuntimeError(f"the recorder lost {dropped} packets")


def _wait(process: subprocess.Popen[bytes], ready: bytes, seconds: float = 10.0) -> None:
    if process.stderr is None:
        raise RuntimeError("tcpdump was started without a pipe for its messages")
    with selectors.DefaultSelector() as selector:
        selector.register(process.stderr, selectors.EVENT_READ)
        said = b""
        while ready not in said:
            if not selector.select(seconds):
                raise RuntimeError("the recorder does not start")
            part = os.read(process.stderr.fileno(), 4096)
            if not part:
                raise RuntimeError(f"the recorder ended: {said.decode(errors='replace').strip()}")
            said += part
