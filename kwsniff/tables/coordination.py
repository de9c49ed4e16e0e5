"""The tables that tell what happened over many calls: groups and transactions."""

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


CALL_IDS = _column(
    "call_ids", "integers", "Calls that it is made of: the first 19, and the last one.", "api_calls"
)
SESSION_TIMEOUT = Column(
    name="session_timeout_ms",
    type="int32",
    unit="milliseconds",
    doc="After how much silence a member counts as gone; the longest, where members differ.",
    source="JoinGroup",
    null="no JoinGroup that says it was captured; brokers choose it in other kinds of groups",
)
REBALANCE_TIMEOUT = Column(
    name="rebalance_timeout_ms",
    type="int32",
    unit="milliseconds",
    doc="How long members may take to join again, which is max.poll.interval.ms of consumers; the longest, "
    "where members differ.",
    source="JoinGroup from version 1; ConsumerGroupHeartbeat",
    null="no message that says it was captured",
)

_JOINS = "JoinGroup requests; group heartbeats with epoch 0"
_MEMBER = "Static members (KIP-345) by their instance id, others by their member id."

GROUPS = TableSchema(
    name="groups",
    row="one rebalance of a consumer, share or streams group: a generation or epoch after another",
    doc="Who joined when, how long it took, and why. Rebalances are told apart by generation (classic "
    "groups) or by the first heartbeat that brings a new epoch (KIP-848 and its kin). Times are exact to the "
    "microsecond. Computed from api_calls; at most 10,000 groups are followed at a time.",
    columns=(
        replace(CAPTURE, doc="The capture file of its first call."),
        replace(GROUP_ID, null=None),
        Column(
            name="kind",
            type="string",
            enum="group_kind",
            doc="Which protocol the group follows.",
            source="API",
        ),
        _column(
            "protocol_type", "string", "consumer, connect or another.", "JoinGroup", "no message said it"
        ),
        _column(
            "generation_before", "int32", "Generation or epoch before.", "calls of the group", "none was seen"
        ),
        _column(
            "generation",
            "int32",
            "Generation or epoch that it led to.",
            "JoinGroup response; heartbeats",
            "it did not come to an end in the capture",
        ),
        Column(
            name="reason",
            type="string",
            enum="rebalance_reason",
            doc="Why it began, as far as the members' own calls show.",
            source="order of joins, leaves and heartbeats",
        ),
        _column(
            "reason_member",
            "string",
            f"The member that made it begin. {_MEMBER}",
            _JOINS,
            "no single member did",
        ),
        _column(
            "reason_text",
            "string",
            "What that member, or else the first one that says so, gives as its reason in words (KIP-800).",
            "JoinGroup from version 8, LeaveGroup from version 5",
            "nobody gave one",
        ),
        _column("members", "strings", f"Members that took part, in the order they joined. {_MEMBER}", _JOINS),
        _column("member_count", "int32", "How many; more than are listed when there are thousands.", _JOINS),
        _column("first_member", "string", "The member that joined first.", _JOINS, "no join was seen"),
        moment("first_join_time", "When it asked to join.", "no join was seen"),
        _column("last_member", "string", "The member that joined last.", _JOINS, "no join was seen"),
        moment("last_join_time", "When it asked to join.", "no join was seen"),
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
            "it did not come to an end in the capture",
        ),
        Column(
            name="duration_ns",
            type="int64",
            unit="nanoseconds",
            doc="From begin_time to end_time.",
            source="packet times",
            null="one of them is missing",
            statistics=True,
        ),
        _column("calls", "int32", "Calls that belong to it.", "JoinGroup, SyncGroup, group heartbeats"),
        _column("error_count", "int32", "How many of them brought an error.", "error codes"),
        SESSION_TIMEOUT,
        REBALANCE_TIMEOUT,
        CALL_IDS,
    ),
)

TRANSACTIONS = TableSchema(
    name="transactions",
    row="one transaction of a transactional producer",
    doc="From the first call that makes the transaction begin (AddPartitionsToTxn, AddOffsetsToTxn, Produce "
    "or TxnOffsetCommit after InitProducerId) to its end. Times are exact to the microsecond. Computed from "
    "api_calls; at most 10,000 transactional ids are followed at a time.",
    columns=(
        replace(CAPTURE, doc="The capture file of its first call."),
        _column("transactional_id", "string", "The transactional producer.", "transactional_id"),
        replace(PRODUCER_ID, null="no message of the transaction said it"),
        replace(PRODUCER_EPOCH, null="no message of the transaction said it"),
        CLIENT_ID,
        moment("begin_time", "Its first call.", "the beginning was not captured", statistics=True),
        moment(
            "end_time",
            "Response to the EndTxn, or to the call that said it was fenced.",
            "the end was not captured",
        ),
        Column(
            name="duration_ns",
            type="int64",
            unit="nanoseconds",
            doc="From begin_time to end_time.",
            source="packet times",
            null="one of them is missing",
            statistics=True,
        ),
        Column(
            name="timeout_ms",
            type="int32",
            unit="milliseconds",
            doc="How long the coordinator lets it stay open.",
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
            "Partitions added with AddPartitionsToTxn; the most of one Produce where that is not used "
            "(KIP-890).",
            "api_calls",
        ),
        replace(
            GROUP_ID, null="no offsets were committed in it", doc="The group whose offsets are part of it."
        ),
        _column("calls", "int32", "Calls that belong to it.", "calls with its transactional id"),
        _column("record_count", "int64", "Records produced in it.", "Produce requests"),
        Column(
            name="record_bytes",
            type="int64",
            unit="bytes",
            doc="Size of these record sets on the wire.",
            source="Produce requests",
        ),
        _column("error_count", "int32", "How many of its calls brought an error.", "error codes"),
        _column("error_code", "int16", "The first of them.", "error codes", "there was none"),
        replace(ERROR_NAME, derived_from=None, doc="Kafka's name for it.", null="there was none"),
        CALL_IDS,
    ),
)
