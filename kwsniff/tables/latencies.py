"""The table with one row per completely captured call and the parts of its latency: latencies."""

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
    row="one call whose request and response were both captured whole",
    doc="Latency of calls and its parts. The six parts are never negative and add up to `total_ns`. "
    "Durations have the capture's full precision and are as seen at the capture point; `capture_point` of "
    "connections estimates that point. Without a handshake or two prompt acknowledgements of the broker "
    "(that of the first captured segment does not count), the network time to the broker is unknown and "
    "stays in `broker_ns`. [Latency breakdown](../latency_breakdown.md) compares the parts with brokers' own "
    "clocks.",
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
            doc="Time of the first byte of the request.",
            source="packet time",
            statistics=True,
        ),
        _part(
            "total_ns",
            "From the first byte of the request until the response was complete.",
            statistics=True,
        ),
        _part("request_transmission_ns", "From the first packet of the request to its last."),
        _part(
            "network_ns",
            "Time beyond the capture point: the round trip between capture and broker, from prompt "
            "acknowledgements near the call, or as measured by a place nearer to the broker; and the time "
            "until lost segments were retransmitted. For a lost response whose gap became visible with a "
            "prompt response to the next request, also the time before. For one without later data, the "
            "broker's retransmission timeout, if IP identification numbers show that it was sent.",
        ),
        _part(
            "queue_wait_ns",
            "Wait at the broker for earlier calls of this connection, which brokers process in order; "
            "`queued_behind` names the call.",
        ),
        _part(
            "broker_ns",
            "Time of the broker for the call itself, without the deliberate wait.",
        ),
        _part(
            "deliberate_wait_ns",
            "Deliberate wait for another event, which `wait` names. If the capture does not show when it "
            "ended: all but 1 ms.",
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
            doc="Kind of the deliberate wait.",
            source="max_wait_ms, min_bytes, acks, throttle_time_ms, records, their timestamps and errors; "
            "calls of other connections that ended within a second of it",
        ),
        Column(
            name="queued_behind",
            type="int64",
            doc="`call_id` of the call that caused most of the queue wait.",
            source="order of the calls of the connection",
            null="no queue wait",
        ),
        Column(
            name="queued_behind_wait",
            type="string",
            enum="wait",
            doc="The deliberate wait of that call, if it took at least half of its time; else `none`.",
            source="the row of that call",
            null="no queue wait",
        ),
        Column(
            name="round_trip_ns",
            type="int64",
            unit="nanoseconds",
            doc="Network round trip of the connection's handshake.",
            source="times of SYN, SYN-ACK and ACK",
            null="the capture does not have the whole handshake",
        ),
        Column(
            name="retransmissions",
            type="int32",
            doc="Segments retransmitted by either side during the call.",
            source="TCP sequence numbers",
        ),
        Column(
            name="zero_window_ns",
            type="int64",
            unit="nanoseconds",
            doc="How much of the call passed while one side advertised a zero window.",
            source="TCP window",
        ),
        Column(
            name="transmission_stall",
            type="string",
            enum="stall_cause",
            doc="Cause of most of the stalled time of the call; its rows in `stalls` have the times.",
            source="TCP numbers, windows and acknowledgements",
            null="no stalls",
        ),
        Column(
            name="broker_round_trip_ns",
            type="int64",
            unit="nanoseconds",
            doc="Round trip between capture and broker at the time of the call, as `network_ns` has it; 0 at "
            "the broker.",
            source="times of the latest segments and their acknowledgements",
            null="unknown: `broker_ns` contains it",
        ),
        Column(
            name="broker_round_trip_error_ns",
            type="int64",
            unit="nanoseconds",
            doc="By how much it may differ: what the longest of these acknowledgements took longer, or that "
            "of the request itself.",
            source="the same",
            null="the same",
        ),
    ),
)
