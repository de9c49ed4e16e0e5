"""All tables, and their schemas for Arrow and Spark. Other modules of this package declare the tables."""

import base64
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Final

from kwsniff.tables.calls import API_CALLS
from kwsniff.tables.clients import CLIENTS
from kwsniff.tables.cluster import API_RANGES, BROKERS, LEADERS
from kwsniff.tables.column import RUN, Column, TableSchema
from kwsniff.tables.columns import RUN_ID
from kwsniff.tables.commits import COMMITS
from kwsniff.tables.deliveries import DELIVERIES
from kwsniff.tables.error_codes import ERROR_CODES
from kwsniff.tables.findings import FINDING_CALLS, FINDINGS
from kwsniff.tables.groups import GROUPS, TRANSACTIONS
from kwsniff.tables.hops import HOPS
from kwsniff.tables.latencies import LATENCIES
from kwsniff.tables.members import MEMBERS
from kwsniff.tables.partitions import PARTITIONS, RECORD_BATCHES
from kwsniff.tables.servers import SERVERS
from kwsniff.tables.stalls import STALLS
from kwsniff.tables.tcp_events import TCP_EVENTS
from kwsniff.tables.transport import ANOMALIES, CAPTURES, CONNECTIONS

if TYPE_CHECKING:
    import pyarrow as pa

TABLES: Final = {
    table.name: replace(table, columns=(*table.columns, RUN_ID))
    for table in (
        API_CALLS,
        LATENCIES,
        ERROR_CODES,
        CONNECTIONS,
        ANOMALIES,
        PARTITIONS,
        RECORD_BATCHES,
        TCP_EVENTS,
        STALLS,
        HOPS,
        GROUPS,
        MEMBERS,
        TRANSACTIONS,
        COMMITS,
        DELIVERIES,
        BROKERS,
        LEADERS,
        API_RANGES,
        CLIENTS,
        SERVERS,
        CAPTURES,
        FINDINGS,
        FINDING_CALLS,
    )
}
"""Table name -> declaration, in the order they are shown."""

CORE_TABLES: Final = (
    "api_calls",
    "latencies",
    "error_codes",
    "connections",
    "anomalies",
    "partitions",
    "record_batches",
    "tcp_events",
    "stalls",
)
"""Tables of the core, in the order of its numbers; the others are computed from them."""

DETAILS: Final = "details"
INNER: Final = {
    DETAILS: TableSchema(
        name=DETAILS,
        row="one fully decoded call; internal, from the core to timelines",
        doc="",
        columns=(
            Column(name="row", type="int64", doc="Row in the api_calls taken with it.", source="the core"),
            Column(name="request", type="binary", doc="Bytes after the id.", source="bytes", null="not kept"),
            Column(
                name="response", type="binary", doc="Bytes after the id.", source="bytes", null="not kept"
            ),
        ),
    )
}
"""Internal tables of the core, which users do not get."""

SCHEMA_VERSION: Final = 1
"""Grows when a column goes away, or changes its name, type or meaning; not with new columns."""

VERSION_KEY: Final = "kwsniff.schema_version"
DESCRIPTION: Final = "description"
_LINK: Final = re.compile(r"\[([^\]]+)\]\([^)]+\)")

_PANDAS: Final = {"bool": "boolean", "int16": "Int16", "int32": "Int32", "int64": "Int64"}

_SPARK: Final = {
    "binary": "BINARY",
    "bool": "BOOLEAN",
    "double": "DOUBLE",
    "int16": "SMALLINT",
    "int32": "INT",
    "int64": "BIGINT",
    "integers": "ARRAY<BIGINT>",
    "string": "STRING",
    "strings": "ARRAY<STRING>",
    "time": "TIMESTAMP",
}


@cache
def arrow_schema(table: TableSchema) -> "pa.Schema":
    """The public schema of a table, in memory and in parquet: plain types, every field nullable."""
    import pyarrow as pa

    described = {column.name: describe(column) for column in table.columns}
    metadata = for_pandas(table.columns, attributes=described)
    return pa.schema([(column.name, _plain(column)) for column in table.columns], metadata)


@cache
def coded_schema(table: TableSchema) -> "pa.Schema":
    """The same table inside a run: without the run's column, with strings as dictionaries, as delivered by
    the core.

    Parquet stores the dictionary directly; readers see plain strings.
    """
    import pyarrow as pa

    return pa.schema([(column.name, _encode_type(column)) for column in table.own])


@cache
def stored_schema(table: TableSchema) -> "pa.Schema":
    """The same with the run's column, for rows that leave the run; see run.py."""
    import pyarrow as pa

    return pa.schema(
        [(column.name, _encode_type(column)) for column in table.columns], for_pandas(table.columns)
    )


@cache
def file_metadata(table: TableSchema) -> Mapping[str, str]:
    """What every parquet file of a table says of its columns.

    `kwsniff.schema_version`: of the table; `kwsniff.columns`: a JSON object, column -> description;
    `ARROW:schema`: the schema in memory, whose fields have their description as metadata, for Arrow's readers
    (source: Arrow's documentation of the C++ Parquet writer); `pandas`: see for_pandas.
    """
    import pyarrow as pa

    told = {VERSION_KEY: str(SCHEMA_VERSION), **for_pandas(table.columns)}
    said = {column.name: describe(column) for column in table.columns}
    fields = [
        pa.field(column.name, _plain(column), metadata={DESCRIPTION: said[column.name]})
        for column in table.columns
    ]
    schema = pa.schema(fields, told | for_pandas(table.columns, attributes=said))
    in_memory = base64.b64encode(schema.serialize().to_pybytes()).decode()
    described = json.dumps(said, ensure_ascii=False)
    return {"ARROW:schema": in_memory, "kwsniff.columns": described, **told}


def describe(column: Column) -> str:
    """A column in a sentence or more, with its unit."""
    unit = f" In {column.unit}." if column.unit else ""
    return _LINK.sub(r"\1", column.doc) + unit


def for_pandas(columns: Sequence[Column], *, attributes: Mapping[str, str] | None = None) -> dict[str, str]:
    """Schema metadata that makes pandas use nullable types for integers and booleans; `attributes` become
    DataFrame.attrs.

    Without it, an integer column with a null becomes floats, which corrupts offsets above 2**53. Columns that
    are never null stay numpy's.

    Source: pandas' developer guide on DataFrames in parquet files.
    """
    kinds = [
        {"name": column.name, "field_name": column.name, "pandas_type": column.type,
         "numpy_type": _PANDAS[column.type], "metadata": None}
        for column in columns
        if column.type in _PANDAS and column.null is not None
    ]  # fmt: skip
    told = {"index_columns": [], "column_indexes": [], "columns": kinds, "attributes": attributes or {}}
    return {"pandas": json.dumps(told)}


def spark_ddl(table: TableSchema) -> str:
    """The schema as Spark's DDL string, names quoted; Spark infers these types from the parquet files."""
    return ", ".join(f"`{column.name}` {_SPARK[column.type]}" for column in table.columns)


def spark_type(column: Column) -> str:
    """The type of one column as Spark's DDL has it."""
    return _SPARK[column.type]


def _plain(column: Column) -> "pa.DataType":
    return _plain_types()[column.type]


@cache
def _plain_types() -> Mapping[str, "pa.DataType"]:
    import pyarrow as pa

    return {
        "binary": pa.binary(),
        "bool": pa.bool_(),
        "double": pa.float64(),
        "int16": pa.int16(),
        "int32": pa.int32(),
        "int64": pa.int64(),
        "integers": pa.list_(pa.field("element", pa.int64())),
        "string": pa.string(),
        "strings": pa.list_(pa.field("element", pa.string())),
        "time": pa.timestamp("us", tz="UTC"),
    }


def _encode_type(column: Column) -> "pa.DataType":
    import pyarrow as pa

    if column.type == "string":
        return pa.dictionary(_index_type(column), pa.string())
    if column.type == "binary":
        return pa.dictionary(pa.int32(), pa.binary())
    if column.type == "strings":
        return pa.list_(pa.field("element", pa.dictionary(pa.int32(), pa.string())))
    return _plain(column)


def _index_type(column: Column) -> "pa.DataType":
    import pyarrow as pa

    if column.enum or column.name == RUN:
        return pa.int8()
    return pa.int16() if column.derived_from or column.from_layouts else pa.int32()
