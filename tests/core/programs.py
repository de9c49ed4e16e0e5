"""Programs assembled by hand, op by op, so that the engine's tests do not stand on the layout compiler."""

import struct

from kwsniff.core.wire import engine

END, BOOL, INT8, INT16, INT32, INT64, UINT16, UINT32, FLOAT64, UUID = range(10)
STRING, BYTES, ARRAY, ARRAY_SCALAR, ARRAY_STRING, STRUCT, TAGS, TAG, VARINT, VARLONG, UVARINT = range(10, 21)
NULLABLE, COMPACT, ZIGZAG, RECORDS, REST, TAG_NULLABLE = 1, 2, 4, 8, 16, 32


def op(kind: int, flags: int = 0, a: int = 0, b: int = 0, c: int = 0) -> bytes:
    return struct.pack("<BBBBIII", kind, flags, 0, 0, a, b, c)


def program(*ops: bytes) -> bytes:
    return struct.pack("<4sIII", b"KWP1", len(ops), 0, 0) + b"".join(ops)


def cells(tape: bytes) -> list[tuple[int, int, int]]:
    return list(struct.iter_unpack("<IIq", tape))


def status(number: int) -> str:
    return engine.STATUSES[number]


def one_field(*field: bytes) -> bytes:
    """A top-level struct that is the given ops and nothing else."""
    return program(op(STRUCT, a=len(field) + 2), *field, op(END), op(END))
