"""The tables of coordination over many calls: groups and transactions."""

from dataclasses import replace

from kwsniff.tables.column import Column, TableSchema, TypeWord
from kwsniff.tables.columns import (
    CAPTURE,
    CLIENT_ID,
    ERROR_NAME,
    GROUP_ID,
    PRODUCER_EPOCH,
    PRODUCER_ID,
    moment,
)


def _column(name: str, type_: TypeWord, doc: str, source: str, null: str | None = None) -> Column:
    return Column(name=name, type=type_, doc=doc, source=source, null=null)


CALL_IDS = _column("call_ids", "integers", "Its calls: the first 19, and the last one.", "api_calls")
SESSION_TIMEOUT = Column(
    name="session_timeout_ms",
    type="int32",
    unit="milliseconds",
    doc="Session timeout of the members; the longest, if members differ.",
    source="JoinGroup",
    null="no JoinGroup with it was captured; in other kinds of groups the broker chooses it",
)
REBALANCE_TIMEOUT = Column(
    name="rebalance_timeout_ms",
    type="int32",
    unit="milliseconds",
    doc="Time allowed to rejoin, which is max.poll.interval.ms of consumers; the longest, if members differ.",
    source="JoinGroup from version 1; ConsumerGroupHeartbeat",
    null="no message with it was captured",
)

_JOINS = "JoinGroup requests; group heartbeats with epoch 0"
_MEMBER = "Static members (KIP-345) by instance id, others by member id."

GROUPS = TableSchema(
    name="groups",
    row="one rebalance of a consumer, share or streams group: a generation or epoch after another",
    doc="Members, duration and reason. A new generation (classic groups), or the first heartbeat with a "
    "new epoch (KIP-848 and similar protocols), starts a new row. Times have microsecond precision. "
    "Computed from api_calls; at most 10,000 groups are tracked at a time.",
    columns=(
        replace(CAPTURE, doc="Capture file with its first call."),
        replace(GROUP_ID, null=None),
        Column(
            name="kind",
            type="string",
            enum="group_kind",
            doc="Protocol of the group.",
            source="API",
        ),
        _column(
            "protocol_type", "string", "consumer, connect or another.", "JoinGroup", "not in any message"
        ),
        _column(
            "generation_before",
            "int32",
            "Generation or epoch before it.",
            "calls of the group",
            "not captured",
        ),
        _column(
            "generation",
            "int32",
            "Generation or epoch after it.",
            "JoinGroup response; heartbeats",
            "it did not end during the capture",
        ),
        Column(
            name="reason",
            type="string",
            enum="rebalance_reason",
            doc="Why it began, from the members' calls.",
            source="order of joins, leaves and heartbeats",
        ),
        _column(
            "reason_member",
            "string",
            f"The member that triggered it. {_MEMBER}",
            _JOINS,
            "no single member triggered it",
        ),
        _column(
            "reason_text",
            "string",
            "The reason text of that member, else of the first member with one (KIP-800).",
            "JoinGroup from version 8, LeaveGroup from version 5",
            "no reason text",
        ),
        _column("members", "strings", f"Members in the order of their joins. {_MEMBER}", _JOINS),
        _column(
            "member_count", "int32", "Number of members; `members` does not list thousands of them.", _JOINS
        ),
        _column("first_member", "string", "The member that joined first.", _JOINS, "no join was captured"),
        moment("first_join_time", "Time of its join request.", "no join was captured"),
        _column("last_member", "string", "The member that joined last.", _JOINS, "no join was captured"),
        moment("last_join_time", "Time of its join request.", "no join was captured"),
        moment(
            "begin_time",
            "First JoinGroup request; in other kinds of groups the first heartbeat that joins, leaves or "
            "has the new epoch.",
            "the beginning was not captured",
            statistics=True,
        ),
        moment(
            "end_time",
            "Last SyncGroup response; in other kinds of groups the response to the last member's first "
            "heartbeat with the new epoch.",
            "it did not end during the capture",
        ),
        Column(
            name="duration_ns",
            type="int64",
            unit="nanoseconds",
            doc="From begin_time to end_time.",
            source="packet times",
            null="one of the times is null",
            statistics=True,
        ),
        _column("calls", "int32", "Number of its calls.", "JoinGroup, SyncGroup, group heartbeats"),
        _column("error_count", "int32", "Number of these calls with an error.", "error codes"),
        SESSION_TIMEOUT,
        REBALANCE_TIMEOUT,
        CALL_IDS,
    ),
)

TRANSACTIONS = TableSchema(
    name="transactions",
    row="one transaction of a transactional producer",
    doc="From the call that begins the transaction (AddPartitionsToTxn, AddOffsetsToTxn, Produce or "
    "TxnOffsetCommit after InitProducerId) to its end. Times have microsecond precision. Computed from "
    "api_calls; at most 10,000 transactional ids are tracked at a time.",
    columns=(
        replace(CAPTURE, doc="Capture file with its first call."),
        _column("transactional_id", "string", "The transactional producer.", "transactional_id"),
        replace(PRODUCER_ID, null="not in any message of the transaction"),
        replace(PRODUCER_EPOCH, null="not in any message of the transaction"),
        CLIENT_ID,
        moment("begin_time", "Its first call.", "the beginning was not captured", statistics=True),
        moment(
            "end_time",
            "Response to the EndTxn, or to the call with the fencing error.",
            "the end was not captured",
        ),
        Column(
            name="duration_ns",
            type="int64",
            unit="nanoseconds",
            doc="From begin_time to end_time.",
            source="packet times",
            null="one of the times is null",
            statistics=True,
        ),
        Column(
            name="timeout_ms",
            type="int32",
            unit="milliseconds",
            doc="Transaction timeout.",
            source="InitProducerId",
            null="the InitProducerId was not captured",
        ),
        Column(
            name="outcome",
            type="string",
            enum="transaction_outcome",
            doc="How it ended.",
            source="EndTxn, InitProducerId, error codes",
        ),
        _column("topics", "strings", "Topics written to.", "AddPartitionsToTxn, Produce"),
        _column(
            "partition_count",
            "int32",
            "Partitions added with AddPartitionsToTxn; the most of one Produce if that is not used "
            "(KIP-890).",
            "api_calls",
        ),
        replace(
            GROUP_ID, null="the transaction commits no offsets", doc="The group whose offsets it commits."
        ),
        _column("calls", "int32", "Number of its calls.", "calls with its transactional id"),
        _column("record_count", "int64", "Records produced in it.", "Produce requests"),
        Column(
            name="record_bytes",
            type="int64",
            unit="bytes",
            doc="Size of these record sets on the wire.",
            source="Produce requests",
        ),
        _column("error_count", "int32", "Number of its calls with an error.", "error codes"),
        _column("error_code", "int16", "The first error code.", "error codes", "no error"),
        replace(ERROR_NAME, derived_from=None, doc="Kafka's name for it.", null="no error"),
        CALL_IDS,
    ),
)
