"""The table of what TCP had to do twice, or could not do."""

from dataclasses import replace

from kwsniff.tables.column import Column, TableSchema
from kwsniff.tables.columns import CALL_ID, CAPTURE, CONNECTION_ID

TCP_EVENTS = TableSchema(
    name="tcp_events",
    row="one event of TCP",
    doc="Retransmissions, closed windows, refused and reset connections, repeated SYNs and acknowledgements: "
    "of connections that are Kafka's, and of those that carried nothing. The same `stream_offset` three "
    "times with nothing from the other side is a dead path.",
    columns=(
        replace(CAPTURE, doc="The capture file with the packet."),
        CONNECTION_ID,
        Column(
            name="time",
            type="time",
            doc="When the packet passed.",
            source="packet time",
            null="the packets carry no time",
            statistics=True,
        ),
        Column(
            name="frame",
            type="int64",
            doc="That packet, as Wireshark counts; of duplicate_acks the first one.",
            source="position of the packet in its capture",
        ),
        Column(
            name="kind", type="string", enum="tcp_event", doc="What happened.", source="TCP flags and numbers"
        ),
        Column(
            name="sender",
            type="string",
            enum="direction",
            doc="Who sent the packet.",
            source="TCP stream",
            null="client and broker were not told apart",
        ),
        Column(
            name="stream_offset",
            type="int64",
            unit="bytes",
            doc="Where in the stream: the first byte sent again; for windows and acknowledgements the byte "
            "that the other side is to send next, in its own stream.",
            source="TCP sequence numbers",
            null="it is about no place in a stream, or about one before the capture",
        ),
        Column(
            name="bytes",
            type="int64",
            unit="bytes",
            doc="Bytes sent again.",
            source="TCP sequence numbers",
            null="not a retransmission",
        ),
        Column(
            name="count",
            type="int64",
            doc="Acknowledgements in the row.",
            source="TCP acknowledgement numbers",
            null="not duplicate_acks",
        ),
        replace(
            CALL_ID,
            doc="The call that it delayed: the one whose bytes are there; for a reset the oldest without "
            "an answer.",
            null="no call was seen there, or the connection is inside TLS",
        ),
    ),
)
