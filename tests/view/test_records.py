"""Record sets that are damaged or made to hurt; whole ones are in tests/vectors."""

import json
import random
import struct
import zlib
from typing import Any

import pyarrow as pa
import pytest

from kwsniff.view.records import decode_records
from tests.core.test_records import batch, message
from tests.vectors.golden import read

# length 7 (zigzag 14), attributes, timestamp delta 1, offset delta 0, null key, value "v", no headers.
RECORD = bytes([14, 0, 2, 0, 1, 2]) + b"v" + b"\0"


def error_of(data: bytes) -> tuple[str, str]:
    error = decode_records(data).error
    assert error is not None
    return error["code"], error["path"]


def test_record_of_a_batch():
    got = decode_records(batch(1, RECORD)).as_dict()
    assert got["error"] is None
    assert got["batches"][0]["records"] == [
        {"offset": 10, "timestamp": 1001, "sequence": 5, "key": None, "value": "dg==", "headers": []}
    ]


def test_count_that_promises_more_than_there_is():
    assert error_of(batch(2**31 - 1, RECORD)) == ("unexpected_end", "/batches/0/records/1")
    assert error_of(batch(-1, RECORD)) == ("negative_length", "/batches/0")


def test_bytes_after_the_last_record():
    assert error_of(batch(1, RECORD + b"?")) == ("bytes_left_over", "/batches/0")


def test_record_longer_or_shorter_than_its_length():
    assert error_of(batch(1, bytes([12]) + RECORD[1:])) == ("unexpected_end", "/batches/0/records/0")
    assert error_of(batch(1, bytes([16]) + RECORD[1:] + b"?")) == ("bytes_left_over", "/batches/0/records/0")


def test_wrong_checksum_is_an_error_and_the_records_are_shown():
    data = bytearray(batch(1, RECORD))
    data[-2] = ord("w")
    got = decode_records(bytes(data))
    assert got.error == {"code": "crc_mismatch", "path": "/batches/0", "offset": 0}
    assert got.batches[0]["records"][0]["value"] == "dw=="


def test_relative_offsets_of_compressed_messages():
    inner = b"".join(offset.to_bytes(8, "big") + message(1)[8:] for offset in range(3))
    wrapper = bytearray(message(1, pa.Codec("snappy").compress(inner, asbytes=True), attributes=2))
    wrapper[:8] = (100).to_bytes(8, "big")
    shown = decode_records(bytes(wrapper)).batches[0]
    assert [record["offset"] for record in shown["records"]] == [98, 99, 100]
    assert (shown["base_offset"], shown["last_offset"]) == (98, 100)
    wrapper[:8] = bytes(8)
    shown = decode_records(bytes(wrapper)).batches[0]
    assert [record["offset"] for record in shown["records"]] == [0, 1, 2]


def test_compressed_message_inside_a_compressed_message_is_refused():
    inner = message(1, b"x", attributes=1)
    wrapper = message(1, pa.Codec("snappy").compress(inner, asbytes=True), attributes=2)
    assert error_of(wrapper) == ("unknown_record_format", "/batches/0/records/0")


def test_limit_holds_for_all_batches_together():
    packed = pa.Codec("zstd").compress(RECORD * 1000, asbytes=True)
    one = batch(1000, packed, attributes=4)
    assert decode_records(one * 3, limit=24_000).error is None
    assert decode_records(one * 3, limit=23_999).error == {
        "code": "longer_than_limit",
        "path": "/batches/2",
        "offset": 2 * len(one),
    }


def test_values_of_control_records():
    control = {}
    for vector in read("records"):
        if vector["kind"].startswith("control-"):
            (one,) = decode_records(bytes.fromhex(vector["hex"])).control
            control[one["control_type"]] = one["value"]
    # Worked out from the values' bytes: 00000009 behind the version 0000, 7fffffff, ...
    assert control["ABORT"] == {"coordinator_epoch": 9}
    assert control["COMMIT"] == {"coordinator_epoch": 0x7FFFFFFF}
    assert control["LEADER_CHANGE"] == {
        "version": 0,
        "leader_id": 2,
        "voters": [{"voter_id": 1}, {"voter_id": 2}],
        "granting_voters": [{"voter_id": 2}],
    }
    assert control["SNAPSHOT_HEADER"] == {"version": 0, "last_contained_log_timestamp": 1700000000000 - 5}
    assert control["SNAPSHOT_FOOTER"] == {"version": 0}
    assert control["KRAFT_VERSION"] == {"version": 0, "kraft_version": 1}
    assert control["KRAFT_VOTERS"]["voters"][0]["endpoints"][0]["port"] == 65535


def test_damage_never_raises():
    random_ = random.Random(11)
    sets = [bytes.fromhex(vector["hex"]) for vector in read("records") if vector["hex"]]
    for _ in range(1500):
        data = bytearray(random_.choice(sets))
        for _ in range(random_.randrange(1, 5)):
            data[random_.randrange(len(data))] = random_.choice((0, 1, 2, 127, 128, 255))
        json.dumps(decode_records(bytes(data), limit=1 << 20).as_dict())


def test_a_great_many_tiny_messages_are_read_up_to_the_limit():
    import tracemalloc

    # Format 0: offset, size 14, CRC-32, magic, attributes, null key, null value.
    body = b"\0\0" + b"\xff" * 8
    message = struct.pack(">qiI", 0, 14, zlib.crc32(body)) + body
    data = message * 400_000
    tracemalloc.start()
    found = decode_records(data, most_records=1000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.error == {"code": "longer_than_limit", "path": "/batches/1000", "offset": 26_000}
    assert len(found.batches) == 1000
    assert (found.valid_bytes, found.trailing_bytes) == (26_000, len(data) - 26_000)
    assert peak < 64 << 20


@pytest.mark.parametrize("piece", [16, 64, 100, 1000])
def test_record_sets_are_the_same_in_pieces_of_any_size(piece: int, monkeypatch: pytest.MonkeyPatch):
    vectors = [bytes.fromhex(vector["hex"]) for vector in read("records")]
    expected = [decode_records(data).as_dict() for data in vectors]
    monkeypatch.setattr("kwsniff.view.record_entries._PIECE", piece)
    assert [decode_records(data).as_dict() for data in vectors] == expected
    joined = b"".join(vectors[:8])
    monkeypatch.undo()
    whole = decode_records(joined).as_dict()
    monkeypatch.setattr("kwsniff.view.record_entries._PIECE", piece)
    assert decode_records(joined).as_dict() == whole


def test_after_one_bomb_nothing_more_is_decompressed(monkeypatch: pytest.MonkeyPatch):
    from kwsniff.view import records
    from tests.traffic.records import batch as whole_batch

    calls = []

    def counted(*args: Any, **kwargs: Any) -> bytes:
        calls.append(args)
        return real(*args, **kwargs)

    real = records.decompress
    monkeypatch.setattr(records, "decompress", counted)
    bomb = whole_batch([bytes(100_000)], gzipped=True)
    found = decode_records(bomb * 50, limit=1000)
    assert found.error is not None
    assert found.error["code"] == "longer_than_limit"
    assert len(found.batches) == 50
    assert len(calls) == 1
