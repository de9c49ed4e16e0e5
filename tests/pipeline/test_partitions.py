"""What calls moved, partition by partition and batch by batch, against the script that wrote it."""

from __future__ import annotations

import gzip
import struct
import zlib
from base64 import urlsafe_b64encode
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.pipeline.compare import analyzed_packets, decoded
from tests.pipeline.test_recorded import CAPTURES, about
from tests.traffic import groups, messages
from tests.traffic.exchange import Exchange
from tests.traffic.records import batch, crc32c, record
from tests.traffic.scenes import one_by_one

Row = dict[str, Any]
TIME_MS = 1_700_000_000_000
ONE, TWO = batch([b"one", b"two"], base_offset=100), batch([b"three"], base_offset=102)
PACKED = batch([b"x" * 100] * 5, base_offset=7, gzipped=True)


def tables_of(folder: Path, *calls: Exchange) -> tuple[list[Row], list[Row]]:
    """Rows of partitions and record_batches, with the correlation id of their call."""
    tables = analyzed_packets(folder, one_by_one(calls).packets())
    numbers = {row["call_id"]: row["correlation_id"] for row in tables["api_calls"]}
    both = tables["partitions"], tables["record_batches"]
    rows = [[{**row, "correlation_id": numbers[row["call_id"]]} for row in table] for table in both]
    return rows[0], rows[1]


def picked(rows: list[Row], *names: str) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in names) for row in rows]


@pytest.mark.parametrize("version", [3, 7, 9, 13])
def test_a_produce_has_a_row_for_each_partition(tmp_path: Path, version: int) -> None:
    sets = {"orders": {0: ONE + TWO, 5: PACKED}, "returns": {2: TWO}}
    call = messages.produce(version, 1, sets, errors={("orders", 5): 6})
    known = messages.metadata(12, 2, ["orders", "returns"])
    partitions, _ = tables_of(tmp_path, known, call)
    rows = [row for row in partitions if row["api_name"] == "Produce"]
    assert picked(
        rows, "topic", "partition", "error_code", "record_bytes", "record_count", "batch_count"
    ) == [
        ("orders", 0, 0, len(ONE + TWO), 3, 2),
        ("orders", 5, 6, len(PACKED), 5, 1),
        ("returns", 2, 0, len(TWO), 1, 1),
    ]
    assert [row["base_offset"] for row in rows if row["error_code"] == 0] == [42, 42]
    assert {row["lag"] for row in rows} == {None}
    ids = {topic: urlsafe_b64encode(messages.topic_uuid(topic)).decode().rstrip("=") for topic in sets}
    assert all(row["topic_id"] == (ids[row["topic"]] if version >= 13 else None) for row in rows)


def test_without_acknowledgement_there_is_no_error_code(tmp_path: Path) -> None:
    partitions, batches = tables_of(tmp_path, messages.produce(9, 1, {"orders": {3: ONE}}, acks=0))
    assert picked(partitions, "topic", "partition", "error_code", "record_count") == [("orders", 3, None, 2)]
    assert picked(batches, "topic", "partition", "record_count") == [("orders", 3, 2)]


@pytest.mark.parametrize("version", [4, 7, 11, 12, 16])
def test_a_fetch_shows_the_lag_of_its_reader(tmp_path: Path, version: int) -> None:
    """The answers of the script have high watermark 1000; requests ask for offset 100."""
    sets = {"orders": {0: ONE + TWO, 1: b"", 2: b""}}
    call = messages.fetch(version, 1, sets, errors={("orders", 2): 1})
    rows, _ = tables_of(tmp_path, call)
    names = ("partition", "error_code", "requested_offset", "record_bytes", "record_count", "batch_count")
    assert picked(rows, *names) == [
        (0, 0, 100, len(ONE + TWO), 3, 2),
        (1, 0, 100, 0, 0, 0),
        (2, 1, 100, 0, 0, 0),
    ]
    first, idle, failed = rows
    assert (first["base_offset"], first["last_offset"]) == (100, 102)
    assert (first["high_watermark"], first["last_stable_offset"]) == (1000, 999)
    assert first["lag"] == 1000 - 103
    assert idle["lag"] == 1000 - 100
    assert failed["lag"] is None
    assert (idle["base_offset"], idle["last_offset"]) == (None, None)


@pytest.mark.parametrize("version", [10, 11, 12, 13, 16])
@pytest.mark.parametrize("nearer", [-1, 0, 3])
def test_a_fetch_shows_the_replica_that_the_broker_prefers(tmp_path: Path, version: int, nearer: int) -> None:
    """KIP-392; -1 is the leader that answers."""
    call = messages.fetch(version, 1, {"orders": {0: b"", 1: ONE}}, rack="b", nearer=nearer)
    rows, _ = tables_of(tmp_path, call)
    told = nearer if version >= 11 and nearer >= 0 else None
    assert [row["preferred_read_replica"] for row in rows] == [told, told]


@pytest.mark.parametrize(("version", "epoch"), [(6, None), (7, -1), (11, 0), (12, 7), (16, 2_147_483_647)])
def test_a_fetch_shows_the_epoch_of_its_session(tmp_path: Path, version: int, epoch: int | None) -> None:
    """Sessions exist from version 7 on (KIP-227)."""
    call = messages.fetch(version, 1, {"orders": {0: ONE}}, session=(9, epoch or 0))
    (row,) = analyzed_packets(tmp_path, one_by_one([call]).packets())["api_calls"]
    assert row["session_epoch"] == epoch


def test_offsets_that_are_committed_and_asked_for_are_rows(tmp_path: Path) -> None:
    offsets = {"orders": {0: 17, 1: 4}, "returns": {3: 9}}
    partitions, _ = tables_of(
        tmp_path,
        groups.offset_commit(8, 1, "g", offsets, errors={("returns", 3): 22}),
        groups.offset_fetch(7, 2, "g", offsets),
        groups.list_offsets(7, 3, {"orders": 0}),
    )
    names = ("correlation_id", "topic", "partition", "requested_offset", "error_code")
    assert picked(partitions, *names) == [
        (1, "orders", 0, 17, 0),
        (1, "orders", 1, 4, 0),
        (1, "returns", 3, 9, 22),
        (2, "orders", 0, 17, 0),
        (2, "orders", 1, 4, 0),
        (2, "returns", 3, 9, 0),
        (3, "orders", 0, 77, 0),
    ]


def test_batches_say_what_their_headers_say(tmp_path: Path) -> None:
    mine = batch([b"a", b"b", b"c"], base_offset=9, producer=(4000, 2, 17), flags=16)
    marker = batch([b"\0\0\0\0\0\0"], base_offset=12, producer=(4000, 2, -1), flags=16 | 32)
    stamped = batch([b"d"], base_offset=13, flags=8, time_ms=TIME_MS + 5)
    _, rows = tables_of(tmp_path, messages.fetch(11, 1, {"orders": {0: mine + marker + stamped + PACKED}}))
    assert picked(rows, "topic", "partition", "magic", "codec", "bytes", "record_count") == [
        ("orders", 0, 2, "none", len(mine), 3),
        ("orders", 0, 2, "none", len(marker), 1),
        ("orders", 0, 2, "none", len(stamped), 1),
        ("orders", 0, 2, "gzip", len(PACKED), 5),
    ]
    assert picked(rows, "base_offset", "last_offset", "producer_id", "producer_epoch") == [
        (9, 11, 4000, 2),
        (12, 12, 4000, 2),
        (13, 13, None, None),
        (7, 11, None, None),
    ]
    assert [row["base_sequence"] for row in rows] == [17, None, None, None]  # a marker has none: NO_SEQUENCE
    # It covers all that follows it.
    sums = [crc32c(each[21:]) for each in (mine, marker, stamped, PACKED)]
    assert [row["crc"] for row in rows] == sums
    assert picked(rows, "transactional", "control", "timestamp_type") == [
        (True, False, "create_time"),
        (True, True, "create_time"),
        (False, False, "log_append_time"),
        (False, False, "create_time"),
    ]
    epoch = datetime.fromtimestamp(TIME_MS / 1000, UTC)
    assert rows[0]["first_timestamp"] == epoch
    assert rows[0]["max_timestamp"] == epoch + timedelta(milliseconds=2)
    plain = b"".join(record(b"x" * 100, delta) for delta in range(5))
    assert [row["uncompressed_bytes"] for row in rows] == [
        len(mine),
        len(marker),
        len(stamped),
        61 + len(plain),  # the header and the records
    ]


@pytest.mark.sample(12)
@pytest.mark.parametrize("name", sorted(path.parent.name for path in CAPTURES.glob("*/about.toml")))
def test_partitions_and_batches_add_up_to_their_calls(name: str) -> None:
    tables = decoded(CAPTURES / name / about(name)["file"])
    calls = {row["call_id"]: row for row in tables["api_calls"]}
    sums: dict[str, Counter[int]] = {"bytes": Counter(), "records": Counter(), "batches": Counter()}
    for row in tables["partitions"]:
        sums["bytes"][row["call_id"]] += row["record_bytes"] or 0
        sums["batches"][row["call_id"]] += row["batch_count"] or 0
    for row in tables["record_batches"]:
        sums["batches"][row["call_id"]] -= 1
        if row["record_count"] is not None and not row["control"]:
            sums["records"][row["call_id"]] += row["record_count"]
    for call_id, call in calls.items():
        if call["record_bytes"] is not None and call["reason"] is None:
            assert sums["bytes"][call_id] == call["record_bytes"]
        if call["record_count"] is not None and call["reason"] is None:
            assert sums["records"][call_id] == call["record_count"]
    assert not [call_id for call_id, left in sums["batches"].items() if left]
    for row in tables["partitions"]:
        assert row["lag"] is None or row["lag"] >= 0


def test_topics_named_later_in_the_capture_have_their_names(tmp_path: Path) -> None:
    calls = [
        messages.fetch(16, 1, {"orders": {0: ONE}}),
        messages.produce(13, 2, {"orders": {0: TWO}, "nameless": {0: TWO}}),
        messages.metadata(12, 3, ["orders"]),
    ]
    tables = analyzed_packets(tmp_path, one_by_one(calls).packets())
    for name in ("partitions", "record_batches"):
        assert picked(tables[name], "api_name", "topic") == [
            ("Fetch", "orders"),
            ("Produce", "orders"),
            ("Produce", None),
        ]
        assert all(row["topic_id"] for row in tables[name])
    assert decoded(tmp_path / "capture.pcap", output=tmp_path / "out") == tables


def column(folder: Path, name: str, call: Exchange) -> Any:
    """Of the one row of api_calls."""
    (row,) = analyzed_packets(folder, one_by_one([call]).packets())["api_calls"]
    return row[name]


def test_records_of_a_format_that_nobody_knows_are_not_counted(tmp_path: Path) -> None:
    strange = bytearray(TWO)
    strange[16] = 9  # magic
    assert column(tmp_path, "record_count", messages.produce(9, 1, {"a": {0: ONE + TWO}})) == 3
    call = messages.produce(9, 1, {"a": {0: ONE + bytes(strange)}})
    assert column(tmp_path, "record_count", call) is None


def test_records_inside_a_compressed_message_are_not_counted(tmp_path: Path) -> None:
    """Formats 0 and 1 have them in the value of a message (protocol guide, message sets)."""

    def message(value: bytes, attributes: int) -> bytes:
        body = struct.pack(">bbqii", 1, attributes, TIME_MS, -1, len(value)) + value
        body = struct.pack(">I", zlib.crc32(body)) + body
        return struct.pack(">qi", 0, len(body)) + body

    plain = message(b"one", 0) + message(b"two", 0)
    packed = message(gzip.compress(plain), 1)

    def fetched(data: bytes) -> Exchange:
        """The script's own words are of format 2: put in afterwards."""
        call = messages.fetch(4, 1, {"a": {0: b""}})
        assert call.response
        answer = call.response[4:].removesuffix(bytes(4)) + struct.pack(">i", len(data)) + data
        return replace(call, response=struct.pack(">i", len(answer)) + answer)

    counts = [column(tmp_path, "record_count", fetched(data)) for data in (plain, packed)]
    assert counts == [2, None]


def test_partitions_that_a_request_does_not_name_are_those_of_its_answer(tmp_path: Path) -> None:
    """OffsetFetch 5 of a topic, without saying which partitions."""
    call = groups.offset_fetch(5, 1, "g", {"orders": {0: 17, 1: 4}})
    listed = struct.pack(">iii", 2, 0, 1)
    assert call.request.count(listed) == 1
    asked = call.request[4:].replace(listed, struct.pack(">i", 0))
    call = replace(call, request=struct.pack(">i", len(asked)) + asked)
    assert column(tmp_path, "partition_count", call) == 2


def test_topics_with_names_of_one_length_are_several(tmp_path: Path) -> None:
    call = messages.produce(9, 1, {"one": {0: ONE}, "two": {0: ONE}, "six": {0: ONE}})
    assert column(tmp_path, "topics", call) == ["one", "two", "six"]
