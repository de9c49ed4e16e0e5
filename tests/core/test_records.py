"""Envelopes of record sets from bytes put together by hand; checksums against other implementations."""

import random
import struct
import zlib

from hypothesis import given
from hypothesis import strategies as st

from kwsniff.core.wire import records

from .guard import flush_against_guard_page


def crc32c_bit_by_bit(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def batch(count: int = 0, body: bytes = b"", attributes: int = 0, base: int = 10) -> bytes:
    covered = struct.pack(">hiqqqhii", attributes, 4, 1000, 2000, 77, 3, 5, count) + body
    inner = struct.pack(">ibI", 9, 2, crc32c_bit_by_bit(covered)) + covered
    return struct.pack(">qi", base, len(inner)) + inner


def message(magic: int, value: bytes = b"v", attributes: int = 0) -> bytes:
    timestamp = struct.pack(">q", 1234) if magic else b""
    covered = (
        bytes([magic, attributes]) + timestamp + b"\xff\xff\xff\xff" + struct.pack(">i", len(value)) + value
    )
    inner = struct.pack(">I", zlib.crc32(covered)) + covered
    return struct.pack(">qi", 7, len(inner)) + inner


def status(data: bytes) -> tuple[int, str, int]:
    found, number, offset = records.batches(data)
    return len(found), records.STATUSES[number], offset


def test_batch_says_what_is_in_it():
    data = batch(count=2, body=b"??", attributes=0x33)
    (entry,), number, offset = records.batches(data)
    assert (records.STATUSES[number], offset) == ("end", len(data))
    assert entry._asdict() == {
        "offset": 0,
        "size": len(data),
        "payload": 61,
        "stored_crc": crc32c_bit_by_bit(data[21:]),
        "leader_epoch": 9,
        "last_offset_delta": 4,
        "base_sequence": 5,
        "record_count": 2,
        "base_offset": 10,
        "base_timestamp": 1000,
        "max_timestamp": 2000,
        "producer_id": 77,
        "producer_epoch": 3,
        "attributes": 0x33,
        "magic": 2,
        "is_valid": 1,
    }


def test_formats_mixed():
    data = message(0) + batch() + message(1) + message(1, attributes=1)
    found, number, _ = records.batches(data)
    assert records.STATUSES[number] == "end"
    assert [(entry.magic, entry.is_valid, entry.record_count) for entry in found] == [
        (0, 1, 1),
        (2, 1, 0),
        (1, 1, 1),
        (1, 1, -1),
    ]
    assert [entry.max_timestamp for entry in found] == [-1, 2000, 1234, 1234]


def test_tail_cut_at_every_byte():
    first, second = batch(), batch(count=1, body=b"abc")
    for size in range(1, len(second)):
        assert status(first + second[:size]) == (1, "cut", len(first)), size
    assert status(b"") == (0, "end", 0)


def test_corrupt_size_or_magic_ends_the_walk():
    first = batch()
    for size in (-1, 0, 13, -(2**31)):
        assert status(first + struct.pack(">qi", 0, size)) == (1, "record_size_too_small", len(first))
    assert status(struct.pack(">qiib", 0, 48, 0, 2) + bytes(43)) == (0, "record_size_too_small", 0)
    assert status(struct.pack(">qiib", 0, 60, 0, 3) + bytes(60)) == (0, "unknown_record_format", 0)


def test_any_flipped_bit_behind_the_checksum_is_noticed():
    for whole, start in ((batch(count=1, body=b"abc"), 21), (message(1), 16)):
        for at in range(start, len(whole)):
            damaged = bytearray(whole)
            damaged[at] ^= 1
            found, _, _ = records.batches(bytes(damaged))
            assert not found or not found[0].is_valid or found[0].magic != whole[16], at


def test_leader_epoch_is_not_covered():
    data = bytearray(batch())
    data[12:16] = b"\0\0\0\0"
    assert records.batches(bytes(data))[0][0].is_valid


@given(st.binary(max_size=70))
def test_checksums_equal_other_implementations(data: bytes):
    assert records.crc32c(data) == records.crc32c(data, hardware=False) == crc32c_bit_by_bit(data)
    assert records.crc32(data) == zlib.crc32(data)


def test_crc32c_of_the_rfc():
    assert records.crc32c(bytes(32)) == 0x8A9136AA
    assert records.crc32c(b"\xff" * 32, hardware=False) == 0x62A8AB43


def test_random_damage_flush_against_a_guard_page():
    random_ = random.Random(3)
    whole = message(0) + batch(1, b"abc") + message(1)
    for _ in range(2000):
        data = bytearray(whole[: random_.randrange(len(whole) + 1)])
        for _ in range(random_.randrange(4)):
            if data:
                data[random_.randrange(len(data))] = random_.choice((0, 1, 2, 14, 49, 127, 128, 255))
        with flush_against_guard_page(bytes(data)) as guarded:
            assert records.batches(guarded) == records.batches(bytes(data))
