"""Every version of every API that a release knows, asked by Kafka's own message classes."""

from __future__ import annotations

from tests.broker.brokers import HOST
from tests.broker.stage import Stage, scenario

UNSTABLE = {"unstable.api.versions.enable": "true", "unstable.feature.versions.enable": "true"}


def _walk(name: str, version: str, zookeeper: bool, controller: bool) -> None:
    where = "controller" if controller else "broker"
    listener = "ZK_BROKER" if zookeeper else where.upper()

    @scenario(
        f"Kafka's message classes {version}",
        f"Every version of every request that {version} knows, put to its {where}.",
        ["all versions that client libraries no longer speak; what a broker answers to nonsense"],
        name=name,
        partial=controller,
    )
    def play(stage: Stage) -> None:
        options = {"properties": UNSTABLE} if version >= "4" else {}
        with stage.brokers(version, zookeeper=zookeeper, internal=not zookeeper, **options) as cluster:
            if not zookeeper:
                stage.office("create", "walked:1")
            ports = cluster.controller_ports if controller else cluster.ports
            with stage.recording(ports):
                stage.java("Walk", version, f"{HOST}:{ports[0]}", "walked", listener)


for _version, _zookeeper in (
    ("4.4.0", False),
    ("4.3.1", False),
    ("4.0.2", False),
    ("3.9.2", False),
    ("2.8.2", True),
):
    _short = "_".join(_version.split(".")[:2])
    _walk(f"versions_{_short}", _version, _zookeeper, False)
    if not _zookeeper:
        _walk(f"versions_{_short}_controller", _version, _zookeeper, True)
