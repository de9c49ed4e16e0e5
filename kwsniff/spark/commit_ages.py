"""The lag of commits in time, for files of commits that tasks wrote: the driver alone has all batches."""

import uuid
from dataclasses import replace
from pathlib import PurePosixPath

import pyarrow as pa

from kwsniff.spark.parts import Part, part_writer
from kwsniff.spark.storage import Place
from kwsniff.tables.schema import TABLES, arrow_schema
from kwsniff.timelines.deliveries.deliveries import Deliveries

_ROWS = 1 << 15


def age_part(part: Part, deliveries: Deliveries, staging: Place) -> Part:
    """The file with `lag_ns`."""
    old = PurePosixPath(part.path)
    path = old.with_name(f"aged-{uuid.uuid4().hex[:12]}-{old.name[-48:]}")
    schema = arrow_schema(TABLES[part.table])
    read = staging.open_parquet(part.path, read_dictionary=["topic", "topic_id"])
    with read as file, staging.open_output(str(path)) as target:
        with part_writer(target, part.table, schema) as writer:
            for rows in file.iter_batches(_ROWS, use_threads=False):
                writer.write_table(pa.Table.from_batches([deliveries.age_commits(rows)]).cast(schema))
        size = target.tell()
    return replace(part, path=str(path), size=size)
