"""The table that tells who is who in groups."""

from dataclasses import replace

from kwsniff.tables.column import Column, TableSchema
from kwsniff.tables.columns import CAPTURE, CLIENT_ID, GROUP_ID, moment
from kwsniff.tables.coordination import CALL_IDS, REBALANCE_TIMEOUT, SESSION_TIMEOUT

MEMBERS = TableSchema(
    name="members",
    row="one membership of a consumer, share or streams group: from the join of a member to its end",
    doc="A member is known by its member id; a static member (KIP-345) that starts again has another one, "
    "and a row of its own. Rows stand in the order in which memberships ended. Computed from api_calls and "
    "what JoinGroup, SyncGroup, LeaveGroup and group heartbeats carry; at most 100,000 members are followed "
    "at a time.",
    columns=(
        replace(CAPTURE, doc="The capture file of the first call that shows it."),
        replace(GROUP_ID, null=None),
        Column(
            name="kind",
            type="string",
            enum="group_kind",
            doc="Which protocol the group follows.",
            source="API",
        ),
        Column(name="member_id", type="string", doc="Its member id.", source="member_id", statistics=True),
        Column(
            name="group_instance_id",
            type="string",
            doc="Its instance id.",
            source="group_instance_id",
            null="no message of it has one: the member is not static",
        ),
        CLIENT_ID,
        Column(
            name="client_address",
            type="string",
            doc="Where it spoke last.",
            source="IP header",
            null="never seen",
        ),
        moment("joined_time", "When it asked to join.", "its join was not captured", statistics=True),
        moment(
            "last_time", "Its last call to the coordinator but for that with which it left.", "there is none"
        ),
        moment(
            "left_time",
            "When it, or whoever removed it, asked to leave, or the coordinator said that it is no member.",
            "it did not leave in the capture, or fell silent and nobody said when it was gone",
        ),
        Column(
            name="left_how",
            type="string",
            enum="left_how",
            doc="How it came to an end.",
            source="LeaveGroup, group heartbeats, error codes",
        ),
        Column(
            name="reason_text",
            type="string",
            doc="The reason it gave in words for leaving, or else for the last join that has one (KIP-800).",
            source="LeaveGroup from version 5, JoinGroup from version 8",
            null="it gave none",
        ),
        replace(SESSION_TIMEOUT, doc="After how much silence it counts as gone."),
        replace(
            REBALANCE_TIMEOUT,
            doc="How long it may take to join again, which is max.poll.interval.ms of consumers.",
        ),
        Column(
            name="heartbeat_interval_ms",
            type="int32",
            unit="milliseconds",
            doc="How often the coordinator wants to hear of it; classic members choose it themselves.",
            source="heartbeat_interval_ms of group heartbeats",
            null="a classic member, or no response was captured",
        ),
        Column(
            name="generation",
            type="int32",
            doc="The last generation or epoch it had a part in.",
            source="JoinGroup response; heartbeats",
            null="no message says it",
        ),
        Column(
            name="topics",
            type="strings",
            doc="Topics it subscribed to by name, at most 1,000.",
            source="what JoinGroup carries for consumers; group heartbeats",
            null="not captured, no consumer's, or a pattern",
        ),
        Column(
            name="partitions",
            type="strings",
            doc="Partitions it was assigned last, as `topic-partition`, at most 1,000; topics by id where no "
            "Metadata response names them.",
            source="what SyncGroup carries for consumers; group heartbeats",
            null="its assignment was not captured, or is no consumer's",
        ),
        Column(
            name="partition_count",
            type="int32",
            doc="How many; 0: a member with nothing to do.",
            source="as partitions",
            null="as partitions",
        ),
        CALL_IDS,
    ),
)
