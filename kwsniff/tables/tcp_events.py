"""The table of TCP events: retransmissions, zero windows, resets."""

from dataclasses import replace

from kwsniff.tables.column import Column, TableSchema
from kwsniff.tables.columns import CALL_ID, CAPTURE, CONNECTION_ID

TCP_EVENTS = TableSchema(
    name="tcp_events",
    row="one event of TCP",
    doc="Retransmissions, closed windows, refused and reset connections, repeated SYNs and acknowledgements: "
    "of Kafka connections, and of those without data. The same `stream_offset` three times without a "
    "packet from the other side is a dead path.",
    columns=(
        replace(CAPTURE, doc="Capture file with the packet."),
        CONNECTION_ID,
        Column(
            name="time",
            type="time",
            doc="Time of the packet.",
            source="packet time",
            null="the packets have no times",
            statistics=True,
        ),
        Column(
            name="frame",
            type="int64",
            doc="The packet, as Wireshark counts; the first one for duplicate_acks.",
            source="position of the packet in its capture",
        ),
        Column(
            name="kind", type="string", enum="tcp_event", doc="What happened.", source="TCP flags and numbers"
        ),
        Column(
            name="sender",
            type="string",
            enum="direction",
            doc="Sender of the packet.",
            source="TCP stream",
            null="it is unknown which side is the client",
        ),
        Column(
            name="stream_offset",
            type="int64",
            unit="bytes",
            doc="Stream offset: of the first retransmitted byte; for windows and acknowledgements, of the "
            "next byte in the stream of the other side.",
            source="TCP sequence numbers",
            null="it has no stream offset, or one before the capture",
        ),
        Column(
            name="bytes",
            type="int64",
            unit="bytes",
            doc="Retransmitted bytes.",
            source="TCP sequence numbers",
            null="not a retransmission",
        ),
        Column(
            name="count",
            type="int64",
            doc="Number of duplicate acknowledgements.",
            source="TCP acknowledgement numbers",
            null="not duplicate_acks",
        ),
        Column(
            name="lost_before",
            type="bool",
            doc="Whether it is the first copy that reached the capture point: an earlier one was lost.",
            source="TCP numbers and timestamps",
            null="not a retransmission",
        ),
        replace(
            CALL_ID,
            doc="The call that it delayed: the one with these bytes; for a reset the oldest without "
            "an answer.",
            null="no call there, or the connection is encrypted",
        ),
    ),
)
