"""Ports of connections."""

import pyarrow as pa

from kwsniff.tables.arrays import distinct, whole_numbers


def ports_of(connections: pa.RecordBatch) -> set[int]:
    """Ports of both sides. `connections`: rows of that table."""
    columns = (whole_numbers(connections[f"{side}_port"], null=0) for side in ("client", "broker"))
    return {port for column in columns for port in distinct(column).tolist()}
