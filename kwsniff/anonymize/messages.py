"""A message with every name replaced, of the same size.

Only bytes that a layout explains are kept: what is behind a decoding error, in unknown tagged fields or
without a layout becomes zeros. Strings and bytes fields are replaced by their kind in names.txt.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from kwsniff.anonymize.names import Names
from kwsniff.anonymize.records import Records
from kwsniff.layout.catalog import Catalog
from kwsniff.layout.model import Field
from kwsniff.limits import Limits
from kwsniff.view.call import surroundings
from kwsniff.view.decode import Message, decode
from kwsniff.view.embedded import Finder
from kwsniff.view.model import Inner, Place, Surroundings
from kwsniff.view.model import Message as AnyMessage
from kwsniff.view.selection import Call, Packet
from kwsniff.view.tree import Node, Tree

_TEXTS: Final = ("string", "string16", "bytes", "records", "rest")
_FILLINGS: Final = (b"\0", b"\x7f", b"\xff", b"\xf0\xff\xff\xff\x07\0", b"\x80")
"""Behind a decoding error: lengths and counts of 0, large ones, null, and compact ones."""
_VERSION_BYTES: Final = 2


class _Contents(Finder):
    """Contents of bytes fields, without those of records."""

    def record_set(self, data: bytes) -> Inner:
        return Inner("records")


class Messages:
    """Replaces messages, call by call."""

    def __init__(self, names: Names, catalog: Catalog, limits: Limits) -> None:
        self.names = names
        self.catalog = catalog
        self.limits = replace(limits, message_fields=min(limits.message_fields, limits.shown_fields))
        self.records = Records(names, catalog, limits)
        self.blanked = 0
        """Messages that are blank in part."""

    def replace(self, call: Call) -> Iterator[tuple[Packet, bytes]]:
        """Each message of a call with its new bytes."""
        around = Surroundings()
        for packet in call.packets:
            if packet["kind"] == "sasl_token":
                yield packet, self.names.sasl(packet["data"])
                continue
            message = self._decode(packet)
            message.inner = self._contents(message, around, 0)
            new = self.message(message)
            if packet["kind"] == "request":
                around = surroundings(message, {})
            yield packet, new

    def _decode(self, packet: Packet) -> Message:
        data, limits = packet["data"], self.limits
        catalog = self.catalog.of_product(packet["product"])
        if packet["kind"] == "request":
            return decode(data, catalog=catalog, limits=limits)
        key, version = (-1 if packet[name] is None else packet[name] for name in ("api_key", "api_version"))
        return decode(
            data, direction="response", api_key=key, api_version=version, catalog=catalog, limits=limits
        )

    def _contents(self, message: AnyMessage, around: Surroundings, depth: int) -> dict[Place, Inner]:
        if message.program is None or message.body is None:
            return {}
        return _Contents(type(message), around, depth, message).find(message.tree)

    def message(self, message: AnyMessage) -> bytes:
        """Its bytes, header and body."""
        data = message.data
        if message.program is None:
            return self._header(message)
        new = bytes(self.tree(message.tree, data, message.inner or {}))
        if message.error is None or message.error.offset >= len(data):
            return new
        self.blanked += 1
        return self._break(message, new[: message.error.offset], len(data))

    def _break(self, message: AnyMessage, kept: bytes, size: int) -> bytes:
        """The part before a decoding error, and then bytes with the same error, as far as there are any."""
        blank = kept + bytes(size - len(kept))
        for filling in _FILLINGS:
            new = (kept + filling + filling[-1:] * size)[:size]
            other = decode(
                new, direction=message.direction, api_key=message.api_key, api_version=message.api_version,
                catalog=self.catalog, limits=self.limits,
            )  # fmt: skip
            if other.error == message.error:
                return new
        return blank

    def _header(self, message: AnyMessage) -> bytes:
        """Of a message without a layout only the header is kept."""
        self.blanked += 1
        data, header = message.data, message.header
        if header is None:
            return bytes(len(data))
        new = self.tree(message.tree, data, {})
        return bytes(new[: header.end]) + bytes(len(data) - header.end)

    def tree(self, tree: Tree, data: bytes, inner: dict[Place, Inner]) -> bytearray:
        """The bytes of a tree."""
        new = bytearray(data)
        if any(surplus > 0 for _, surplus in tree.wrong_sizes):
            # Bytes that no field has lie somewhere in tagged fields.
            begin = tree.body.start if tree.body else 0
            self.blanked += 1
            new[begin:] = bytes(len(new) - begin)
            return new
        fields = tree.shape.fields
        for _, node in tree.walk():
            field = fields[node.op]
            if field is not None and node.is_leaf and field.type in _TEXTS and node.value is not None:
                self._field(field, node, data, new, inner.get((node.start, node.op)))
        for tag in tree.unknown_tags:
            new[tag.start : tag.start + tag.size] = bytes(len(new[tag.start : tag.start + tag.size]))
        return new

    def _field(self, field: Field, node: Node, data: bytes, new: bytearray, found: Inner | None) -> None:
        if isinstance(node.value, list):
            spans = _elements(node, data)
            if spans is None:
                new[node.start : node.end] = bytes(node.end - node.start)
                return
        else:
            spans = [(node.start, node.end)]
        kind = self.names.public.kind(field.name, field.meaning)
        for begin, end in spans:
            replaced = self._replace(kind, data[begin:end], found)
            new[begin:end] = replaced if len(replaced) == end - begin else bytes(end - begin)

    def _replace(self, kind: str, data: bytes, found: Inner | None) -> bytes:
        if kind == "name":
            return self.names.name(data)
        if kind == "word":
            return self.names.word(data)
        if kind == "sasl":
            return self.names.sasl(data)
        if kind == "records":
            return self.records.replace(data)
        if kind == "schema" and found is not None:
            return self._inside(data, found)
        return self.names.value(data)

    def _inside(self, data: bytes, found: Inner) -> bytes:
        if found.message is not None:
            return self.message(found.message)
        if found.tree is None or found.error is not None:
            return self.names.value(data)
        size = _size(found.tree)
        skipped = len(data) - size
        if skipped not in (0, _VERSION_BYTES):
            return self.names.value(data)
        return data[:skipped] + bytes(self.tree(found.tree, data[skipped:], found.inner))


def _size(tree: Tree) -> int:
    """Bytes of a tree that was read whole."""
    return tree.body.end if tree.body else 0


def _elements(node: Node, data: bytes) -> list[tuple[int, int]] | None:
    """Where the strings of an array are, whose lengths are an int16 or, compact, an uvarint of one more."""
    values: list[Any] = node.value if isinstance(node.value, list) else []
    for compact in (False, True):
        spans, at = [], node.start
        for value in values:
            size, at = _length(data, at, compact)
            if size < 0:
                if value is not None:
                    break
                continue
            if data[at : at + size].decode("utf-8", "replace") != value:
                break
            spans.append((at, at + size))
            at += size
        else:
            if at == node.end or not values:
                return spans
    return None


def _length(data: bytes, at: int, compact: bool) -> tuple[int, int]:
    if not compact:
        return int.from_bytes(data[at : at + 2], "big", signed=True), at + 2
    size = shift = 0
    for byte in data[at : at + 5]:
        size |= (byte & 127) << shift
        shift, at = shift + 7, at + 1
        if byte < 128:
            break
    return size - 1, at
