"""The table of deliveries: batches on their way from a producer to a reader."""

from dataclasses import replace

from kwsniff.tables.column import Column, TableSchema
from kwsniff.tables.columns import CALL_ID, CLIENT_ID, GROUP_ID, TOPIC, TOPIC_ID, moment

_NO_READER = "no reader fetched it in the capture"
_NOT_PRODUCED = "its Produce, or the response to it, is not in the capture"
_PART = "differences of the times, in microseconds"


def _time(name: str, doc: str, null: str, source: str, *, statistics: bool = False) -> Column:
    return replace(moment(name, doc, null, statistics=statistics), source=source)


def _call(name: str, doc: str, null: str) -> Column:
    return replace(CALL_ID, name=name, doc=doc, null=null, source="call_id", statistics=False)


def _part(name: str, doc: str, null: str) -> Column:
    return Column(name=name, type="int64", unit="nanoseconds", doc=doc, source=_PART, null=null)


DELIVERIES = TableSchema(
    name="deliveries",
    row="one record batch as a broker appended it, and one reader that fetched it",
    doc="[Where a record's time goes](../deliveries.md) explains the steps. A reader is a group, or a client "
    "without one; a batch without a reader has one row. Control batches and message sets have none.",
    columns=(
        replace(TOPIC, null="no message in the capture has the name of the topic's id"),
        replace(TOPIC_ID, null="messages have the topic's name only"),
        Column(
            name="partition",
            type="int32",
            doc="Number of the partition.",
            source="the request, or the response of a Fetch",
            statistics=True,
        ),
        Column(
            name="base_offset",
            type="int64",
            doc="Offset of the first record.",
            source="response to the Produce; header of the fetched batch",
        ),
        Column(
            name="last_offset",
            type="int64",
            doc="Offset of the last record.",
            source="base_offset, and the last offset delta of the batch",
        ),
        Column(name="record_count", type="int32", doc="Records in the batch.", source="header of the batch"),
        replace(
            GROUP_ID,
            doc="The reader's group.",
            source="commits of the client",
            null="no reader, or it commits for no group or for several",
        ),
        replace(
            CLIENT_ID,
            doc="The reader's client id; of a group, the first to fetch the batch.",
            null="no reader, or it has none",
        ),
        _time(
            "record_time",
            "Latest time of a record in the batch.",
            "not in the batch",
            "max_timestamp of the batch",
        ),
        _time(
            "produced_time",
            "The first byte of the Produce request.",
            _NOT_PRODUCED,
            "packet time",
            statistics=True,
        ),
        _time("acknowledged_time", "When the producer had the response.", _NOT_PRODUCED, "packet time"),
        _time(
            "visible_time",
            "The first response that shows the batch below the high watermark; for a reader with "
            "read_committed, below the last stable offset.",
            "no response shows it, or as produced_time",
            "first byte of the response",
        ),
        _time(
            "fetched_time",
            "When the reader had the first Fetch response with the batch.",
            _NO_READER,
            "packet time",
            statistics=True,
        ),
        _time(
            "committed_time",
            "The first byte of the group's first commit beyond the batch.",
            "none after the fetch, or no group",
            "time of the row in commits",
        ),
        _call("produced_call_id", "The Produce.", "as produced_time"),
        _call("visible_call_id", "The call of visible_time.", "as visible_time"),
        _call("fetched_call_id", "The Fetch.", "as fetched_time"),
        _call("committed_call_id", "The commit.", "as committed_time"),
        _part(
            "total_ns",
            "From record_time to committed_time, or to fetched_time without one. The six parts add up to it "
            "where produced_time is known.",
            "no reader, or no earlier time",
        ),
        _part(
            "before_wire_ns",
            "In the producer: from record_time to produced_time.",
            "one of them is null, or record_time is later: clocks differ",
        ),
        _part(
            "produce_ns",
            "From produced_time to acknowledged_time.",
            "as produced_time",
        ),
        _part(
            "replication_ns",
            "From then to visible_time.",
            "as visible_time, or only the reader's own Fetch shows it",
        ),
        _part(
            "fetch_wait_ns",
            "From then to the first byte of the Fetch response.",
            "as fetched_time or produced_time",
        ),
        _part("fetch_ns", "The Fetch response: from its first byte to fetched_time.", _NO_READER),
        _part(
            "processing_ns",
            "From fetched_time to committed_time.",
            "as committed_time",
        ),
    ),
)
