"""The table of hops: what a call took between two places where it was captured."""

from dataclasses import replace
from typing import Final

from kwsniff.tables.column import Column, TableSchema
from kwsniff.tables.columns import CALL_ID, CONNECTION_ID

NONE: Final = -(1 << 63)
"""In computations, a time that is not there."""

_SHARED = "calls that both places have"

PLACE = (
    Column(
        name="place",
        type="string",
        doc="Place of capture: from `--place` or the file name.",
        source="TCP segments that captures share",
        null="one place",
    ),
    Column(
        name="clock_offset_ns",
        type="int64",
        unit="nanoseconds",
        doc="How far its clock is ahead of the reference place's, halfway.",
        source=_SHARED,
        null="one place, or no such calls",
    ),
    Column(
        name="clock_error_ns",
        type="int64",
        unit="nanoseconds",
        doc="Largest error of the offset: half of the shortest round trip between the places.",
        source=_SHARED,
        null="the same",
    ),
    Column(
        name="clock_drift_ppm",
        type="double",
        unit="parts per million",
        doc="How much faster its clock runs.",
        source=_SHARED,
        null="the same",
    ),
)
"""Columns of captures on where they were taken."""

HOPS = TableSchema(
    name="hops",
    row="one call between two neighbouring places where it was captured",
    doc="Measured network times; [several places](../places.md) explains them.",
    columns=(
        replace(CALL_ID, doc="The call, as it counts."),
        replace(CONNECTION_ID, doc="Its connection."),
        Column(
            name="from_place",
            type="string",
            doc="Place nearer to the client.",
            source="duration of calls at each place",
        ),
        Column(
            name="to_place",
            type="string",
            doc="Place nearer to the broker.",
            source="duration of calls at each place",
        ),
        Column(
            name="request_ns",
            type="int64",
            unit="nanoseconds",
            doc="Time of the request's last byte from `from_place` to `to_place`.",
            source="packet times, clocks of the places",
            null="unknown clock",
        ),
        Column(
            name="response_ns",
            type="int64",
            unit="nanoseconds",
            doc="Time of the response's last byte from `to_place` to `from_place`.",
            source="packet times, clocks of the places",
            null="no response, or unknown clock",
        ),
        Column(
            name="lost_packets",
            type="int64",
            doc="Segments of the call that one place saw and the other did not, both directions.",
            source="retransmissions at both places",
        ),
    ),
)
