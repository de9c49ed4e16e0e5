"""Columns of connections that tell who ended one, or did not let it come about."""

from typing import Final

from kwsniff.tables.column import Column

_NO_RESET = "no reset ended it"
_NO_STEP = f"{_NO_RESET}, or its sender had sent nothing before"
_NO_ERROR = "there was none"
_FRAME = "position of the packet in its capture"

OPENING: Final = (
    Column(
        name="refused",
        type="bool",
        doc="Whether its SYN was answered by a reset: nobody listens there, or a firewall says so.",
        source="TCP SYN and RST",
    ),
    Column(
        name="syn_retries",
        type="int64",
        doc="How often the client sent its SYN again.",
        source="TCP SYN with the same number",
        null="the client's SYN was not captured",
    ),
    Column(
        name="connect_ns",
        type="int64",
        unit="nanoseconds",
        doc="From the client's first SYN to the first answer to one.",
        source="times of SYN and SYN-ACK",
        null="one of them was not captured, or has no time",
    ),
)

EVIDENCE: Final = (
    Column(
        name="reset_by",
        type="string",
        enum="direction",
        doc="Who sent the reset that ended the connection, by its addresses.",
        source="TCP RST",
        null=_NO_RESET,
    ),
    Column(
        name="reset_frame",
        type="int64",
        doc="That packet, as Wireshark counts.",
        source=_FRAME,
        null=_NO_RESET,
    ),
    Column(
        name="reset_acknowledges",
        type="bool",
        doc="Whether that reset has an acknowledgement. One without answers a packet, and comes from a "
        "machine that does not know the connection: it has closed it, or never had it.",
        source="TCP flags (RFC 9293 3.10.7.1)",
        null=_NO_RESET,
    ),
    Column(
        name="reset_ttl_step",
        type="int64",
        doc="Its time to live (hop limit) less the nearest one of its sender's packets before: 0 where it is "
        "within what these have. Packets of one machine pass the same routers: where it is not 0, another "
        "machine sent the reset.",
        source="IP",
        null=_NO_STEP,
    ),
    Column(
        name="reset_ident_step",
        type="int64",
        doc="Its IP identification less that of its sender's packet before, modulo 65536: 1 where the same "
        "machine sent nothing in between.",
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
        doc="What an ICMP error said of its packets: the first one, too_big only where there was no other.",
        source="ICMP errors that quote its addresses, ports and numbers (RFC 792, RFC 4443)",
        null=_NO_ERROR,
    ),
    Column(
        name="icmp_from",
        type="string",
        doc="The address that said so: the machine itself, a router, or a firewall.",
        source="IP",
        null=_NO_ERROR,
    ),
    Column(
        name="icmp_frame",
        type="int64",
        doc="That packet, as Wireshark counts.",
        source=_FRAME,
        null=_NO_ERROR,
    ),
    Column(
        name="port_named",
        type="bool",
        doc="Whether --port names the broker's port.",
        source="--port",
    ),
)
