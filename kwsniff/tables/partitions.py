"""The tables of data transfer: partitions and record_batches."""

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
_NO_OFFSET = "the message has no such field, or no offset in it"
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
        name=name,
        type="int64",
        doc=doc,
        source="the field with the offset, or batch headers",
        null=_NO_OFFSET,
    )


def _size(name: str, doc: str) -> Column:
    return Column(
        name=name, type="int64", unit="bytes", doc=doc, source="size of the records field", null=_NO_RECORDS
    )


def _number(name: str, type_: TypeWord, doc: str) -> Column:
    return Column(name=name, type=type_, doc=doc, source="headers of the record batches", null=_NO_RECORDS)


PARTITIONS = TableSchema(
    name="partitions",
    row="one partition that a call requested, wrote, read or committed",
    doc="Bytes, records, offsets and lag of every call, by partition. A fetch without partitions because "
    "its session has them (KIP-227) has a row for each partition in the response.",
    columns=(
        *_CALL,
        moment(
            "time",
            "Time of the first byte of the request.",
            "the capture does not have the whole request",
            statistics=True,
        ),
        replace(GROUP_ID, doc="Group of a committed offset."),
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
            doc="The partition's error code in the response; 0: no error.",
            source="error code of the partition in the response",
            null="no response, or none for this partition",
            statistics=True,
        ),
        ERROR_NAME,
        _offset("requested_offset", "Offset in the request (fetched, committed) or in the response."),
        _offset("base_offset", "Offset of the first record written or read."),
        _offset("last_offset", "Offset of the last record written or read."),
        _offset(
            "high_watermark",
            "High watermark: consumers may read up to this offset, which all in-sync replicas have.",
        ),
        _offset("last_stable_offset", "Last stable offset: all transactions before it have ended."),
        _offset("log_start_offset", "First offset in the broker's log."),
        Column(
            name="preferred_read_replica",
            type="int32",
            doc="The broker from which the client should read, in its rack (KIP-392).",
            source="preferred_read_replica of the response",
            null="the leader, no Fetch, or Fetch before version 11",
        ),
        Column(
            name="lag",
            type="int64",
            doc="Lag of the fetched offsets behind the high watermark after this call. A client fetches "
            "ahead of what its application has processed and its group has committed: the lag of "
            "committed offsets is another number.",
            source="high watermark minus the offset after the last record, or minus the requested offset",
            null="not a fetch, or no high watermark in the response",
            statistics=True,
        ),
        _size("record_bytes", "Size of the record set on the wire (compressed)."),
        _number("record_count", "int64", "Records in the record set."),
        _number("batch_count", "int32", "Record batches in the record set."),
    ),
)

RECORD_BATCHES = TableSchema(
    name="record_batches",
    row="one record batch that was produced or fetched",
    doc="Fields of record batch headers. `uncompressed_bytes` / `bytes` is the compression ratio.",
    columns=(
        *_CALL_OF_BATCH,
        moment(
            "time",
            "Time of the first byte of the request.",
            "the capture does not have the whole request",
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
            doc="Format of the batch: 2 since Kafka 0.11; 0 and 1 are older message sets.",
            source=_HEADER,
        ),
        Column(name="codec", type="string", enum="codec", doc="Compression codec.", source=_HEADER),
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
            null="the compressed stream does not have its size",
        ),
        Column(
            name="record_count",
            type="int32",
            doc="Records in the batch.",
            source=_HEADER,
            null="a compressed message set, which has no count",
        ),
        Column(name="base_offset", type="int64", doc="Offset of the first record.", source=_HEADER),
        Column(
            name="last_offset",
            type="int64",
            doc="Offset of the last record.",
            source=_HEADER,
            null="a message set, which has no last offset",
        ),
        replace(PRODUCER_ID, source=_HEADER, null="the producer is not idempotent"),
        replace(PRODUCER_EPOCH, source=_HEADER, null="the producer is not idempotent"),
        Column(
            name="base_sequence",
            type="int32",
            doc="Sequence number of the first record.",
            source=_HEADER,
            null="the producer is not idempotent, or a broker wrote the batch on its behalf (a "
            "transaction marker, a group's commit)",
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
            doc="Whether it is a control batch: a transaction's commit or abort marker.",
            source=_HEADER,
        ),
        Column(
            name="keyed",
            type="bool",
            doc="Whether its first record has a key.",
            source="the first record",
            null="a compressed or control batch, or one without records",
        ),
        Column(
            name="timestamp_type",
            type="string",
            enum="timestamp_type",
            doc="Timestamp type of the records.",
            source=_HEADER,
        ),
        replace(moment("first_timestamp", "Time of the first record.", "not in the batch"), source=_HEADER),
        replace(moment("max_timestamp", "Latest time of a record.", "not in the batch"), source=_HEADER),
        Column(
            name="crc",
            type="int64",
            doc="Checksum of the batch. A batch that is sent again has the same.",
            source=_HEADER,
        ),
    ),
)
