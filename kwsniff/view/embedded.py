"""Content of a message's bytes fields: the place of the field gives its schema.

    JoinGroup, SyncGroup, DescribeGroups   subscriptions and assignments of members, by protocol type
    Envelope                               a whole request or response, a principal
    Produce, Fetch, ...                    record sets, and keys and values of Kafka's internal topics
    PushTelemetry                          the metrics' names

Undecodable content stays bytes with a note. No bytes raise an exception.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from kwsniff.layout.meaning import Meaning
from kwsniff.layout.model import Field
from kwsniff.view import membership, telemetry
from kwsniff.view.bare_bodies import read_schema
from kwsniff.view.internal_topics import read_record
from kwsniff.view.message import read_message
from kwsniff.view.model import Inner, Message, Place, Surroundings
from kwsniff.view.records import decode_records
from kwsniff.view.tree import Node, Tree, Value

_DEEPEST: Final = 4


NOTHING_KNOWN: Final = Surroundings()


def find_inner(message: Message, around: Surroundings | None = None, depth: int = 0) -> dict[Place, Inner]:
    """Decoded content of a message's bytes fields, by place."""
    finder = Finder(type(message), around or NOTHING_KNOWN, depth, message)
    if message.program is None or message.body is None:
        return {}
    return finder.find(message.tree)


def found_inside(message: Message) -> dict[Place, Inner]:
    """Content of the bytes fields; decoded on first use."""
    if message.inner is None:
        message.inner = find_inner(message)
    return message.inner


class Finder:
    """Walks a tree and reads its bytes fields. One per message: it keeps the budget for records."""

    def __init__(self, kind: type[Message], around: Surroundings, depth: int, message: Message) -> None:
        self.kind = kind
        self.catalog = message.catalog
        self.around = around
        self.depth = depth
        limits = self.limits = message.limits
        self.bytes_left = limits.decompressed_bytes
        self.records_left = limits.shown_records
        self.above: list[Node] = []

    def find(self, tree: Tree) -> dict[Place, Inner]:
        """Inner of every bytes field below the tree's body."""
        fields = tree.shape.fields
        if tree.body is None or self.depth >= _DEEPEST or not any(map(self._may_hold, fields)):
            return {}
        found: dict[Place, Inner] = {}
        before, self.above = self.above, []
        self._visit(tree.body, fields, "", found)
        self.above = before
        return found

    def _visit(
        self, node: Node, fields: tuple[Field | None, ...], path: str, found: dict[Place, Inner]
    ) -> None:
        self.above.append(node)
        for child in node.children:
            if not child.is_leaf:
                self._visit(child, fields, f"{path}/{child.name}", found)
            elif isinstance(child.value, bytes) and child.value:
                field = fields[child.op]
                inner = self.read(field, child.value) if field and self._may_hold(field) else None
                if inner is not None:
                    inner.path = f"{path}/{child.name}"
                    found[child.start, child.op] = inner
        self.above.pop()

    def _may_hold(self, field: Field | None) -> bool:
        if field is None:
            return False
        return field.meaning in (Meaning.SCHEMA, Meaning.RECORDS)

    def read(self, field: Field, data: bytes) -> Inner | None:
        """The content of one bytes field, None if unknown."""
        if field.meaning is Meaning.RECORDS:
            return self.record_set(data)
        if field.name == "metrics":
            codec = self.near("compression_type")
            return telemetry.read_metrics(data, codec if isinstance(codec, int) else 0, self.bytes_left)
        if field.name == "request_principal":
            return self.principal(data)
        if field.name in ("request_data", "response_data"):
            return self.message(data, field.name)
        if field.name == "user_data":
            return membership.read_user_data(self, data)
        protocol = self.near("protocol_type") or self.around.protocol_type
        return membership.read_member(self, data, field.name, protocol if isinstance(protocol, str) else None)

    def principal(self, data: bytes) -> Inner:
        """The client principal in an Envelope (KIP-590): an int16 version and the default principal; custom
        principal builders may write other bytes."""
        if len(data) < 2:
            return Inner("DefaultPrincipalData", note="too short for a version")
        inner = self.schema("DefaultPrincipalData", int.from_bytes(data[:2], "big", signed=True), data[2:])
        return inner if inner.is_read else Inner("bytes", note="not the default principal")

    def near(self, *names: str) -> Value:
        """Value of the nearest field with one of these names, in this struct or an enclosing one."""
        for node in reversed(self.above):
            for child in node.children:
                if child.name in names and child.is_leaf and child.value is not None:
                    return child.value
        return None

    def schema(self, name: str, version: int, data: bytes) -> Inner:
        """A schema's bare body and the content of its bytes fields."""
        reading = read_schema(data, name, version, self.catalog)
        inner = Inner(name, version, tree=reading.tree, error=reading.error)
        if reading.tree is None:
            inner.note = f"unknown version {version} of {name}"
            inner.error = None
        elif reading.version != version:
            inner.note = f"version {version} read as {reading.version}"
        if reading.tree is not None and reading.error is None:
            self.depth += 1
            inner.inner = self.find(reading.tree)
            self.depth -= 1
        return inner

    def message(self, data: bytes, field: str) -> Inner:
        """A request or response, header and body. A response needs ``around.asked``."""
        if field == "request_data":
            message = read_message(self.kind, data, catalog=self.catalog, limits=self.limits)
        elif self.around.asked is None:
            return Inner("response", note="a response to an unknown request")
        else:
            key, version = self.around.asked
            message = read_message(
                self.kind,
                data,
                direction="response",
                api_key=key,
                api_version=version,
                catalog=self.catalog,
                limits=self.limits,
            )
        message.inner = find_inner(message, Surroundings(topics=self.around.topics), self.depth + 1)
        error = message.error
        shown = {"code": error.code, "path": error.path, "offset": error.offset} if error else None
        return Inner(message.direction, message.api_version, message=message, error=shown)

    def record_set(self, data: bytes) -> Inner:
        """A record set; in Kafka's internal topics with decoded keys and values."""
        found = decode_records(
            data, limit=self.bytes_left, most_records=self.records_left, catalog=self.catalog
        )
        self.records_left -= sum(len(batch["records"]) for batch in found.batches)
        self.bytes_left -= found.unpacked_bytes
        inner = Inner("records", records=found)
        topic = self._topic()
        for number, batch in enumerate(found.batches):
            if topic is None or batch.get("is_control_batch"):
                continue
            for index, record in enumerate(batch["records"]):
                for name, one in read_record(self, topic, record).items():
                    inner.in_records[number, index, name] = one
        return inner

    def _topic(self) -> str | None:
        name = self.near("topic", "name")
        if isinstance(name, str):
            return name
        topic_id = self.near("topic_id")
        return self.around.topics.get(topic_id) if isinstance(topic_id, str) else None


def leaves(tree: Tree, inner: Mapping[Place, Inner]) -> Iterator[tuple[Field, Value]]:
    """Every field that has a value, with the value, also inside bytes fields."""
    fields = tree.shape.fields
    for _, node in tree.walk():
        field = fields[node.op]
        if field is not None and node.is_leaf and node.value is not None:
            yield field, node.value
    for found in inner.values():
        if found.tree is not None:
            yield from leaves(found.tree, found.inner)
        if found.message is not None:
            yield from leaves(found.message.tree, found.message.inner or {})
        for one in found.in_records.values():
            if one.tree is not None:
                yield from leaves(one.tree, one.inner)
