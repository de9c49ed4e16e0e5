"""Columns that several tables have, declared once."""

from dataclasses import replace

from kwsniff.tables.column import RUN, Column

NO_RESPONSE = "the capture does not have the whole response"
NOT_NAMED = "not in the message, or not decoded"

CALL_ID = Column(
    name="call_id",
    type="int64",
    doc="Number of the call, the same in every table: 1000 times the number of a packet, counted over all "
    "captures of the run, plus n, from 0, for the calls of one packet. The packet is the first of the "
    "request; a later one if only that identified the protocol or filled a gap; that of the response if "
    "no request was captured. A packet's calls beyond 1000 count from 2^62 on, 2^24 for each "
    "packet.",
    source="the packet that revealed the call",
    statistics=True,
)
RUN_ID = Column(
    name=RUN,
    type="string",
    doc="Run of the row: the same in all tables of a run, different in every run.",
    source="a random number",
    statistics=True,
)
CAPTURE = Column(
    name="capture",
    type="string",
    doc="Capture file, as named on the command line or by the caller.",
    source="file name",
)
CONNECTION_ID = Column(
    name="connection_id",
    type="int64",
    doc="Number of the TCP connection, the same in every table: the number of its first packet.",
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
    null="an API key unknown to all Kafka releases",
    from_layouts=True,
    statistics=True,
)
# For tables with a row or more per call: api_key has the statistics there, and call_id leads to the rest.
API_NAME_AGAIN = replace(API_NAME, statistics=False)
API_VERSION = Column(
    name="api_version",
    type="int16",
    doc="API version of both messages.",
    source="request header",
)
CORRELATION_ID = Column(
    name="correlation_id",
    type="int32",
    doc="Correlation id of the call; it wraps around and restarts on every connection.",
    source="request and response header",
)
CLIENT_ID = Column(
    name="client_id",
    type="string",
    doc="Client id.",
    source="request header, client_id",
    null="the request has no client id",
    statistics=True,
)
CLIENT_ID_AGAIN = replace(CLIENT_ID, statistics=False)
SOFTWARE_NAME = Column(
    name="client_software_name",
    type="string",
    doc="Name of the client library.",
    source="ApiVersions request of the connection, client_software_name",
    null="no ApiVersions request of version 3 or later was captured on the connection",
)
SOFTWARE_VERSION = replace(
    SOFTWARE_NAME,
    name="client_software_version",
    doc="Version of the client library.",
    source="ApiVersions request of the connection, client_software_version",
)
HARM = Column(
    name="harm",
    type="string",
    doc="What the call suffered: [account](../findings.md#account).",
    source="the findings of the run",
    null="fine or routine, or no findings",
    enum="call_harm",
    judged=True,
)
CONNECTION_HARM = replace(
    HARM, doc="What the connection suffered: [account](../findings.md#account).", enum="connection_harm"
)
COMMUNITY_ID = Column(
    name="community_id",
    type="string",
    doc="The Community ID flow hash, version 1 with seed 0, by which rows of Zeek, Suricata and Arkime join.",
    source="addresses and ports",
)
GROUP_ID = Column(
    name="group_id",
    type="string",
    doc="The consumer, share or streams group.",
    source="the field with the group",
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
    null="no message of the run has the name of the topic's id",
    statistics=True,
)
TOPIC_ID = Column(
    name="topic_id",
    type="string",
    doc="Id of that topic, in the 22 characters that Kafka's tools print.",
    source="topic id in the message",
    null="the message has topic names",
)
PRODUCER_ID = Column(
    name="producer_id",
    type="int64",
    doc="Id of an idempotent or transactional producer.",
    source="producer_id",
    null=NOT_NAMED,
)
PRODUCER_EPOCH = Column(
    name="producer_epoch",
    type="int16",
    doc="Epoch of that producer; a higher epoch fences it.",
    source="producer_epoch",
    null=NOT_NAMED,
)
SASL_MECHANISM = Column(
    name="sasl_mechanism",
    type="string",
    doc="SASL mechanism of the client, for example SCRAM-SHA-512.",
    source="SaslHandshake request of the connection, mechanism",
    null="no earlier SaslHandshake was captured",
)
PRINCIPAL = Column(
    name="principal",
    type="string",
    doc="User name of the client's authentication; no table has its password.",
    source="the PLAIN or SCRAM token of the connection",
    null="no earlier token of these mechanisms was captured",
)
CALLER = Column(
    name="caller",
    type="string",
    enum="caller",
    doc="Who calls.",
    source="replica id of the request; APIs that only brokers and controllers use, or that they do not",
    null="no earlier request shows it",
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
