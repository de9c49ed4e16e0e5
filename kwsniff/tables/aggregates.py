"""The tables that `kwsniff pipeline` aggregates from the others, for hours and days of traffic.

Counts can be summed and sketches merged to make hours and days from minutes.
"""

from dataclasses import replace
from typing import Final

from kwsniff.tables.column import Column, TableSchema
from kwsniff.tables.columns import (
    API_KEY,
    API_NAME,
    BROKER_ADDRESS,
    BROKER_PORT,
    CLIENT_ADDRESS,
    CLIENT_ID,
    ERROR_NAME,
    GROUP_ID,
    RUN_ID,
    SOFTWARE_NAME,
    SOFTWARE_VERSION,
)

_CALLS: Final = "rows of api_calls"


def _since(name: str, what: str) -> Column:
    return Column(
        name=name,
        type="time",
        doc=f"Start of the {what} with the request, else with the response.",
        source=_CALLS,
        null="the packets have no times",
        statistics=True,
    )


def _count(
    name: str, doc: str, source: str = _CALLS, *, unit: str | None = None, null: str | None = None
) -> Column:
    return Column(name=name, type="int64", doc=doc, source=source, unit=unit, null=null)


def _quantile(percent: int) -> Column:
    return _count(f"p{percent}_ns", f"Percentile {percent} of latency.", "sketch", unit="nanoseconds")


_API = (replace(API_KEY, null="unknown without the request, which was not captured"),)
_API_NAME = replace(API_NAME, from_layouts=False, null="no API key, or one unknown to all Kafka releases")
_TOPIC = Column(
    name="topic",
    type="string",
    doc="A topic of the call; a call with several topics counts for each.",
    source="topics of api_calls",
    null="the call has no topic",
    statistics=True,
)

LATENCY_MINUTES = TableSchema(
    name="latency_minutes",
    row="a minute of one API, client, topic and broker",
    doc="Latency of answered calls, from the first byte of the request to the last of the response, "
    "including deliberate waits. `sketch` holds the distribution (KllLongsSketch of Apache DataSketches, "
    "rank error about 1.3 %): `kll_merge_agg_bigint` merges those of many minutes, "
    "`kll_sketch_get_quantile_bigint` reads one.",
    columns=(
        _since("minute", "minute"),
        *_API,
        _API_NAME,
        CLIENT_ID,
        _TOPIC,
        BROKER_ADDRESS,
        BROKER_PORT,
        _count("calls", "Calls with a latency."),
        _count("sum_ns", "Sum of their latencies.", unit="nanoseconds"),
        _count("max_ns", "The longest.", unit="nanoseconds"),
        _quantile(50),
        _quantile(95),
        _quantile(99),
        Column(
            name="sketch",
            type="binary",
            doc="The distribution of the latencies.",
            source="latency_ns of api_calls",
        ),
    ),
)

ERROR_RATES = TableSchema(
    name="error_rates",
    row="a minute of one API, client and broker",
    doc="Failed calls, by kind of failure: `failed / calls` is the error rate.",
    columns=(
        _since("minute", "minute"),
        *_API,
        _API_NAME,
        CLIENT_ID,
        BROKER_ADDRESS,
        BROKER_PORT,
        _count("calls", "Calls."),
        _count("answered", "Calls with a response."),
        _count("failed", "Calls with an error code in the response."),
        _count("unanswered", "Calls without a response from the broker."),
        _count("errors", "Number of error codes in all responses."),
    ),
)

ERROR_COUNTS = TableSchema(
    name="error_counts",
    row="a minute of one error code, API, topic, client and broker",
    doc="Errors by code.",
    columns=(
        replace(
            _since("minute", "minute"),
            doc="Start of the minute with the response.",
            source="rows of error_codes",
        ),
        *_API,
        _API_NAME,
        replace(
            _TOPIC,
            doc="Topic of the error.",
            source="topic of error_codes",
            null="the error has no topic",
        ),
        CLIENT_ID,
        BROKER_ADDRESS,
        BROKER_PORT,
        Column(
            name="error_code", type="int16", doc="Kafka's error code.", source="error_codes", statistics=True
        ),
        replace(ERROR_NAME, derived_from=None, null="an error code that is not in the list"),
        _count("errors", "Number of these error codes.", "rows of error_codes"),
        _count("calls", "Number of calls with this error code.", "rows of error_codes"),
    ),
)

TALKERS = TableSchema(
    name="talkers",
    row="an hour of one client address, client id and broker",
    doc="Traffic by client and broker: calls and bytes.",
    columns=(
        _since("hour", "hour"),
        CLIENT_ADDRESS,
        CLIENT_ID,
        BROKER_ADDRESS,
        BROKER_PORT,
        _count("calls", "Calls."),
        _count("request_bytes", "Bytes of the requests.", unit="bytes"),
        _count("response_bytes", "Bytes of the responses.", unit="bytes"),
        _count("records_produced", "Records of Produce requests."),
        _count("records_fetched", "Records of Fetch responses."),
    ),
)

REBALANCES = TableSchema(
    name="rebalances",
    row="an hour of one group",
    doc="Number, duration and reasons of rebalances.",
    columns=(
        Column(
            name="hour",
            type="time",
            doc="Start of the hour in which they began or, if that was not captured, ended.",
            source="rows of groups",
            null="neither was captured",
            statistics=True,
        ),
        replace(GROUP_ID, null=None),
        Column(
            name="kind",
            type="string",
            enum="group_kind",
            doc="Protocol of the group.",
            source="groups",
        ),
        Column(name="reason", type="string", enum="rebalance_reason", doc="Why they began.", source="groups"),
        _count("rebalances", "Number of rebalances.", "rows of groups"),
        _count("errors", "Number of their calls with an error.", "groups"),
        _count(
            "sum_ns", "Sum of their durations.", "groups", unit="nanoseconds", null="unknown for all of them"
        ),
        _count(
            "max_ns", "Duration of the longest.", "groups", unit="nanoseconds", null="unknown for all of them"
        ),
    ),
)

CLIENT_VERSIONS = TableSchema(
    name="client_versions",
    row="a day of one client library in one version, with its users",
    doc="Client software in use. Only Kafka connections count.",
    columns=(
        Column(
            name="day",
            type="time",
            doc="Start of the day with the first packet of the connections.",
            source="rows of connections",
            null="the packets have no times",
            statistics=True,
        ),
        SOFTWARE_NAME,
        SOFTWARE_VERSION,
        replace(
            CLIENT_ID, doc="Client id of the first request that has one.", null="no request has a client id"
        ),
        _count("connections", "Connections.", "rows of connections"),
        _count("calls", "Calls on these connections.", "rows of connections"),
        Column(
            name="client_addresses",
            type="strings",
            doc="Client addresses; at most 100.",
            source="rows of connections",
        ),
    ),
)

AGGREGATES: Final = {
    table.name: replace(table, columns=(*table.columns, RUN_ID))
    for table in (LATENCY_MINUTES, ERROR_RATES, ERROR_COUNTS, TALKERS, REBALANCES, CLIENT_VERSIONS)
}
"""Table name -> declaration, in the order they are shown."""
