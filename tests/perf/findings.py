"""What findings cost: on top of an analysis, and of a folder of tables with millions of calls.

`python -m tests.perf.findings [--calls N] [--keep DIR]` repeats all recordings of the repository, incidents
among them, as one run, until there are so many calls (10 million), and asks `kwsniff why` what is wrong:
nearly every rule finds something.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import kwsniff
from kwsniff.findings.views import READ
from tests.house.tree import ROOT
from tests.perf.measure import Measured, compile_sources, process

_LARGEST = 500_000
"""Bytes of a capture; there are 233, and none may outweigh the others."""
_ROWS = 1 << 17
"""Of a part, at least."""
_CALLS = ("call_id", "queued_behind")


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
        together = max(_ROWS // max(rows.num_rows, 1), 1)
        for begin in range(0, times, together):
            numbers = range(begin, min(begin + together, times))
            part = pa.concat_tables([_later(rows, number, span) for number in numbers])
            path = folder / name / f"part-{begin // together:04}.parquet"
            pq.write_table(part.unify_dictionaries(), path, row_group_size=1 << 16)
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
    return process([*command, "why", str(folder)], output, done=(0, 1))


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


def run(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.perf.findings", description=__doc__)
    parser.add_argument("--calls", type=int, default=10_000_000)
    parser.add_argument("--keep", type=Path, metavar="DIR", help="where tables stay")
    options = parser.parse_args(arguments)
    compile_sources()
    with tempfile.TemporaryDirectory() as spare:
        folder = options.keep or Path(spare)
        captures = [path for path in (ROOT / "captures").rglob("*.pcap*") if path.stat().st_size <= _LARGEST]
        kwsniff.analyze(sorted(captures), output=folder / "once", tables=READ)
        calls = repeat_tables(folder / "once", folder / "many", options.calls)
        done = of_folder([sys.executable, "-m", "kwsniff"], folder / "many", folder / "why.txt")
        if done.problem:
            sys.stderr.write(f"{done.problem}\n")
            return 2
        said = (folder / "why.txt").read_text().splitlines()[0]
    sys.stdout.write(
        f"kwsniff why DIR, {calls:,} calls: {done.seconds:.0f} s, {done.processor_seconds:.0f} s of "
        f"processor time, {done.peak_bytes / 1e6:.0f} MB\n{said}\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
