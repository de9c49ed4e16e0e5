"""Messages of servers that are not Apache's, as their own definitions have them, and an encoder for these.

A field is (name, type) with the name as in the definition; a struct has its fields instead of a type, an
array a list of them. A question mark behind either: null is legal. All are flexible from version 0.
"""

from __future__ import annotations

import base64
import re
from typing import Any, Final

from tests.traffic.wire import Encoder

Definition = tuple[Any, ...]

ERROR: Final = (("ErrorCode", "int16"), ("ThrottleTimeMs", "int32"))
NODE: Final = (("NodeId", "int32"), ("NodeEpoch", "int64"))
STREAM: Final = (("StreamId", "int64"), ("StreamEpoch", "int64"))
RANGE: Final = (("StartOffset", "int64"), ("EndOffset", "int64"))
OBJECT: Final = (("ObjectId", "int64"), ("ObjectSize", "int64"))
TAGS: Final = ("Tags", [("Key", "string"), ("Value", "string")])
ANSWER: Final = (("ThrottleTimeMs", "int32"), ("ErrorCode", "int16"), ("ErrorMessage", "string?"))
SLICE: Final = (("start", "int64"), ("end", "int64"))
PLACE: Final = (("messageOffset", "int64"), ("relativePositionInSegment", "int32"))
SEGMENT: Final = (
    ("baseOffset", "int64"),
    ("createTimestamp", "int64"),
    ("lastModifiedTimestamp", "int64"),
    ("streamSuffix", "string"),
    ("logSize", "int32"),
    ("log", SLICE),
    ("time", SLICE),
    ("transaction", SLICE),
    ("firstBatchTimestamp", "int64"),
    ("timeIndexLastEntry", (("timestamp", "int64"), ("offset", "int64"))),
)
PARTITION: Final = (
    ("PartitionIndex", "int32"),
    ("LeaderEpoch", "int32"),
    ("Operation", "int16"),
    (
        "LogMetadata",
        (("segments", [*SEGMENT]), ("streamMap", [("name", "string"), ("streamId", "int64")])),
        "?",
    ),
    ("FirstUnstableOffset", PLACE, "?"),
    ("LogEndOffset", PLACE, "?"),
    ("StreamMetadata", [("StreamId", "int64"), ("EndOffset", "int64")], "?"),
)

AUTOMQ: Final[dict[tuple[int, int], tuple[Definition, Definition]]] = {
    (501, 0): (
        (*NODE, ("CreateStreamRequests", [("NodeId", "int32")])),
        (*ERROR, ("CreateStreamResponses", [("ErrorCode", "int16"), ("StreamId", "int64")])),
    ),
    (502, 0): (
        (*NODE, ("OpenStreamRequests", [*STREAM])),
        (
            *ERROR,
            (
                "OpenStreamResponses",
                [("ErrorCode", "int16"), ("StartOffset", "int64"), ("NextOffset", "int64")],
            ),
        ),
    ),
    (503, 0): (
        (*NODE, ("CloseStreamRequests", [*STREAM])),
        (*ERROR, ("CloseStreamResponses", [("ErrorCode", "int16")])),
    ),
    (504, 0): (
        (*NODE, ("DeleteStreamRequests", [*STREAM])),
        (*ERROR, ("DeleteStreamResponses", [("ErrorCode", "int16")])),
    ),
    (505, 0): (
        (("NodeId", "int32"), ("PreparedCount", "int32"), ("TimeToLiveInMs", "int64")),
        (*ERROR, ("FirstS3ObjectId", "int64")),
    ),
    (506, 0): (
        (
            *NODE,
            ("ObjectId", "int64"),
            ("OrderId", "int64"),
            ("ObjectSize", "int64"),
            ("ObjectStreamRanges", [*STREAM, *RANGE]),
            ("StreamObjects", [*OBJECT, ("StreamId", "int64"), *RANGE]),
            ("CompactedObjectIds", "[int64]"),
            ("FailoverMode", "bool"),
        ),
        ERROR,
    ),
    (506, 1): (
        (
            *NODE,
            ("ObjectId", "int64"),
            ("OrderId", "int64"),
            ("ObjectSize", "int64"),
            ("ObjectStreamRanges", [*STREAM, *RANGE]),
            ("StreamObjects", [*OBJECT, ("StreamId", "int64"), *RANGE, ("Attributes", "int32")]),
            ("CompactedObjectIds", "[int64]"),
            ("FailoverMode", "bool"),
            ("Attributes", "int32"),
        ),
        (*ERROR, ("Attributes", "int32")),
    ),
    (508, 0): (
        (*NODE, ("FailoverMode", "bool")),
        (*ERROR, ("StreamMetadataList", [("StreamId", "int64"), ("Epoch", "int64"), *RANGE])),
    ),
    (509, 0): (
        (("GetKeyRequests", [("Key", "string")]),),
        (*ERROR, ("GetKVResponses", [("ErrorCode", "int16"), ("Value", "bytes?")])),
    ),
    (510, 0): (
        (("PutKVRequests", [("Key", "string"), ("Value", "bytes"), ("overwrite", "bool")]),),
        (*ERROR, ("PutKVResponses", [("ErrorCode", "int16"), ("Value", "bytes")])),
    ),
    (511, 0): (
        (("DeleteKVRequests", [("Key", "string")]),),
        (*ERROR, ("DeleteKVResponses", [("ErrorCode", "int16"), ("Value", "bytes?")])),
    ),
    (512, 0): (
        (*NODE, ("TrimStreamRequests", [*STREAM, ("NewStartOffset", "int64")])),
        (*ERROR, ("TrimStreamResponses", [("ErrorCode", "int16")])),
    ),
    (513, 0): ((*NODE, ("WALConfig", "string"), TAGS), ERROR),
    (514, 0): (
        (("NodeIds", "[int32]"),),
        (
            *ERROR,
            (
                "Nodes",
                [*NODE, ("WalConfig", "string"), ("State", "string"), ("HasOpeningStreams", "bool"), TAGS],
            ),
        ),
    ),
    (515, 0): ((("metadata", "bytes"),), (*ERROR, ("Responses", [("Data", "bytes")]))),
    (515, 1): (
        (("metadata", "bytes"), ("RouteEpoch", "int64"), ("Version", "int16")),
        (*ERROR, ("Responses", [("Data", "bytes")])),
    ),
    (516, 0): (
        (("SessionId", "int32"), ("SessionEpoch", "int32")),
        (
            *ERROR,
            ("SessionId", "int32"),
            ("SessionEpoch", "int32"),
            ("Topics", [("TopicId", "uuid"), ("Partitions", [*PARTITION])]),
        ),
    ),
    (600, 0): ((("ClusterId", "string"),), (*ERROR, ("NodeId", "int32"))),
    (601, 0): (
        (
            ("TopicPartitions", [("TopicName", "string"), ("Partitions", [("PartitionIndex", "int32")])]),
            ("NodeId", "int32"),
            ("StreamId", "int64"),
        ),
        (
            *ERROR,
            (
                "StreamMetadataList",
                [
                    ("StreamId", "int64"),
                    ("NodeId", "int32"),
                    ("State", "string"),
                    ("TopicId", "uuid"),
                    ("TopicName", "string"),
                    ("PartitionIndex", "int32"),
                    ("Epoch", "int64"),
                    *RANGE,
                    TAGS,
                ],
            ),
        ),
    ),
    (602, 0): (
        (("LinkId", "string"), ("GroupId", "string"), ("Promoted", "bool"), ("Verify", "bool")),
        (
            ("GroupId", "string"),
            ("ErrorCode", "int16"),
            ("ErrorMessage", "string?"),
            ("ThrottleTimeMs", "int32"),
        ),
    ),
}
AUTOMQ_EARLY: Final[dict[int, Definition]] = {
    506: (
        *NODE,
        ("ObjectId", "int64"),
        ("OrderId", "int64"),
        ("ObjectSize", "int64"),
        ("ObjectStreamRanges", [*STREAM, *RANGE]),
        ("StreamObjects", [*OBJECT, ("StreamId", "int64"), *RANGE]),
        ("CompactedObjectIds", "[int64]"),
    ),
    508: NODE,
    602: (("LinkId", "string"), ("GroupId", "string"), ("Promoted", "bool")),
}
"""Requests in version 0 before fields were added to it."""
INKLESS: Final[dict[tuple[int, int], tuple[Definition, Definition]]] = {
    (500, 0): (
        (
            ("BrokerId", "int32"),
            ("BrokerEpoch", "int64"),
            (
                "Topics",
                [
                    ("TopicId", "uuid"),
                    (
                        "Partitions",
                        [
                            ("PartitionId", "int32"),
                            ("DisklessStartOffset", "int64"),
                            ("LeaderEpoch", "int32"),
                            (
                                "ProducerStates",
                                [
                                    ("ProducerId", "int64"),
                                    ("ProducerEpoch", "int16"),
                                    ("BaseSequence", "int32"),
                                    ("LastSequence", "int32"),
                                    ("AssignedOffset", "int64"),
                                    ("BatchMaxTimestamp", "int64"),
                                ],
                            ),
                        ],
                    ),
                ],
            ),
        ),
        (
            ("ThrottleTimeMs", "int32"),
            (
                "Topics",
                [("TopicId", "uuid"), ("Partitions", [("PartitionId", "int32"), ("ErrorCode", "int16")])],
            ),
        ),
    ),
    (501, 0): (
        (
            ("TopicName", "string"),
            ("PartitionIndex", "int32"),
            ("SealOffset", "int64"),
            ("ClearProducerStates", "bool"),
        ),
        ANSWER,
    ),
    (502, 0): ((("TopicName", "string"), ("PartitionIndex", "int32")), ANSWER),
}
REDPANDA: Final[dict[tuple[int, int], tuple[Definition, Definition]]] = {
    (15000, 0): (
        (("RoleNameFilters", [("Name", "string")], "?"),),
        (*ANSWER, ("Roles", [("Name", "string"), ("Members", [("MemberType", "int8"), ("Name", "string")])])),
    )
}
ALL: Final = {"automq": AUTOMQ, "inkless": INKLESS, "redpanda": REDPANDA}


def snake_case(name: str) -> str:
    """StreamId -> stream_id, as the protocol guide spells fields."""
    name = name.replace("S3", "_S3").replace("KVs", "Kvs").replace("KV", "Kv").replace("WAL", "Wal")
    return re.sub(r"_?(?<!^)([A-Z])", r"_\1", name).lower().strip("_").replace("__", "_")


class Values:
    """Values of a definition, all different, and their bytes; `nulls`: null wherever it is legal."""

    def __init__(self, *, nulls: bool) -> None:
        self.nulls = nulls
        self.number = 0
        self.bytes = Encoder(True)

    def struct(self, fields: Definition) -> dict[str, Any]:
        body = {snake_case(name): self.value(type_, *more) for name, type_, *more in fields}
        self.bytes.tags()
        return body

    def value(self, type_: Any, mark: str = "") -> Any:
        if isinstance(type_, tuple):
            if mark:
                self.bytes.i8(-1 if self.nulls else 1)
            return None if mark and self.nulls else self.struct(type_)
        if isinstance(type_, list):
            if mark and self.nulls:
                self.bytes.array(None, lambda _: None)
                return None
            items: list[Any] = []
            self.bytes.array([0, 1], lambda _: items.append(self.struct(tuple(type_))))
            return items
        if type_.startswith("["):
            numbers: list[Any] = []
            self.bytes.array([0, 1, 2], lambda _: numbers.append(self.value(type_[1:-1])))
            return numbers
        return self.scalar(type_.removesuffix("?"), null=self.nulls and type_.endswith("?"))

    def scalar(self, type_: str, *, null: bool) -> Any:
        self.number += 1
        number, out = self.number, self.bytes
        if type_ == "string":
            out.string(None if null else f"text {number}")
            return None if null else f"text {number}"
        if type_ == "bytes":
            out.blob(None if null else f"bytes {number}".encode())
            return None if null else base64.b64encode(f"bytes {number}".encode()).decode()
        if type_ == "uuid":
            raw = bytes([number]) * 16
            out.uuid(raw)
            return base64.urlsafe_b64encode(raw).decode().rstrip("=")
        if type_ == "bool":
            out.i8(number % 2)
            return bool(number % 2)
        {"int8": out.i8, "int16": out.i16, "int32": out.i32, "int64": out.i64}[type_](number)
        return number


def request(
    key: int, version: int, fields: Definition, *, nulls: bool = False
) -> tuple[bytes, dict[str, Any]]:
    """Header version 2 and body, and the body's values."""
    head = Encoder(False).i16(key).i16(version).i32(7).string("node-1")
    head.flexible = True
    head.tags()
    made = Values(nulls=nulls)
    body = made.struct(fields)
    return bytes(head.data) + bytes(made.bytes.data), body


def response(fields: Definition, *, nulls: bool = False) -> tuple[bytes, dict[str, Any]]:
    """Header version 1 and body, and the body's values."""
    made = Values(nulls=nulls)
    body = made.struct(fields)
    return bytes(Encoder(True).i32(7).tags().data) + bytes(made.bytes.data), body
