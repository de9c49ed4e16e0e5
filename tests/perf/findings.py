"""What findings cost: on top of an analysis, and of a folder of tables with millions of calls."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kwsniff.findings.tables import READ
from tests.perf.measure import Measured, process

_CALLS = ("call_id", "behind")


def without_findings() -> list[str]:
    """Options of `kwsniff analyze` for all other tables."""
    return [part for name in READ for part in ("--table", name)]


def repeat_tables(tables: Path, folder: Path, calls: int) -> int:
    """Repeats tables of one run, later and later and with ids of their own, as parts of a folder.

    Gives the number of calls in the folder, `calls` or somewhat more.
    """
    once = pq.ParquetFile(tables / "api_calls.parquet").metadata.num_rows
    times = -(-calls // once)
    span = _span(pq.read_table(tables / "captures.parquet"))
    shutil.rmtree(folder, ignore_errors=True)
    for name in READ:
        rows = pq.ParquetFile(tables / f"{name}.parquet").read()
        (folder / name).mkdir(parents=True)
        for number in range(times):
            later = _later(rows, number, span)
            pq.write_table(later, folder / name / f"part-{number:04}.parquet", row_group_size=1 << 16)
    return once * times


def repeated(tables: dict[str, pa.Table], times: int) -> dict[str, pa.Table]:
    """Tables of one run so many times, one after the other and with ids of their own."""
    span = _span(tables["captures"])
    return {
        name: pa.concat_tables([_later(rows, number, span) for number in range(times)])
        for name, rows in tables.items()
    }


def of_folder(command: list[str], folder: Path, output: Path) -> Measured:
    """`kwsniff why` of a folder of tables."""
    return process([*command, "why", str(folder)], output)


def _span(captures: pa.Table) -> int:
    """Microseconds from the first packet to the last."""
    first, last = (captures[name].cast(pa.int64()) for name in ("first_time", "last_time"))
    return int(pc.max(last).as_py()) - int(pc.min(first).as_py())


def _later(rows: pa.Table, number: int, span: int) -> pa.Table:
    """Rows as they would be `number` spans later."""
    for at, field in enumerate(rows.schema):
        if pa.types.is_timestamp(field.type):
            moved = pc.add(rows[field.name].cast(pa.int64()), number * span).cast(field.type)
        elif field.name in _CALLS or field.name == "connection_id":
            moved = pc.add(rows[field.name], number << 40)
        else:
            continue
        rows = rows.set_column(at, field, moved)
    return rows
