"""The table of clients as their requests show them configured."""

from dataclasses import replace

from kwsniff.tables.column import Column, TableSchema, TypeWord
from kwsniff.tables.columns import CLIENT_ID, SOFTWARE_NAME, SOFTWARE_VERSION, moment

_NONE = "unknown, or several values"


def _setting(
    name: str, type_: TypeWord, doc: str, source: str, null: str = _NONE, *, unit: str | None = None
) -> Column:
    return Column(name=name, type=type_, doc=doc, source=source, null=null, unit=unit)


def _milliseconds(name: str, doc: str, source: str, null: str = _NONE) -> Column:
    return _setting(name, "int64", doc, source, null, unit="milliseconds")


def _bytes(name: str, doc: str, source: str, null: str = _NONE) -> Column:
    return _setting(name, "int64", doc, source, null, unit="bytes")


CLIENTS = TableSchema(
    name="clients",
    row="one client id at an address",
    doc="Settings of clients, as their requests state or imply them. An interval is what half of at least "
    "three have, within 10 %. Duplicate connections do not count. Computed from api_calls, connections, "
    "record_batches and joins; at most 10,000 clients.",
    columns=(
        replace(CLIENT_ID, null=_NONE),
        Column(name="address", type="string", doc="IP address of the client.", source="IP header"),
        Column(
            name="role",
            type="string",
            enum="client_role",
            doc="What it does.",
            source="APIs, protocol_type, client id, group id",
            null=_NONE,
        ),
        _setting(
            "features",
            "strings",
            "Settings for WarpStream in the client id.",
            "client id",
            "none",
        ),
        replace(SOFTWARE_NAME, name="software", doc="Client library.", null=_NONE),
        replace(SOFTWARE_VERSION, name="software_version", doc="Its version.", null=_NONE),
        moment("first_time", "First request.", _NONE, statistics=True),
        moment("last_time", "Last request.", _NONE),
        Column(name="calls", type="int64", doc="Requests.", source="api_calls"),
        _setting("acks", "int16", "acks: -1 is all.", "Produce request"),
        _setting(
            "idempotent",
            "bool",
            "enable.idempotence.",
            "headers of produced batches",
        ),
        _setting("transactional_id", "string", "transactional.id.", "transactional_id"),
        _milliseconds("transaction_timeout_ms", "transaction.timeout.ms.", "InitProducerId request"),
        _setting("compression", "string", "compression.type.", "headers of produced batches"),
        _milliseconds(
            "linger_ms",
            "linger.ms: from the first record of small batches to their requests, if captured at the client.",
            "timestamps of batches and packet times, where the capture point has the client's clock",
            "unknown, or perhaps flushed",
        ),
        _bytes(
            "batch_bytes",
            "Largest batch: a lower bound of batch.size.",
            "headers of produced batches, before decompression",
        ),
        _milliseconds(
            "request_timeout_ms",
            "request.timeout.ms of Produce.",
            "Produce request",
        ),
        _setting(
            "max_in_flight",
            "int32",
            "A lower bound of max.in.flight.requests.per.connection.",
            "connections",
        ),
        _bytes("fetch_min_bytes", "fetch.min.bytes.", "fetch requests"),
        _milliseconds("fetch_max_wait_ms", "fetch.max.wait.ms.", "fetch requests"),
        _bytes("fetch_max_bytes", "fetch.max.bytes.", "fetch requests from version 3"),
        _setting("isolation_level", "int16", "0: read_uncommitted; 1: read_committed.", "fetch requests"),
        _setting("rack_id", "string", "client.rack.", "Fetch requests from version 11, joins"),
        _setting("assignors", "strings", "partition.assignment.strategy.", "JoinGroup request"),
        _milliseconds("session_timeout_ms", "session.timeout.ms.", "JoinGroup request"),
        _milliseconds(
            "rebalance_timeout_ms",
            "max.poll.interval.ms of consumers.",
            "JoinGroup from version 1, group heartbeats",
        ),
        _milliseconds(
            "heartbeat_interval_ms",
            "heartbeat.interval.ms.",
            "times of heartbeats on a connection",
        ),
        _milliseconds(
            "commit_interval_ms",
            "auto.commit.interval.ms, or the application's own.",
            "times of commits on a connection",
        ),
        _milliseconds(
            "metadata_max_age_ms",
            "metadata.max.age.ms.",
            "times of Metadata requests and responses",
        ),
        _setting(
            "known_by",
            "strings",
            "How each is known: requests, or intervals and their spread.",
            "api_calls",
            _NONE,
        ),
        _setting(
            "several",
            "strings",
            "Settings with several values, and requests of each.",
            "api_calls",
            _NONE,
        ),
        _setting(
            "defaults",
            "strings",
            "Defaults of its library.",
            "dissectors/kafka/client_defaults.tsv",
            _NONE,
        ),
        _setting(
            "changed",
            "strings",
            "Settings that are not.",
            "client_defaults.tsv",
            _NONE,
        ),
    ),
)
