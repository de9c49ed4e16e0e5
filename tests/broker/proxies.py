"""A proxy that reads messages, between clients and brokers: Kroxylicious, which logs its connections."""

from __future__ import annotations

import re
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.broker.artifacts import PROXY, compiled
from tests.broker.brokers import HOST, Cluster
from tests.broker.clients import read, send, warm
from tests.broker.stage import NEWEST, PATIENCE_S, Stage, scenario

PROXIED = "proxied.tsv"
"""For each connection of a client its port, and the port of the proxy's connection to a broker."""
_BROKERS = 2
_PORT = 19092
"""Where clients begin; the proxy has a port for each broker behind it."""
_APART_S = 1.5  # clients that begin together cannot be told apart by their first calls
_CONFIGURATION = """\
virtualClusters:
  - name: shop
    targetCluster:
      bootstrapServers: {brokers}
    gateways:
      - name: default
        portIdentifiesNode:
          bootstrapAddress: {address}
"""
_TRACE = "-Dorg.slf4j.simpleLogger.log.io.kroxylicious.proxy.internal.ProxyChannelStateMachine=trace"
_ENDS = r"ChannelHandlerContext\([^\[]*\[id: \w+, L:/[\d.]+:(\d+) [-!] R:[^:\]]*:(\d+)\]"
_PAIR = re.compile(rf"clientCtx={_ENDS}.*serverCtx={_ENDS}")


@contextmanager
def _proxy(stage: Stage, cluster: Cluster) -> Iterator[None]:
    said = _CONFIGURATION.format(brokers=cluster.bootstrap, address=f"{HOST}:{_PORT}")
    (stage.folder / "proxy.yaml").write_text(said)
    log = stage.folder / "proxy.log"
    command = ["java", "-Xmx256m", _TRACE, "-cp", compiled("Proxy", PROXY), "Proxy"]
    with log.open("w") as told:
        process = subprocess.Popen([*command, str(stage.folder / "proxy.yaml")], stderr=told)
        try:
            end = time.monotonic() + PATIENCE_S
            while "Kroxylicious is starting" not in log.read_text() and time.monotonic() < end:
                time.sleep(0.1)
            yield
        finally:
            process.terminate()
            process.wait(PATIENCE_S)
    _write_pairs(log, stage.capture.with_name(PROXIED))


def _write_pairs(log: Path, into: Path) -> None:
    pairs = {
        (int(found[2]), int(found[3])) for line in log.open() if (found := _PAIR.search(line)) is not None
    }
    lines = ["client_port\tupstream_port", *(f"{client}\t{upstream}" for client, upstream in sorted(pairs))]
    into.write_text("\n".join(lines) + "\n")


@scenario(
    "librdkafka (confluent-kafka); Java 4.3.1",
    "Clients behind a proxy that reads and rewrites messages, Kroxylicious 0.12.0, and one beside it.",
    [
        "each call twice: to the proxy, and from the proxy to a broker, with another correlation id",
        "producers, groups and transactions through the proxy; a producer that reaches the brokers directly",
    ],
    file="capture.pcap.gz",
)
def proxied(stage: Stage) -> None:
    with stage.brokers(NEWEST, _BROKERS, internal=True) as cluster:
        stage.office("create", "orders:1,2", "carts:2,1", "receipts:1")
        warm(cluster.backstage)
        door = f"{HOST}:{_PORT}"
        stage.proxies = [*range(_PORT, _PORT + _BROKERS + 2)]
        ports = [*cluster.ports, *stage.proxies]
        with _proxy(stage, cluster), stage.recording(ports):
            works = [
                lambda: send(stage, door, [b"hello"] * 8, linger_ms=20),
                lambda: read(stage, door, 8),
                lambda: send(stage, cluster.bootstrap, [b"direct"] * 4, topic="carts"),
                lambda: read(stage, door, 8, group_id="audit"),
            ]
            threads = [threading.Thread(target=work) for work in works]
            for thread in threads:
                thread.start()
                time.sleep(_APART_S)
            for thread in threads:
                thread.join()
            stage.java("Clients", NEWEST, door, "transactions")
