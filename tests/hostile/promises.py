"""What must hold of any analysis, whatever the bytes: checked on the raw columns."""

import struct
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from kwsniff.core.declared import COLUMNS, ENUMS
from tests.hostile import seeds

Result = tuple[dict[str, list[tuple[Any, ...]]], Mapping[str, Any], Mapping[str, int]]
_WIDTHS = {"int64": 8, "time": 8, "int32": 4, "int16": 2}


def analyse(pieces: Sequence[bytes], **options: Any) -> Result | str:
    """Every table with its buffers as bytes, the capture's facts and bins; or what the capture is not."""
    from kwsniff.errors import CaptureError

    analyzer = seeds.analyzer(**options)
    analyzer.open_capture("hostile")
    try:
        for piece in pieces:
            analyzer.feed(piece)
        facts = analyzer.close_capture()
    except CaptureError as error:
        return str(error)
    analyzer.finish()
    tables = {
        table: [
            tuple(part if isinstance(part, str | int | None) else bytes(part) for part in column)
            for column in analyzer.drain(table)
        ]
        for table in COLUMNS
    }
    return tables, facts, analyzer.accounting(0)


def check(result: Result | str) -> None:
    """Every packet has one verdict, every payload byte one bin, every column what Arrow wants of it."""
    if isinstance(result, str):
        return
    tables, facts, bins = result
    verdicts = {name: count for name, count in facts.items() if name.startswith("packets_")}
    assert sum(verdicts.values()) == facts["packets"], verdicts
    assert sum(bins.values()) == facts["tcp_payload_bytes"], bins
    assert min(bins.values()) >= 0, bins
    for table, columns in tables.items():
        for (name, kind, nullable), column in zip(COLUMNS[table], columns, strict=True):
            _check_column(f"{table}.{name}", kind, nullable, column)


def _check_column(name: str, kind: str, nullable: bool, column: tuple[Any, ...]) -> None:
    said, rows, nulls, validity, *buffers = column
    assert said == kind, name
    valid = [validity is None or validity[row >> 3] >> (row & 7) & 1 == 1 for row in range(rows)]
    assert valid.count(False) == nulls, f"{name}: {nulls} nulls said, {valid.count(False)} there"
    assert nullable or not nulls, f"{name} may not be null"
    if kind in _WIDTHS:
        assert len(buffers[0]) == rows * _WIDTHS[kind], name
    elif kind.startswith("enum:"):
        codes = struct.unpack(f"{rows}b", buffers[0])
        assert all(0 <= code < len(ENUMS[kind[5:]]) for code, ok in zip(codes, valid, strict=True) if ok), (
            name
        )
    elif kind in ("string", "strings"):
        _check_texts(name, kind, rows, valid, buffers)


def _check_texts(name: str, kind: str, rows: int, valid: list[bool], buffers: list[Any]) -> None:
    *lists, indices, offsets, data, entries = buffers
    ends = struct.unpack(f"{entries + 1}i", offsets)
    assert ends[0] == 0 and ends[-1] == len(data) and list(ends) == sorted(ends), name
    for start, end in pairwise(ends):
        data[start:end].decode()
    numbers = struct.unpack(f"{len(indices) // 4}i", indices)
    if kind == "strings":
        places = struct.unpack(f"{rows + 1}i", lists[0])
        assert places[0] == 0 and places[-1] == len(numbers) and list(places) == sorted(places), name
        assert all(0 <= number < entries for number in numbers), name
    else:
        assert len(numbers) == rows, name
        assert all(0 <= number < entries for number, ok in zip(numbers, valid, strict=True) if ok), name


def calls(result: Result | str) -> set[tuple[Any, ...]]:
    """(endpoints, correlation id, api key, version) of every call; the last two None without a request."""
    from tests.pipeline.running import rows_of

    if isinstance(result, str):
        return set()
    rows = rows_of({"api_calls": result[0]["api_calls"]})["api_calls"]
    return {
        (
            frozenset(
                {(row["client_address"], row["client_port"]), (row["broker_address"], row["broker_port"])}
            ),
            row["correlation_id"],
            row["api_key"],
            row["api_version"],
        )
        for row in rows
    }
