"""A scene's site: brokers and clients in their namespaces, and recorders in two places."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.broker import requestlog
from tests.broker.artifacts import compiled
from tests.broker.brokers import HEAP, Broker, Cluster
from tests.broker.foreign import at_work
from tests.broker.network.namespaces import HUB, OFFICE, ROOT, Network, Way, inside, network
from tests.broker.requestlog import Logged
from tests.broker.stage import Stage
from tests.record.tcpdump import recording

PATIENCE_S = 60
LONG_POLL_S = 0.7
FAVOURED = 1
NEWEST = "4.3.1"
PLAIN = {"inter.broker.listener.name": "PLAINTEXT"}  # followers fetch where they are recorded


@dataclass(frozen=True)
class Scene:
    """What is played, with whom, and what the recording must show."""

    play: Callable[[Site], None]
    purpose: str
    did: str  # what was done to the system
    version: str = NEWEST
    nodes: int = 1
    clients: Mapping[str, Way] = field(default_factory=lambda: {"near": Way()})
    properties: Mapping[str, object] = field(default_factory=dict)
    prepared: Callable[[Site], Mapping[str, object]] | None = None  # properties that depend on the site
    options: Mapping[str, Any] = field(default_factory=dict)
    at: str = ""  # the client where it is also recorded, first of all by default
    finding: Mapping[str, str] = field(default_factory=dict)  # name, blames, subject_kind, subject
    known: Mapping[str, float] = field(default_factory=dict)  # figures of the brokers' configuration
    also: Sequence[str] = ()  # findings that may be there as well
    sides: Sequence[str] = ("client", "broker")
    witnessed: bool = True
    snaplen: int = 262_144
    more_ports: Sequence[int] = ()  # recorded as well
    icmp: bool = False  # recorded as well
    anomalies: Sequence[str] = ()  # that may be there; with several brokers framing_resumed as well


SCENES: dict[str, Scene] = {}


def scene(
    name: str, purpose: str, did: str, **more: Any
) -> Callable[[Callable[[Site], None]], Callable[[Site], None]]:
    """Registers a function as the play of a scene."""

    def register(play: Callable[[Site], None]) -> Callable[[Site], None]:
        SCENES[name] = Scene(play, purpose, did, **more)
        return play

    return register


@dataclass
class Role:
    """A client at work."""

    name: str
    process: subprocess.Popen[str]

    def done(self, seconds: float = PATIENCE_S) -> dict[str, int]:
        """Waits for its end: what it did."""
        said, wrong = self.process.communicate(timeout=seconds)
        if self.process.returncode not in (0, -signal.SIGKILL):
            raise RuntimeError(f"{self.name} failed:\n{said[-1000:]}{wrong[-3000:]}")
        lines = said.strip().splitlines()
        return dict(json.loads(lines[-1])) if lines else {}

    def stop(self) -> dict[str, int]:
        """Asks it to leave."""
        self.process.send_signal(signal.SIGTERM)
        return self.done()

    def kill(self) -> None:
        """No chance to leave."""
        self.process.kill()
        self.process.communicate(timeout=10)

    @contextmanager
    def asleep(self) -> Iterator[None]:
        """The process does nothing meanwhile, but its connections stay."""
        self.process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.process.send_signal(signal.SIGCONT)


class Site:
    """A network with a cluster in it; `opened` makes one."""

    def __init__(self, folder: Path, played: Scene, net: Network) -> None:
        self.folder, self.scene, self.net = folder, played, net
        self.roles: list[Role] = []
        self.report: dict[str, int] = {}
        self.stage = Stage(folder / "servers", folder / "broker.pcap")
        self.stage.folder.mkdir()
        numbers = range(1, played.nodes + 1)
        self.cluster: Cluster = self.stage.brokers(
            played.version,
            played.nodes,
            internal=True,
            hosts=[net.host(number) for number in numbers],
            inside=[inside(net.broker(number)) for number in numbers],
            properties=dict(played.properties),
            quorum_host=OFFICE,
            quorum_inside=inside(HUB),
            **played.options,
        )
        if played.prepared:
            self.cluster.properties = {**played.properties, **played.prepared(self)}
        self.begin = self.end = datetime.now(UTC)
        self.door = self.cluster.bootstrap
        """What clients are given as bootstrap.servers."""

    @property
    def brokers(self) -> list[Broker]:
        return self.cluster.brokers

    def create(self, **topics: Any) -> None:
        """Topics, made out of sight."""
        command = self._command("create", {"bootstrap": self.cluster.backstage, "topics": topics})
        self._out_of_sight(command)

    def fill(self, topic: str, count: int, size: int) -> None:
        """`count` records of `size` bytes, written out of sight."""
        what = {"bootstrap": self.cluster.backstage, "client_id": "early", "topic": topic}
        self._out_of_sight(
            self._command("produce", {**what, "count": count, "every_s": 0, "size": size, "settings": {}})
        )

    def warm(self) -> None:
        """Has a group join out of sight, so that the topic of offsets exists, and records pass.

        What a broker loads when it is first asked for something is no time of the calls that are recorded.
        """
        every = list(range(1, self.scene.nodes + 1))
        self.create(early=[every])
        what: dict[str, Any] = {"bootstrap": self.cluster.backstage, "client_id": "early", "topic": "early"}
        settings = {"linger.ms": 0, "acks": "all"}
        self._out_of_sight(
            self._command("produce", {**what, "every_s": 0.02, "count": 200, "settings": settings})
        )
        what |= {"group": "early", "seconds": 4}
        self._out_of_sight(self._command("consume", what))

    def _out_of_sight(self, command: Sequence[str]) -> None:
        there = [*inside(HUB), *command]
        done = subprocess.run(
            there, capture_output=True, text=True, timeout=PATIENCE_S, check=False, cwd=ROOT
        )
        if done.returncode:
            raise RuntimeError(f"{command[-2:]} failed:\n{done.stderr[-3000:]}")

    def office(self, *arguments: str) -> None:
        """The Java administrator, out of sight."""
        silent = Stage(self.folder / "office", self.folder / "none", inside=inside(HUB))
        silent.folder.mkdir(exist_ok=True)
        silent.java("Admin", NEWEST, self.cluster.backstage, *arguments)

    def start(self, where: str, role: str, **what: Any) -> Role:
        """A client begins its work at a place."""
        what.setdefault("bootstrap", self.door)
        process = subprocess.Popen(
            [*inside(self.net.client(where)), *self._command(role, what)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        self.roles.append(Role(f"{role} {what.get('client_id', '')}", process))
        return self.roles[-1]

    def run(self, where: str, role: str, **what: Any) -> dict[str, int]:
        """The same, awaited; what it did goes into the report."""
        return self.counted(self.start(where, role, **what))

    def java(self, where: str, program: str, version: str, *arguments: str, seconds: float) -> None:
        """A Java client for so long, whatever it says."""
        command = ["timeout", "--kill-after=2", str(seconds), *inside(self.net.client(where)), "java", *HEAP]
        command += ["-cp", compiled(program, version), program, self.cluster.bootstrap, *arguments]
        subprocess.run(command, capture_output=True, timeout=PATIENCE_S, check=False)

    def work(self, where: str, play: str, **settings: object) -> Role:
        """A Java client begins (java/Work.java): `x_count` is for the play, `client_id` is client.id.

        `x_version` is its release, `x_bootstrap` another address than the brokers'.
        """
        version = str(settings.pop("x_version", NEWEST))
        command = [*inside(self.net.client(where)), "java", *HEAP, "-cp", compiled("Work", version), "Work"]
        command += [str(settings.pop("x_bootstrap", self.door)), play]
        for name, value in settings.items():
            begin, _, rest = name.partition("_")
            key = f"x.{rest}" if begin == "x" else name.replace("_", ".")
            command.append(f"{key}={value}")
        return self._begun(f"{play} {version}", command)

    def foreign(self, where: str, software: str, play: str, **settings: object) -> Role:
        """A client that is neither Java nor Python begins: kafkajs, franz or sarama."""
        bootstrap = str(settings.pop("x_bootstrap", self.door))
        words = [f"{name}={value}" for name, value in settings.items()]
        command = [*at_work(software, play, bootstrap), *words]
        return self._begun(f"{play} {software}", [*inside(self.net.client(where)), *command])

    def _begun(self, name: str, command: Sequence[str]) -> Role:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.roles.append(Role(name, process))
        return self.roles[-1]

    def counted(self, role: Role, *, stop: bool = False) -> dict[str, int]:
        did = role.stop() if stop else role.done()
        for name, amount in did.items():
            self.report[name] = self.report.get(name, 0) + amount
        return did

    def _command(self, role: str, what: Mapping[str, Any]) -> list[str]:
        return [sys.executable, "-m", "tests.broker.network.roles", role, json.dumps(what)]

    @contextmanager
    def recording(self, *more_ports: int) -> Iterator[None]:
        """At the client and beside the brokers."""
        at = self.scene.at or next(iter(self.scene.clients))
        places = {
            "client": (self.net.client(at), "eth0"),
            "broker": (HUB, "br0"),
        }
        with ExitStack() as stack:
            for side in self.scene.sides:
                namespace, device = places[side]
                path = self.folder / f"{side}.pcap"
                stack.enter_context(
                    recording(
                        path,
                        [*self.cluster.ports, *self.scene.more_ports, *more_ports],
                        nanoseconds=True,
                        interface=device,
                        before=inside(namespace),
                        snaplen=self.scene.snaplen,
                        icmp=self.scene.icmp,
                    )
                )
            favour(*(each.process.pid for each in self.brokers if each.process), self.net.pid)
            self.begin = datetime.now(UTC)
            yield
            time.sleep(LONG_POLL_S)
            self.end = datetime.now(UTC)

    def logged(self) -> list[Logged]:
        """What the brokers logged of the recorded ports."""
        found = requestlog.rows(self.cluster.request_logs(), self.begin, self.end, on_the_wire=True)
        return [row for row in found if row.broker_port in self.cluster.ports]

    def lines(self, pattern: str) -> list[str]:
        """What the brokers logged since the recording began, of all brokers, as far as it matches."""
        begin = f"{self.begin:%Y-%m-%d %H:%M:%S}"
        said = (
            line for broker in self.brokers for line in broker.log.read_text(errors="replace").splitlines()
        )
        return sorted(line for line in said if line[:19] >= begin and re.search(pattern, line))

    def close(self) -> None:
        for role in self.roles:
            if role.process.poll() is None:
                role.process.send_signal(signal.SIGCONT)
                role.process.kill()
                role.process.communicate(timeout=10)
        for broker in self.brokers:
            if broker.process is not None:
                with_group(broker.process.pid, signal.SIGCONT)
        self.cluster.stop()


def with_group(pid: int, number: int) -> None:
    """A signal for a process that may have ended, and for those of its group."""
    try:
        os.killpg(pid, number)
    except ProcessLookupError:
        return


def favour(*pids: int) -> None:
    """Processes and those of their groups get a processor at once when they want one.

    Of what else this machine does a recording must tell nothing: neither of a broker whose threads stand in
    line for a processor, nor of a way that is longer since nobody carries the packets.
    """
    for task in Path("/proc").glob("[0-9]*/task/[0-9]*"):
        pid = int(task.parts[2])
        with suppress(ProcessLookupError):
            if pid in pids or os.getpgid(pid) in pids:
                os.sched_setscheduler(int(task.name), os.SCHED_RR, os.sched_param(FAVOURED))


@contextmanager
def opened(folder: Path, played: Scene) -> Iterator[Site]:
    """Network, brokers, and nothing left of them afterwards."""
    with network(played.nodes, played.clients) as net:
        site = Site(folder, played, net)
        try:
            with site.cluster:
                yield site
                site.close()
        finally:
            site.close()
