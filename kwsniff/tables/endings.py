"""Columns of connections on their opening and ending: evidence of who closed or refused them."""

from typing import Final

from kwsniff.tables.column import Column

_NO_RESET = "no reset ended it"
_NO_STEP = f"{_NO_RESET}, or its sender had sent nothing before"
_NO_ERROR = "no ICMP error"
_FRAME = "position of the packet in its capture"

OPENING: Final = (
    Column(
        name="refused",
        type="bool",
        doc="Whether the SYN was answered by a reset, from a port without a listener or from a firewall.",
        source="TCP SYN and RST",
    ),
    Column(
        name="syn_retries",
        type="int64",
        doc="Number of SYN retransmissions by the client.",
        source="TCP SYN with the same number",
        null="the client's SYN was not captured",
    ),
    Column(
        name="connect_ns",
        type="int64",
        unit="nanoseconds",
        doc="From the client's first SYN to the first response to a SYN.",
        source="times of SYN and SYN-ACK",
        null="one of them was not captured, or has no time",
    ),
)

EVIDENCE: Final = (
    Column(
        name="reset_by",
        type="string",
        enum="direction",
        doc="Sender of the reset that ended the connection, by its addresses.",
        source="TCP RST",
        null=_NO_RESET,
    ),
    Column(
        name="reset_frame",
        type="int64",
        doc="That packet.",
        source=_FRAME,
        null=_NO_RESET,
    ),
    Column(
        name="reset_acknowledges",
        type="bool",
        doc="Whether that reset has an acknowledgement. One without is a response to a packet, from a "
        "host that does not know the connection: it has closed it, or never had it.",
        source="TCP flags (RFC 9293 3.10.7.1)",
        null=_NO_RESET,
    ),
    Column(
        name="reset_ttl_step",
        type="int64",
        doc="Its time to live (hop limit) minus the nearest one of its sender's earlier packets: 0 if it "
        "is within their range. Packets of one host pass the same routers: if it is not 0, another host "
        "sent the reset.",
        source="IP",
        null=_NO_STEP,
    ),
    Column(
        name="reset_ident_step",
        type="int64",
        doc="Its IP identification minus that of its sender's previous packet, modulo 65536: 1 if the "
        "same host sent nothing in between.",
        source="IPv4 (RFC 6864)",
        null=f"{_NO_STEP}, or its sender does not count its packets as Linux does",
    ),
    Column(
        name="reset_window", type="int64", doc="Its window, not scaled.", source="TCP window", null=_NO_RESET
    ),
    Column(
        name="reset_stamped",
        type="bool",
        doc="Whether it has a timestamp, as its sender's other packets have.",
        source="TCP timestamps (RFC 7323 3.2)",
        null=f"{_NO_RESET}, or the others have none",
    ),
    Column(
        name="icmp_error",
        type="string",
        enum="icmp_error",
        doc="The first ICMP error about its packets; too_big only if there was no other.",
        source="ICMP errors that quote its addresses, ports and numbers (RFC 792, RFC 4443)",
        null=_NO_ERROR,
    ),
    Column(
        name="icmp_from",
        type="string",
        doc="Sender of the ICMP error: the host itself, a router, or a firewall.",
        source="IP",
        null=_NO_ERROR,
    ),
    Column(
        name="icmp_frame",
        type="int64",
        doc="That packet.",
        source=_FRAME,
        null=_NO_ERROR,
    ),
    Column(
        name="port_named",
        type="bool",
        doc="Whether --port includes the broker's port.",
        source="--port",
    ),
)
