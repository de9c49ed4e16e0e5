"""Compiles a model to a program: the flat bytes that kwsniff.core.wire.engine runs.

    header, 16 bytes:  b"KWP1" | u32 number of ops | u32 flags 0 | u32 reserved          (little endian)
    op, 16 bytes:      u8 kind | u8 flags | u8 meaning | u8 width | u32 a | u32 b | u32 c

A message: op 0 STRUCT (header) body END, STRUCT (body) body END, END. A schema has no header struct. The
index of an op is the node id of its field. ``width`` is the size in bytes of a fixed-size scalar (of an
element in ARRAY_SCALAR).
"""

import struct
from collections.abc import Sequence
from enum import IntEnum, IntFlag
from typing import Final, NamedTuple

from kwsniff.layout.check import struct_size
from kwsniff.layout.meaning import Meaning
from kwsniff.layout.model import RESPONSE, Field, Message
from kwsniff.layout.tokens import FIXED


class Kind(IntEnum):
    """Kinds of ops, as in core/wire/tape.pxd."""

    END = 0
    BOOL = 1
    INT8 = 2
    INT16 = 3
    INT32 = 4
    INT64 = 5
    UINT16 = 6
    UINT32 = 7
    FLOAT64 = 8
    UUID = 9
    STRING = 10
    BYTES = 11
    ARRAY = 12
    ARRAY_SCALAR = 13
    ARRAY_STRING = 14
    STRUCT = 15
    TAGS = 16
    TAG = 17
    VARINT = 18
    VARLONG = 19
    UVARINT = 20


class Flag(IntFlag):
    """Flags of ops, as in core/wire/tape.pxd."""

    NULLABLE = 1
    COMPACT = 2
    ZIGZAG = 4
    RECORDS = 8
    REST = 16
    TAG_NULLABLE = 32


_MAGIC: Final = b"KWP1"
_HEADER: Final = struct.Struct("<4sIII")
_OP: Final = struct.Struct("<BBBBIII")
_KINDS: Final = {kind.name.lower(): kind for kind in Kind}


class Program(NamedTuple):
    """A compiled layout.

    ``fields`` and ``paths`` are indexed by op: the field a value or TAG op reads (None for END, TAGS and
    the header and body structs) and its static dotted path (header fields begin with ``header.``, the
    body's root is empty; END and TAGS have the path of their struct). ``api`` is the api key, -1 for a
    schema; ``direction`` 0 request, 1 response (schemas: 0); ``releases`` is empty except for alternates.
    """

    code: bytes
    fields: tuple[Field | None, ...]
    paths: tuple[str, ...]
    api: int
    name: str
    version: int
    direction: int
    flexible: bool
    releases: str


class _Assembler:
    def __init__(self) -> None:
        self.ops: list[list[int]] = []
        self.fields: list[Field | None] = []
        self.paths: list[str] = []
        self.message: Message
        self.version = 0
        self.flexible = False

    def message_struct(self, message: Message, version: int, path: str) -> None:
        self.message, self.version, self.flexible = message, version, version >= message.flexible_from
        top = self.emit(Kind.STRUCT, None, path)
        self.struct_body(message.fields, path)
        self.ops[top][4] = len(self.ops)

    def emit(
        self,
        kind: Kind,
        field: Field | None,
        path: str,
        *,
        flags: int = 0,
        width: int = 0,
        b: int = 0,
        c: int = 0,
    ) -> int:
        meaning = field.meaning if field is not None and kind is not Kind.TAG else Meaning.NONE
        self.ops.append([kind, flags, meaning, width, 0, b, c])
        self.fields.append(field)
        self.paths.append(path)
        return len(self.ops) - 1

    def struct_body(self, fields: Sequence[Field], path: str) -> None:
        live = [field for field in fields if self.version in field.versions]
        for field in live:
            if field.tag is None:
                self.field(field, path)
        if self.flexible:
            self.tags([field for field in live if field.tag is not None], path)
        self.emit(Kind.END, None, path)

    def tags(self, tagged: list[Field], path: str) -> None:
        table = self.emit(Kind.TAGS, None, path, c=len(tagged))
        for field in sorted(tagged, key=lambda field: field.tag or 0):
            entry = self.emit(Kind.TAG, field, _join(path, field.name), c=field.tag or 0)
            self.field(field, path)
            self.ops[entry][4] = len(self.ops)
        self.ops[table][4] = len(self.ops)

    def field(self, field: Field, parent: str) -> None:
        path = _join(parent, field.name)
        null = field.nullable is not None and self.version in field.nullable
        if field.array:
            self.array(field, path, null)
        elif field.type == "struct":
            flag = Flag.NULLABLE if field.tag is None else Flag.TAG_NULLABLE
            op = self.emit(Kind.STRUCT, field, path, flags=flag if null else 0)
            self.struct_body(field.children, path)
            self.ops[op][4] = len(self.ops)
        elif field.type in ("string", "string16", "bytes", "records", "rest"):
            kind = Kind.STRING if field.type in ("string", "string16") else Kind.BYTES
            flags = self.length_flags(null) if field.type not in ("string16", "rest") else int(null)
            if field.type == "records":
                flags |= Flag.RECORDS
            elif field.type == "rest":
                flags |= Flag.REST
            self.emit(kind, field, path, flags=flags)
        else:
            self.emit(_KINDS[field.type], field, path, width=FIXED.get(field.type, 0))

    def array(self, field: Field, path: str, null: bool) -> None:
        flags = self.length_flags(null)
        if field.type == "struct":
            smallest = struct_size(self.message, field.children, self.version)
            op = self.emit(Kind.ARRAY, field, path, flags=flags, b=smallest)
            self.struct_body(field.children, path)
            self.ops[op][4] = len(self.ops)
        elif field.type in FIXED:
            width = FIXED[field.type]
            self.emit(Kind.ARRAY_SCALAR, field, path, flags=flags, width=width, b=width, c=_KINDS[field.type])
        else:
            classic = 2 if field.type == "string" else 4
            smallest = 1 if self.flexible or self.message.zigzag else classic
            self.emit(Kind.ARRAY_STRING, field, path, flags=flags, b=smallest, c=_KINDS[field.type])

    def length_flags(self, null: bool) -> int:
        flags = int(Flag.NULLABLE) if null else 0
        if self.message.zigzag:
            return flags | Flag.ZIGZAG
        return flags | Flag.COMPACT if self.flexible else flags

    def finish(self) -> bytes:
        self.emit(Kind.END, None, "")
        ops = b"".join(_OP.pack(*op) for op in self.ops)
        return _HEADER.pack(_MAGIC, len(self.ops), 0, 0) + ops


def _join(parent: str, name: str) -> str:
    return f"{parent}.{name}" if parent else name


def compile_message(
    message: Message, version: int, *, api: int, header: Message, header_version: int
) -> Program:
    """Program of a request or response: header struct, then body struct."""
    assembler = _Assembler()
    assembler.message_struct(header, header_version, "header")
    return _finish(assembler, message, version, api)


def compile_schema(schema: Message, version: int) -> Program:
    """Program of a separate schema, inside a bytes field or a record."""
    return _finish(_Assembler(), schema, version, -1)


def _finish(assembler: _Assembler, message: Message, version: int, api: int) -> Program:
    assembler.message_struct(message, version, "")
    code = assembler.finish()
    return Program(
        code,
        tuple(assembler.fields),
        tuple(assembler.paths),
        api,
        message.name,
        version,
        RESPONSE if message.section == "response" else 0,
        version >= message.flexible_from,
        message.releases,
    )
