"""Small tables, whose rows the database keeps in memory.

Planning a rule over views of parquet files takes longer than asking it of a small capture: each view that a
rule names is several views of several files. Over rows that the database has, planning takes a third.
"""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

TABLES_OF_FEW: Final = (
    "connection", "twin", "unnamed", "call", "client_call", "commit_call", "origin", "timing", "latency",
    "server_error", "refusal", "stall", "partition_call", "batch",
)  # fmt: skip
"""Views of shared_views/calls.sql that most rules name: where rows are few, they are tables also where every
view is made."""
_BYTES: Final = 1 << 20
"""Bytes of all files, beyond which asking takes longer than planning."""
_SHARE: Final = 4
"""Part of the memory that the rows may take at most: a quarter."""
_NUMBER: Final = 8
"""Bytes of a number."""


def are_small(tables: Iterable[Sequence[str | os.PathLike[str]]], memory: str) -> bool:
    """Whether the rows of these parquet files, by table, take little of `memory`, such as 512MB.

    A file has each text of a column once: every row may have the longest, which may be the whole column.
    """
    import pyarrow.parquet as pq

    files = [file for listed in tables for file in listed]
    if sum(Path(file).stat().st_size for file in files) > _BYTES:
        return False
    return sum(_most_bytes(pq.read_metadata(file)) for file in files) <= _share_of(memory)


def _most_bytes(metadata: "pq.FileMetaData") -> int:
    groups = map(metadata.row_group, range(metadata.num_row_groups))
    columns = (group.column(place) for group in groups for place in range(metadata.num_columns))
    return sum(column.num_values * _longest(column) for column in columns)


def _longest(column: "pq.ColumnChunkMetaData") -> int:
    return int(column.total_uncompressed_size) if column.physical_type == "BYTE_ARRAY" else _NUMBER


def are_few(tables: Iterable["pa.Table"], memory: str) -> bool:
    """The same for tables in memory."""
    listed = [*tables]
    if sum(rows.nbytes for rows in listed) > _BYTES:
        return False
    chunks = (chunk for rows in listed for column in rows.columns for chunk in column.chunks)
    coded = (chunk for chunk in chunks if hasattr(chunk, "dictionary"))
    most = sum(len(chunk) * int(chunk.dictionary.nbytes) for chunk in coded)
    return most <= _share_of(memory)


def _share_of(memory: str) -> int:
    return int(memory.removesuffix("MB")) * 1_000_000 // _SHARE
