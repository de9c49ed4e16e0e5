"""The day of a part, which is the partition of tables in Delta and Iceberg."""

from typing import Final

import pyarrow as pa

from kwsniff.spark.parts import NO_DATE
from kwsniff.tables.aggregates import AGGREGATES
from kwsniff.tables.schema import TABLES, arrow_schema, describe

DAY: Final = pa.field("date", pa.date32())


def date_of(path: str) -> str | None:
    """The day in the name of a file's folder."""
    day = path.split("/")[1].removeprefix("date=")
    return None if day == NO_DATE else day


def dated_schema(table: str) -> pa.Schema:
    """The columns of a table or an aggregate, with `date`, described: `comment` for Delta and Spark,
    `doc` for Iceberg."""
    declared = {**TABLES, **AGGREGATES}[table]
    said = {column.name: describe(column) for column in declared.columns}
    fields = [
        field.with_metadata({"comment": said[field.name], "doc": said[field.name]})
        for field in arrow_schema(declared)
    ]
    return pa.schema([*fields, DAY])
