"""Tables of a pipeline or a stream as rows, and those that `kwsniff analyze` gives of the same captures."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import kwsniff
from kwsniff.tables.harm import COLUMN, KEYS
from kwsniff.tables.schema import TABLES, arrow_schema
from tests.tables.runs import of_any_run

Rows = dict[str, list[dict[str, Any]]]


def parts(folder: Path, table: str) -> list[Path]:
    return sorted((folder / table).rglob("*.parquet"))


def written(folder: Path, *, without: Sequence[str] = ()) -> Rows:
    """Every table in a folder, its rows sorted; every file has the declared schema, to the letter."""
    found = {}
    for name, table in TABLES.items():
        schema = arrow_schema(table)
        files = []
        for path in parts(folder, name):
            with pq.ParquetFile(path) as file:
                files.append(file.read())
            assert files[-1].schema.remove_metadata() == schema, path
        rows = pa.concat_tables([schema.empty_table(), *files])
        found[name] = in_order(rows, without)
    return found


def analyzed(*paths: Path, without: Sequence[str] = (), **options: Any) -> Rows:
    """The same of `kwsniff.analyze`, for captures in the order of their first packets."""
    result = kwsniff.analyze([str(path) for path in paths], **options)
    return {name: in_order(result.table(name), without) for name in TABLES}


@cache
def analyzed_once(path: Path) -> Rows:
    """The same of a file that stays as it is, where nothing is patched; several tests look at it."""
    return analyzed(path)


def followed(*paths: Path, **options: Any) -> Rows:
    """The same, as a stream gives it: findings are of a whole folder, and made when somebody asks."""
    return unjudged({**analyzed(*paths, **options), "findings": [], "finding_calls": []})


def unjudged(rows: Rows) -> Rows:
    """The same where nobody looked for findings: what calls and connections suffered is not known."""
    judged = {name: [{**row, COLUMN: None} for row in rows[name]] for name in KEYS if name in rows}
    return {**rows, **{name: sorted(each, key=repr) for name, each in judged.items()}}


def in_order(table: pa.Table, without: Sequence[str]) -> list[dict[str, Any]]:
    rows = of_any_run(table)
    kept = rows.drop_columns([name for name in without if name in rows.column_names])
    return sorted(kept.to_pylist(), key=repr)


def records(data: bytes) -> list[bytes]:
    """The packets of a little-endian pcap, each with its header."""
    found = []
    at = 24
    while at < len(data):
        size: int = 16 + struct.unpack_from("<I", data, at + 8)[0]
        found.append(data[at : at + size])
        at += size
    return found


def rotated(data: bytes, number: int, folder: Path, name: str = "rotated.pcap") -> list[Path]:
    """A pcap as `tcpdump -C` would have written it: x.pcap, x.pcap1, x.pcap2, ..."""
    packets = records(data)
    each = -(-len(packets) // number)
    paths = []
    for part in range(number):
        path = folder / f"{name}{part or ''}"
        path.write_bytes(data[:24] + b"".join(packets[part * each : (part + 1) * each]))
        paths.append(path)
    return paths
