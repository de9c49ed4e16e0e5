"""Clusters of the time of ZooKeeper: the controller is a broker and tells the others what to do."""

from __future__ import annotations

from tests.broker.clients import read, send, warm
from tests.broker.stage import Stage, scenario

OLD_FORMATS = {"0.8.2": "0.8.2", "0.10.0": "0.10.0", "1.0": "1.0"}


def _cluster(name: str, version: str, protocol: str) -> None:
    @scenario(
        "librdkafka (confluent-kafka)",
        f"Two brokers {version} with ZooKeeper that speak to each other as release {protocol} did.",
        [
            "LeaderAndIsr, UpdateMetadata, StopReplica, ControlledShutdown in the versions of that time",
            "Fetch and OffsetForLeaderEpoch of followers",
        ],
        name=name,
    )
    def play(stage: Stage) -> None:
        from confluent_kafka.admin import AdminClient, NewTopic

        properties = {"inter.broker.protocol.version": protocol, "replica.fetch.wait.max.ms": 2000}
        if protocol in OLD_FORMATS:
            properties["log.message.format.version"] = OLD_FORMATS[protocol]
        if protocol < "2":
            properties["offsets.topic.replication.factor"] = 1
        cluster = stage.brokers(version, 2, zookeeper=True, properties=properties)
        with stage.recording(), cluster:
            admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
            for topics in ([NewTopic("orders", 2, 2)], [NewTopic("parcels", 1, 2)]):
                for future in admin.create_topics(topics).values():
                    future.result(20)
            send(stage, cluster.bootstrap, [b"one", b"two", b"three"])
            warm(cluster.bootstrap)
            read(stage, cluster.bootstrap, 3)
            for future in admin.delete_topics(["parcels"]).values():
                future.result(20)
            del admin
            cluster.brokers[1].stop()


for _name, _version, _protocol in (
    ("zookeeper_0_8", "2.8.2", "0.8.2"),
    ("zookeeper_0_10", "2.8.2", "0.10.0"),
    ("zookeeper_1_0", "2.8.2", "1.0"),
    ("zookeeper_2_2", "2.8.2", "2.2"),
    ("zookeeper_2_8", "2.8.2", "2.8"),
    ("zookeeper_3_2", "3.9.2", "3.2"),
    ("zookeeper_3_9", "3.9.2", "3.9"),
):
    _cluster(_name, _version, _protocol)
