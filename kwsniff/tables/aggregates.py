"""The tables that `kwsniff pipeline` computes of the others: what people ask of hours and days of traffic.

Everything in them adds up: counts are summed, sketches merged, so that minutes become hours and days.
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
        doc=f"The {what} it is about, by its first moment: of the request, else the response.",
        source=_CALLS,
        null="the packets carry no time",
        statistics=True,
    )


def _count(
    name: str, doc: str, source: str = _CALLS, *, unit: str | None = None, null: str | None = None
) -> Column:
    return Column(name=name, type="int64", doc=doc, source=source, unit=unit, null=null)


def _quantile(percent: int) -> Column:
    return _count(
        f"p{percent}_ns", f"{percent} % of the calls took at most this long.", "sketch", unit="nanoseconds"
    )


_API = (replace(API_KEY, null="the response does not say, and its request was not seen"),)
_API_NAME = replace(API_NAME, derived_from=None, null="no api key, or one that no known Kafka release uses")
_TOPIC = Column(
    name="topic",
    type="string",
    doc="Name of a topic of the call; a call about several counts for each of them.",
    source="topics of api_calls",
    null="the call is about no topic",
    statistics=True,
)

LATENCY_MINUTES = TableSchema(
    name="latency_minutes",
    row="a minute of one API, client, topic and broker",
    doc="How long answered calls took, from the first byte of the request to the last of the response, "
    "deliberate waits included. `sketch` holds the distribution (KllLongsSketch of Apache DataSketches, "
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
        _count("sum_ns", "Their latencies together.", unit="nanoseconds"),
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
    doc="How many calls failed, and how: `failed / calls` is the error rate.",
    columns=(
        _since("minute", "minute"),
        *_API,
        _API_NAME,
        CLIENT_ID,
        BROKER_ADDRESS,
        BROKER_PORT,
        _count("calls", "Calls."),
        _count("answered", "Of these, those with an answer."),
        _count("failed", "Of these, those whose answer holds an error code."),
        _count("unanswered", "Calls that the broker did not answer."),
        _count("errors", "Error codes of all answers together."),
    ),
)

ERROR_COUNTS = TableSchema(
    name="error_counts",
    row="a minute of one error code, API, topic, client and broker",
    doc="Which errors there were.",
    columns=(
        replace(
            _since("minute", "minute"),
            doc="The minute of the response, by its first moment.",
            source="rows of error_codes",
        ),
        *_API,
        _API_NAME,
        replace(
            _TOPIC,
            doc="The topic the error is about.",
            source="topic of error_codes",
            null="the error is not about a topic",
        ),
        CLIENT_ID,
        BROKER_ADDRESS,
        BROKER_PORT,
        Column(
            name="error_code", type="int16", doc="Kafka's error code.", source="error_codes", statistics=True
        ),
        replace(ERROR_NAME, derived_from=None, null="an error code that is not in the list"),
        _count("errors", "How often it was answered.", "rows of error_codes"),
        _count("calls", "Calls that were answered with it.", "rows of error_codes"),
    ),
)

TALKERS = TableSchema(
    name="talkers",
    row="an hour of one client address, client id and broker",
    doc="Who talks most: calls and bytes.",
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
    doc="How often groups rebalanced, how long it took, and why.",
    columns=(
        Column(
            name="hour",
            type="time",
            doc="The hour in which they began or, where that was not captured, ended, by its first moment.",
            source="rows of groups",
            null="neither was captured",
            statistics=True,
        ),
        replace(GROUP_ID, null=None),
        Column(
            name="kind",
            type="string",
            enum="group_kind",
            doc="Which protocol the group follows.",
            source="groups",
        ),
        Column(name="reason", type="string", enum="rebalance_reason", doc="Why they began.", source="groups"),
        _count("rebalances", "How many there were.", "rows of groups"),
        _count("errors", "Calls of theirs that brought an error.", "groups"),
        _count(
            "sum_ns", "How long they took together.", "groups", unit="nanoseconds", null="of none is it known"
        ),
        _count(
            "max_ns", "How long the longest took.", "groups", unit="nanoseconds", null="of none is it known"
        ),
    ),
)

CLIENT_VERSIONS = TableSchema(
    name="client_versions",
    row="a day of one client library in one version, and who uses it",
    doc="Which client software is about. Only connections that carry Kafka count.",
    columns=(
        Column(
            name="day",
            type="time",
            doc="The day on which the connections were first seen, by its first moment.",
            source="rows of connections",
            null="the packets carry no time",
            statistics=True,
        ),
        SOFTWARE_NAME,
        SOFTWARE_VERSION,
        replace(
            CLIENT_ID, doc="The first name that clients gave themselves.", null="no request named the client"
        ),
        _count("connections", "Connections.", "rows of connections"),
        _count("calls", "Calls on them.", "rows of connections"),
        Column(
            name="client_addresses",
            type="strings",
            doc="Where they came from; at most 100.",
            source="rows of connections",
        ),
    ),
)

AGGREGATES: Final = {
    table.name: replace(table, columns=(*table.columns, RUN_ID))
    for table in (LATENCY_MINUTES, ERROR_RATES, ERROR_COUNTS, TALKERS, REBALANCES, CLIENT_VERSIONS)
}
"""Table name -> declaration, in the order they are shown."""
