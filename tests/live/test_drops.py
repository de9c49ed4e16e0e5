"""What the kernel drops is told while it happens: against the number of packets that were sent."""

from __future__ import annotations

import os
import select
import shutil
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from kwsniff.sources.capture_tools import Recorder
from kwsniff.sources.live import open_live

from .running import PATIENCE_S, needs_capture

pytestmark = [pytest.mark.live]
PACKETS = 4_000


def stopped(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def test_drops_are_told_while_dumpcap_runs() -> None:
    """It is stopped while more comes than its buffer holds. On loopback the kernel may count a packet twice,
    as it leaves and as it comes."""
    needs_capture()
    if shutil.which("dumpcap") is None:
        pytest.skip("dumpcap is not installed")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as target:
        target.bind(("127.0.0.1", 0))
        port = target.getsockname()[1]
        source = open_live("lo", expression=f"udp port {port}", tool="dumpcap", buffer_mb=2)
        assert isinstance(source, Recorder)
        if not source.tells_drops:
            source.stop()
            source.close()
            pytest.skip("this user may not ask for the tool's sockets")
        pid = source._process.pid
        os.kill(pid, signal.SIGSTOP)
        await_true(lambda: stopped(pid))
        for _ in range(PACKETS):
            target.sendto(bytes(1_400), ("127.0.0.1", port))
        source._requested = 0.0
        source.request_drops()
        seen = source.dropped
        assert seen, "nothing was told while it stood still"
        os.kill(pid, signal.SIGCONT)
        assert drained(source)
        source.close()
    assert source.captured is not None
    assert source.dropped is not None
    assert seen <= source.dropped
    assert PACKETS <= source.captured + source.dropped <= 2 * PACKETS


def await_true(happened: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE_S
    while not happened():
        assert time.monotonic() < until
        time.sleep(0.01)


def drained(source: Recorder) -> int:
    """Reads until nothing comes for a while, stops the tool, and reads the rest."""
    read = 0
    while select.select([source.fileno()], [], [], 1.5)[0]:
        read += len(os.read(source.fileno(), 1 << 20))
    source.stop()
    while data := os.read(source.fileno(), 1 << 20):
        read += len(data)
    return read
