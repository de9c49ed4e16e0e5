"""Decodes a record set to batches and records, with the names of Kafka's record classes.

Formats 0, 1 and 2, in any mix. Offsets of format-1 messages inside a compressed one are relative, and the
wrapper's timestamp replaces theirs if the broker set it (LogAppendTime), as in Kafka's
AbstractLegacyRecordBatch.
"""

import struct
from base64 import b64encode
from dataclasses import dataclass, field
from typing import Any, Final

from kwsniff.codecs.compressed_batch import CODECS, CodecError, decompress
from kwsniff.core.wire.engine import STATUSES, run
from kwsniff.core.wire.records import STATUSES as WALK_STATUSES
from kwsniff.core.wire.records import RecordBatch, batches
from kwsniff.layout.catalog import Catalog, load_catalog
from kwsniff.layout.program import Program
from kwsniff.limits import Limits
from kwsniff.view.json_values import document
from kwsniff.view.record_entries import CORRUPT, Entries
from kwsniff.view.tree import fold

_CODEC_BITS: Final = 7
_LOG_APPEND_TIME: Final = 8
_TRANSACTIONAL, _CONTROL, _DELETE_HORIZON = 16, 32, 64
# A record takes 7 bytes or more, but a few hundred as JSON values, and a compressed set may have very many.
_MOST_RECORDS: Final = 4_000_000

# Control record type -> its name in Kafka and its value's schema, before which types 0 and 1 have an int16.
_CONTROL_TYPES: Final = {
    0: ("ABORT", "EndTxnMarker"),
    1: ("COMMIT", "EndTxnMarker"),
    2: ("LEADER_CHANGE", "LeaderChangeMessage"),
    3: ("SNAPSHOT_HEADER", "SnapshotHeaderRecord"),
    4: ("SNAPSHOT_FOOTER", "SnapshotFooterRecord"),
    5: ("KRAFT_VERSION", "KRaftVersionRecord"),
    6: ("KRAFT_VOTERS", "VotersRecord"),
}


class _Broken(Exception):
    """A decoding error in records: code and index of the record; caught in this module."""

    def __init__(self, code: str, record: int | None = None) -> None:
        super().__init__(code)
        self.code = code
        self.record = record


@dataclass(slots=True)
class RecordSet:
    """A decoded record set; ``as_dict`` is its JSON format.

    ``valid_bytes``: size of the complete entries; ``trailing_bytes``: size of the rest, which is a cut entry
    (normal in a fetch response, not an error) or corrupt bytes (an error). ``control``: values of control
    records. ``unpacked_bytes``: decompressed size of the batches.
    """

    batches: list[dict[str, Any]] = field(default_factory=list)
    valid_bytes: int = 0
    trailing_bytes: int = 0
    control: list[dict[str, Any]] = field(default_factory=list)
    error: dict[str, Any] | None = None
    unpacked_bytes: int = 0

    def as_dict(self) -> dict[str, Any]:
        """batches, valid_bytes, trailing_bytes, control, error."""
        return {
            "batches": self.batches,
            "valid_bytes": self.valid_bytes,
            "trailing_bytes": self.trailing_bytes,
            "control": self.control,
            "error": self.error,
        }

    def fail(self, code: str, path: str, offset: int) -> None:
        """Keep the first error."""
        if self.error is None:
            self.error = {"code": code, "path": path, "offset": offset}


def decode_records(
    data: bytes,
    *,
    limit: int = Limits().decompressed_bytes,
    most_records: int = _MOST_RECORDS,
    catalog: Catalog | None = None,
) -> RecordSet:
    """Decode a record set. No bytes raise an exception; ``limit``: maximum decompressed size in bytes.

    After ``most_records`` records the error is ``longer_than_limit``.
    """
    reader = _Reader(catalog or load_catalog(), limit, most_records)
    entries = Entries(data)
    found = reader.found
    for index, entry in enumerate(entries):
        if not reader.records_left:
            found.fail("longer_than_limit", f"/batches/{index}", entry.offset)
            entries.end = entry.offset
            break
        shown = _batch_facts(entry)
        found.batches.append(shown)
        path = f"/batches/{index}"
        if not entry.is_valid:
            found.fail("crc_mismatch", path, entry.offset)
        try:
            if entry.magic == 2:
                reader.read_batch(entry, data, shown)
            else:
                reader.read_message(entry, data, shown)
        except _Broken as broken:
            place = path if broken.record is None else f"{path}/records/{broken.record}"
            found.fail(broken.code, place, entry.offset)
    found.valid_bytes = entries.end
    found.trailing_bytes = len(data) - entries.end
    if entries.status in CORRUPT:
        found.fail(entries.status, f"/batches/{len(found.batches)}", entries.end)
    return found


def _batch_facts(entry: RecordBatch) -> dict[str, Any]:
    attributes, last = entry.attributes, _int64(entry.base_offset + entry.last_offset_delta)
    codec = attributes & _CODEC_BITS
    stamped = "LogAppendTime" if attributes & _LOG_APPEND_TIME else "CreateTime"
    facts: dict[str, Any] = {
        "magic": entry.magic,
        "size_in_bytes": entry.size,
        "base_offset": entry.base_offset,
        "last_offset": last,
        "next_offset": _int64(last + 1),
        "compression": CODECS[codec] if codec < len(CODECS) else f"unknown codec {codec}",
        "timestamp_type": "NoTimestampType" if entry.magic == 0 else stamped,
        "max_timestamp": entry.max_timestamp,
        "is_valid": bool(entry.is_valid),
        "checksum": entry.stored_crc,
    }
    if entry.magic == 2:
        facts |= {
            "partition_leader_epoch": entry.leader_epoch,
            "producer_id": entry.producer_id,
            "producer_epoch": entry.producer_epoch,
            "base_sequence": entry.base_sequence,
            "last_sequence": _sequence(entry.base_sequence, entry.last_offset_delta),
            "is_transactional": bool(attributes & _TRANSACTIONAL),
            "is_control_batch": bool(attributes & _CONTROL),
            "count": entry.record_count,
            "has_delete_horizon": bool(attributes & _DELETE_HORIZON),
        }
        if attributes & _DELETE_HORIZON:
            facts["delete_horizon_ms"] = entry.base_timestamp
    facts["records"] = []
    return facts


class _Reader:
    def __init__(self, catalog: Catalog, limit: int, most_records: int) -> None:
        self.catalog = catalog
        self.limit = limit
        self.records_left = most_records
        self.found = RecordSet()
        self.record = self._schema("Record", 2)
        self.messages = (self._schema("Message", 0), self._schema("Message", 1))

    def _schema(self, name: str, version: int) -> Program:
        program = self.catalog.schema(name, version)
        if program is None:
            raise LookupError(f"records.layout has no schema {name} {version}")
        return program

    def read_batch(self, entry: RecordBatch, data: bytes, shown: dict[str, Any]) -> None:
        """Format 2: the records after the fixed part."""
        payload = data[entry.payload : entry.offset + entry.size]
        payload = self._unpack(entry, payload)
        if entry.record_count < 0:
            raise _Broken("negative_length")
        at = 0
        for index in range(entry.record_count):
            length = read_length(payload, at)
            if length is None:
                raise _Broken("varint_too_long" if len(payload) - at >= 5 else "unexpected_end", index)
            size, begin = length
            if size < 0:
                raise _Broken("negative_length", index)
            if size > len(payload) - begin:
                raise _Broken("unexpected_end", index)
            record = self._run(self.record, payload[at : begin + size], index)
            at = begin + size
            shown["records"].append(_record(entry, record))
            if entry.attributes & _CONTROL:
                self._control(entry, record, shown["records"][-1], index)
        if at != len(payload):
            raise _Broken("bytes_left_over")

    def read_message(self, entry: RecordBatch, data: bytes, shown: dict[str, Any]) -> None:
        """Formats 0 and 1: a message, or a compressed one with messages inside."""
        message = self._run(self.messages[entry.magic], data[entry.offset : entry.offset + entry.size], None)
        if not entry.attributes & _CODEC_BITS:
            shown["records"].append(_message(message, message["base_offset"], entry))
            return
        if message["value"] is None:
            raise _Broken("null_not_allowed")
        inner = self._unpack(entry, message["value"])
        entries, status, _ = batches(inner)
        read = []
        for index, one in enumerate(entries):
            if one.magic != entry.magic or one.attributes & _CODEC_BITS:
                raise _Broken("unknown_record_format", index)
            read.append(self._run(self.messages[one.magic], inner[one.offset : one.offset + one.size], index))
        shift = 0
        if entry.magic == 1 and read and entry.base_offset:
            # Some clients leave the wrapper's offset at 0; then inner offsets count from 0.
            shift = entry.base_offset - read[-1]["base_offset"]
        shown["records"] += [_message(one, _int64(one["base_offset"] + shift), entry) for one in read]
        if read:
            shown["base_offset"] = shown["records"][0]["offset"]
        if WALK_STATUSES[status] != "end" or not read:
            raise _Broken(
                "unexpected_end" if WALK_STATUSES[status] in ("cut", "end") else WALK_STATUSES[status]
            )

    def _unpack(self, entry: RecordBatch, data: bytes) -> bytes:
        codec = entry.attributes & _CODEC_BITS
        if not codec:
            return data
        if self.limit <= 0:
            # Decompression takes time even if the output is discarded.
            raise _Broken("longer_than_limit")
        try:
            data = decompress(codec, data, limit=self.limit, message_format=entry.magic)
        except CodecError as error:
            self.limit = 0 if str(error) == "longer_than_limit" else self.limit
            raise _Broken(str(error)) from error
        # The limit applies to all batches of the set together.
        self.limit -= len(data)
        self.found.unpacked_bytes += len(data)
        return data

    def _run(self, program: Program, data: bytes, index: int | None) -> dict[str, Any]:
        """The fields of one record, bytes as bytes."""
        if not self.records_left:
            raise _Broken("longer_than_limit", index)
        self.records_left -= 1
        cells, status, _, _ = run(program.code, data)
        if status:
            raise _Broken(STATUSES[status], index)
        body = fold(program, cells, data).body
        if body is None:
            raise _Broken("unexpected_end", index)
        fields = {str(child.name): child.value for child in body.children}
        for child in body.children:
            if child.name == "headers":
                fields["headers"] = document(child)
        return fields

    def _control(self, entry: RecordBatch, record: dict[str, Any], shown: dict[str, Any], index: int) -> None:
        key, value = record["key"], record["value"]
        if key is None or len(key) < 4:
            raise _Broken("unexpected_end", index)
        number = int.from_bytes(key[2:4], "big", signed=True)
        name, schema = _CONTROL_TYPES.get(number, ("UNKNOWN", ""))
        shown["control_type"] = name
        control: dict[str, Any] = {
            "path": f"/batches/{len(self.found.batches) - 1}/records/{index}",
            "type": number,
            "control_type": name,
            "value": None,
        }
        self.found.control.append(control)
        program = self.catalog.schema(schema, 0)
        if program is None or value is None:
            return
        # Newer versions are read as 0, without their additions.
        body = value[2:] if number in (0, 1) else value
        cells, status, _, _ = run(program.code, body)
        tree = fold(program, cells, body)
        control["value"] = document(tree.body) if tree.body else None
        if STATUSES[status] not in ("ok", "bytes_left_over"):
            raise _Broken(STATUSES[status], index)


def _record(entry: RecordBatch, record: dict[str, Any]) -> dict[str, Any]:
    if entry.attributes & _LOG_APPEND_TIME:
        timestamp = entry.max_timestamp
    else:
        timestamp = _int64(entry.base_timestamp + record["timestamp_delta"])
    return {
        "offset": _int64(entry.base_offset + record["offset_delta"]),
        "timestamp": timestamp,
        "sequence": _sequence(entry.base_sequence, record["offset_delta"]),
        "key": _base64(record["key"]),
        "value": _base64(record["value"]),
        "headers": record["headers"],
    }


def _message(message: dict[str, Any], offset: int, wrapper: RecordBatch) -> dict[str, Any]:
    timestamp = message.get("timestamp", -1)
    if wrapper.magic == 1 and wrapper.attributes & _LOG_APPEND_TIME:
        timestamp = wrapper.max_timestamp
    return {
        "offset": offset,
        "timestamp": timestamp,
        "key": _base64(message["key"]),
        "value": _base64(message["value"]),
    }


def read_length(data: bytes, at: int) -> tuple[int, int] | None:
    """A record's length, and the position after that field; None if it is cut, or longer than 5 bytes."""
    raw = 0
    for count, byte in enumerate(data[at : at + 5]):
        raw |= (byte & 127) << 7 * count
        if byte < 128:
            raw &= 0xFFFFFFFF
            return raw >> 1 ^ -(raw & 1), at + count + 1
    return None


def _sequence(base: int, delta: int) -> int:
    """Sequence numbers run to 2**31 - 1 and wrap to 0; -1 means none."""
    return -1 if base == -1 else (base + delta) & 0x7FFFFFFF


def _int64(value: int) -> int:
    """Java's long arithmetic wraps."""
    wrapped: int = struct.unpack("<q", (value & 0xFFFFFFFFFFFFFFFF).to_bytes(8, "little"))[0]
    return wrapped


def _base64(value: bytes | None) -> str | None:
    return None if value is None else b64encode(value).decode()
