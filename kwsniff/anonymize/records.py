"""Record sets with keys, values and headers replaced, of the same size, with valid CRCs.

Batches keep their numbers, and compressed ones their codec. A batch that cannot have the same size again has
zeros instead of its records: decoders report it as damaged.
"""

import struct
from typing import Final

from kwsniff.anonymize.names import Detail, Names
from kwsniff.anonymize.padded_compression import fit
from kwsniff.codecs.compressed_batch import CodecError, decompress
from kwsniff.core.wire.engine import run
from kwsniff.core.wire.records import RecordBatch, crc32, crc32c
from kwsniff.layout.catalog import Catalog
from kwsniff.layout.program import Program
from kwsniff.limits import Limits
from kwsniff.view.record_entries import Entries
from kwsniff.view.records import read_length
from kwsniff.view.tree import Node, fold

_CODEC, _CONTROL = 7, 32
_FIXED: Final = 61
"""Bytes of a batch of format 2 before its records."""
_ENTRY: Final = 17
"""Bytes that all formats begin with, up to the format's number."""
_CRC_AT: Final = {0: 12, 1: 12, 2: 17}
_CRC_FROM: Final = {0: 16, 1: 16, 2: 21}
_MARKERS: Final = (0, 1, 2, 3, 4, 5)
"""Types of control records whose values are numbers."""
_LONGEST_MARKER: Final = 256
_KEY, _VALUE = "key", "value"


class Records:
    """Replaces record sets. ``undecodable``: batches that could not have their size again."""

    def __init__(self, names: Names, catalog: Catalog, limits: Limits) -> None:
        self._names = names
        self._most_bytes = limits.decompressed_bytes
        self._most_records = limits.shown_records
        programs = [
            catalog.schema(name, version) for name, version in (("Message", 0), ("Message", 1), ("Record", 2))
        ]
        if None in programs:
            raise LookupError("records.layout has no Message 0, 1 or Record 2")
        self._programs: list[Program] = [each for each in programs if each is not None]
        self.undecodable = 0

    def replace(self, data: bytes) -> bytes:
        """The record set. What belongs to no entry becomes zeros, but for the head of a cut one."""
        new = bytearray(len(data))
        entries = Entries(data)
        left = self._most_bytes
        for entry in entries:
            old = data[entry.offset : entry.offset + entry.size]
            if entry.magic == 2:
                part, left = self._batch(entry, old, left)
            else:
                part, left = self._message(entry, old, left)
            new[entry.offset : entry.offset + entry.size] = part
        if entries.status == "cut":
            kept = _FIXED if data[entries.end + 16 : entries.end + 17] == b"\x02" else _ENTRY
            new[entries.end : entries.end + kept] = data[entries.end : entries.end + kept]
        else:
            # Too small, or of an unknown format: the numbers that say so.
            new[entries.end : entries.end + _ENTRY] = data[entries.end : entries.end + _ENTRY]
        return bytes(new)

    def _batch(self, entry: RecordBatch, old: bytes, left: int) -> tuple[bytes, int]:
        """Format 2, and how many bytes may still be decompressed."""
        head, packed = old[:_FIXED], old[_FIXED:]
        codec = entry.attributes & _CODEC
        is_control = bool(entry.attributes & _CONTROL)
        if not codec:
            return _sign(entry, head + self._list(packed, entry.record_count, is_control)), left
        try:
            plain = decompress(codec, packed, limit=left) if entry.record_count <= self._most_records else b""
        except CodecError:
            plain = b""
        if not plain:
            self.undecodable += 1
            return _sign(entry, head + bytes(len(packed))), left
        for detail in Detail:
            new = fit(codec, self._list(plain, entry.record_count, is_control, detail=detail), packed)
            if new is not None:
                break
        if new is None:
            self.undecodable += 1
            new = bytes(len(packed))
        return _sign(entry, head + new), left - len(plain)

    def _list(self, data: bytes, count: int, is_control: bool, *, detail: Detail = Detail.DISTINCT) -> bytes:
        """Records one behind the other."""
        new, at = bytearray(len(data)), 0
        for _ in range(max(count, 0)):
            length = read_length(data, at)
            if length is None or not 0 <= length[0] <= len(data) - length[1]:
                break
            size, begin = length
            record = data[at : begin + size]
            read = self._record(2, record, is_control=is_control, detail=detail)
            if read is None:
                break
            new[at : begin + size] = read
            at = begin + size
        return bytes(new)

    def _message(self, entry: RecordBatch, old: bytes, left: int) -> tuple[bytes, int]:
        """Formats 0 and 1."""
        codec = entry.attributes & _CODEC
        if not codec:
            new = self._record(entry.magic, old)
            return _sign(entry, old[:_ENTRY] + bytes(len(old) - _ENTRY) if new is None else new), left
        nodes = self._nodes(entry.magic, old)
        value = nodes.get(_VALUE)
        if value is None or not isinstance(value.value, bytes) or left <= 0:
            self.undecodable += 1
            return _sign(entry, old[:_ENTRY] + bytes(len(old) - _ENTRY)), left
        try:
            plain = decompress(codec, value.value, limit=left, message_format=entry.magic)
        except CodecError:
            self.undecodable += 1
            plain = b""
        packed = None
        for detail in Detail if plain else ():
            packed = fit(codec, self._set(plain, detail=detail), value.value, message_format=entry.magic)
            if packed is not None:
                break
        if plain and packed is None:
            self.undecodable += 1
        whole = bytearray(old)
        key = nodes.get(_KEY)
        if key is not None and isinstance(key.value, bytes):
            whole[key.start : key.end] = self._names.value(key.value)
        whole[value.start : value.end] = packed or bytes(value.end - value.start)
        return _sign(entry, bytes(whole)), left - len(plain)

    def _set(self, data: bytes, *, detail: Detail) -> bytes:
        """Messages inside a compressed one; those may not be compressed again."""
        new = bytearray(len(data))
        for entry in Entries(data):
            old = data[entry.offset : entry.offset + entry.size]
            if entry.magic < 2 and not entry.attributes & _CODEC:
                read = self._record(entry.magic, old, detail=detail)
                new[entry.offset : entry.offset + entry.size] = _sign(
                    entry, read or old[:_ENTRY] + bytes(len(old) - _ENTRY)
                )
            else:
                new[entry.offset : entry.offset + _ENTRY] = old[:_ENTRY]
        return bytes(new)

    def _nodes(self, magic: int, data: bytes) -> dict[str, Node]:
        """The fields of a record or message; none if it does not fit its layout."""
        program = self._programs[magic]
        cells, status, _, _ = run(program.code, data)
        body = None if status else fold(program, cells, data).body
        return {str(node.name): node for node in body.children} if body else {}

    def _record(
        self, magic: int, data: bytes, *, is_control: bool = False, detail: Detail = Detail.DISTINCT
    ) -> bytes | None:
        nodes = self._nodes(magic, data)
        if not nodes:
            return None
        new = bytearray(data)
        key = nodes.get(_KEY)
        marker = is_control and key is not None and _is_marker(key.value, nodes.get(_VALUE))
        for name, node in nodes.items():
            if name == "headers":
                for header in node.children:
                    for part in header.children:
                        new[part.start : part.end] = self._names.value(
                            data[part.start : part.end], detail=detail
                        )
            elif name in (_KEY, _VALUE) and node.value is not None and not marker:
                new[node.start : node.end] = self._names.value(data[node.start : node.end], detail)
        return bytes(new)


def _is_marker(key: object, value: Node | None) -> bool:
    """Whether a control record has nothing but numbers: version and type are its key."""
    if not isinstance(key, bytes) or len(key) != 4 or int.from_bytes(key[2:4], "big") not in _MARKERS:
        return False
    return value is None or value.end - value.start <= _LONGEST_MARKER


def _sign(entry: RecordBatch, new: bytes) -> bytes:
    """With the CRC of its bytes; where that was wrong, another one that is."""
    covered = new[_CRC_FROM[entry.magic] :]
    crc = crc32c(covered) if entry.magic == 2 else crc32(covered)
    if not entry.is_valid:
        crc ^= 0xFFFFFFFF
    at = _CRC_AT[entry.magic]
    return new[:at] + struct.pack(">I", crc) + new[at + 4 :]
