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
    doc="How long calls took, and where the time went. The six parts are never negative and add up to "
    "`total_ns`. Durations are computed from the capture's full precision, at the place it was taken: "
    "`vantage` of connections says which side that looks like. Where neither a handshake nor two prompt "
    "acknowledgements of the broker were seen (that of the first segment captured does not count), the way "
    "to it is not known and stays in `broker_ns`. [Latency breakdown](../latency_breakdown.md) compares the "
    "parts with brokers' own clocks.",
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
            source="packet time",
            statistics=True,
        ),
        _part(
            "total_ns",
            "From the first byte of the request until all of the response was there.",
            statistics=True,
        ),
        _part("request_transmission_ns", "From the first packet of the request to its last."),
        _part(
            "network_ns",
            "What lies beyond the capture: the round trip between the capture and the broker, as prompt "
            "acknowledgements near the call tell it, and the time until lost segments had come again. Of a "
            "lost answer whose hole was seen by a prompt answer to the next request, also the time before. "
            "Of one with nothing behind it, the broker's timeout, where IP's numbers show that it was sent.",
        ),
        _part(
            "queue_wait_ns",
            "What the call waited at the broker for the calls before it on this connection, which brokers "
            "answer one after the other; `behind` says for which.",
        ),
        _part(
            "broker_ns",
            "What the broker took for the call itself, without the deliberate wait.",
        ),
        _part(
            "deliberate_wait_ns",
            "Time that was waited for something else on purpose; `wait` says for what. Where nobody says "
            "when it ended: all but 1 ms.",
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
            doc="What the deliberate wait was for.",
            source="max_wait_ms, min_bytes, acks, throttle_time_ms, records, their timestamps and errors; "
            "calls of others that ended within a second of it",
        ),
        Column(
            name="behind",
            type="int64",
            doc="`call_id` of the call that took most of the time in line.",
            source="order of the calls of the connection",
            null="it did not wait in line",
        ),
        Column(
            name="behind_wait",
            type="string",
            enum="wait",
            doc="What that call was waiting for itself, for at least half of its time; `none`: for nothing.",
            source="the row of that call",
            null="it did not wait in line",
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
