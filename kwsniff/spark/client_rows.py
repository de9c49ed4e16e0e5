"""Makes the tables of clients and servers on the driver, from written parts."""

from collections.abc import Iterator, Sequence
from typing import Final

import pyarrow as pa

from kwsniff.spark.parts import Part
from kwsniff.spark.storage import Place
from kwsniff.tables.schema import TABLES
from kwsniff.timelines.timelines import READ

_ROWS: Final = 1 << 15


def read_sources(staging: Place, parts: Sequence[Part]) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Table and rows of the parts that these are made of, with the columns that are read."""
    for table, columns in READ.items():
        words = [column.name for column in TABLES[table].own if column.type == "string"]
        for part in parts:
            if part.table == table:
                with staging.open_parquet(part.path, read_dictionary=words) as file:
                    for group in range(file.num_row_groups):
                        for batch in file.iter_batches(_ROWS, [group], columns=[*columns], use_threads=False):
                            yield table, batch
