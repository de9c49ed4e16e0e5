"""The tables with one row per call: api_calls and latencies."""

from dataclasses import replace

from kwsniff.tables.column import Column, TableSchema

_NO_REQUEST = "the request was not seen whole"
NO_RESPONSE = "no response was seen whole"
NOT_NAMED = "the message has no such field, or it could not be decoded"
_NOT_ASKED = "the response does not say, and its request was not seen"

CALL_ID = Column(
    name="call_id",
    type="int64",
    doc="Number of the call, the same in every table.",
    source="counted over all captures of a run",
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
    doc="Number of the TCP connection, the same in every table.",
    source="counted over all captures of a run",
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
)
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
)
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
)
ERROR_NAME = Column(
    name="error_name",
    type="string",
    doc="Kafka's name for the error code; NONE for 0.",
    source="Kafka's list of error codes",
    null="no error code, or one that is not in the list",
    derived_from="error_code",
)


def moment(name: str, doc: str, null: str, *, statistics: bool = False) -> Column:
    return Column(
        name=name,
        type="time",
        doc=doc,
        source="packet time, rounded down to the microsecond",
        null=null,
        statistics=statistics,
    )


def _frame(name: str, doc: str, null: str) -> Column:
    return Column(
        name=name,
        type="int64",
        doc=f"{doc}, as Wireshark counts: from 1 in each file.",
        source="position of the packet in its capture",
        null=null,
    )


def _size(name: str, what: str, null: str) -> Column:
    return Column(
        name=name,
        type="int64",
        unit="bytes",
        doc=f"Size of the {what}, with the four bytes in front that say it.",
        source="size in front of the message",
        null=null,
    )


API_CALLS = TableSchema(
    name="api_calls",
    row="one call: a request, its response, or both",
    doc="Every call that was seen, answered or not. `status` and `reason` keep apart what the broker did "
    "from what the capture misses.",
    columns=(
        CALL_ID,
        CAPTURE,
        CONNECTION_ID,
        CLIENT_ADDRESS,
        CLIENT_PORT,
        BROKER_ADDRESS,
        BROKER_PORT,
        replace(API_KEY, null=_NOT_ASKED),
        replace(API_NAME, null="no api key, or one that no known Kafka release uses"),
        replace(API_VERSION, null=_NOT_ASKED),
        CORRELATION_ID,
        CLIENT_ID,
        SOFTWARE_NAME,
        SOFTWARE_VERSION,
        moment("request_time", "When the first byte of the request passed.", _NO_REQUEST, statistics=True),
        moment("request_end_time", "When the last byte of the request passed.", _NO_REQUEST),
        moment("response_time", "When the first byte of the response passed.", NO_RESPONSE, statistics=True),
        moment("response_end_time", "When the last byte of the response passed.", NO_RESPONSE),
        _frame("request_frame", "Packet with the first byte of the request", _NO_REQUEST),
        _frame("request_end_frame", "Packet with the last byte of the request", _NO_REQUEST),
        _frame("response_frame", "Packet with the first byte of the response", NO_RESPONSE),
        _frame("response_end_frame", "Packet with the last byte of the response", NO_RESPONSE),
        _size("request_bytes", "request", _NO_REQUEST),
        _size("response_bytes", "response", NO_RESPONSE),
        Column(
            name="status",
            type="string",
            enum="status",
            doc="What became of the call.",
            source="requests and responses of the connection, by correlation id",
            statistics=True,
        ),
        Column(
            name="reason",
            type="string",
            enum="reason",
            doc="Why something is missing from the row.",
            source="state of the connection",
            null="nothing is missing",
        ),
        Column(
            name="latency_ns",
            type="int64",
            unit="nanoseconds",
            doc="From the first byte of the request to the last byte of the response.",
            source="packet times",
            null="the first packet of the request or the last one of the response was not captured, "
            "or has no time",
            statistics=True,
        ),
        Column(
            name="error_code",
            type="int16",
            doc="The first error code of the response that is not 0; 0 if there is none.",
            source="every error code field of the response",
            null="no response was decoded, or it broke off before any error was read",
            statistics=True,
        ),
        ERROR_NAME,
        Column(
            name="error_count",
            type="int32",
            doc="How many error codes of the response are not 0: the call's rows in error_codes.",
            source="every error code field of the response",
            null="no response was decoded, or it broke off before any error was read",
        ),
        Column(
            name="throttle_time_ms",
            type="int32",
            unit="milliseconds",
            doc="How long the broker held the call back, or asks the client to wait, because of a quota.",
            source="response, throttle_time_ms",
            null=NOT_NAMED,
        ),
        Column(
            name="topics",
            type="strings",
            doc="Topics of the call: their names, or the topic id where no message of the run names it.",
            source="topic names and topic ids of request and response",
            null="the messages name no topics, or none were decoded",
        ),
        GROUP_ID,
        Column(
            name="transactional_id",
            type="string",
            doc="The transactional producer.",
            source="transactional_id",
            null=NOT_NAMED,
        ),
        Column(
            name="acks",
            type="int16",
            doc="Acknowledgements a Produce waits for: 0 none, 1 the leader, -1 all in-sync replicas.",
            source="Produce request, acks",
            null="not a Produce, or it was not decoded",
        ),
        Column(
            name="partition_count",
            type="int32",
            doc="How many partitions the call names.",
            source="partition fields of the request, or of the response",
            null=NOT_NAMED,
        ),
        Column(
            name="record_count",
            type="int64",
            doc="Records carried by a Produce request or a Fetch response.",
            source="headers of the record batches",
            null="no record sets in the call, or not decoded",
        ),
        Column(
            name="record_bytes",
            type="int64",
            unit="bytes",
            doc="Size of the record sets carried, as they are on the wire (compressed).",
            source="sizes of the records fields",
            null="no record sets in the call, or not decoded",
        ),
    ),
)

LATENCIES = TableSchema(
    name="latencies",
    row="one call whose request and response were both seen whole",
    doc="How long calls took. Durations are computed from the capture's full precision.",
    columns=(
        CALL_ID,
        CAPTURE,
        CONNECTION_ID,
        API_KEY,
        API_NAME,
        API_VERSION,
        CLIENT_ID,
        BROKER_ADDRESS,
        BROKER_PORT,
        Column(
            name="request_time",
            type="time",
            doc="When the first byte of the request passed.",
            source="packet time, rounded down to the microsecond",
            statistics=True,
        ),
        Column(
            name="total_ns",
            type="int64",
            unit="nanoseconds",
            doc="From the first byte of the request to the last byte of the response.",
            source="packet times",
            statistics=True,
        ),
    ),
)
