"""The tables of the cluster as clients are told: its brokers, and the versions they offer."""

from dataclasses import replace

from kwsniff.tables.column import Column, TableSchema
from kwsniff.tables.columns import BROKER_ADDRESS, BROKER_PORT, CAPTURE, CLIENT_ID, TOPIC, TOPIC_ID, moment

_METADATA = "Metadata responses"
_VERSIONS = "ApiVersions responses"

BROKERS = TableSchema(
    name="brokers",
    row="one broker as Metadata responses name it: a new host, port or rack is a new row",
    doc="What clients are told, which is where they connect to next: compare it with `broker_address` of "
    "connections. At most 10,000 rows.",
    columns=(
        replace(CAPTURE, doc="The capture file in which it was named first."),
        Column(
            name="cluster_id",
            type="string",
            doc="The cluster.",
            source=_METADATA,
            null="the version of the response has none",
        ),
        Column(name="node_id", type="int32", doc="The broker's id.", source=_METADATA, statistics=True),
        Column(name="host", type="string", doc="The advertised host.", source=_METADATA),
        Column(name="port", type="int32", doc="The advertised port.", source=_METADATA),
        Column(name="rack", type="string", doc="Its rack.", source=_METADATA, null="it has none"),
        moment(
            "first_time", "The first response that names it so.", "its time is not known", statistics=True
        ),
        moment("last_time", "The last one.", "its time is not known"),
        Column(name="calls", type="int64", doc="How many responses name it so.", source=_METADATA),
        Column(name="first_call_id", type="int64", doc="The call of the first of them.", source="api_calls"),
        Column(name="last_call_id", type="int64", doc="The call of the last of them.", source="api_calls"),
    ),
)

LEADERS = TableSchema(
    name="leaders",
    row="one leader of one partition as Metadata responses name it: another leader or epoch is a new row",
    doc="Where clients are sent to. Brokers learn of a new leader one after the other: times of two rows may "
    "overlap, the higher epoch is right. Rows stand in the order in which they were told first; of at most "
    "200,000.",
    columns=(
        replace(CAPTURE, doc="The capture file in which it was named first."),
        replace(TOPIC, source=_METADATA, null="the response names the topic by its id alone"),
        replace(TOPIC_ID, source=_METADATA, null="no version so far had one"),
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
            doc="The id of the leader's broker, as in brokers; -1: it has no leader now.",
            source=_METADATA,
        ),
        Column(
            name="leader_epoch",
            type="int32",
            doc="Rises with every election.",
            source=_METADATA,
            null="the version of the response has none, or the broker knows none",
        ),
        Column(
            name="replicas",
            type="int32",
            doc="How many copies the partition has, as told last.",
            source=_METADATA,
            null="the message breaks off before it says",
        ),
        Column(
            name="in_sync",
            type="int32",
            doc="How few of them were in sync with the leader in any of the responses.",
            source=_METADATA,
            null="the message breaks off before it says",
        ),
        Column(
            name="replica_nodes",
            type="integers",
            doc="Ids of the brokers that have a copy, as told last; at most 64.",
            source=_METADATA,
            null="the message breaks off before it says",
        ),
        Column(
            name="isr_nodes",
            type="integers",
            doc="Ids of those in sync with the leader, of the response with the fewest of them.",
            source=_METADATA,
            null="the message breaks off before it says",
        ),
        moment(
            "first_time", "The first response that names it so.", "its time is not known", statistics=True
        ),
        moment("last_time", "The last one.", "its time is not known"),
        Column(name="calls", type="int64", doc="How many responses name it so.", source=_METADATA),
        replace(BROKER_ADDRESS, doc="The broker that said so first."),
        replace(BROKER_PORT, doc="Its TCP port."),
        replace(CLIENT_ID, doc="The client that was told first."),
        Column(name="first_call_id", type="int64", doc="The call of the first of them.", source="api_calls"),
        Column(name="last_call_id", type="int64", doc="The call of the last of them.", source="api_calls"),
    ),
)

API_RANGES = TableSchema(
    name="api_ranges",
    row="the versions of one API that one broker offers; a new row when it offers others",
    doc="At most 200,000 rows. What clients asked for stands in api_calls.",
    columns=(
        replace(CAPTURE, doc="The capture file in which it was offered first."),
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
            doc="Its name in the protocol guide.",
            source="layouts",
            null="no known Kafka release has it",
        ),
        Column(name="min_version", type="int16", doc="The lowest version offered.", source=_VERSIONS),
        Column(name="max_version", type="int16", doc="The highest version offered.", source=_VERSIONS),
        moment("first_time", "The first response that offers it.", "its time is not known", statistics=True),
        Column(name="call_id", type="int64", doc="The call of that response.", source="api_calls"),
    ),
)
