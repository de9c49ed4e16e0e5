"""The table of what groups commit: commits."""

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

_TOLD = "high watermarks of Fetch, offsets of ListOffsets, what Produce was told it wrote"
_NOBODY = "nobody was told in the capture before, or it is not known by which id messages speak of the topic"

COMMITS = TableSchema(
    name="commits",
    row="one offset of one partition that a group committed and the coordinator accepted",
    doc="How far behind a group is. What clients fetch tells less: they fetch ahead of what the application "
    "has handled. The end of a partition is the greatest that any client was told, on any connection, before "
    "the commit was answered. What is committed in a transaction (TxnOffsetCommit) counts when that commits. "
    "Rows stand in the order in which commits were answered; ends of at most 200,000 partitions are "
    "remembered at a time.",
    columns=(
        CALL_ID,
        CAPTURE,
        CONNECTION_ID,
        replace(
            API_NAME_AGAIN,
            doc="OffsetCommit or TxnOffsetCommit.",
            source="api_calls",
            null=None,
            derived_from=None,
        ),
        CLIENT_ID,
        replace(GROUP_ID, null=None),
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
            source="the request",
            statistics=True,
        ),
        Column(
            name="offset",
            type="int64",
            doc="The offset committed: the first that is not handled yet.",
            source="committed_offset",
        ),
        Column(
            name="high_watermark",
            type="int64",
            doc="The end of the partition, as far as it is known at that moment.",
            source=_TOLD,
            null=_NOBODY,
        ),
        Column(
            name="high_watermark_age_ns",
            type="int64",
            unit="nanoseconds",
            doc="How long before the answer to the commit that was told last.",
            source="times of both answers, in microseconds",
            null="as high_watermark",
        ),
        Column(
            name="high_watermark_call_id",
            type="int64",
            doc="The call that was told so.",
            source="call_id",
            null="as high_watermark",
        ),
        Column(
            name="lag",
            type="int64",
            doc="How many offsets the group is behind.",
            source="high_watermark - offset",
            null="as high_watermark, or the group is beyond it: what it read was not captured",
            statistics=True,
        ),
    ),
)
