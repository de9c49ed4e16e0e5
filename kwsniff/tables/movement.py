"""The tables of what was moved: partitions and record_batches."""

from dataclasses import replace

from kwsniff.tables.column import Column, TableSchema, TypeWord
from kwsniff.tables.columns import (
    API_KEY,
    API_NAME_AGAIN,
    API_VERSION,
    BROKER_ADDRESS,
    BROKER_PORT,
    CALL_ID,
    CAPTURE,
    CLIENT_ID_AGAIN,
    CONNECTION_ID,
    ERROR_NAME,
    GROUP_ID,
    PRODUCER_EPOCH,
    PRODUCER_ID,
    TOPIC,
    TOPIC_ID,
    moment,
)

_HEADER = "header of the batch"
_NO_OFFSET = "the message has no such field, or names no offset there"
_NO_RECORDS = "no record set for this partition"

_CALL = (
    CALL_ID,
    CAPTURE,
    CONNECTION_ID,
    API_KEY,
    API_NAME_AGAIN,
    API_VERSION,
    CLIENT_ID_AGAIN,
    BROKER_ADDRESS,
    BROKER_PORT,
)
_CALL_OF_BATCH = tuple(column for column in _CALL if column not in (BROKER_ADDRESS, BROKER_PORT))


def _offset(name: str, doc: str) -> Column:
    return Column(
        name=name, type="int64", doc=doc, source="the field that holds it, or batch headers", null=_NO_OFFSET
    )


def _size(name: str, doc: str) -> Column:
    return Column(
        name=name, type="int64", unit="bytes", doc=doc, source="size of the records field", null=_NO_RECORDS
    )


def _number(name: str, type_: TypeWord, doc: str) -> Column:
    return Column(name=name, type=type_, doc=doc, source="headers of the record batches", null=_NO_RECORDS)


PARTITIONS = TableSchema(
    name="partitions",
    row="one partition that a call asked for, wrote to, read from, or committed",
    doc="What every call moved or asked, partition by partition: bytes, records, offsets, lag. A fetch that "
    "names no partitions because its session does (KIP-227) has a row for each that was answered.",
    columns=(
        *_CALL,
        moment(
            "time",
            "When the first byte of the request passed.",
            "the request was not seen whole",
            statistics=True,
        ),
        replace(GROUP_ID, doc="The group whose offset it is."),
        TOPIC,
        TOPIC_ID,
        Column(
            name="partition",
            type="int32",
            doc="Number of the partition.",
            source="partition of request or response",
            statistics=True,
        ),
        Column(
            name="error_code",
            type="int16",
            doc="What the broker says of this partition; 0: no error.",
            source="error code of the partition in the response",
            null="no response, or it says nothing of the partition",
            statistics=True,
        ),
        ERROR_NAME,
        _offset("offset", "Offset that was asked for, committed, or answered."),
        _offset("base_offset", "Offset of the first record that was written or read."),
        _offset("last_offset", "Offset of the last record that was written or read."),
        _offset("high_watermark", "Offset up to which consumers may read: all in-sync replicas have it."),
        _offset("last_stable_offset", "Offset up to which transactions are decided."),
        _offset("log_start_offset", "First offset that the broker still has."),
        Column(
            name="lag",
            type="int64",
            doc="How many offsets what was fetched is behind the high watermark after this call. A client "
            "fetches ahead of what its application has processed and its group has committed: the lag of "
            "what is committed is another number.",
            source="high watermark less the offset behind the last record, or the one that was asked for",
            null="not a fetch, or the broker named no high watermark",
            statistics=True,
        ),
        _size("record_bytes", "Size of the record set, as it is on the wire (compressed)."),
        _number("record_count", "int64", "Records in it."),
        _number("batch_count", "int32", "Record batches in it."),
    ),
)

RECORD_BATCHES = TableSchema(
    name="record_batches",
    row="one record batch that was produced or fetched",
    doc="What the headers of record batches say. `uncompressed_bytes` / `bytes` is the compression ratio.",
    columns=(
        *_CALL_OF_BATCH,
        moment(
            "time",
            "When the first byte of the request passed.",
            "the request was not seen whole",
            statistics=True,
        ),
        TOPIC,
        TOPIC_ID,
        Column(
            name="partition",
            type="int32",
            doc="Number of the partition.",
            source="partition of request or response",
            null="the message has no such field",
            statistics=True,
        ),
        Column(
            name="magic",
            type="int16",
            doc="Format of the batch: 2 since Kafka 0.11; 0 and 1 are the message sets of before.",
            source=_HEADER,
        ),
        Column(
            name="codec", type="string", enum="codec", doc="How the records are compressed.", source=_HEADER
        ),
        Column(
            name="bytes", type="int64", unit="bytes", doc="Size of the batch on the wire.", source=_HEADER
        ),
        Column(
            name="uncompressed_bytes",
            type="int64",
            unit="bytes",
            doc="Size of the batch with its records decompressed.",
            source="the batch itself when it is not compressed; the end of gzip, the blocks of snappy, "
            "the frames of lz4 and zstd where their writer noted it",
            null="the compressed stream does not say",
        ),
        Column(
            name="record_count",
            type="int32",
            doc="Records in the batch.",
            source=_HEADER,
            null="a compressed message set, which does not say",
        ),
        Column(name="base_offset", type="int64", doc="Offset of the first record.", source=_HEADER),
        Column(
            name="last_offset",
            type="int64",
            doc="Offset of the last record.",
            source=_HEADER,
            null="a message set, which does not say",
        ),
        replace(PRODUCER_ID, source=_HEADER, null="the producer is not idempotent"),
        replace(PRODUCER_EPOCH, source=_HEADER, null="the producer is not idempotent"),
        Column(
            name="base_sequence",
            type="int32",
            doc="The producer's number for the first record.",
            source=_HEADER,
            null="the producer is not idempotent, or a broker wrote the batch in its name (a transaction's "
            "marker, what it commits for a group): it has no number",
        ),
        Column(
            name="transactional",
            type="bool",
            doc="Whether the batch is part of a transaction.",
            source=_HEADER,
        ),
        Column(
            name="control",
            type="bool",
            doc="Whether it is a marker of the broker: a transaction's commit or abort.",
            source=_HEADER,
        ),
        Column(
            name="timestamp_type",
            type="string",
            enum="timestamp_type",
            doc="Who set the times of the records.",
            source=_HEADER,
        ),
        replace(
            moment("first_timestamp", "Time of the first record.", "the batch does not say"), source=_HEADER
        ),
        replace(
            moment("max_timestamp", "Latest time of a record.", "the batch does not say"), source=_HEADER
        ),
    ),
)
