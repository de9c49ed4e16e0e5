"""Rows of different runs beside each other: the one place that knows what of a row is its run's."""

from __future__ import annotations

import pyarrow as pa

from kwsniff.tables.column import RUN
from kwsniff.tables.schema import TABLES, coded_schema


def of_any_run(rows: pa.Table) -> pa.Table:
    """The rows without what says which run made them: so they are the same in every run."""
    return rows.drop_columns([RUN]) if RUN in rows.column_names else rows


def inside(name: str, rows: pa.Table) -> pa.Table:
    """The rows as they are inside a run, before they leave it."""
    return of_any_run(rows).cast(coded_schema(TABLES[name]))
