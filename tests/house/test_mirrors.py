"""Numbers and names that are written down twice, once for C and once for Python, say the same.

Kinds, flags and meanings of programs: tests/layout/test_contract.py.
"""

import re
from typing import Any

import pytest

from kwsniff.core.capture import packets
from kwsniff.core.wire import engine, records
from kwsniff.tables.schema import CORE_TABLES, TABLES, arrow_schema
from kwsniff.timelines.timelines import TIMELINES

from .tree import CORE, c_enum, names_of


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


def test_tables_of_users_are_those_of_the_core_and_the_computed_ones() -> None:
    derived = (*TIMELINES, "hops", "captures", "findings", "finding_calls")
    assert [name for name in TABLES if name not in derived] == list(CORE_TABLES)


@pytest.mark.parametrize("table", TABLES)
def test_no_table_has_types_that_spark_reads_badly(table: str) -> None:
    import pyarrow as pa

    kinds: list[Any] = [field.type for field in arrow_schema(TABLES[table])]
    assert not [kind for kind in kinds if pa.types.is_unsigned_integer(kind)]
    assert {kind for kind in kinds if pa.types.is_timestamp(kind)} <= {pa.timestamp("us", "UTC")}
