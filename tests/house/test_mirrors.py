"""Numbers and names that are written down twice, once for C and once for Python, say the same.

Kinds, flags and meanings of programs: tests/layout/test_contract.py.
"""

import re
from dataclasses import fields
from typing import Any

import pytest

from kwsniff.core.capture import packets
from kwsniff.core.columns.columns import COLUMNS
from kwsniff.core.columns.columns import TABLES as CORE_TABLES
from kwsniff.core.columns.verdicts import ENUMS
from kwsniff.core.wire import engine, records
from kwsniff.limits import Limits
from kwsniff.tables.schema import TABLES, arrow_schema
from kwsniff.tables.words import DERIVED_ENUMS, WORDS
from kwsniff.timelines.timelines import TIMELINES

from .tree import CORE, c_enum, names_of


@pytest.mark.parametrize(
    ("name", "file", "enum", "prefix"),
    [
        ("status", "columns/verdicts.pxd", "Status", "STATUS_"),
        ("reason", "columns/verdicts.pxd", "Reason", "REASON_"),
        ("protocol", "columns/verdicts.pxd", "Protocol", "PROTOCOL_"),
        ("role", "columns/verdicts.pxd", "Role", "ROLE_"),
        ("anomaly", "columns/verdicts.pxd", "Anomaly", "ANOMALY_"),
        ("end", "tcp/connections.pxd", "EndCause", "END_"),
    ],
)
def test_closed_lists_are_in_the_order_of_their_enums(name: str, file: str, enum: str, prefix: str) -> None:
    assert ENUMS[name] == names_of(c_enum(file, enum), prefix, without=("REASON_NONE",))


def test_every_word_of_a_closed_list_is_explained() -> None:
    used = {column.enum for table in TABLES.values() for column in table.columns if column.enum}
    lists = {**ENUMS, **DERIVED_ENUMS}
    assert {name: set(WORDS[name]) for name in used} == {name: set(lists[name]) for name in used}


def test_engine_statuses_are_those_of_the_tape() -> None:
    assert names_of(c_enum("wire/tape.pxd", "EngineStatus"), "ENGINE_") == engine.STATUSES


def test_batch_statuses_are_those_of_the_record_walker() -> None:
    shown = tuple(name.replace("record_", "") for name in records.STATUSES)
    assert shown == names_of(c_enum("wire/records.pxd", "BatchStatus"), "BATCH_")


def test_packet_verdicts_are_those_of_the_packet_reader() -> None:
    verdicts = names_of(c_enum("capture/reader.pxd", "PacketVerdict"), "PACKET_")
    assert verdicts == packets.PACKET_VERDICTS
    skipped = {f"skipped_{name}" for name in verdicts if name != "tcp"}
    assert skipped <= {column.name for column in TABLES["captures"].columns}


def test_link_types_have_the_bit_that_the_packet_reader_sets() -> None:
    text = (CORE / "capture/packets.pyx").read_text("utf-8")
    bits = re.findall(r"if link_type (?:==|in) .*?bit = (\d+)$", text, re.MULTILINE)
    assert sorted({int(bit) for bit in bits}) == list(range(len(packets.LINK_TYPES)))


def test_limits_have_the_names_and_the_order_of_the_struct() -> None:
    struct = re.findall(r"^    int64_t (\w+)\b", (CORE / "limits.pxd").read_text("utf-8"), re.MULTILINE)
    assert struct == [field.name for field in fields(Limits)]


def test_column_numbers_are_as_many_as_columns() -> None:
    for table, enum in {
        "api_calls": "ApiCallsColumn",
        "latencies": "LatenciesColumn",
        "error_codes": "ErrorCodesColumn",
        "connections": "ConnectionsColumn",
        "anomalies": "AnomaliesColumn",
    }.items():
        members = c_enum("columns/columns.pxd", enum)
        assert members[f"NUM_{table.upper()}_COLUMNS"] == len(COLUMNS[table]), table


_TYPES = {"enum": "string"}


@pytest.mark.parametrize("table", CORE_TABLES)
def test_core_columns_are_the_schema_without_its_derived_columns(table: str) -> None:
    declared = [
        (column.name, column.type, column.enum) for column in TABLES[table].own if not column.derived_from
    ]
    core = []
    for name, kind, _ in COLUMNS[table]:
        word, _, enum = kind.partition(":")
        core.append((name, _TYPES.get(word, word), enum or None))
    assert core == declared


@pytest.mark.parametrize("table", CORE_TABLES)
def test_a_column_of_the_core_may_be_null_only_if_its_schema_says_what_that_means(table: str) -> None:
    nulls = {column.name: column.null is not None for column in TABLES[table].own}
    silent = [name for name, _, nullable in COLUMNS[table] if nullable and not nulls[name]]
    assert silent == []


def test_tables_of_users_are_those_of_the_core_and_the_computed_ones() -> None:
    derived = (*TIMELINES, "captures", "findings")
    assert [name for name in TABLES if name not in derived] == list(CORE_TABLES)


@pytest.mark.parametrize("table", TABLES)
def test_no_table_has_types_that_spark_reads_badly(table: str) -> None:
    import pyarrow as pa

    kinds: list[Any] = [field.type for field in arrow_schema(TABLES[table])]
    assert not [kind for kind in kinds if pa.types.is_unsigned_integer(kind)]
    assert {kind for kind in kinds if pa.types.is_timestamp(kind)} <= {pa.timestamp("us", "UTC")}
