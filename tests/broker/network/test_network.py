"""The relay between namespaces: what it lets through and what it drops; no brokers."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.broker.network import namespaces
from tests.broker.network.namespaces import Way, inside, network

CONNECT = """
import socket, sys
probe = socket.socket()
probe.settimeout(float(sys.argv[1]))
try:
    probe.connect(("10.88.0.1", 9092))
except OSError as error:
    print(type(error).__name__)
"""


@pytest.mark.live
def test_the_relay_carries_packets_until_it_is_told_to_drop_them() -> None:
    if reason := namespaces.why_not():
        pytest.skip(reason)
    with network(1, {"far": Way(20), "near": Way()}) as net:

        def connected(name: str, patience_s: float) -> str:
            command = [*inside(net.client(name)), sys.executable, "-c", CONNECT, str(patience_s)]
            done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
            return done.stdout.strip()

        # Nobody listens: a reset comes back, if packets do.
        assert [connected(name, 20) for name in ("far", "near")] == ["ConnectionRefusedError"] * 2
        net.change("far", Way(20, 1.0))
        assert connected("far", 2) == "TimeoutError"
        assert connected("near", 20) == "ConnectionRefusedError"
    left = subprocess.run(["ip", "netns"], capture_output=True, text=True, check=True, timeout=10).stdout
    assert namespaces.OURS not in left
