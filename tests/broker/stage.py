"""What a scenario plays on: brokers, a recorder, Java programs; and what it leaves behind."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.broker import clientlog
from tests.broker.artifacts import compiled
from tests.broker.brokers import HEAP, Cluster
from tests.broker.clientlog import Measured
from tests.record.tcpdump import recording

PATIENCE_S = 90
LONG_POLL_S = 0.7  # a fetch whose consumer has gone is answered later
NEWEST = "4.3.1"

_LOG4J_2 = """\
status=off
appender.file.type=File
appender.file.name=file
appender.file.fileName=${sys:client.log}
appender.file.layout.type=PatternLayout
appender.file.layout.pattern=%d{DEFAULT_MICROS} %m%n
rootLogger.level=off
logger.network.name=org.apache.kafka.clients.NetworkClient
logger.network.level=trace
logger.network.appenderRef.file.ref=file
"""
_LOG4J_1 = """\
log4j.rootLogger=OFF
log4j.logger.org.apache.kafka.clients.NetworkClient=TRACE, file
log4j.appender.file=org.apache.log4j.FileAppender
log4j.appender.file.File=${client.log}
log4j.appender.file.layout=org.apache.log4j.PatternLayout
log4j.appender.file.layout.ConversionPattern=%d{yyyy-MM-dd HH:mm:ss,SSS} %m%n
"""


@dataclass
class Stage:
    """One performance of a scenario."""

    folder: Path
    capture: Path
    snaplen: int = 262_144
    interface: str = "lo"
    inside: Sequence[str] = ()  # what stands before a Java program's command
    report: dict[str, Any] = field(default_factory=lambda: {"produced": 0, "failed": 0, "consumed": 0})
    notes: list[str] = field(default_factory=list)
    measured: list[Measured] = field(default_factory=list)
    cluster: Cluster | None = None
    ports: list[int] = field(default_factory=list)
    proxies: list[int] = field(default_factory=list)
    begin: datetime = field(default_factory=lambda: datetime.now(UTC))
    end: datetime = field(default_factory=lambda: datetime.now(UTC))

    def brokers(self, version: str, nodes: int = 1, **options: Any) -> Cluster:
        """A cluster of this stage; use it as a context."""
        self.cluster = Cluster(self.folder, version, nodes, **options)
        return self.cluster

    @contextmanager
    def recording(self, ports: Sequence[int] = ()) -> Iterator[None]:
        """Records these ports (the brokers') while the block runs."""
        if self.cluster is None:
            raise RuntimeError("nobody to listen to")
        self.ports = list(ports or self.cluster.ports)
        with recording(self.capture, self.ports, snaplen=self.snaplen, interface=self.interface):
            self.begin = datetime.now(UTC)
            yield
            time.sleep(LONG_POLL_S)
            self.end = datetime.now(UTC)  # the recorder goes on a little longer

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Keeps what clients log of their requests meanwhile."""
        with clientlog.listening(self.folder / "clients.log", self.measured, lambda: self.begin):
            yield
        for path in sorted(self.folder.glob("java-*.log")):
            self.measured += clientlog.java(path.read_text("utf-8", "replace"))

    def add(self, name: str, amount: int = 1) -> None:
        """Counts something the client did."""
        self.report[name] = self.report.get(name, 0) + amount

    def office(self, *arguments: str) -> None:
        """An administrator's work that is neither recorded nor reported."""
        if self.cluster is None:
            raise RuntimeError("no brokers")
        silent = Stage(self.folder / "office", self.capture)
        silent.folder.mkdir(exist_ok=True)
        silent.java("Admin", NEWEST, self.cluster.backstage, *arguments)

    def java(self, program: str, version: str, *arguments: str, options: Sequence[str] = ()) -> None:
        """Runs java/PROGRAM.java; its lines `name=number` go into the report, others into the notes."""
        command = ["timeout", "--kill-after=5", str(PATIENCE_S), *self.inside, "java", *HEAP, *options]
        command += [f"-Djava.io.tmpdir={self.folder}", *self._java_log()]
        command += ["-cp", compiled(program, version), program, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S + 10, check=False)
        for line in done.stdout.splitlines():
            name, mark, amount = line.partition("=")
            if mark and amount.isdigit():
                self.add(name, int(amount))
            elif measured := clientlog.told(line):
                self.measured.append(measured)
            elif line.startswith("note "):
                self.notes.append(line[5:])
        if done.returncode:
            raise RuntimeError(f"{program} {arguments} failed:\n{done.stdout[-3000:]}\n{done.stderr[-5000:]}")

    def _java_log(self) -> list[str]:
        """Options that make NetworkClient log its requests: for log4j 2 (since 4.0), and for log4j 1."""
        log = self.folder / f"java-{len(list(self.folder.glob('java-*.log')))}.log"
        for name, text in (("log4j2.properties", _LOG4J_2), ("log4j.properties", _LOG4J_1)):
            (self.folder / name).write_text(text)
        log.touch()
        return [
            f"-Dclient.log={log}",
            f"-Dlog4j2.configurationFile={self.folder / 'log4j2.properties'}",
            f"-Dlog4j.configuration=file:{self.folder / 'log4j.properties'}",
        ]


@dataclass(frozen=True)
class Scenario:
    """A scenario and what its about.toml says."""

    play: Callable[[Stage], None]
    client: str
    purpose: str
    shows: Sequence[str]
    file: str = "capture.pcap"
    snaplen: int = 262_144
    interface: str = "lo"
    anomalies: Sequence[str] = ()  # those that may be there; all must be, if it is not partial
    encrypted: bool = False
    keylog: str = ""  # a file beside the capture
    partial: bool = False  # begins or ends in the middle of a conversation
    producers: Sequence[str] = ()  # client ids that the report counts, if not all


SCENARIOS: dict[str, Scenario] = {}


def scenario(
    client: str, purpose: str, shows: Sequence[str], *, name: str = "", **more: Any
) -> Callable[[Callable[[Stage], None]], Callable[[Stage], None]]:
    """Registers a function as the scenario of its name."""

    def register(play: Callable[[Stage], None]) -> Callable[[Stage], None]:
        SCENARIOS[name or play.__name__] = Scenario(play, client, purpose, shows, **more)
        return play

    return register
