"""The table with one row per reported error: error_codes."""

from kwsniff.tables.column import Column, TableSchema
from kwsniff.tables.columns import (
    API_KEY,
    API_NAME,
    API_VERSION,
    BROKER_ADDRESS,
    BROKER_PORT,
    CALL_ID,
    CAPTURE,
    CLIENT_ADDRESS,
    CLIENT_ID,
    CONNECTION_ID,
    CORRELATION_ID,
    ERROR_NAME,
    GROUP_ID,
    NO_RESPONSE,
    NOT_NAMED,
    moment,
)

SIDES = {"client": ("client_id", "client_address"), "broker": ("broker_address", "broker_port")}
"""Columns of the side that receives errors, and of the side that sends them."""

ERROR_CODES = TableSchema(
    name="error_codes",
    row="one nonzero error code of a response, at any depth",
    doc="Every error that a broker reported, with its topic, partition or group.",
    columns=(
        CALL_ID,
        CAPTURE,
        CONNECTION_ID,
        CLIENT_ADDRESS,
        BROKER_ADDRESS,
        BROKER_PORT,
        API_KEY,
        API_NAME,
        API_VERSION,
        CORRELATION_ID,
        CLIENT_ID,
        moment("response_time", "Time of the first byte of the response.", NO_RESPONSE, statistics=True),
        Column(
            name="response_frame",
            type="int64",
            doc="Packet with the first byte of the response, as Wireshark counts.",
            source="position of the packet in its capture",
        ),
        Column(
            name="path",
            type="string",
            doc="The field with the code, for example responses.partition_responses.error_code.",
            source="layout of the response",
        ),
        Column(
            name="topic",
            type="string",
            doc="Topic of the error.",
            source="the topic name, or topic id, nearest to the code",
            null="the error has no topic, or no message of the run has the name of its id",
        ),
        Column(
            name="topic_id",
            type="string",
            doc="Id of that topic, in the 22 characters that Kafka's tools print.",
            source="topic_id nearest to the code",
            null="the message has topic names, or no topics",
        ),
        Column(
            name="partition",
            type="int32",
            doc="Partition of the error.",
            source="partition nearest to the code",
            null="the error has no partition",
        ),
        GROUP_ID,
        Column(
            name="error_code",
            type="int16",
            doc="Kafka's error code; never 0 here.",
            source="the error code field",
            statistics=True,
        ),
        ERROR_NAME,
        Column(
            name="retriable",
            type="bool",
            doc="Whether a retry of the request may succeed.",
            source="Kafka's list of error codes",
            null="an error code that is not in the list",
            derived_from="error_code",
        ),
        Column(
            name="error_message",
            type="string",
            doc="The broker's error message, without values of settings that may be secret.",
            source="error_message next to the code",
            null=NOT_NAMED,
        ),
    ),
)
