"""The declared tables: what the core delivers, what the docs say, what Spark and Arrow are told."""

from pathlib import Path

import pyarrow as pa
import pytest

from kwsniff.tables.docs import tables_page
from kwsniff.tables.schema import TABLES, arrow_schema, spark_ddl


def test_the_docs_page_is_current() -> None:
    page = Path(__file__).parents[2] / "docs" / "tables.md"
    assert page.read_text("utf-8") == tables_page(), "python -m kwsniff.tables.docs > docs/tables.md"


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
