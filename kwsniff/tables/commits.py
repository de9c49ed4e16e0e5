"""The table of committed offsets: commits."""

from dataclasses import replace

from kwsniff.tables.column import Column, TableSchema
from kwsniff.tables.columns import (
    API_NAME_AGAIN,
    CALL_ID,
    CAPTURE,
    CLIENT_ID,
    CONNECTION_ID,
    GROUP_ID,
    TOPIC,
    TOPIC_ID,
    moment,
)

_TOLD = "high watermarks of Fetch, offsets of ListOffsets and of Produce responses"
_NOBODY = "no earlier response in the capture has it, or the id of the topic in messages is unknown"

COMMITS = TableSchema(
    name="commits",
    row="one offset of one partition that a group committed and the coordinator accepted",
    doc="Lag of groups. Fetched offsets show less, because clients fetch ahead of their application. The "
    "log end of a partition is the highest that any client received, on any connection, before the "
    "response to the commit. Offsets committed in a transaction (TxnOffsetCommit) count when it commits. "
    "Rows are in the order of the responses to commits; log ends of at most 200,000 partitions are "
    "tracked at a time.",
    columns=(
        CALL_ID,
        CAPTURE,
        CONNECTION_ID,
        replace(
            API_NAME_AGAIN,
            doc="OffsetCommit or TxnOffsetCommit.",
            source="api_calls",
            null=None,
            from_layouts=False,
        ),
        CLIENT_ID,
        replace(GROUP_ID, null=None),
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
            source="the request",
            statistics=True,
        ),
        Column(
            name="committed_offset",
            type="int64",
            doc="Committed offset: the next one to process.",
            source="committed_offset",
        ),
        Column(
            name="high_watermark",
            type="int64",
            doc="Log end of the partition, as known at that time.",
            source=_TOLD,
            null=_NOBODY,
        ),
        Column(
            name="high_watermark_age_ns",
            type="int64",
            unit="nanoseconds",
            doc="Age of that log end at the response to the commit.",
            source="times of both responses, in microseconds",
            null="as high_watermark",
        ),
        Column(
            name="high_watermark_call_id",
            type="int64",
            doc="The call with that log end.",
            source="call_id",
            null="as high_watermark",
        ),
        Column(
            name="lag",
            type="int64",
            doc="Lag of the group, in offsets.",
            source="high_watermark - committed_offset",
            null="as high_watermark, or the commit is beyond it: the group's reads were not captured",
            statistics=True,
        ),
        Column(
            name="lag_ns",
            type="int64",
            unit="nanoseconds",
            doc="Lag of the group in time: age of the first record beyond the commit, at most; 0 if there is "
            "none.",
            source="time - first_timestamp of the batch with committed_offset, seen before",
            null="as lag, no such batch was seen, or its time is later: clocks differ",
        ),
    ),
)
