"""The analyzer driven by hand: chosen chunks in, raw columns or rows out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import pytest

Columns = dict[str, list[tuple[Any, ...]]]
CORE_TABLES = (
    "api_calls", "latencies", "error_codes", "connections", "anomalies", "partitions", "record_batches",
    "tcp_events", "stalls",
)  # fmt: skip


def analyzer(**options: Any) -> Any:
    """An Analyzer with the shipped layouts."""
    core = pytest.importorskip("kwsniff.core.analyzer", reason="the analyzer is not built")
    from kwsniff.layout.catalog import load_catalog

    catalog = load_catalog()

    def compiled(api_key: int, version: int, direction: int) -> tuple[bytes, tuple[str, ...]] | None:
        program = catalog.program(api_key, version, direction)
        return None if program is None else (program.code, program.paths)

    ranges = [(api.key, api.min_version, api.max_version, api.flexible_from) for api in catalog.apis.values()]
    return core.Analyzer(compiled, ranges, **options)


def chunks(data: bytes, sizes: Iterable[int]) -> Iterable[memoryview]:
    """Cuts bytes into pieces of these sizes, the last size repeated."""
    view = memoryview(data)
    at = 0
    size = 1
    wanted = iter(sizes)
    while at < len(view):
        size = next(wanted, size)
        yield view[at : at + size]
        at += size


def run(pieces: Iterable[bytes | memoryview], **options: Any) -> tuple[Columns, Mapping[str, Any]]:
    """One capture fed piece by piece: the columns of every table and the facts of the capture."""
    engine = analyzer(**options)
    engine.open_capture("capture")
    for piece in pieces:
        engine.feed(piece)
    facts = engine.close_capture()
    engine.finish()
    return {name: engine.drain(name) for name in CORE_TABLES}, facts


def frozen(columns: Columns) -> dict[str, list[tuple[Any, ...]]]:
    """The same with every buffer as bytes, so that runs can be compared."""
    return {
        name: [
            tuple(part if isinstance(part, str | int | None) else bytes(part) for part in column)
            for column in rows
        ]
        for name, rows in columns.items()
    }


def rows_of(columns: Columns) -> dict[str, list[dict[str, Any]]]:
    """Columns as rows, through the tables room."""
    return {name: _builder().build(name, data).to_pylist() for name, data in columns.items()}


@cache
def _builder() -> Any:
    from kwsniff.core.declared import ENUMS
    from kwsniff.layout.catalog import load_catalog
    from kwsniff.tables.build import Builder

    return Builder(load_catalog(), ENUMS)


def rows_of_bytes(
    data: bytes, sizes: Sequence[int] = (1 << 20,), **options: Any
) -> dict[str, list[dict[str, Any]]]:
    columns, _ = run(chunks(data, sizes), **options)
    return rows_of(columns)
