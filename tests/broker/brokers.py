"""Kafka brokers on loopback: KRaft or ZooKeeper, one or more, started, awaited, stopped for sure."""

from __future__ import annotations

import base64
import os
import signal
import socket
import subprocess
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

from tests.broker.artifacts import compiled, jars

HOST = "127.0.0.1"
LIFETIME_S = 300  # no process outlives this, whatever becomes of us
START_S = 90
FIRST_PORT = 9092
HEAP = ("-Xmx256m", "-Duser.timezone=UTC", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
READY = ("Kafka Server started", "] started (kafka.server.KafkaServer)", "binding to port")

DEFAULTS: Mapping[str, object] = {
    "group.initial.rebalance.delay.ms": 0,
    "log.cleaner.dedupe.buffer.size": 4_194_304,
    "num.io.threads": 2,
    "num.network.threads": 1,
    "offsets.topic.num.partitions": 1,
    "transaction.state.log.num.partitions": 1,
    "auto.create.topics.enable": "false",
}
_LOG4J_1 = """\
log4j.rootLogger=INFO, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%d %p %m (%c)%n
log4j.appender.requests=org.apache.log4j.FileAppender
log4j.appender.requests.File={requests}
log4j.appender.requests.layout=org.apache.log4j.PatternLayout
log4j.appender.requests.layout.ConversionPattern=%d{ISO8601} %m%n
log4j.logger.kafka.request.logger=DEBUG, requests
log4j.additivity.kafka.request.logger=false
"""
_LOG4J_2 = """\
rootLogger = INFO, out
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d %p %m (%c)%n
appender.requests.type = File
appender.requests.name = requests
appender.requests.fileName = {requests}
appender.requests.layout.type = PatternLayout
appender.requests.layout.pattern = %d{yyyy-MM-dd HH:mm:ss,SSS} %m%n
logger.requests.name = kafka.request.logger
logger.requests.level = DEBUG
logger.requests.additivity = false
logger.requests.appenderRef.r.ref = requests
"""


def free_ports(count: int) -> list[int]:
    """The first ports from 9092 on that nobody uses."""
    found: list[int] = []
    port = FIRST_PORT
    while len(found) < count:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((HOST, port))
                found.append(port)
            except OSError:
                pass
        port += 1
    return found


def short_uuid() -> str:
    """A random id as Kafka writes it; never with a dash in front, which tools take for an option."""
    return "k" + base64.urlsafe_b64encode(uuid.uuid4().bytes).decode()[1:22]


@dataclass
class Broker:
    """One server process and its folder."""

    number: int
    folder: Path
    version: str
    main: Sequence[str]
    extra_path: str = ""
    options: Sequence[str] = ()
    inside: Sequence[str] = ()  # what stands before its command: a network namespace
    lifetime_s: int = LIFETIME_S
    logs_requests: bool = True
    process: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> Path:
        return self.folder / "server.log"

    def start(self) -> None:
        modern = self.version >= "4"
        pattern = _LOG4J_2 if modern else _LOG4J_1
        config = self.folder / "log.properties"
        pattern = pattern if self.logs_requests else pattern.replace("DEBUG", "WARN")
        config.write_text(pattern.replace("{requests}", str(self.folder / "requests.log")))
        switch = "log4j2.configurationFile" if modern else "log4j.configuration"
        command = ["timeout", "--kill-after=5", str(self.lifetime_s), *self.inside, "java"]
        command += [
            *HEAP,
            *self.options,
            f"-D{switch}=file:{config}",
            "-Dkafka.logs.dir=" + str(self.folder),
            "-cp",
        ]
        command += [f"{jars(self.version)}/*{self.extra_path}", *self.main]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                command,
                stdout=log,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )

    def wait(self) -> None:
        """Until it serves."""
        end = time.monotonic() + START_S
        while not any(word in self.log.read_text(errors="replace") for word in READY):
            if self.process is None or self.process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"server {self.number} does not start:\n{self.log.read_text()[-6000:]}")
            time.sleep(0.1)

    def stop(self, number: int = signal.SIGTERM) -> None:
        """Asks, waits, then makes sure."""
        if self.process is None:
            return
        for attempt in (number, signal.SIGKILL):
            try:
                os.killpg(self.process.pid, attempt)
                self.process.wait(30)
                break
            except ProcessLookupError:
                self.process.wait(5)
                break
            except subprocess.TimeoutExpired:
                continue
        self.process = None


@dataclass
class Cluster:
    """Servers that belong together."""

    folder: Path
    version: str
    nodes: int = 1
    properties: Mapping[str, object] = field(default_factory=dict)
    protocol: str = "PLAINTEXT"
    zookeeper: bool = False
    scram: Sequence[str] = ()
    per_node: Mapping[int, Mapping[str, object]] = field(default_factory=dict)
    options: Sequence[str] = ()
    program: str = ""
    internal: bool = False  # brokers and administrators have a plaintext listener of their own
    late: Sequence[int] = ()
    controllers: Sequence[int] = ()  # servers that are controllers and no brokers; without any, all are both
    hosts: Sequence[str] = ()  # of each server, if not all are on loopback
    inside: Sequence[Sequence[str]] = ()  # what stands before each server's command
    quorum_host: str = HOST  # ZooKeeper's
    quorum_inside: Sequence[str] = ()
    lifetime_s: int = LIFETIME_S
    logs_requests: bool = True

    def __post_init__(self) -> None:
        ports = free_ports(self.nodes * 3 + 1)
        self.ports = ports[: self.nodes]
        self.controller_ports = [] if self.zookeeper else ports[self.nodes : self.nodes * 2]
        self.internal_ports = ports[self.nodes * 2 : -1]
        self.zookeeper_port = ports[-1]
        self.brokers: list[Broker] = []
        self.quorum: Broker | None = None
        self.cluster_id = short_uuid()

    @property
    def bootstrap(self) -> str:
        return self._listed(self.ports)

    def _listed(self, ports: Sequence[int]) -> str:
        brokers = ((number, port) for number, port in enumerate(ports, 1) if number not in self.controllers)
        return ",".join(f"{self.host(number)}:{port}" for number, port in brokers)

    def host(self, number: int) -> str:
        """The address of a server."""
        return self.hosts[number - 1] if self.hosts else HOST

    @property
    def backstage(self) -> str:
        """Where an administrator is not recorded; where there is no such place, the bootstrap."""
        if not self.internal:
            return self.bootstrap
        return self._listed(self.internal_ports)

    def __enter__(self) -> Cluster:
        try:
            if self.zookeeper:
                self._start_zookeeper()
            self.brokers = [self._broker(number) for number in range(1, self.nodes + 1)]
            for broker in self._chosen():
                if not self.zookeeper:
                    self._format(broker)
                broker.start()
            for broker in self._chosen():
                broker.wait()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _chosen(self) -> list[Broker]:
        return [broker for broker in self.brokers if broker.number not in self.late]

    def stop(self) -> None:
        for broker in self.brokers:  # all are asked at once: the last of a quorum would wait for the others
            if broker.process is not None:
                broker.process.terminate()
        for broker in self.brokers:
            broker.stop()
        if self.quorum is not None:
            self.quorum.stop()

    def start_late(self, number: int) -> Broker:
        """Formats and starts a server that was kept back."""
        broker = self.brokers[number - 1]
        if not (broker.folder / "data").exists():
            self._format(broker)
        broker.log.write_bytes(b"")
        broker.start()
        broker.wait()
        return broker

    def _broker(self, number: int) -> Broker:
        folder = self.folder / f"broker-{number}"
        folder.mkdir(parents=True, exist_ok=True)
        config = folder / "server.properties"
        values = self._properties(number, folder)
        config.write_text("".join(f"{key}={value}\n" for key, value in values.items()))
        path = ":" + compiled(self.program, self.version) if self.program else ""
        inside = self.inside[number - 1] if self.inside else ()
        main = ("kafka.Kafka", str(config))
        broker = Broker(number, folder, self.version, main, path, self.options, inside)
        broker.lifetime_s, broker.logs_requests = self.lifetime_s, self.logs_requests
        return broker

    def _properties(self, number: int, folder: Path) -> dict[str, object]:
        copies = min(self.nodes - len(self.controllers), 3)
        host, port = self.host(number), self.ports[number - 1]
        values: dict[str, object] = {
            **DEFAULTS,
            "offsets.topic.replication.factor": copies,
            "transaction.state.log.replication.factor": copies,
            "transaction.state.log.min.isr": 1,
            "log.dirs": folder / "data",
        }
        maps = f"{self.protocol}:{self.protocol}"
        inner = f",INTERNAL://{host}:{self.internal_ports[number - 1]}" if self.internal else ""
        if self.zookeeper:
            values |= {
                "broker.id": number,
                "zookeeper.connect": f"{self.quorum_host}:{self.zookeeper_port}",
                "listeners": f"{self.protocol}://{host}:{port}{inner}",
                "listener.security.protocol.map": f"{maps},INTERNAL:PLAINTEXT",
                "inter.broker.listener.name": "INTERNAL" if self.internal else self.protocol,
            }
        else:
            control = f"CONTROLLER://{host}:{self.controller_ports[number - 1]}"
            listens = f"{self.protocol}://{host}:{port}"
            voters = ",".join(
                f"{n}@{self.host(n)}:{p}"
                for n, p in enumerate(self.controller_ports, 1)
                if not self.controllers or n in self.controllers
            )
            values |= {
                "process.roles": "broker,controller",
                "node.id": number,
                "controller.quorum.voters": voters,
                "listeners": f"{listens},{control}{inner}",
                "controller.listener.names": "CONTROLLER",
                "listener.security.protocol.map": f"{maps},CONTROLLER:PLAINTEXT,INTERNAL:PLAINTEXT",
                "inter.broker.listener.name": "INTERNAL" if self.internal else self.protocol,
            }
            if number in self.controllers:
                alone = {
                    "process.roles": "controller",
                    "listeners": control,
                    "inter.broker.listener.name": None,
                }
                values |= alone
            elif self.controllers:
                values |= {"process.roles": "broker", "listeners": f"{listens}{inner}"}
            if self.version >= "4.1":
                values |= {
                    "share.coordinator.state.topic.num.partitions": 1,
                    "share.coordinator.state.topic.replication.factor": copies,
                    "share.coordinator.state.topic.min.isr": 1,
                }
        values |= self.properties
        values |= self.per_node.get(number, {})
        return {key: value for key, value in values.items() if value is not None}

    def _format(self, broker: Broker) -> None:
        command = ["java", *HEAP, "-cp", f"{jars(self.version)}/*", "kafka.tools.StorageTool", "format"]
        command += ["-t", self.cluster_id, "-c", str(broker.folder / "server.properties")]
        for entry in self.scram:
            command += ["--add-scram", entry]
        if "controller.quorum.bootstrap.servers" in self.properties:
            command.append("--standalone" if broker.number == 1 else "--no-initial-controllers")
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        if done.returncode:
            raise RuntimeError(f"cannot format storage: {done.stdout[-2000:]}{done.stderr[-2000:]}")

    def _start_zookeeper(self) -> None:
        folder = self.folder / "zookeeper"
        folder.mkdir(parents=True)
        config = folder / "zookeeper.properties"
        lines = [
            f"dataDir={folder / 'data'}",
            f"clientPort={self.zookeeper_port}",
            f"clientPortAddress={self.quorum_host}",
        ]
        config.write_text("\n".join([*lines, "admin.enableServer=false", "maxClientCnxns=0"]) + "\n")
        main = ("org.apache.zookeeper.server.quorum.QuorumPeerMain", str(config))
        self.quorum = Broker(0, folder, self.version, main, inside=self.quorum_inside)
        self.quorum.start()
        self.quorum.wait()

    def request_logs(self) -> list[Path]:
        """What the servers wrote about the requests they answered."""
        return [path for broker in self.brokers if (path := broker.folder / "requests.log").exists()]


@contextmanager
def paused(broker: Broker) -> Iterator[None]:
    """The server does nothing meanwhile, but its connections stay."""
    if broker.process is None:
        raise RuntimeError("the server is not running")
    os.killpg(broker.process.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.killpg(broker.process.pid, signal.SIGCONT)
