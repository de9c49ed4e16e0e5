"""The column `harm` in files of the pipeline: those with harmed calls or connections are rewritten."""

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from kwsniff.findings.harm import FoundHarm
from kwsniff.spark.jobs import Items, run_tasks
from kwsniff.spark.parts import Part, check_parts
from kwsniff.spark.rewritten_parts import rewrite_part
from kwsniff.spark.storage import Place
from kwsniff.tables.harm import KEYS, NONE, keys_of, with_codes
from kwsniff.tables.schema import TABLES
from kwsniff.tables.write import texts_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def write_codes(harm: FoundHarm, files: Mapping[Part, Path], scratch: Place) -> Items:
    """Of these files those that hold calls or connections with harm, each with the codes of its rows."""
    return Items.write(scratch, _with_harm(harm, files))


def write_harm(spark: "SparkSession", items: Items, *, staging: Place) -> dict[Part, Part]:
    """Each of these files with the one that has the column filled. Raises OutputError."""
    tasks = range(items.number)
    done = run_tasks(spark, partial(_fill, items=items, staging=staging), tasks)
    check_parts(staging, [new for _, new in done])
    return dict(done)


def _with_harm(harm: FoundHarm, files: Mapping[Part, Path]) -> Iterator[tuple[Part, bytes]]:
    for part, path in files.items():
        if part.table in harm.tables:
            codes = np.concatenate([np.zeros(0, np.int8), *_codes(harm, part.table, path)])
            if (codes != NONE).any():
                yield part, codes.tobytes()


def _codes(harm: FoundHarm, table: str, path: Path) -> Iterator["np.ndarray[Any, Any]"]:
    with pq.ParquetFile(path) as file:
        for group in range(file.num_row_groups):
            yield harm.codes(table, keys_of(table, file.read_row_group(group, columns=[KEYS[table]])))


def _fill(number: int, *, items: Items, staging: Place) -> tuple[Part, Part]:
    part, packed = items.load(number)
    codes, begin = np.frombuffer(packed, np.int8), 0

    def add_harm(rows: pa.Table) -> pa.Table:
        nonlocal begin
        own = codes[begin : begin + rows.num_rows]
        begin += rows.num_rows
        return with_codes(part.table, rows, own)

    staging.check()
    words = texts_of(TABLES[part.table])
    return part, rewrite_part(part, add_harm, "harm", staging=staging, dictionaries=words)
