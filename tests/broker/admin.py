"""Administrators, and the groups they look after."""

from __future__ import annotations

from tests.broker.clients import quiet
from tests.broker.stage import NEWEST, PATIENCE_S, Stage, scenario


@scenario(
    "Java 4.3.1 administrator",
    "Topics created, described, changed, moved between disks, deleted; half of it wrongly.",
    [
        "CreateTopics, DescribeTopicPartitions, CreatePartitions, DeleteRecords, DeleteTopics,",
        "DescribeLogDirs, AlterReplicaLogDirs, ElectLeaders, ListPartitionReassignments, DescribeProducers",
        "Envelopes from broker to controller; AssignReplicasToDirs of a broker with two disks",
    ],
)
def admin_topics(stage: Stage) -> None:
    disks = ",".join(str(stage.folder / "broker-1" / name) for name in ("data", "disk-2"))
    cluster = stage.brokers(NEWEST, properties={"log.dirs": disks})
    with cluster, stage.recording([*cluster.ports, *cluster.controller_ports]):
        stage.java("Admin", NEWEST, cluster.bootstrap, "topics")


@scenario(
    "Java 4.3.1 administrator; librdkafka (confluent-kafka)",
    "Configurations of topics, brokers and loggers, quotas, SCRAM users, features.",
    [
        "DescribeConfigs, IncrementalAlterConfigs, AlterConfigs, ListConfigResources, UpdateFeatures,",
        "AlterClientQuotas and DescribeClientQuotas with float64, AlterUserScramCredentials (secrets),",
        "DescribeUserScramCredentials, UnregisterBroker",
    ],
)
def admin_configs(stage: Stage) -> None:
    from confluent_kafka.admin import AdminClient, ConfigResource

    with stage.brokers(NEWEST) as cluster, stage.recording([*cluster.ports, *cluster.controller_ports]):
        stage.java("Admin", NEWEST, cluster.bootstrap, "configs")
        admin = AdminClient(quiet(cluster.bootstrap, "c-office"))
        changed = ConfigResource("topic", "orders", set_config={"retention.ms": "1000"})
        for future in admin.alter_configs([changed]).values():
            future.result(PATIENCE_S)


@scenario(
    "Java 4.3.1",
    "A classic group with static members, its rebalance, and what an administrator does to groups.",
    [
        "JoinGroup, SyncGroup, Heartbeat, LeaveGroup with group.instance.id; REBALANCE_IN_PROGRESS (27)",
        "ListGroups, DescribeGroups, OffsetFetch of all topics, OffsetDelete, DeleteGroups",
    ],
)
def group_classic(stage: Stage) -> None:
    settings = ("group.protocol=classic", "heartbeat.interval.ms=300")
    with stage.brokers(NEWEST, internal=True) as cluster:
        stage.office("create", "orders:1:1")
        with stage.recording():
            stage.java("Clients", NEWEST, cluster.bootstrap, "group", *settings)
            stage.java("Admin", NEWEST, cluster.bootstrap, "groups", "billing")


@scenario(
    "Java 4.3.1",
    "The same group with the protocol of KIP-848.",
    ["ConsumerGroupHeartbeat, ConsumerGroupDescribe, member epochs, topic ids, static members"],
)
def group_consumer(stage: Stage) -> None:
    often = ("group.consumer.heartbeat.interval.ms", "group.consumer.min.heartbeat.interval.ms")
    properties = dict.fromkeys(often, 500)
    with stage.brokers(NEWEST, internal=True, properties=properties) as cluster:
        stage.office("create", "orders:1:1")
        with stage.recording():
            stage.java("Clients", NEWEST, cluster.bootstrap, "group", "group.protocol=consumer")
            stage.java("Admin", NEWEST, cluster.bootstrap, "groups", "billing")


@scenario(
    "Java 4.3.1",
    "A share group: records acknowledged one by one, one of them released and delivered again.",
    [
        "ShareGroupHeartbeat, ShareFetch, ShareAcknowledge, ShareGroupDescribe, offsets of share groups",
        "the share coordinator's APIs, between broker and itself",
    ],
)
def group_share(stage: Stage) -> None:
    with stage.brokers(NEWEST) as cluster:
        stage.office("create", "orders:1")
        stage.office("share-from-start", "packers")
        with stage.recording():
            stage.java("Clients", NEWEST, cluster.bootstrap, "share")
            stage.java("Admin", NEWEST, cluster.bootstrap, "share", "packers")


@scenario(
    "Java 4.3.1, Kafka Streams",
    "A Streams application in a group of the streams protocol.",
    ["StreamsGroupHeartbeat with its topology, StreamsGroupDescribe, a repartition and a changelog topic"],
    producers=["shop"],
)
def group_streams(stage: Stage) -> None:
    with stage.brokers(NEWEST, internal=True) as cluster:
        stage.office("create", "orders:1", "receipts:1")
        with stage.recording():
            folder = str(stage.folder / "state")
            stage.java("Streams", NEWEST, cluster.bootstrap, folder, "group.protocol=streams")
            stage.java("Admin", NEWEST, cluster.bootstrap, "streams", "copier")
