"""What brokers and controllers of KRaft say to each other."""

from __future__ import annotations

import re
import shutil
import signal
import time

from tests.broker.brokers import HOST, Cluster
from tests.broker.clients import read, send, warm
from tests.broker.stage import NEWEST, Stage, scenario

COMMON = {"replica.fetch.wait.max.ms": 2000, "broker.heartbeat.interval.ms": 1000}
SLOW = {"controller.quorum.fetch.timeout.ms": 8000, **COMMON}


def everything(cluster: Cluster) -> list[int]:
    return [*cluster.ports, *cluster.controller_ports]


@scenario(
    "Apache Kafka 4.3.1 itself",
    "Three servers that find each other, elect a controller, and go away again in good order.",
    [
        "Vote, BeginQuorumEpoch, EndQuorumEpoch, ControllerRegistration, BrokerRegistration, BrokerHeartbeat",
        "Fetch of __cluster_metadata; FetchSnapshot is in `quorum`",
    ],
)
def kraft_start(stage: Stage) -> None:
    cluster = stage.brokers(NEWEST, 3, properties=COMMON)
    with stage.recording(everything(cluster)), cluster:
        pass


@scenario(
    "librdkafka (confluent-kafka); Java 4.3.1 administrator",
    "Three brokers that replicate; the leader of a partition moves while a producer writes.",
    ["Fetch of followers, AlterPartition, NOT_LEADER_OR_FOLLOWER, three brokers and controllers"],
    partial=True,
    anomalies=["framing_resumed"],
)
def replication(stage: Stage) -> None:
    with stage.brokers(NEWEST, 3, properties=SLOW) as cluster, stage.recording(everything(cluster)):
        stage.office("create", "orders:1,2")
        send(
            stage,
            cluster.bootstrap,
            [b"one", b"two", b"three"],
            between=lambda: stage.office("move", "orders:0:2,3"),
        )
        read(stage, cluster.bootstrap, 3)


@scenario(
    "librdkafka (confluent-kafka)",
    "One of three brokers is killed while a producer and a group are at work, and comes back.",
    ["connections that break, a new leader, a broker that returns"],
)
def killed_broker(stage: Stage) -> None:
    properties = {**SLOW, "broker.session.timeout.ms": 3000, "replica.lag.time.max.ms": 3000}
    with stage.brokers(NEWEST, 3, internal=True, properties=properties) as cluster:
        stage.office("create", "orders:1,2,3")
        warm(cluster.backstage)
        with stage.recording():
            send(
                stage,
                cluster.bootstrap,
                [b"one", b"two", b"three"],
                between=lambda: cluster.brokers[0].stop(signal.SIGKILL),
                socket_timeout_ms=2000,
                retry_backoff_ms=500,
                retry_backoff_max_ms=1000,
            )
            cluster.start_late(1)
            read(stage, cluster.bootstrap, 3)


@scenario(
    "Java 4.3.1 administrator; Apache Kafka 4.3.1 itself",
    "A quorum that grows and shrinks: a newcomer needs a snapshot, becomes a voter, moves, is removed.",
    ["AddRaftVoter, UpdateRaftVoter, RemoveRaftVoter, DescribeQuorum, FetchSnapshot"],
)
def quorum(stage: Stage) -> None:
    first = FIRST_CONTROLLER.format
    properties = {
        **COMMON,
        "controller.quorum.voters": None,
        "controller.quorum.bootstrap.servers": "",
        "metadata.log.max.snapshot.interval.ms": 1500,
    }
    cluster = stage.brokers(NEWEST, 2, properties=properties, late=(2,))
    properties["controller.quorum.bootstrap.servers"] = first(cluster.controller_ports[0])
    spare = cluster.controller_ports[1] + 40
    with cluster:
        stage.office("create", "orders:1")
        time.sleep(3)
        _forget_old_log(cluster)
        with stage.recording([*everything(cluster), spare]):
            second = cluster.start_late(2)
            place = _directory(cluster)
            address = f"{HOST}:{cluster.controller_ports[1]}"
            stage.java("Admin", NEWEST, cluster.bootstrap, "quorum", "add", "2", place, address)
            second.stop()
            config = second.folder / "server.properties"
            config.write_text(config.read_text().replace(str(cluster.controller_ports[1]), str(spare)))
            cluster.start_late(2)
            time.sleep(3)
            stage.java("Admin", NEWEST, cluster.bootstrap, "quorum", "remove", "2", place, f"{HOST}:{spare}")


FIRST_CONTROLLER = HOST + ":{}"


def _forget_old_log(cluster: Cluster) -> None:
    """Restarts the first server with a snapshot instead of the log's beginning."""
    broker = cluster.brokers[0]
    broker.stop()
    folder = broker.folder / "data" / "__cluster_metadata-0"
    for path in folder.iterdir():
        if path.suffix in (".log", ".index", ".timeindex", ".txnindex"):
            path.unlink()
    shutil.rmtree(folder / "leader-epoch-checkpoint", ignore_errors=True)
    cluster.start_late(1)


def _directory(cluster: Cluster) -> str:
    text = (cluster.brokers[1].folder / "data" / "meta.properties").read_text()
    found = re.search(r"directory\.id=(\S+)", text)
    if not found:
        raise RuntimeError("the second server has no directory id")
    return found[1].replace("\\", "")
