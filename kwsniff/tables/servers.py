"""The table of servers: product and release behind each broker address."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from kwsniff.tables.column import Column, TableSchema
from kwsniff.tables.columns import BROKER_ADDRESS, BROKER_PORT, moment
from kwsniff.tables.enums import WORDS

_MOST_NAMED: Final = 3

_EVIDENCE = "ApiVersions and Metadata responses, TLS server names, SASL mechanisms, client ids"

SERVERS = TableSchema(
    name="servers",
    row="one broker address and port",
    doc="What the servers are, by what they and their clients show. An address may be a proxy or load "
    "balancer: the row describes what answers behind it. Duplicate connections do not count. At most 10,000 "
    "rows.",
    columns=(
        replace(BROKER_ADDRESS, name="address", doc="IP address of the server."),
        replace(BROKER_PORT, name="port", doc="Its TCP port."),
        Column(
            name="product",
            type="string",
            enum="server_product",
            doc="The product; of several with evidence the first one.",
            source=_EVIDENCE,
        ),
        Column(
            name="version_min",
            type="string",
            doc="Oldest release of Apache Kafka that lists exactly these version ranges.",
            source="ApiVersions responses, table of releases",
            null="no ApiVersions response, no such release, or a product with releases of its own",
        ),
        Column(
            name="version_max",
            type="string",
            doc="Newest such release.",
            source="ApiVersions responses, table of releases",
            null="like version_min",
        ),
        Column(
            name="proof",
            type="string",
            doc="What shows it, separated by semicolons.",
            source=_EVIDENCE,
            null="the product is unknown",
        ),
        Column(
            name="cluster_id",
            type="string",
            doc="The cluster.",
            source="Metadata responses",
            null="no response with the field",
        ),
        Column(
            name="features",
            type="strings",
            doc="Supported features with their levels (KIP-584).",
            source="ApiVersions responses",
            null="no response with the field",
        ),
        moment("first_time", "First packet of its connections.", "unknown", statistics=True),
        moment("last_time", "Last packet of its connections.", "unknown"),
        Column(
            name="connections", type="int64", doc="Number of connections with calls.", source="connections"
        ),
        Column(name="calls", type="int64", doc="Number of calls.", source="connections"),
    ),
)


def name_servers(servers: Iterable[tuple[str, str | None, str | None]]) -> str:
    """Products and releases in words, as "Apache Kafka 4.3.0 to 4.3.1"; empty where none is known.

    `servers`: different products with their least and greatest version, the most frequent first.
    """
    known = [each for each in servers if each[0] != "unknown"]
    named = [_name_server(*each) for each in known[:_MOST_NAMED]]
    more = [f"{len(known) - _MOST_NAMED} more"] if len(known) > _MOST_NAMED else []
    return ", ".join([*named, *more])


def name_known(rows: Iterable[Mapping[str, Any]]) -> str:
    """The same in parentheses after a space, of rows with product, version_min, version_max."""
    known = name_servers((row["product"], row["version_min"], row["version_max"]) for row in rows)
    return f" ({known})" if known else ""


def _name_server(product: str, oldest: str | None, newest: str | None) -> str:
    name = WORDS["server_product"][product].partition(",")[0]
    if oldest is None:
        return name
    return f"{name} {oldest}" if oldest == newest else f"{name} {oldest} to {newest}"
