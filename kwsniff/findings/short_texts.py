"""Copies of tables with shortened texts: a text of 32 kB may be in a million rows.

That takes only a few hundred bytes on the wire, but each row would be hashed and compared in full. A file has
each text once; it is shortened there, before rows are read.
"""

from collections.abc import Container
from os import PathLike
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from kwsniff.memory import release_arrow_memory
from kwsniff.tables.arrays import texts, words_of

_LONG_TEXTS: Final = 8 << 20
"""Bytes of texts of one column in one row group that names of ordinary length do not come to."""
_BATCH_ROWS: Final = 1 << 16


def has_long_texts(file: str | PathLike[str]) -> bool:
    """Whether a file is so full of texts that they must be long; a few that come often may be as well."""
    told = pq.read_metadata(file)
    places = [
        place for place in range(told.num_columns) if told.schema.column(place).physical_type == "BYTE_ARRAY"
    ]
    groups = [told.row_group(number) for number in range(told.num_row_groups)]
    return any(
        group.column(place).total_uncompressed_size > _LONG_TEXTS + 4 * group.num_rows
        for group in groups
        for place in places
    )


def copy_shortened(source: str | PathLike[str], target: Path, columns: Container[str] | None) -> None:
    """Rewrites these columns of a file (None: all), with texts shortened by `words_of`."""
    schema = pq.read_schema(source)
    chosen = [name for name in schema.names if columns is None or name in columns]
    words = [name for name in chosen if pa.types.is_string(schema.field(name).type)]
    writer = None
    with pq.ParquetFile(source, read_dictionary=words) as file:
        for group in range(file.num_row_groups):
            # A batch of several groups would have the texts of all of them.
            for batch in file.iter_batches(_BATCH_ROWS, [group], columns=chosen, use_threads=False):
                short = pa.RecordBatch.from_arrays([_shorten(column) for column in batch.columns], chosen)
                writer = writer or pq.ParquetWriter(target, short.schema)
                writer.write_batch(short)
        if writer is None:
            pq.write_table(schema.empty_table().select(chosen), target)
        else:
            writer.close()
    release_arrow_memory()


def _shorten(column: pa.Array) -> pa.Array:
    if not pa.types.is_dictionary(column.type):
        return column
    words = texts(words_of(column.dictionary))
    return pa.DictionaryArray.from_arrays(column.indices, words)
