"""Seeded damage: to bytes, to files, to packets that stay well-formed so that depth is reached."""

import random
import struct
from collections.abc import Sequence
from dataclasses import dataclass

from tests.hostile.seeds import RAW, STYLE
from tests.traffic.tcp import Packet

ODD = (
    0,
    1,
    2,
    3,
    4,
    7,
    8,
    0x7F,
    0x80,
    0xFF,
    0x7FFF,
    0x8000,
    0xFFFF,
    1 << 16,
    (1 << 31) - 1,
    1 << 31,
    (1 << 32) - 1,
)
_IP, _TCP, _DATA = 14, 34, 54  # of an Ethernet frame with IPv4 and TCP without options


@dataclass(slots=True)
class Row:
    """One packet record of a capture."""

    time_ns: int
    frame: bytearray
    length: int

    def copy(self) -> "Row":
        return Row(self.time_ns, bytearray(self.frame), self.length)


def rows_of(packets: Sequence[Packet]) -> list[Row]:
    rows = []
    for packet in packets:
        data = RAW.frame(packet, STYLE)
        rows.append(Row(packet.time_ns, bytearray(data), len(data)))
    return rows


def capture_of(rows: Sequence[Row]) -> bytes:
    out = [struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262_144, 1)]
    for row in rows:
        seconds, rest = divmod(max(row.time_ns, 0), 10**9)
        out.append(struct.pack("<IIII", seconds & 0xFFFFFFFF, rest, len(row.frame), row.length & 0xFFFFFFFF))
        out.append(row.frame)
    return b"".join(out)


def damaged_bytes(dice: random.Random, data: bytes | bytearray, most: int = 5) -> bytearray:
    """A few bits, bytes, words changed; pieces cut out, repeated, put in; the end gone."""
    out = bytearray(data)
    for _ in range(dice.randrange(1, most + 1)):
        if not out:
            out += dice.randbytes(4)
        at = dice.randrange(len(out))
        kind = dice.randrange(9)
        if kind <= 1:
            out[at] ^= 1 << dice.randrange(8)
        elif kind == 2:
            out[at] = dice.choice(ODD) & 0xFF
        elif kind == 3:
            size = dice.choice((2, 4))
            order = dice.choice(("big", "little"))
            out[at : at + size] = (dice.choice(ODD) & ((1 << 8 * size) - 1)).to_bytes(size, order)
        elif kind == 4:
            del out[at : at + dice.randrange(1, 40)]
        elif kind == 5:
            out[at:at] = out[at : at + dice.randrange(1, 200)]
        elif kind == 6:
            out[at:at] = dice.randbytes(dice.randrange(1, 9))
        elif kind == 7 and dice.random() < 0.3:
            del out[at:]
        else:
            start = dice.randrange(len(out))
            out[at : at + 16] = out[start : start + 16]
    return out


def damaged_rows(dice: random.Random, rows: Sequence[Row]) -> list[Row]:
    """The same packets with a few of them lost, moved, repeated, lying about themselves or changed inside."""
    out = list(rows)
    for _ in range(dice.randrange(1, 7)):
        if not out:
            break
        at = dice.randrange(len(out))
        kind = dice.randrange(16)
        if kind == 0:
            del out[at : at + dice.randrange(1, 4)]
        elif kind == 1:
            out.insert(dice.randrange(len(out)), out[at])
        elif kind == 2:
            out.insert(min(at + dice.randrange(-9, 10), len(out)) if at > 9 else at, out.pop(at))
        else:
            row = out[at] = out[at].copy()
            _CHANGES[kind - 3](dice, row)
    return out


def _seq(dice: random.Random, row: Row) -> None:
    _add(
        row,
        _TCP + 4,
        dice.choice((1, -1, 5, -5, 1448, -1448, 1 << 20, 1 << 30, -(1 << 30), 1 << 31, (1 << 31) - 1)),
    )


def _ack(dice: random.Random, row: Row) -> None:
    _add(row, _TCP + 8, dice.choice((1, -1, 1000, 100_000, 1 << 30, 1 << 31, -(1 << 31))))


def _add(row: Row, at: int, number: int) -> None:
    if len(row.frame) >= at + 4:
        (old,) = struct.unpack_from(">I", row.frame, at)
        struct.pack_into(">I", row.frame, at, (old + number) & 0xFFFFFFFF)


def _flags(dice: random.Random, row: Row) -> None:
    if len(row.frame) > _TCP + 13:
        row.frame[_TCP + 13] = dice.choice((1, 2, 4, 16, 18, 20, 17, 24, 3, 6, 0, 0x3F, dice.randrange(256)))


def _payload(dice: random.Random, row: Row) -> None:
    row.frame[_DATA:] = damaged_bytes(dice, row.frame[_DATA:])
    _fit(row)


def _prefix(dice: random.Random, row: Row) -> None:
    if len(row.frame) >= _DATA + 4:
        old = struct.unpack_from(">I", row.frame, _DATA)[0]
        number = dice.choice((*ODD, old + 1, old - 1, old + 4, 1 << 29, 0x7FFFFFFB, len(row.frame)))
        struct.pack_into(">I", row.frame, _DATA, number & 0xFFFFFFFF)


def _header(dice: random.Random, row: Row) -> None:
    """The four words that open a Kafka message."""
    if len(row.frame) >= _DATA + 14:
        at = _DATA + 4 + 2 * dice.randrange(5)
        struct.pack_into(
            ">H", row.frame, at, dice.choice((0, 1, 3, 17, 18, 36, 500, 0xFFFF, dice.randrange(100)))
        )


def _cut(dice: random.Random, row: Row) -> None:
    del row.frame[dice.randrange(len(row.frame) + 1) :]


def _length(dice: random.Random, row: Row) -> None:
    row.length = dice.choice((0, 1, len(row.frame) + 1, 70_000, 1 << 24, (1 << 31) + 3, (1 << 32) - 1))


def _offloaded(dice: random.Random, row: Row) -> None:
    """IP total length 0, as a card that cuts later leaves it; often with a length on the wire of its own."""
    if len(row.frame) >= _IP + 4:
        row.frame[_IP + 2 : _IP + 4] = b"\0\0"
        if dice.random() < 0.5:
            _length(dice, row)


def _headers(dice: random.Random, row: Row) -> None:
    head = damaged_bytes(dice, row.frame[:_DATA], 2)
    row.frame[:_DATA] = head


def _time(dice: random.Random, row: Row) -> None:
    row.time_ns += dice.choice((-1, 1, -(10**9), 10**10, -row.time_ns, 10**18))


def _trim(dice: random.Random, row: Row) -> None:
    """Less payload than sent, or none, with lengths that agree."""
    del row.frame[_DATA + dice.randrange(max(len(row.frame) - _DATA, 0) + 1) :]
    _fit(row)


def _grow(dice: random.Random, row: Row) -> None:
    row.frame += dice.choice((b"\0", b"\xff", dice.randbytes(4))) * dice.choice((1, 7, 200, 3000))
    _fit(row)


def _fit(row: Row) -> None:
    if len(row.frame) >= _IP + 4:
        struct.pack_into(">H", row.frame, _IP + 2, min(len(row.frame) - _IP, 0xFFFF))
    row.length = len(row.frame)


_CHANGES = (
    _seq, _ack, _flags, _payload, _prefix, _header, _cut, _length, _offloaded, _headers, _time, _trim, _grow,
)  # fmt: skip
