"""The table of stalls of TCP: stretches in which a direction stalled, and why."""

from dataclasses import replace

from kwsniff.tables.column import Column, TableSchema
from kwsniff.tables.columns import CALL_ID, CAPTURE, CONNECTION_ID

STALLS = TableSchema(
    name="stalls",
    row="one stretch in which a direction had data to send and did not progress",
    doc="Pauses of 5 ms or more inside a request or response, and before retransmissions. Stalls of a call "
    "never overlap and are part of its transmission and network time in `latencies`. "
    "[TCP stalls](../stalls.md) explains the causes. Connections that stay encrypted have none.",
    columns=(
        replace(CAPTURE, doc="Capture file with the last packet."),
        CONNECTION_ID,
        replace(CALL_ID, doc="The call whose message stalled.", null="the request was never complete"),
        Column(
            name="direction",
            type="string",
            enum="stall_direction",
            doc="Direction that stalled.",
            source="TCP stream",
        ),
        Column(
            name="start_time",
            type="time",
            doc="When it began: time of the last progress.",
            source="packet time",
            statistics=True,
        ),
        Column(
            name="duration_ns",
            type="int64",
            unit="nanoseconds",
            doc="How long it took. After 1,024 stalls of a message: consecutive ones of one cause together.",
            source="packet times",
            statistics=True,
        ),
        Column(
            name="cause",
            type="string",
            enum="stall_cause",
            doc="What the direction waited for.",
            source="TCP numbers, windows and acknowledgements around the stall",
        ),
        Column(
            name="bytes",
            type="int64",
            unit="bytes",
            doc="Bytes in flight during the stall.",
            source="TCP sequence numbers",
            null="no acknowledgement was captured",
        ),
        Column(
            name="first_frame",
            type="int64",
            doc="The packet after which the direction stalled.",
            source="position of the packet in its capture",
        ),
        Column(
            name="last_frame",
            type="int64",
            doc="The packet that ended the stall.",
            source="position of the packet in its capture",
        ),
    ),
)
