"""The table with one row per call that was seen whole, and where its time went: latencies."""

from kwsniff.tables.column import Column, TableSchema
from kwsniff.tables.columns import (
    API_KEY,
    API_NAME_AGAIN,
    API_VERSION,
    BROKER_ADDRESS,
    BROKER_PORT,
    CALL_ID,
    CAPTURE,
    CLIENT_ID_AGAIN,
    CONNECTION_ID,
)


def _part(name: str, doc: str, *, statistics: bool = False) -> Column:
    return Column(
        name=name, type="int64", unit="nanoseconds", doc=doc, source="packet times", statistics=statistics
    )


LATENCIES = TableSchema(
    name="latencies",
    row="one call whose request and response were both seen whole",
    doc="How long calls took, and where the time went. The five parts are never negative and add up to "
    "`total_ns`. Durations are computed from the capture's full precision, at the place it was taken: "
    "`vantage` of connections says which side that looks like.",
    columns=(
        CALL_ID,
        CAPTURE,
        CONNECTION_ID,
        API_KEY,
        API_NAME_AGAIN,
        API_VERSION,
        CLIENT_ID_AGAIN,
        BROKER_ADDRESS,
        BROKER_PORT,
        Column(
            name="request_time",
            type="time",
            doc="When the first byte of the request passed.",
            source="packet time, rounded down to the microsecond",
            statistics=True,
        ),
        _part(
            "total_ns",
            "From the first byte of the request to the last byte of the response.",
            statistics=True,
        ),
        _part("request_transmission_ns", "From the first packet of the request to its last."),
        _part(
            "queue_wait_ns",
            "From the end of the request to the end of the response to the call before it on this "
            "connection: brokers answer the calls of a connection one after the other.",
        ),
        _part(
            "broker_ns",
            "From there to the first packet of the response, without the deliberate wait: what the broker "
            "took, and the network between the capture and the broker.",
        ),
        _part(
            "deliberate_wait_ns",
            "Time the broker let pass because it was asked to (a fetch that waits for data) or because of a "
            "quota; `wait` says which.",
        ),
        _part(
            "response_transmission_ns",
            "From the first packet of the response to its last; when it began before the request ended, from "
            "the end of the request.",
        ),
        Column(
            name="wait",
            type="string",
            enum="wait",
            doc="What the deliberate wait is.",
            source="max_wait_ms, min_bytes, throttle_time_ms, records and errors of the messages",
        ),
        Column(
            name="round_trip_ns",
            type="int64",
            unit="nanoseconds",
            doc="Network round trip of the connection, as far as it was known when the call ended.",
            source="times of the handshake, or of segments and their acknowledgements",
            null="neither was seen",
        ),
        Column(
            name="retransmissions",
            type="int32",
            doc="Segments that were sent again during the call, by either side.",
            source="TCP sequence numbers",
        ),
        Column(
            name="zero_window_ns",
            type="int64",
            unit="nanoseconds",
            doc="How much of the call passed while one of the sides said that it has no room.",
            source="TCP window",
        ),
    ),
)
