"""The table of group members."""

from dataclasses import replace

from kwsniff.tables.column import Column, TableSchema
from kwsniff.tables.columns import CAPTURE, CLIENT_ID, GROUP_ID, moment
from kwsniff.tables.groups import CALL_IDS, REBALANCE_TIMEOUT, SESSION_TIMEOUT

MEMBERS = TableSchema(
    name="members",
    row="one membership of a consumer, share or streams group: from the join of a member to its end",
    doc="The member id identifies a member; a static member (KIP-345) gets a new one and a new row when "
    "it restarts. Rows are in the order in which memberships ended. Computed from api_calls and "
    "what JoinGroup, SyncGroup, LeaveGroup and group heartbeats contain; at most 100,000 members are tracked "
    "at a time.",
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
        Column(name="member_id", type="string", doc="Its member id.", source="member_id", statistics=True),
        Column(
            name="group_instance_id",
            type="string",
            doc="Its instance id.",
            source="group_instance_id",
            null="no message of it has one: not a static member",
        ),
        CLIENT_ID,
        Column(
            name="client_address",
            type="string",
            doc="Address of its last call.",
            source="IP header",
            null="never seen",
        ),
        moment("joined_time", "Time of its join request.", "its join was not captured", statistics=True),
        moment(
            "last_time",
            "Its last call to the coordinator, other than the one that ended the membership.",
            "no such call",
        ),
        moment(
            "left_time",
            "When it or another client requested its removal, or it got UNKNOWN_MEMBER_ID from the "
            "coordinator.",
            "it did not leave during the capture, or fell silent at an unknown time",
        ),
        Column(
            name="left_how",
            type="string",
            enum="left_how",
            doc="How the membership ended.",
            source="LeaveGroup, group heartbeats, error codes",
        ),
        Column(
            name="reason_text",
            type="string",
            doc="Its reason text for leaving, else that of its last join with a reason (KIP-800).",
            source="LeaveGroup from version 5, JoinGroup from version 8",
            null="no reason text",
        ),
        replace(SESSION_TIMEOUT, doc="Session timeout: how long it may be silent."),
        replace(
            REBALANCE_TIMEOUT,
            doc="Time allowed to rejoin, which is max.poll.interval.ms of consumers.",
        ),
        Column(
            name="heartbeat_interval_ms",
            type="int32",
            unit="milliseconds",
            doc="Heartbeat interval that the coordinator requires; classic members choose their own.",
            source="heartbeat_interval_ms of group heartbeats",
            null="a classic member, or no response was captured",
        ),
        Column(
            name="generation",
            type="int32",
            doc="The last generation or epoch with this member.",
            source="JoinGroup response; heartbeats",
            null="not in any message",
        ),
        Column(
            name="topics",
            type="strings",
            doc="Topics it subscribed to by name, at most 1,000.",
            source="what JoinGroup carries for consumers; group heartbeats",
            null="not captured, not a consumer, or a pattern",
        ),
        Column(
            name="partitions",
            type="strings",
            doc="Partitions of its last assignment, as `topic-partition`, at most 1,000; topics by id if "
            "no Metadata response has their names.",
            source="what SyncGroup carries for consumers; group heartbeats",
            null="its assignment was not captured, or it is not a consumer",
        ),
        Column(
            name="partition_count",
            type="int32",
            doc="Number of assigned partitions; 0: an idle member.",
            source="as partitions",
            null="as partitions",
        ),
        CALL_IDS,
    ),
)
