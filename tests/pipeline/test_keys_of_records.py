"""Whether records have keys, against batches that kafka-python writes, and broken ones."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path

import pytest

import kwsniff
from tests.house.tree import ROOT
from tests.pipeline.compare import analyzed_packets
from tests.traffic import messages
from tests.traffic.records import batch, crc32c, record
from tests.traffic.scenes import one_by_one

TIME_MS = 1_700_000_000_000
LONG = b"k" * 9000
Key = bytes | None


def keyed(folder: Path, data: bytes) -> list[bool | None]:
    """Of each batch in a Fetch response."""
    call = messages.fetch(4, 1, {"orders": {0: b""}})
    assert call.response
    # The script counts records of format 2 only: put in afterwards.
    answer = call.response[4:].removesuffix(bytes(4)) + struct.pack(">i", len(data)) + data
    call = replace(call, response=struct.pack(">i", len(answer)) + answer)
    return [row["keyed"] for row in analyzed_packets(folder, one_by_one([call]).packets())["record_batches"]]


def written(magic: int, codec: int, keys: list[Key]) -> bytes:
    library = pytest.importorskip("kafka.record", reason="kafka-python is not installed")
    builder = library.MemoryRecordsBuilder(magic, codec, 1 << 20)
    for number, key in enumerate(keys):
        builder.append(TIME_MS + 100 * number, key, b"value")
    builder.close()
    return bytes(builder.buffer())


def hand_made(records: bytes, *, flags: int = 0, count: int = 1) -> bytes:
    """A batch of format 2 whose records are these bytes."""
    tail = struct.pack(">hiqqqhii", flags, max(count - 1, 0), TIME_MS, TIME_MS, -1, -1, -1, count) + records
    after_size = struct.pack(">ibI", 0, 2, crc32c(tail)) + tail
    return struct.pack(">qi", 0, len(after_size)) + after_size


@pytest.mark.parametrize("key", [None, b"", b"k", b"k" * 63, b"k" * 64, LONG])
def test_the_first_record_says_whether_a_batch_has_keys(tmp_path: Path, key: Key) -> None:
    assert keyed(tmp_path, written(2, 0, [key, None, b"other"])) == [key is not None]


@pytest.mark.parametrize("magic", [0, 1])
def test_each_message_of_older_formats_says_it_itself(tmp_path: Path, magic: int) -> None:
    assert keyed(tmp_path, written(magic, 0, [b"k", None, b""])) == [True, False, True]


@pytest.mark.parametrize("magic", [0, 1, 2])
def test_what_is_compressed_is_not_known(tmp_path: Path, magic: int) -> None:
    assert keyed(tmp_path, written(magic, 1, [b"k"] * 50)) == [None]


@pytest.mark.parametrize(
    "data",
    [
        hand_made(record(b"\0\0\0\0", 0, b"\0\0\0\1"), flags=0x30),  # a marker's key is no application's
        hand_made(b"", count=0),
        hand_made(b""),
        hand_made(record(b"v", 0, b"k")[:4]),  # ends before the key's length
        hand_made(b"\xff" * 500),
        hand_made(b"\x10\0\0\0\x03more"),  # the length -2
    ],
    ids=("marker", "no records", "empty", "cut", "endless varint", "negative length"),
)
def test_batches_without_a_readable_record_are_not_known(tmp_path: Path, data: bytes) -> None:
    assert keyed(tmp_path, data) == [None]


def test_varints_of_full_length_come_before_a_key(tmp_path: Path) -> None:
    """Of 5, 10 and 5 bytes, padded with zeros as protobuf allows it."""
    head = b"\xa8" + b"\x80" * 3 + b"\0" + b"\0" + b"\x80" * 9 + b"\0" + b"\x80" * 4 + b"\0"
    assert len(head) == 21
    assert keyed(tmp_path, hand_made(head + b"\x02k\x02v\0")) == [True]
    assert keyed(tmp_path, hand_made(head + b"\x01\x02v\0")) == [False]


def test_users_of_a_topic_write_with_keys_or_without(tmp_path: Path) -> None:
    calls = [
        messages.produce(9, 1, {"orders": {0: batch([b"a"]), 1: hand_made(record(b"a", 0, b"k"))}}),
        messages.produce(9, 2, {"returns": {0: batch([b"a"])}}),
        messages.produce(9, 3, {"parcels": {0: hand_made(record(b"a", 0, b"k"))}}),
        messages.produce(9, 4, {"packed": {0: batch([b"a"], gzipped=True)}}),
    ]
    analyzed_packets(tmp_path, one_by_one(calls).packets())
    kwsniff.analyze(tmp_path / "capture.pcap", output=tmp_path / "out")
    rows = kwsniff.sql(tmp_path / "out", question="topic_users").to_pylist()
    assert {row["topic"]: row["keys"] for row in rows} == {
        "orders": "some",
        "returns": "no",
        "parcels": "yes",
        "packed": None,
    }


def test_clients_of_a_recording_write_with_keys_or_without(tmp_path: Path) -> None:
    """tests/broker/network/everyday.py: its five producers have a key each."""
    kwsniff.analyze(
        ROOT / "captures" / "incidents" / "healthy_compacted" / "broker.pcap", output=tmp_path / "out"
    )
    rows = kwsniff.sql(tmp_path / "out", question="topic_users").to_pylist()
    assert {row["keys"] for row in rows if row["does"] == "writes"} == {"yes"}
