"""Where the messages of a recorded conversation lie, by TCP's numbers and the size in front of each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tests.pipeline.segments import SYN, Segment, ahead


@dataclass(frozen=True)
class Message:
    """Of one direction: its bytes lie from `seq` on."""

    from_client: bool
    seq: int
    data: bytes

    @property
    def correlation_id(self) -> int:
        return int.from_bytes(self.data[8:12] if self.from_client else self.data[4:8], signed=True)


def messages_of(segments: list[Segment], client: bytes) -> list[Message]:
    """The messages of a conversation that was captured from its start and has no holes, else none."""
    out: list[Message] = []
    for from_client in (True, False):
        own = [segment for segment in segments if (segment.ends[0] == client) == from_client]
        syn = next((segment for segment in own if segment.flags & SYN), None)
        if syn is None:
            return []
        out += _messages(from_client, (syn.seq + 1) % 2**32, own)
    return out


def _messages(from_client: bool, start: int, own: list[Segment]) -> Iterator[Message]:
    data = bytearray()
    for segment in sorted((s for s in own if s.payload), key=lambda s: ahead(s.seq, start)):
        new = segment.payload[max(len(data) - ahead(segment.seq, start), 0) :]
        if ahead(segment.seq, start) > len(data):
            return
        data += new
    at = 0
    while at + 4 <= len(data):
        size = 4 + int.from_bytes(data[at : at + 4])
        if at + size > len(data):
            return
        yield Message(from_client, (start + at) % 2**32, bytes(data[at : at + size]))
        at += size
