"""Columns as the core hands them over, made by hand."""

import struct
from collections.abc import Sequence
from typing import Any

from kwsniff.core.declared import COLUMNS, ENUMS
from kwsniff.tables.build import ColumnData

_CODES = {"int64": "q", "time": "q", "int32": "i", "int16": "h", "api_name": "h"}


def bitmap(bits: Sequence[bool]) -> bytes:
    out = bytearray((len(bits) + 7) // 8)
    for place, bit in enumerate(bits):
        out[place // 8] |= bit << place % 8
    return bytes(out)


def column(kind: str, values: Sequence[Any]) -> ColumnData:
    """One column; None is null, and leaves a wild value in its slot, as memory may have one."""
    nulls = sum(value is None for value in values)
    validity = bitmap([value is not None for value in values]) if nulls else None
    head = (kind, len(values), nulls, validity)
    if kind in _CODES:
        numbers = [77 if value is None else value for value in values]
        return (*head, struct.pack(f"={len(values)}{_CODES[kind]}", *numbers))
    if kind == "bool":
        return (*head, bitmap([bool(value) for value in values]))
    if kind == "string":
        return (*head, *_coded([value or b"" for value in values]))
    if kind == "strings":
        ends = [0]
        for value in values:
            ends.append(ends[-1] + len(value or ()))
        inner = [text for value in values for text in value or ()]
        return (*head, struct.pack(f"={len(ends)}i", *ends), *_coded(inner))
    names = ENUMS[kind.removeprefix("enum:")]
    return (*head, struct.pack(f"={len(values)}b", *(0 if v is None else names.index(v) for v in values)))


def _coded(texts: Sequence[bytes]) -> tuple[Any, ...]:
    entries = list(dict.fromkeys(texts))
    ends = [0]
    for entry in entries:
        ends.append(ends[-1] + len(entry))
    indices = struct.pack(f"={len(texts)}i", *map(entries.index, texts))
    return (indices, struct.pack(f"={len(ends)}i", *ends), b"".join(entries), len(entries))


_PLAIN = {
    "int64": 1,
    "int32": 2,
    "int16": 3,
    "time": 1_700_000_000_123_456_789,
    "bool": True,
    "string": b"x",
    "api_name": 0,
}


_KAFKA = range(90)


def table(name: str, rows: int, **given: Sequence[Any]) -> list[ColumnData]:
    """All columns of a table: those given, the others filled with something of their kind."""
    made = []
    for column_name, kind, _ in COLUMNS[name]:
        if column_name in given:
            values = given[column_name]
        elif kind == "api_name" and "api_key" in given:
            # Kafka's keys follow each other from 0 on: they are the places of the names, too.
            values = [key if key in _KAFKA else None for key in given["api_key"]]
        elif kind.startswith("enum:"):
            values = [ENUMS[kind.removeprefix("enum:")][0]] * rows
        else:
            values = [[b"x"] if kind == "strings" else _PLAIN[kind]] * rows
        made.append(column(kind, values))
    return made
