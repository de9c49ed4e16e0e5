"""Network namespaces for brokers and clients, a bridge between them, and the relay of packets."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

OURS = f"kw{os.getpid()}"  # what names begin with: several processes may have networks
HUB = f"{OURS}-hub"
OFFICE = "10.88.0.254"  # the bridge's own address: who works there is not recorded
FIRST_CLIENT = 11
ROOT = Path(__file__).resolve().parents[3]


@dataclass(frozen=True)
class Way:
    """What lies between a client and the brokers."""

    round_trip_ms: float = 0.0
    loss: float = 0.0  # of all packets, both directions
    rate: float = 0.0  # bytes per second, each way; 0: any number
    room: float = 0.0  # bytes that wait where more come
    largest_up: int = 0  # IP packet from the client that arrives; 0: any
    largest_down: int = 0
    idle_s: float = 0.0  # a TCP connection silent for longer is dropped; 0: none


def why_not() -> str | None:
    """The reason why there can be no network here, or None."""
    if os.geteuid() != 0 or shutil.which("ip") is None or not Path("/dev/net/tun").exists():
        return "network namespaces need root, `ip` and /dev/net/tun"
    try:
        _ip("netns", "add", f"{OURS}-probe")
        try:
            _ip("link", "add", "br0", "type", "bridge", at=f"{OURS}-probe")
        finally:
            _ip("netns", "del", f"{OURS}-probe")
    except subprocess.CalledProcessError as error:
        return f"no network namespaces here: {error.stderr.strip()}"
    return None


def inside(namespace: str) -> list[str]:
    """What stands before a command that runs there."""
    return ["ip", "netns", "exec", namespace]


def _ip(*arguments: str, at: str = "") -> None:
    command = ["ip", *(["-n", at] if at else []), *arguments]
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=10)


class Network:
    """Brokers 10.88.0.1 and up, clients 10.88.0.11 and up; use `network` to get one."""

    def __init__(self, nodes: int, clients: Mapping[str, Way], relay: IO[str], pid: int) -> None:
        self.nodes = nodes
        self.clients = dict(clients)
        self.relay = relay
        self.pid = pid
        """Of the relay's process."""

    def host(self, node: int) -> str:
        return f"10.88.0.{node}"

    def broker(self, node: int) -> str:
        """The namespace of a broker."""
        return f"{OURS}-b{node}"

    def client(self, name: str) -> str:
        """The namespace of a client."""
        return f"{OURS}-{name}"

    def address(self, name: str) -> str:
        return f"10.88.0.{FIRST_CLIENT + list(self.clients).index(name)}"

    def change(self, name: str, way: Way) -> None:
        """From now on."""
        shape = f"{way.rate} {way.room} {way.largest_up} {way.largest_down} {way.idle_s}"
        self.relay.write(f"{self.taps(name)[0]} {way.round_trip_ms / 2} {way.loss} {shape}\n")
        self.relay.flush()

    def shrink(self, name: str, mtu: int) -> None:
        """The client's interface takes no larger packets than that from now on, and tells its peers."""
        _ip("link", "set", "eth0", "mtu", str(mtu), at=self.client(name))

    def tune(self, name: str, setting: str, value: str) -> None:
        """A setting of the client's kernel, as sysctl names it: for connections that begin from now on."""
        command = [*inside(self.client(name)), "sysctl", "-qw", f"{setting}={value}"]
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=10)

    def taps(self, name: str) -> tuple[str, str]:
        """The devices at the client's and at the brokers' end of its way."""
        return _taps(list(self.clients).index(name))


def _taps(number: int) -> tuple[str, str]:
    return f"{OURS}l{number}", f"{OURS}r{number}"


def _home(namespace: str, device: str, address: str) -> None:
    """Makes a device the namespace's eth0."""
    _ip("link", "set", device, "netns", namespace)
    _ip("link", "set", device, "name", "eth0", at=namespace)
    _ip("address", "add", f"{address}/24", "dev", "eth0", at=namespace)
    for name in ("lo", "eth0"):
        _ip("link", "set", name, "up", at=namespace)


def _plugged(device: str) -> None:
    _ip("link", "set", device, "netns", HUB)
    _ip("link", "set", device, "master", "br0", at=HUB)
    _ip("link", "set", device, "up", at=HUB)


def _namespaces(nodes: int, clients: Sequence[str]) -> list[str]:
    brokers = [f"b{node}" for node in range(1, nodes + 1)]
    return [HUB, *(f"{OURS}-{name}" for name in (*brokers, *clients))]


def _removed(names: Sequence[str]) -> None:
    for name in names:
        subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True, timeout=10)


def _orphans() -> list[str]:
    """Namespaces of processes that were killed before they could remove them."""
    said = subprocess.run(["ip", "netns"], capture_output=True, text=True, check=True, timeout=10).stdout
    names = [line.split()[0] for line in said.splitlines() if line]
    return [
        name
        for name in names
        if (found := re.match(r"kw(\d+)-", name)) and not Path(f"/proc/{found[1]}").exists()
    ]


@contextmanager
def network(nodes: int, clients: Mapping[str, Way]) -> Iterator[Network]:
    """Everything up, and gone for sure afterwards."""
    names = _namespaces(nodes, list(clients))
    _removed(_orphans())
    taps = [",".join(_taps(number)) for number in range(len(clients))]
    command = [sys.executable, "-m", "tests.broker.network.relay", *taps]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
    ) as process:
        try:
            if process.stdin is None or process.stdout is None or process.stdout.readline() != "ready\n":
                raise RuntimeError("the relay does not start")
            for name in names:
                _ip("netns", "add", name)
            made = Network(nodes, clients, process.stdin, process.pid)
            _built(made)
            yield made
        finally:
            process.kill()
            _removed(names)


def _built(made: Network) -> None:
    _ip("link", "add", "br0", "type", "bridge", at=HUB)
    _ip("address", "add", f"{OFFICE}/24", "dev", "br0", at=HUB)
    for name in ("lo", "br0"):
        _ip("link", "set", name, "up", at=HUB)
    for node in range(1, made.nodes + 1):
        _ip("link", "add", f"{OURS}p{node}", "type", "veth", "peer", "name", f"{OURS}q{node}")
        _home(made.broker(node), f"{OURS}p{node}", made.host(node))
        _plugged(f"{OURS}q{node}")
    for name, way in made.clients.items():
        left, right = made.taps(name)
        _home(made.client(name), left, made.address(name))
        _plugged(right)
        made.change(name, way)
