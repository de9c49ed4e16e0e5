"""The tables of the cluster in Metadata and ApiVersions responses: brokers, leaders, API versions."""

from dataclasses import replace

from kwsniff.tables.column import Column, TableSchema
from kwsniff.tables.columns import BROKER_ADDRESS, BROKER_PORT, CAPTURE, CLIENT_ID, TOPIC, TOPIC_ID, moment

_METADATA = "Metadata responses"
_VERSIONS = "ApiVersions responses"

BROKERS = TableSchema(
    name="brokers",
    row="one broker in Metadata responses: a new host, port or rack is a new row",
    doc="Advertised addresses, to which clients connect next: compare them with `broker_address` of "
    "connections. At most 10,000 rows.",
    columns=(
        replace(CAPTURE, doc="Capture file with the first such response."),
        Column(
            name="cluster_id",
            type="string",
            doc="The cluster.",
            source=_METADATA,
            null="the response version has no such field",
        ),
        Column(name="node_id", type="int32", doc="The broker's id.", source=_METADATA, statistics=True),
        Column(name="host", type="string", doc="The advertised host.", source=_METADATA),
        Column(name="port", type="int32", doc="The advertised port.", source=_METADATA),
        Column(name="rack", type="string", doc="Its rack.", source=_METADATA, null="no rack"),
        moment("first_time", "Time of the first such response.", "unknown", statistics=True),
        moment("last_time", "Time of the last such response.", "unknown"),
        Column(name="calls", type="int64", doc="Number of such responses.", source=_METADATA),
        Column(
            name="first_call_id", type="int64", doc="Call of the first such response.", source="api_calls"
        ),
        Column(name="last_call_id", type="int64", doc="Call of the last such response.", source="api_calls"),
    ),
)

LEADERS = TableSchema(
    name="leaders",
    row="one leader of one partition in Metadata responses: another leader or epoch is a new row",
    doc="The leaders that clients get. Brokers learn of a new leader at different times, so the times of "
    "two rows may overlap; the higher epoch is right. Rows are in the order of their first response; of "
    "at most "
    "200,000.",
    columns=(
        replace(CAPTURE, doc="Capture file with the first such response."),
        replace(TOPIC, source=_METADATA, null="the response has only the topic id"),
        replace(TOPIC_ID, source=_METADATA, null="the response version has no such field"),
        Column(
            name="partition",
            type="int32",
            doc="Number of the partition.",
            source=_METADATA,
            statistics=True,
        ),
        Column(
            name="leader",
            type="int32",
            doc="Broker id of the leader, as in brokers; -1: no leader.",
            source=_METADATA,
        ),
        Column(
            name="leader_epoch",
            type="int32",
            doc="Rises with every election.",
            source=_METADATA,
            null="the response version has no such field, or the broker has no value",
        ),
        Column(
            name="replicas",
            type="int32",
            doc="Number of replicas in the last such response.",
            source=_METADATA,
            null="the message breaks off before the field",
        ),
        Column(
            name="in_sync",
            type="int32",
            doc="Lowest number of in-sync replicas in any such response.",
            source=_METADATA,
            null="the message breaks off before the field",
        ),
        Column(
            name="replica_nodes",
            type="integers",
            doc="Broker ids of the replicas in the last such response; at most 64.",
            source=_METADATA,
            null="the message breaks off before the field",
        ),
        Column(
            name="isr_nodes",
            type="integers",
            doc="Broker ids of the in-sync replicas in the response with the fewest.",
            source=_METADATA,
            null="the message breaks off before the field",
        ),
        moment("first_time", "Time of the first such response.", "unknown", statistics=True),
        moment("last_time", "Time of the last such response.", "unknown"),
        Column(name="calls", type="int64", doc="Number of such responses.", source=_METADATA),
        replace(BROKER_ADDRESS, doc="Address of the broker that sent the first such response."),
        replace(BROKER_PORT, doc="Its TCP port."),
        replace(CLIENT_ID, doc="Client that received the first such response."),
        Column(
            name="first_call_id", type="int64", doc="Call of the first such response.", source="api_calls"
        ),
        Column(name="last_call_id", type="int64", doc="Call of the last such response.", source="api_calls"),
    ),
)

API_RANGES = TableSchema(
    name="api_ranges",
    row="the versions of one API that one broker supports; a new range is a new row",
    doc="At most 200,000 rows. For the versions that clients use, see api_calls.",
    columns=(
        replace(CAPTURE, doc="Capture file with the first such response."),
        Column(
            name="broker_address",
            type="string",
            doc="The broker's IP address.",
            source="IP header",
            statistics=True,
        ),
        Column(name="broker_port", type="int32", doc="The broker's TCP port.", source="TCP header"),
        Column(name="api_key", type="int16", doc="The API.", source=_VERSIONS, statistics=True),
        Column(
            name="api_name",
            type="string",
            doc="API name in the protocol guide.",
            source="layouts",
            null="unknown to all Kafka releases",
        ),
        Column(name="min_version", type="int16", doc="Lowest supported version.", source=_VERSIONS),
        Column(name="max_version", type="int16", doc="Highest supported version.", source=_VERSIONS),
        moment("first_time", "Time of the first such response.", "unknown", statistics=True),
        Column(name="call_id", type="int64", doc="Call of that response.", source="api_calls"),
    ),
)
