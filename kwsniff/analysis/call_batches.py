"""`kwsniff.calls`: the calls of captures of any size, in batches."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from kwsniff.analysis.analyze import Paths, analyze
from kwsniff.temporary import temporary_folder


def calls(paths: Paths, **options: Any) -> Iterator[pa.RecordBatch]:
    """The rows of api_calls as record batches, whatever the size of the captures; what `analyze` takes.

    They pass through a temporary folder: a topic's name that only the last packet tells is in the first row.
    Raises what `analyze` raises, when the first batch is asked for.
    """
    with temporary_folder() as folder:
        done = analyze(paths, output=folder, tables="api_calls", **options)
        with pq.ParquetFile(done.paths["api_calls"]) as file:
            for group in range(file.num_row_groups):
                # A batch over several groups would have the texts of all of them, which may be long.
                yield from file.iter_batches(row_groups=[group])
