"""Tables of a run as DataFrames, and DataFrames as parts, which tasks write as they write all parts."""

import re
import uuid
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from kwsniff.spark.jobs import collect_rows
from kwsniff.spark.parts import NO_DATE, Part
from kwsniff.spark.serialization import dump, load
from kwsniff.spark.storage import Place
from kwsniff.tables.aggregates import AGGREGATES
from kwsniff.tables.column import TableSchema
from kwsniff.tables.schema import arrow_schema, file_metadata, spark_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_BATCH_ROWS = 10_000


def read_table(
    spark: "SparkSession", place: Place, table: TableSchema, parts: Sequence[Part], text: str
) -> "DataFrame":
    """The rows of a table's parts: those columns that the text of a query names.

    Spark reads folders itself. Files in a store are read as their tasks wrote them, since Spark needs jars to
    do that. Without `parts` all files in the table's folder.
    """
    columns = [each for each in table.columns if re.search(rf"\b{each.name}\b", text)]
    ddl = ", ".join(f"`{each.name}` {spark_type(each)}" for each in columns)
    names = [part.path for part in parts if part.table == table.name]
    if place.is_local:  # what other parts took the place of lies in the folder, too
        files = [str(place.folder / name) for name in names] or [str(place.folder / table.name)]
        return spark.read.schema(ddl).parquet(*files)
    kept = [each.name for each in columns]

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                with place.open_parquet(names[number]) as file:
                    for rows in file.iter_batches(batch_size=_BATCH_ROWS, columns=kept, use_threads=False):
                        yield rows.select(kept)

    return spark.range(0, len(names), 1, max(len(names), 1)).mapInArrow(read, ddl)


def write_frame(frame: "DataFrame", name: str, time: str, place: Place) -> list[Part]:
    """Writes the rows of an aggregate, which have their day as `date`; one task has all rows of a day."""
    schema = arrow_schema(AGGREGATES[name])

    def write(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        parts = [*_write(batches, name, schema, place)]
        yield pa.RecordBatch.from_pydict({"part": pa.array([dump(part) for part in parts], pa.binary())})

    dated = frame.repartition("date").sortWithinPartitions("date", time)
    return [load(bytes(row["part"])) for row in collect_rows(dated.mapInArrow(write, "part binary"))]


def _write(batches: Iterable[pa.RecordBatch], name: str, schema: pa.Schema, place: Place) -> Iterator[Part]:
    """Rows come by their days: one file at a time."""
    place.check()
    date: Any = None
    rows: list[pa.Table] = []
    for batch in batches:
        days = batch.column("date")
        for day in days.unique().to_pylist():
            chosen = pa.Table.from_batches([batch.filter(_is(days, day))])
            if rows and day != date:
                yield _part(rows, name, date, place)
                rows = []
            date = day
            rows.append(chosen.select(schema.names).cast(schema))
    if rows:
        yield _part(rows, name, date, place)


def _is(days: pa.Array, day: Any) -> Any:
    import pyarrow.compute as pc

    return pc.is_null(days) if day is None else pc.equal(days, pa.scalar(day, days.type))


def _part(rows: list[pa.Table], name: str, date: Any, place: Place) -> Part:
    path = f"{name}/date={date or NO_DATE}/{uuid.uuid4().hex[:12]}.parquet"
    table = pa.concat_tables(rows)
    with place.open_output(path) as file:
        with pq.ParquetWriter(file, table.schema, compression="zstd", store_schema=False) as writer:
            writer.add_key_value_metadata(file_metadata(AGGREGATES[name]))
            writer.write_table(table)
        size = file.tell()
    return Part(name, path, table.num_rows, size)
