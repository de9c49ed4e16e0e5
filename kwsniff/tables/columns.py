"""Columns that several tables have, declared once."""

from dataclasses import replace

from kwsniff.tables.column import RUN, Column

NO_RESPONSE = "no response was seen whole"
NOT_NAMED = "not in the message, or not decoded"

CALL_ID = Column(
    name="call_id",
    type="int64",
    doc="Number of the call, the same in every table: 1000 times the number of a packet, counted over all "
    "captures of the run, plus n, from 0, for the calls of one packet. The packet is the first of the "
    "request; a later one where only that showed what the connection carries, or closed a hole; that of the "
    "response where no request was captured. A packet's calls beyond 1000 count from 2^62 on, 2^24 for each "
    "packet.",
    source="the packet with which the call became known",
    statistics=True,
)
RUN_ID = Column(
    name=RUN,
    type="string",
    doc="The run that made the row: the same in all its tables, another in every run.",
    source="a random number",
    statistics=True,
)
CAPTURE = Column(
    name="capture",
    type="string",
    doc="The capture file, as it was named to kwsniff.",
    source="file name",
)
CONNECTION_ID = Column(
    name="connection_id",
    type="int64",
    doc="Number of the TCP connection, the same in every table: that of the packet it began with.",
    source="packets are counted over all captures of the run, from 1",
    statistics=True,
)
CLIENT_ADDRESS = Column(
    name="client_address",
    type="string",
    doc="IP address of the client.",
    source="IPv4 or IPv6 header",
)
CLIENT_PORT = Column(name="client_port", type="int32", doc="TCP port of the client.", source="TCP header")
BROKER_ADDRESS = Column(
    name="broker_address",
    type="string",
    doc="IP address of the broker.",
    source="IPv4 or IPv6 header",
)
BROKER_PORT = Column(name="broker_port", type="int32", doc="TCP port of the broker.", source="TCP header")
API_KEY = Column(
    name="api_key",
    type="int16",
    doc="Kafka's number for the API.",
    source="request header",
    statistics=True,
)
API_NAME = Column(
    name="api_name",
    type="string",
    doc="Kafka's name for the API, for example Fetch.",
    source="the layouts",
    null="an api key that no known Kafka release uses",
    derived_from="api_key",
    statistics=True,
)
# For tables with a row or more per call: api_key has the statistics there, and call_id leads to the rest.
API_NAME_AGAIN = replace(API_NAME, statistics=False)
API_VERSION = Column(
    name="api_version",
    type="int16",
    doc="Version of the API both messages are written in.",
    source="request header",
)
CORRELATION_ID = Column(
    name="correlation_id",
    type="int32",
    doc="The number the client gave the call; it wraps around and starts again with every connection.",
    source="request and response header",
)
CLIENT_ID = Column(
    name="client_id",
    type="string",
    doc="What the client calls itself.",
    source="request header, client_id",
    null="the client sent none",
    statistics=True,
)
CLIENT_ID_AGAIN = replace(CLIENT_ID, statistics=False)
SOFTWARE_NAME = Column(
    name="client_software_name",
    type="string",
    doc="Name of the client library.",
    source="ApiVersions request of the connection, client_software_name",
    null="no ApiVersions request of version 3 or later was seen on the connection",
)
SOFTWARE_VERSION = replace(
    SOFTWARE_NAME,
    name="client_software_version",
    doc="Version of the client library.",
    source="ApiVersions request of the connection, client_software_version",
)
GROUP_ID = Column(
    name="group_id",
    type="string",
    doc="The consumer, share or streams group.",
    source="the field that names a group",
    null=NOT_NAMED,
    statistics=True,
)
ERROR_NAME = Column(
    name="error_name",
    type="string",
    doc="Kafka's name for the error code; NONE for 0.",
    source="Kafka's list of error codes",
    null="no error code, or one that is not in the list",
    derived_from="error_code",
)


TOPIC = Column(
    name="topic",
    type="string",
    doc="Name of the topic.",
    source="the topic name, or the name of the topic id, in the message",
    null="no message of the run names the topic's id",
    statistics=True,
)
TOPIC_ID = Column(
    name="topic_id",
    type="string",
    doc="Id of that topic, in the 22 characters Kafka's tools print.",
    source="topic id in the message",
    null="the message names topics by name",
)
PRODUCER_ID = Column(
    name="producer_id",
    type="int64",
    doc="Number of an idempotent or transactional producer.",
    source="producer_id",
    null=NOT_NAMED,
)
PRODUCER_EPOCH = Column(
    name="producer_epoch",
    type="int16",
    doc="Epoch of that producer; a newer one fences it.",
    source="producer_epoch",
    null=NOT_NAMED,
)
SASL_MECHANISM = Column(
    name="sasl_mechanism",
    type="string",
    doc="How the client authenticated, for example SCRAM-SHA-512.",
    source="SaslHandshake request of the connection, mechanism",
    null="no SaslHandshake was seen before",
)
PRINCIPAL = Column(
    name="principal",
    type="string",
    doc="User name the client authenticated with; its password is in no table.",
    source="the PLAIN or SCRAM token of the connection",
    null="no token of these mechanisms was seen before",
)
CALLER = Column(
    name="caller",
    type="string",
    enum="caller",
    doc="Who calls.",
    source="replica id of the request; APIs that only brokers and controllers use, or that they do not",
    null="no request that tells was seen yet",
)


def moment(name: str, doc: str, null: str, *, statistics: bool = False) -> Column:
    return Column(
        name=name,
        type="time",
        doc=doc,
        source="packet time",
        null=null,
        statistics=statistics,
    )
