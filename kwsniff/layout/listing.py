"""A program as text: the layout on the wire, read from the ops that the engine runs."""

import struct
from dataclasses import dataclass
from typing import Final

from kwsniff.layout.meaning import Meaning
from kwsniff.layout.program import Flag, Kind, Program

_OP: Final = struct.Struct("<BBBBIII")


@dataclass(frozen=True, slots=True)
class Line:
    """One field on the wire, in order.

    ``depth`` counts from 0 (fields of the header and of the body); ``encoding`` describes it in
    words; ``tag``: number of a tagged field; ``default``: value if absent, unless zero.
    The tagged section itself is a line without a name.
    """

    depth: int
    name: str
    encoding: str
    null: bool
    meaning: str
    tag: int | None
    default: str | None


def list_program(program: Program) -> tuple[tuple[Line, ...], tuple[Line, ...]]:
    """Lines of the header (empty for a schema) and of the body."""
    ops = [_OP.unpack_from(program.code, 16 + 16 * index) for index in range(len(program.fields))]
    parts: list[tuple[Line, ...]] = []
    start = 0
    while ops[start][0] == Kind.STRUCT and program.fields[start] is None:
        end = ops[start][4]
        parts.append(_lines(program, ops, start + 1, end - 1))
        start = end
    return (parts[0], parts[1]) if len(parts) > 1 else ((), parts[0])


def _lines(program: Program, ops: list[tuple[int, ...]], start: int, end: int) -> tuple[Line, ...]:
    lines: list[Line] = []
    ends: list[int] = []
    tag: int | None = None
    for index in range(start, end):
        kind, flags, meaning, _, after, _, number = ops[index]
        while ends and index >= ends[-1]:
            ends.pop()
        if kind == Kind.TAG:
            tag = number
            continue
        field = program.fields[index]
        if kind == Kind.TAGS:
            lines.append(Line(len(ends), "", f"tagged section, {number} known", False, "", None, None))
        elif field is not None:
            null = bool(flags & (Flag.NULLABLE | Flag.TAG_NULLABLE))
            word = field.enum or (Meaning(meaning).name.lower() if meaning else "")
            default = field.default if tag is not None else None
            lines.append(
                Line(len(ends), field.name, _encoding(kind, flags, number), null, word, tag, default)
            )
            tag = None
        if kind in (Kind.ARRAY, Kind.STRUCT, Kind.TAGS):
            ends.append(after)
    return tuple(lines)


def _encoding(kind: int, flags: int, element: int) -> str:
    if kind == Kind.STRUCT:
        if flags & Flag.TAG_NULLABLE:
            return "struct after a uvarint mark"
        return "struct after an int8 mark" if flags & Flag.NULLABLE else "struct"
    if flags & Flag.REST:
        return "bytes to the end"
    name = Kind(kind).name.lower()
    if kind in (Kind.STRING, Kind.BYTES):
        classic = "int16 length" if kind == Kind.STRING else "int32 length"
        return f"{'records' if flags & Flag.RECORDS else name}, {_length(flags, 'length', classic)}"
    if kind in (Kind.ARRAY, Kind.ARRAY_SCALAR, Kind.ARRAY_STRING):
        inner = "struct" if kind == Kind.ARRAY else Kind(element).name.lower()
        return f"array of {inner}, {_length(flags, 'count', 'int32 count')}"
    return name


def _length(flags: int, what: str, classic: str) -> str:
    if flags & Flag.COMPACT:
        return f"uvarint {what} + 1"
    return f"varint {what}" if flags & Flag.ZIGZAG else classic
