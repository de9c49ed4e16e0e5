"""The declared tables: what the core delivers, what the docs say, what Spark and Arrow are told."""

import re

import pyarrow as pa
import pytest

from kwsniff.tables.aggregates import AGGREGATES
from kwsniff.tables.column import TableSchema
from kwsniff.tables.docs import tables_pages
from kwsniff.tables.schema import TABLES, arrow_schema, spark_ddl


@pytest.mark.parametrize("table", [*TABLES.values(), *AGGREGATES.values()], ids=lambda table: table.name)
def test_every_column_is_described_on_its_page_or_once_for_several(table: TableSchema) -> None:
    pages = tables_pages()
    own, _, rest = pages[f"tables/{table.name}.md"].partition("[Common]")
    common = rest.partition("\n")[0]
    for column in table.columns:
        described = re.search(rf"^- [^(]*`{column.name}`[^(]* \({column.type}", own, re.MULTILINE)
        assert bool(described) != (f"`{column.name}`" in common)
        assert described or f"- `{column.name}` ({column.type}" in pages["tables.md"]


def test_the_spark_schema_of_a_table_is_its_columns_in_order() -> None:
    assert spark_ddl(TABLES["anomalies"]) == (
        "`capture` STRING, `connection_id` BIGINT, `call_id` BIGINT, `time` TIMESTAMP, `frame` BIGINT, "
        "`direction` STRING, `stream_offset` BIGINT, `name` STRING, `value` BIGINT, "
        "`run_id` STRING"
    )


@pytest.mark.parametrize("name", TABLES)
def test_no_type_occurs_that_spark_reads_badly(name: str) -> None:
    for field in arrow_schema(TABLES[name]):
        assert not pa.types.is_unsigned_integer(field.type)
        assert not pa.types.is_dictionary(field.type)
        if pa.types.is_timestamp(field.type):
            assert field.type == pa.timestamp("us", tz="UTC")
        assert field.nullable


def test_durations_carry_their_unit_in_the_name() -> None:
    for table in TABLES.values():
        for column in table.columns:
            assert column.name.endswith("_ns") == (column.unit == "nanoseconds")
            assert column.name.endswith("_ms") == (column.unit == "milliseconds")
