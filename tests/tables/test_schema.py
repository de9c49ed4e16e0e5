"""The declared tables: what the core delivers, what the docs say, what Spark and Arrow are told."""

import pyarrow as pa
import pytest

from kwsniff.tables.aggregates import AGGREGATES
from kwsniff.tables.docs import tables_pages
from kwsniff.tables.schema import TABLES, arrow_schema, spark_ddl


def test_every_column_is_described_once_or_named() -> None:
    pages = tables_pages()
    for name, table in {**TABLES, **AGGREGATES}.items():
        rows = pages[f"tables/{name}.md"]
        for column in table.columns:
            assert (
                f"| `{column.name}` | " in rows or f"`{column.name}`" in rows.partition("Common columns")[2]
            )


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
