"""The table with one row per call: api_calls."""

from dataclasses import replace

from kwsniff.tables.column import Column, TableSchema
from kwsniff.tables.columns import (
    API_KEY,
    API_NAME,
    API_VERSION,
    BROKER_ADDRESS,
    BROKER_PORT,
    CALL_ID,
    CALLER,
    CAPTURE,
    CLIENT_ADDRESS,
    CLIENT_ID,
    CLIENT_PORT,
    CONNECTION_ID,
    CORRELATION_ID,
    ERROR_NAME,
    GROUP_ID,
    HARM,
    NO_RESPONSE,
    NOT_NAMED,
    PRINCIPAL,
    PRODUCER_EPOCH,
    PRODUCER_ID,
    SASL_MECHANISM,
    SOFTWARE_NAME,
    SOFTWARE_VERSION,
    moment,
)

_NO_REQUEST = "the capture does not have the whole request"
_NOT_ASKED = "unknown without the request, which was not captured"


def _frame(name: str, doc: str, null: str) -> Column:
    return Column(
        name=name,
        type="int64",
        doc=f"{doc}, as Wireshark counts.",
        source="position of the packet in its capture",
        null=null,
    )


def _size(name: str, what: str, null: str) -> Column:
    return Column(
        name=name,
        type="int64",
        unit="bytes",
        doc=f"Size of the {what}, including the 4-byte size prefix.",
        source="size prefix of the message",
        null=null,
    )


def _text(name: str, doc: str, source: str) -> Column:
    return Column(name=name, type="string", doc=doc, source=source, null=NOT_NAMED)


API_CALLS = TableSchema(
    name="api_calls",
    row="one call: a request, its response, or both",
    doc="Every captured call, with or without a response. `status` and `reason` distinguish failures of "
    "the broker from gaps of the capture.",
    columns=(
        CALL_ID,
        CAPTURE,
        CONNECTION_ID,
        CLIENT_ADDRESS,
        CLIENT_PORT,
        BROKER_ADDRESS,
        BROKER_PORT,
        replace(API_KEY, null=_NOT_ASKED),
        replace(API_NAME, null="no API key, or one unknown to all Kafka releases"),
        replace(API_VERSION, null=_NOT_ASKED),
        CORRELATION_ID,
        CLIENT_ID,
        SOFTWARE_NAME,
        SOFTWARE_VERSION,
        moment("request_time", "Time of the first byte of the request.", _NO_REQUEST, statistics=True),
        moment("request_end_time", "Time of the last byte of the request.", _NO_REQUEST),
        moment("response_time", "Time of the first byte of the response.", NO_RESPONSE, statistics=True),
        moment("response_end_time", "Time of the last byte of the response.", NO_RESPONSE),
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
            doc="Outcome of the call.",
            source="requests and responses of the connection, by correlation id",
            statistics=True,
        ),
        Column(
            name="reason",
            type="string",
            enum="reason",
            doc="Why the row is incomplete.",
            source="state of the connection",
            null="the row is complete",
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
            doc="The first nonzero error code of the response; 0 if there is none.",
            source="every error code field of the response",
            null="no decoded response, or it broke off before the first error code",
            statistics=True,
        ),
        ERROR_NAME,
        Column(
            name="error_count",
            type="int32",
            doc="Number of nonzero error codes in the response: the call's rows in error_codes.",
            source="every error code field of the response",
            null="no decoded response, or it broke off before the first error code",
        ),
        Column(
            name="throttle_time_ms",
            type="int32",
            unit="milliseconds",
            doc="How long the broker delayed the call, or asks the client to wait, because of a quota.",
            source="response, throttle_time_ms",
            null=NOT_NAMED,
        ),
        Column(
            name="topics",
            type="strings",
            doc="Topics of the call: names, or the topic id if no message of the run has its name.",
            source="topic names and topic ids of request and response",
            null="the messages have no topics, or were not decoded",
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
            doc="Acknowledgements that a Produce waits for: 0 none, 1 the leader, -1 all in-sync replicas.",
            source="Produce request, acks",
            null="not a Produce, or it was not decoded",
        ),
        Column(
            name="partition_count",
            type="int32",
            doc="Number of partitions in the call.",
            source="partition fields of the request, or of the response",
            null=NOT_NAMED,
        ),
        Column(
            name="record_count",
            type="int64",
            doc="Records in a Produce request or a Fetch response.",
            source="headers of the record batches",
            null="no record sets in the call, or not decoded",
        ),
        Column(
            name="record_bytes",
            type="int64",
            unit="bytes",
            doc="Size of the record sets on the wire (compressed).",
            source="sizes of the records fields",
            null="no record sets in the call, or not decoded",
        ),
        SASL_MECHANISM,
        PRINCIPAL,
        CALLER,
        _text("member_id", "Member id of the requester.", "member_id"),
        _text("group_instance_id", "Instance id of a static member (KIP-345).", "group_instance_id"),
        Column(
            name="generation",
            type="int32",
            doc="Generation of the group; member epoch in a consumer, share or streams group (KIP-848).",
            source="generation or member epoch of the request, else of the response",
            null=NOT_NAMED,
        ),
        _text("protocol_type", "Protocol type of the group: consumer, connect or another.", "protocol_type"),
        PRODUCER_ID,
        PRODUCER_EPOCH,
        Column(
            name="isolation_level",
            type="int16",
            doc="0: read_uncommitted; 1: read_committed.",
            source="isolation_level of the request",
            null=NOT_NAMED,
        ),
        Column(
            name="committed",
            type="bool",
            doc="Whether to commit the transaction; false: abort.",
            source="EndTxn request, committed",
            null="not an EndTxn, or it was not decoded",
        ),
        Column(
            name="session_id",
            type="int32",
            doc="Fetch session (KIP-227); 0: none.",
            source="session_id of the request, else of the response",
            null=NOT_NAMED,
        ),
        Column(
            name="session_epoch",
            type="int32",
            doc="Number of the request in its fetch session; 0: a new one is asked for; -1: none.",
            source="session_epoch of the request",
            null=NOT_NAMED,
        ),
        Column(
            name="max_wait_ms",
            type="int32",
            unit="milliseconds",
            doc="How long the broker may wait for data before it responds.",
            source="max_wait_ms of the request",
            null=NOT_NAMED,
        ),
        Column(
            name="min_bytes",
            type="int32",
            unit="bytes",
            doc="How much data the broker waits for, for at most max_wait_ms.",
            source="min_bytes of the request",
            null=NOT_NAMED,
        ),
        Column(
            name="max_bytes",
            type="int32",
            unit="bytes",
            doc="How much data the response may have.",
            source="max_bytes of the request",
            null=NOT_NAMED,
        ),
        Column(
            name="timeout_ms",
            type="int64",
            unit="milliseconds",
            doc="The timeout in the request: how long the broker may take (Produce, CreateTopics "
            "and others); session.timeout.ms of a JoinGroup, transaction.timeout.ms of an InitProducerId, "
            "max.poll.interval.ms of a ConsumerGroupHeartbeat.",
            source="timeout_ms, session_timeout_ms, transaction_timeout_ms or rebalance_timeout_ms of the "
            "request",
            null=NOT_NAMED,
        ),
        _text("rack_id", "Rack of the client (KIP-392).", "rack_id of the request"),
        Column(
            name="upstream_call_id",
            type="int64",
            doc="Call by which a proxy passed this one on: [proxies](../places.md#proxies).",
            source="batches, members and producers that both calls have, and their times",
            null="no proxy, not proven, more calls than the memory allows, or rows of live",
            judged=True,
        ),
        HARM,
    ),
)
