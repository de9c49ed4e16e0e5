"""The entries of a record set, one by one: batches of format 2, messages of formats 0 and 1."""

from collections.abc import Iterator
from typing import Final

from kwsniff.core.wire.records import STATUSES, RecordBatch, batches

CORRUPT: Final = ("record_size_too_small", "unknown_record_format")
"""Statuses at the end other than a cut entry: the following bytes are not a record set."""

_PIECE: Final = 1 << 20


class Entries:
    """The entries of a record set, in pieces, so that many tiny ones are never in memory together.

    ``end``: end of the last complete entry; ``status``: how the walk ended (``core.records.STATUSES``).
    """

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.end = 0
        self.status = "end"

    def __iter__(self) -> Iterator[RecordBatch]:
        size = _PIECE
        while True:
            start = self.end
            is_last = size >= len(self.data) - start
            entries, status, walked = batches(
                self.data[start : start + size] if start or not is_last else self.data
            )
            self.status = STATUSES[status]
            self.end = start + walked
            for entry in entries:
                yield entry._replace(offset=start + entry.offset, payload=start + entry.payload)
            if is_last or self.status in CORRUPT:
                return
            # No complete entry in the piece: its first entry is larger.
            size = _PIECE if walked else size * 2
