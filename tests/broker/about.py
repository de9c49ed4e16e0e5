"""The text of about.toml."""

from __future__ import annotations

import importlib.metadata
import json
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime

from tests.broker.requestlog import Logged
from tests.broker.stage import Scenario, Stage

ENVELOPE = 58
MOMENT = "%Y-%m-%dT%H:%M:%S.%fZ"
PYTHON = ("confluent-kafka", "kafka-python", "aiokafka")


def camel(name: str) -> str:
    """API_VERSIONS -> ApiVersions."""
    return name.title().replace("_", "")


def about(name: str, scene: Scenario, stage: Stage, logged: Sequence[Logged]) -> str:
    """Who talked to whom, what for, what the client reported, what the broker counted."""
    quoted = json.dumps
    cluster = stage.cluster
    if cluster is None:
        raise RuntimeError("no brokers")
    packages = [f"{name} {importlib.metadata.version(name)}" for name in PYTHON if name in scene.client]
    metadata = "ZooKeeper" if cluster.zookeeper else "KRaft"
    names = {row.api_key: camel(row.api) for row in logged} | {ENVELOPE: "Envelope"}
    totals = Counter(ENVELOPE if row.forwarded else row.api_key for row in logged)
    lines = [
        f"purpose = {quoted(scene.purpose)}",
        f"shows = {quoted(list(scene.shows), indent=4)}",
        f"file = {quoted(scene.file)}",
        'witness = "witness.tsv"',
        *(['measured = "client.tsv"'] if stage.measured else []),
        *(['records = "records.tsv"'] if stage.capture.with_name("records.tsv").exists() else []),
        *(['handovers = "handovers.tsv"'] if stage.capture.with_name("handovers.tsv").exists() else []),
        *(['proxied = "proxied.tsv"'] if stage.capture.with_name("proxied.tsv").exists() else []),
        f"recorded = {datetime.now(UTC):%Y-%m-%d}",
        f"witnessed = [{stage.begin:{MOMENT}}, {stage.end:{MOMENT}}]",
        f"command = {quoted(f'python -m tests.broker {name}')}",
        f"snaplen = {scene.snaplen}",
        f"interface = {quoted(scene.interface)}",
        *([f"encrypted = {quoted(scene.encrypted)}"] if scene.encrypted else []),
        *([f"keylog = {quoted(scene.keylog)}"] if scene.keylog else []),
        *([f"partial = {quoted(scene.partial)}"] if scene.partial else []),
        f"anomalies = {quoted(list(scene.anomalies))} # no others are allowed",
        "",
        "[client]",
        f"name = {quoted(scene.client)}",
        *([f"package = {quoted(', '.join(packages))}"] if packages else []),
        "",
        "[broker]",
        f"name = {quoted(f'Apache Kafka {cluster.version}')}",
        f"nodes = {cluster.nodes}",
        f"metadata = {quoted(metadata)}",
        f"protocol = {quoted(cluster.protocol)}",
        f"ports = {stage.ports}",
        *(
            [f"proxies = {stage.proxies} # those of these ports that a proxy listens on"]
            if stage.proxies
            else []
        ),
        "",
        "# what the client said it did",
        "[report]",
        *(f"{key} = {value}" for key, value in stage.report.items()),
        f"producers = {quoted(list(scene.producers))}",
        f"notes = {quoted(stage.notes)}",
        "",
        "# requests of each API, counted in the brokers' own log (SASL APIs, answered before it is known who",
        "# asks, are not in it); witness.tsv has them one by one",
        "[requests]",
        *(f"{names[key]} = {count}" for key, count in sorted(totals.items())),
    ]
    return "\n".join(lines) + "\n"
