"""Kafka's basic types, written by hand: classic and flexible encodings of the same field list."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

T = TypeVar("T")

# API key -> (name, first flexible version); 99 stands for "never".
APIS: Mapping[int, tuple[str, int]] = {
    0: ("Produce", 9),
    1: ("Fetch", 12),
    2: ("ListOffsets", 6),
    3: ("Metadata", 9),
    8: ("OffsetCommit", 8),
    9: ("OffsetFetch", 6),
    10: ("FindCoordinator", 3),
    11: ("JoinGroup", 6),
    12: ("Heartbeat", 4),
    13: ("LeaveGroup", 4),
    14: ("SyncGroup", 4),
    17: ("SaslHandshake", 99),
    18: ("ApiVersions", 3),
    19: ("CreateTopics", 5),
    22: ("InitProducerId", 2),
    24: ("AddPartitionsToTxn", 3),
    25: ("AddOffsetsToTxn", 3),
    26: ("EndTxn", 3),
    28: ("TxnOffsetCommit", 3),
    31: ("DeleteAcls", 2),
    32: ("DescribeConfigs", 4),
    33: ("AlterConfigs", 2),
    36: ("SaslAuthenticate", 2),
    38: ("CreateDelegationToken", 2),
    39: ("RenewDelegationToken", 2),
    40: ("ExpireDelegationToken", 2),
    41: ("DescribeDelegationToken", 2),
    44: ("IncrementalAlterConfigs", 1),
    51: ("AlterUserScramCredentials", 0),
    58: ("Envelope", 0),
    67: ("AllocateProducerIds", 0),
    68: ("ConsumerGroupHeartbeat", 0),
    69: ("ConsumerGroupDescribe", 0),
    75: ("DescribeTopicPartitions", 0),
    76: ("ShareGroupHeartbeat", 0),
}

# API key -> name, for those the recorded clients use besides.
API_NAMES: Mapping[int, str] = {key: name for key, (name, _) in APIS.items()} | {
    23: "OffsetForLeaderEpoch",
    60: "DescribeCluster",
    71: "GetTelemetrySubscriptions",
    72: "PushTelemetry",
}


def uvarint(value: int) -> bytes:
    """Unsigned LEB128."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def zigzag(value: int) -> bytes:
    """Signed integer as zigzag LEB128 (record fields)."""
    return uvarint(value << 1 if value >= 0 else (-value << 1) - 1)


class Encoder:
    """Writes field after field; ``flexible`` picks compact lengths and tagged sections."""

    def __init__(self, flexible: bool) -> None:
        self.flexible = flexible
        self.data = bytearray()

    def i8(self, value: int) -> Encoder:
        self.data += struct.pack(">b", value)
        return self

    def i16(self, value: int) -> Encoder:
        self.data += struct.pack(">h", value)
        return self

    def i32(self, value: int) -> Encoder:
        self.data += struct.pack(">i", value)
        return self

    def i64(self, value: int) -> Encoder:
        self.data += struct.pack(">q", value)
        return self

    def uuid(self, value: bytes) -> Encoder:
        if len(value) != 16:
            raise ValueError("a uuid has 16 bytes")
        self.data += value
        return self

    def string(self, value: str | None) -> Encoder:
        raw = None if value is None else value.encode()
        if self.flexible:
            self.data += uvarint(0 if raw is None else len(raw) + 1) + (raw or b"")
        else:
            self.data += struct.pack(">h", -1 if raw is None else len(raw)) + (raw or b"")
        return self

    def blob(self, value: bytes | None) -> Encoder:
        if self.flexible:
            self.data += uvarint(0 if value is None else len(value) + 1) + (value or b"")
        else:
            self.data += struct.pack(">i", -1 if value is None else len(value)) + (value or b"")
        return self

    def count(self, value: int) -> Encoder:
        """An array's length; -1 is null."""
        self.data += uvarint(value + 1) if self.flexible else struct.pack(">i", value)
        return self

    def array(self, items: Iterable[T] | None, each: Callable[[T], object]) -> Encoder:
        """Count, then ``each`` writes one element through this encoder (its tagged section included)."""
        if items is None:
            return self.count(-1)
        elements = list(items)
        self.count(len(elements))
        for element in elements:
            each(element)
        return self

    def tags(self, known: Mapping[int, bytes] | None = None) -> Encoder:
        """The tagged section that ends every struct of a flexible version; nothing otherwise."""
        if self.flexible:
            fields = sorted((known or {}).items())
            self.data += uvarint(len(fields))
            for tag, payload in fields:
                self.data += uvarint(tag) + uvarint(len(payload)) + payload
        return self


def is_flexible(api_key: int, version: int) -> bool:
    return version >= APIS[api_key][1]


def request_bytes(
    api_key: int, version: int, correlation_id: int, client_id: str | None, body: bytes
) -> bytes:
    """Request header (v1 or v2) and body, without the size prefix."""
    header = Encoder(flexible=False).i16(api_key).i16(version).i32(correlation_id).string(client_id)
    header.flexible = is_flexible(api_key, version)
    return bytes(header.tags().data) + body


def response_bytes(api_key: int, version: int, correlation_id: int, body: bytes) -> bytes:
    """Response header (v0 or v1; ApiVersions always v0) and body, without the size prefix."""
    header = Encoder(flexible=is_flexible(api_key, version) and api_key != 18).i32(correlation_id)
    return bytes(header.tags().data) + body


def sized(message: bytes) -> bytes:
    """The frame: int32 size and the message."""
    return struct.pack(">i", len(message)) + message
