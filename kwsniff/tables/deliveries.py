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
    doc="A reader is a group, or a client without one; a batch that nobody fetched has one row. Fetches of "
    "followers are replication. Control batches and message sets (formats 0 and 1) have no rows. "
    "[Where a record's time goes](../deliveries.md) explains the steps and their parts. Batches wait for "
    "their readers in a part of the memory limit; the oldest ones become rows when it is full.",
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
            source="the only group for which the client commits offsets, of this partition if there are "
            "several",
            null="as fetched_time, or the reader commits for no group or for several",
        ),
        replace(
            CLIENT_ID,
            doc="The reader's client id; of a group, the first member that fetched the batch.",
            null="as fetched_time, or it has none",
        ),
        _time(
            "record_time",
            "Latest time of a record in the batch, by the clock of the producer. As fetched: by that of "
            "the broker if the topic has LogAppendTime.",
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
        _time("acknowledged_time", "When all of the response to it was there.", _NOT_PRODUCED, "packet time"),
        _time(
            "visible_time",
            "The first response that shows the batch below the high watermark: a Fetch, or the "
            "acknowledgement with acks=all. For a reader with read_committed: a Fetch with the batch below "
            "the last stable offset.",
            "no response shows it, or as produced_time",
            "first byte of the response",
        ),
        _time(
            "fetched_time",
            "When all of the first Fetch response was there that gives the batch to the reader.",
            _NO_READER,
            "packet time",
            statistics=True,
        ),
        _time(
            "committed_time",
            "The first byte of the first accepted commit of the group beyond the batch.",
            "no such commit after the fetch, or no group",
            "time of the row in commits",
        ),
        _call("produced_call_id", "The Produce.", "as produced_time"),
        _call("visible_call_id", "The call of visible_time.", "as visible_time"),
        _call("fetched_call_id", "The Fetch.", "as fetched_time"),
        _call("committed_call_id", "The commit.", "as committed_time"),
        _part(
            "total_ns",
            "From record_time to committed_time, or to fetched_time without a commit. Begins with "
            "produced_time if record_time is later, because clocks differ, or null. Where produced_time is "
            "known, the six parts add up to it.",
            "as fetched_time, or neither record_time nor produced_time is known and earlier",
        ),
        _part(
            "before_wire_ns",
            "In the producer: from record_time to produced_time (linger.ms, batching, waiting for other "
            "requests).",
            "one of them is null, or record_time is later: clocks differ",
        ),
        _part(
            "produce_ns",
            "The Produce: from produced_time to acknowledged_time, or to what a reader saw before that.",
            "as produced_time",
        ),
        _part(
            "replication_ns",
            "From then to visible_time; 0 with acks=all, which has it in produce_ns.",
            "as visible_time, or nothing but the reader's own Fetch shows it: fetch_wait_ns has both",
        ),
        _part(
            "fetch_wait_ns",
            "From then to the first byte of the Fetch response: the reader asked late, or the broker held "
            "the response for fetch.min.bytes.",
            "as fetched_time or produced_time",
        ),
        _part("fetch_ns", "The Fetch response: from its first byte to fetched_time.", _NO_READER),
        _part(
            "processing_ns",
            "From fetched_time to committed_time: records wait in the reader, are processed, and are "
            "committed.",
            "as committed_time",
        ),
    ),
)
