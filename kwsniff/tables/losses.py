"""Columns of connections about bytes that did not arrive, or that nothing shows to have arrived."""

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
        "Missing bytes of the {side} that never arrived: the {other} had bytes behind them and still "
        "asked for them, or closed without them. The network lost them, not the capture.",
        "acknowledgements, selective ones too (RFC 2018)",
        unit="bytes",
    ),
    *each_side(
        "lost_before_bytes",
        "Bytes sent again by the {side} of which the capture has only a later copy: the first one was "
        "lost between the {side} and the capture.",
        "order of TCP sequence numbers, timestamps and acknowledgements",
        unit="bytes",
    ),
    *each_side(
        "unacknowledged_bytes",
        "Bytes of the {side} that the {other} had not acknowledged when connection or capture ended.",
        "TCP sequence numbers and acknowledgements",
        unit="bytes",
        null="no acknowledgement of them was seen",
    ),
    *each_side(
        "largest_acknowledged",
        "Payload of the largest packet of the {side} that surely arrived: all that was sent until then "
        "was acknowledged. Network cards join packets before they are captured.",
        "TCP sequence numbers and acknowledgements",
        unit="bytes",
    ),
]
