"""What is known of written rows only when all are there: names that came late, twins among connections."""

from collections.abc import Mapping
from functools import partial

import pyarrow.parquet as pq

from kwsniff.findings.bounds import Figures
from kwsniff.tables.write import TableWriter
from kwsniff.timelines.late_names import Change
from kwsniff.timelines.twins import COLUMNS, find_twins, mark_twins


def change_written(writer: TableWriter, changes: Mapping[str, Change], figures: Figures) -> None:
    """Puts tables through their changes, and gives connections their `twin_of`, of which `figures` learns.

    Nothing more can be written to these tables.
    """
    for table, change in changes.items():
        writer.rewrite(table, change)
    if "connections" not in writer.paths:
        return
    path = writer.complete(["connections"])["connections"]
    found = find_twins(pq.ParquetFile(path).read(columns=list(COLUMNS)))
    if found:
        writer.rewrite("connections", partial(mark_twins, twins=found))
        figures.add_twins(len(found))
