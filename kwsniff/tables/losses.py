"""Columns of connections on lost bytes, and on bytes without proof of arrival."""

from kwsniff.tables.column import Column


def each_side(
    name: str, doc: str, source: str, *, unit: str | None = None, null: str | None = None
) -> list[Column]:
    """Numbers for client and broker; `doc` names the side, and the other one."""
    sides = (("client", "broker"), ("broker", "client"))
    return [
        Column(
            name=f"{side}_{name}",
            type="int64",
            unit=unit,
            doc=doc.format(side=side, other=other),
            source=source,
            null=null,
        )
        for side, other in sides
    ]


LOSSES = [
    *each_side(
        "lost_bytes",
        "Missing bytes of the {side} that never arrived: the {other} had later bytes and still requested "
        "these, or closed without them. The network lost them, not the capture.",
        "acknowledgements, selective ones too (RFC 2018)",
        unit="bytes",
    ),
    *each_side(
        "lost_before_bytes",
        "Retransmitted bytes of the {side} without the first transmission in the capture: it was lost "
        "between the {side} and the capture point.",
        "order of TCP sequence numbers, timestamps and acknowledgements",
        unit="bytes",
    ),
    *each_side(
        "unacknowledged_bytes",
        "Bytes of the {side} that the {other} had not acknowledged when connection or capture ended.",
        "TCP sequence numbers and acknowledgements",
        unit="bytes",
        null="no acknowledgement of them was captured",
    ),
    *each_side(
        "largest_acknowledged",
        "Payload of the largest packet of the {side} that certainly arrived: everything up to it was "
        "acknowledged. Network cards merge packets before they are captured.",
        "TCP sequence numbers and acknowledgements",
        unit="bytes",
    ),
]
